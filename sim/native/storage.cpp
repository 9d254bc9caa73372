// Sparse pages behind the module clew_storage (DPI) and the backdoor of storage.h.

#include "storage.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <unordered_map>

#include "svdpi.h"

namespace {

constexpr uint32_t ATOM_WORDS = 8;
constexpr uint32_t ATOM_BITS = 32 * ATOM_WORDS;
constexpr uint32_t PAGE_ATOMS = 128;  // of data: 4 KiB

// Entries of `WORDS` 32-bit words, one for each atom; untouched ones are zero and cost nothing.
template <uint32_t WORDS>
class SparseWords {
   public:
    const uint32_t *read(uint64_t index) {
        static constexpr uint32_t zeros[WORDS] = {};
        const Page *page = find(index / PAGE_ATOMS);
        return page ? page->data() + index % PAGE_ATOMS * WORDS : zeros;
    }

    uint32_t *write(uint64_t index) {
        return make(index / PAGE_ATOMS)->data() + index % PAGE_ATOMS * WORDS;
    }

    void load(uint64_t first, uint64_t count, const uint32_t *words) {
        for (uint64_t i = 0; i < count; ++i) std::copy_n(words + i * WORDS, WORDS, write(first + i));
    }

    void fetch(uint64_t first, uint64_t count, uint32_t *words) {
        for (uint64_t i = 0; i < count; ++i) std::copy_n(read(first + i), WORDS, words + i * WORDS);
    }

    void clear() {
        pages.clear();
        last_number = UINT64_MAX;
        last = nullptr;
    }

   private:
    using Page = std::array<uint32_t, size_t{PAGE_ATOMS} * WORDS>;
    std::unordered_map<uint64_t, std::unique_ptr<Page>> pages;
    // The page of the last access: a walk stays in few pages.
    uint64_t last_number = UINT64_MAX;
    Page *last = nullptr;

    Page *find(uint64_t number) {
        if (number == last_number) return last;
        const auto entry = pages.find(number);
        if (entry == pages.end()) return nullptr;
        last_number = number;
        last = entry->second.get();
        return last;
    }

    Page *make(uint64_t number) {
        if (Page *page = find(number)) return page;
        last_number = number;
        last = (pages[number] = std::make_unique<Page>()).get();  // make_unique zeroes it
        return last;
    }
};

}  // namespace

struct clew_store {
    SparseWords<ATOM_WORDS> atoms;
    SparseWords<1> checks;
    clew_axi_times axi_times{};
};

namespace {

thread_local clew_store *selected = nullptr;

clew_store &current() {
    static thread_local clew_store fallback;
    return selected ? *selected : fallback;
}

// Reading only moves the remembered pages.
clew_store &readable(const clew_store *store) { return const_cast<clew_store &>(*store); }

// Puts those bytes of `value` into `word` whose bits of `enables` are set.
void merge(uint32_t *word, uint32_t value, uint32_t enables) {
    uint32_t bits = 0;
    for (uint32_t byte = 0; byte < 4; ++byte) {
        if (enables >> byte & 1) bits |= 0xffu << 8 * byte;
    }
    *word = (*word & ~bits) | (value & bits);
}

}  // namespace

extern "C" {

clew_store *clew_store_create() { return new clew_store; }

void clew_store_destroy(clew_store *store) {
    if (selected == store) selected = nullptr;
    delete store;
}

void clew_store_select(clew_store *store) { selected = store; }

clew_store *clew_store_current() { return &current(); }

void clew_store_clear(clew_store *store) {
    store->atoms.clear();
    store->checks.clear();
}

void clew_store_load(clew_store *store, uint64_t first, uint64_t count, const uint32_t *atoms) {
    store->atoms.load(first, count, atoms);
}

void clew_store_fetch(const clew_store *store, uint64_t first, uint64_t count, uint32_t *atoms) {
    readable(store).atoms.fetch(first, count, atoms);
}

void clew_store_load_checks(clew_store *store, uint64_t first, uint64_t count, const uint32_t *checks) {
    store->checks.load(first, count, checks);
}

void clew_store_fetch_checks(const clew_store *store, uint64_t first, uint64_t count, uint32_t *checks) {
    readable(store).checks.fetch(first, count, checks);
}

void clew_store_merge(uint64_t index, const uint32_t *atom, uint32_t enables) {
    uint32_t *stored = current().atoms.write(index);
    for (uint32_t word = 0; word < ATOM_WORDS; ++word) merge(stored + word, atom[word], enables >> 4 * word);
}

void clew_store_set_axi_times(clew_store *store, const clew_axi_times *times) { store->axi_times = *times; }

const clew_axi_times &clew_store_axi_times() { return current().axi_times; }

void clew_store_flip(clew_store *store, uint64_t index, uint32_t bit) {
    uint32_t *word = bit < ATOM_BITS ? store->atoms.write(index) + bit / 32 : store->checks.write(index);
    *word ^= 1u << bit % 32;
}

// -- DPI: what clew_storage.v imports --

void clew_storage_read(unsigned int index, svBitVecVal *data) {
    std::memcpy(data, current().atoms.read(index), ATOM_WORDS * sizeof(uint32_t));
}

void clew_storage_write(unsigned int index, const svBitVecVal *data, const svBitVecVal *mask) {
    if (mask[0] == UINT32_MAX) {
        std::memcpy(current().atoms.write(index), data, ATOM_WORDS * sizeof(uint32_t));
    } else {
        clew_store_merge(index, data, mask[0]);
    }
}

void clew_check_storage_read(unsigned int index, svBitVecVal *check) {
    *check = *current().checks.read(index);
}

void clew_check_storage_write(unsigned int index, const svBitVecVal *check, const svBitVecVal *mask) {
    merge(current().checks.write(index), *check, *mask);
}
}
