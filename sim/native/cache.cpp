// The lines behind the module clew_cache_cells (DPI): tags, recency and data of a set-associative cache.

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "svdpi.h"

namespace {

constexpr uint32_t LINE_WORDS = 8;

// As CacheOp in hdl/fabric/cache_cells.py.
enum Op : unsigned { READ = 0, READ_ALLOCATE = 1, WRITE = 2, DROP = 3, FILL = 4, CLEAR = 5 };

enum State : uint8_t { FREE = 0, AWAITED = 1, VALID = 2 };

struct Line {
    uint64_t used;  // number of the operation that used it last
    uint32_t address;
    uint8_t owner;
    uint8_t state;
};

class Cache {
   public:
    ~Cache() { release(); }

    bool operate(unsigned sets_log2, unsigned ways, unsigned op, uint32_t address, uint8_t owner,
                 const uint32_t *data, uint32_t mask, uint32_t *out) {
        if (op == CLEAR || !lines) shape(sets_log2, ways);
        if (op == CLEAR || !ways_) return false;
        ++now;
        const size_t first = (address & ((uint64_t{1} << sets_log2_) - 1)) * ways_;
        Line *line = find(first, address);
        switch (op) {
            case READ:
            case READ_ALLOCATE:
                if (line && line->state == VALID) {
                    line->used = now;
                    std::memcpy(out, words(line), LINE_WORDS * sizeof(uint32_t));
                    return true;
                }
                if (op == READ_ALLOCATE) {
                    line = place(line, first, address);
                    line->state = AWAITED;
                    line->owner = owner;
                }
                return false;
            case WRITE:
                if (mask == UINT32_MAX) {
                    line = place(line, first, address);
                    line->state = VALID;
                } else if (line && line->state == AWAITED) {
                    line->state = FREE;
                    return false;
                }
                if (!line) return false;
                line->used = now;
                merge(words(line), data, mask);
                return false;
            case DROP:
                if (line) line->state = FREE;
                return false;
            case FILL:
                if (line && line->state == AWAITED && line->owner == owner) {
                    line->state = VALID;
                    merge(words(line), data, UINT32_MAX);
                }
                return false;
            default:
                return false;
        }
    }

   private:
    unsigned sets_log2_ = 0, ways_ = 0;
    uint64_t now = 0;
    // Zeroed by the system when touched, so that a large cache costs what is used of it.
    Line *lines = nullptr;
    uint32_t *contents = nullptr;

    void release() {
        std::free(lines);
        std::free(contents);
    }

    void shape(unsigned sets_log2, unsigned ways) {
        release();
        sets_log2_ = sets_log2;
        ways_ = ways;
        const size_t count = ways ? size_t{ways} << sets_log2 : 1;
        lines = static_cast<Line *>(std::calloc(count, sizeof(Line)));
        contents = static_cast<uint32_t *>(std::calloc(count * LINE_WORDS, sizeof(uint32_t)));
        if (!lines || !contents) std::abort();
    }

    uint32_t *words(const Line *line) { return contents + (line - lines) * LINE_WORDS; }

    Line *find(size_t first, uint32_t address) {
        for (Line *line = lines + first; line != lines + first + ways_; ++line) {
            if (line->state != FREE && line->address == address) return line;
        }
        return nullptr;
    }

    // The line of an address, used now: `line` where it has one, else the first free or the oldest.
    Line *place(Line *line, size_t first, uint32_t address) {
        if (!line) {
            line = lines + first;
            for (Line *other = line; other != lines + first + ways_; ++other) {
                if (other->state == FREE) {
                    line = other;
                    break;
                }
                if (other->used < line->used) line = other;
            }
            line->address = address;
        }
        line->used = now;
        return line;
    }

    static void merge(uint32_t *line, const uint32_t *data, uint32_t mask) {
        for (uint32_t word = 0; word < LINE_WORDS; ++word) {
            uint32_t bits = 0;
            for (uint32_t byte = 0; byte < 4; ++byte) {
                if (mask >> (4 * word + byte) & 1) bits |= 0xffu << 8 * byte;
            }
            line[word] = (line[word] & ~bits) | (data[word] & bits);
        }
    }
};

}  // namespace

extern "C" {

void *clew_cache_create() { return new Cache; }

void clew_cache_destroy(void *cache) { delete static_cast<Cache *>(cache); }

// `line` is the line where `found` says that the read hits; else nothing is put there.
void clew_cache_operate(void *cache, unsigned int sets_log2, unsigned int ways, unsigned int op,
                        unsigned int address, unsigned int owner, const svBitVecVal *data,
                        const svBitVecVal *mask, svBit *found, svBitVecVal *line) {
    *found = static_cast<Cache *>(cache)->operate(sets_log2, ways, op, address, static_cast<uint8_t>(owner),
                                                  data, *mask, line);
}
}
