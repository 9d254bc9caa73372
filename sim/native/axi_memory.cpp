// A memory behind an AXI port, for clew_axi_memory.v: the published latency of the port by the state of the row.
//
// Row state. Every bank keeps the row that was accessed last. An access finds it (hit), finds none (closed) or
// finds another (miss), and its data comes so many cycles after its address was taken. A row that has to be opened
// is opened no sooner than tRC after the one before in its bank. Each tREFI of a batch all rows are closed, and
// nothing begins within the tRFC that follow. Before a batch all rows are closed, as in the design's own memory.
//
// Data. One beat each `beat_ps` each way: the clock of the port. Reads of one ID are answered in order, those
// of others as their data comes. Writes take place when their last beat comes, and are answered in order, as
// late as a read of their last atom would be.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <unordered_map>

#include "storage.h"
#include "svdpi.h"

namespace {

constexpr uint32_t ATOM_BYTES = 32, ATOM_WORDS = 8;

struct Bank {
    uint64_t row = 0;
    uint64_t refreshes = 0;  // those that had been when its row was opened
    uint64_t opened = 0;     // when
    bool open = false;
    bool used = false;
};

struct Read {
    uint32_t id;
    uint64_t atom;
    uint32_t beats;
    uint32_t done = 0;
    std::deque<uint64_t> ready;  // when the data of each beat is there
};

struct Write {
    uint32_t id;
    uint64_t atom;
    uint32_t beats;
    uint32_t done = 0;
    uint64_t ready = 0;
};

struct Memory {
    uint32_t first, pseudo_channel_bits, bank_group_bits, column_bits, bank_bits;
    uint64_t now = 0, begun = 0;
    std::unordered_map<uint64_t, Bank> banks;
    std::deque<Read> reads;  // in the order in which they were taken
    std::deque<Write> writes;
    size_t filling = 0;  // the write that the next beat belongs to
    uint64_t read_credit = 0, write_free_ps = 0;
    bool read_offered = false, reply_offered = false;
    uint32_t offered_id = 0, offered_last = 0, offered_reply = 0;
    uint32_t offered_data[ATOM_WORDS] = {};

    // The cycle in which the data of an atom is there, when it is asked for now.
    uint64_t access(uint64_t atom) {
        const clew_axi_times &times = clew_store_axi_times();
        uint64_t start = now, refreshes = 0;
        if (times.refresh_interval) {
            refreshes = (now - begun) / times.refresh_interval;
            const uint64_t refreshed = begun + refreshes * times.refresh_interval;
            if (refreshes) start = std::max(start, refreshed + times.refresh_cycles);
        }
        const uint64_t local = atom - first;
        const uint32_t low = pseudo_channel_bits + bank_group_bits;
        const uint64_t above = local >> (low + column_bits);
        const uint64_t unit = (local & ((1u << low) - 1)) | (above & ((1u << bank_bits) - 1)) << low;
        const uint64_t row = above >> bank_bits;
        Bank &bank = banks[unit];
        if (bank.open && bank.refreshes != refreshes) bank.open = false;
        if (bank.open && bank.row == row) return std::max(start, bank.opened) + times.hit;
        const uint32_t latency = bank.open ? times.miss : times.closed;
        if (bank.used) start = std::max(start, bank.opened + times.row_cycle);
        bank = {row, refreshes, start, true, true};
        return start + latency;
    }

    void close_rows() {
        banks.clear();
        begun = now + 1;
    }
};

Memory &the(void *memory) { return *static_cast<Memory *>(memory); }

}  // namespace

extern "C" {

void *clew_axi_create(unsigned int first, unsigned int pseudo_channel, unsigned int bank_group,
                      unsigned int column, unsigned int bank) {
    auto *memory = new Memory();
    memory->first = first;
    memory->pseudo_channel_bits = pseudo_channel;
    memory->bank_group_bits = bank_group;
    memory->column_bits = column;
    memory->bank_bits = bank;
    return memory;
}

void clew_axi_destroy(void *memory) { delete static_cast<Memory *>(memory); }

// The first call of a cycle.
void clew_axi_begin(void *memory, svBit reset, svBit active, svBit read_taken, svBit reply_taken) {
    Memory &m = the(memory);
    const clew_axi_times &times = clew_store_axi_times();
    ++m.now;
    m.read_credit = std::min<uint64_t>(m.read_credit + times.clock_ps, times.beat_ps);
    if (reset) {
        m.reads.clear();
        m.writes.clear();
        m.filling = 0;
        m.read_offered = m.reply_offered = false;
        m.close_rows();
        return;
    }
    if (!active) m.close_rows();
    if (read_taken) m.read_offered = false;
    if (reply_taken) m.reply_offered = false;
}

void clew_axi_read(void *memory, unsigned int id, unsigned long long address, unsigned int length) {
    Memory &m = the(memory);
    Read read{id, address / ATOM_BYTES, length + 1, 0, {}};
    for (uint32_t beat = 0; beat < read.beats; ++beat) read.ready.push_back(m.access(read.atom + beat));
    m.reads.push_back(std::move(read));
}

void clew_axi_write(void *memory, unsigned int id, unsigned long long address, unsigned int length) {
    the(memory).writes.push_back({id, address / ATOM_BYTES, length + 1});
}

void clew_axi_data(void *memory, const svBitVecVal *data, const svBitVecVal *strobe) {
    Memory &m = the(memory);
    const clew_axi_times &times = clew_store_axi_times();
    Write &write = m.writes.at(m.filling);
    clew_store_merge(write.atom + write.done, data, strobe[0]);
    m.write_free_ps = std::max(m.write_free_ps, m.now * times.clock_ps) + times.beat_ps;
    const uint64_t held = m.write_free_ps / times.clock_ps - m.now;
    write.ready = std::max(write.ready, m.access(write.atom + write.done) + held);
    if (++write.done == write.beats) ++m.filling;
}

// The last call of a cycle: what is offered in the next.
void clew_axi_end(void *memory, unsigned int *read_valid, unsigned int *read_id, unsigned int *read_last,
                  svBitVecVal *read_data, unsigned int *reply_valid, unsigned int *reply_id) {
    Memory &m = the(memory);
    const clew_axi_times &times = clew_store_axi_times();
    if (!m.read_offered && m.read_credit >= times.beat_ps) {
        auto best = m.reads.end();
        uint64_t seen = 0;  // a bit for each ID: only its first read may be answered
        for (auto read = m.reads.begin(); read != m.reads.end(); ++read) {
            const uint64_t bit = uint64_t{1} << (read->id & 63);
            if (seen & bit) continue;
            seen |= bit;
            if (read->ready.front() > m.now + 1) continue;
            if (best == m.reads.end() || read->ready.front() < best->ready.front()) best = read;
        }
        if (best != m.reads.end()) {
            m.read_credit -= times.beat_ps;
            m.read_offered = true;
            m.offered_id = best->id;
            clew_store_fetch(clew_store_current(), best->atom + best->done, 1, m.offered_data);
            best->ready.pop_front();
            m.offered_last = ++best->done == best->beats;
            if (m.offered_last) m.reads.erase(best);
        }
    }
    if (!m.reply_offered && m.filling && m.writes.front().ready <= m.now + 1) {
        m.reply_offered = true;
        m.offered_reply = m.writes.front().id;
        m.writes.pop_front();
        --m.filling;
    }
    *read_valid = m.read_offered;
    *read_id = m.offered_id;
    *read_last = m.offered_last;
    std::memcpy(read_data, m.offered_data, sizeof m.offered_data);
    *reply_valid = m.reply_offered;
    *reply_id = m.offered_reply;
}
}
