// The memory's contents in simulation: a sparse store of 32-byte atoms, and which store the design sees.

#pragma once

#include <cstdint>

struct clew_store;

// What a memory behind an AXI port takes, in cycles and ps: see axi_memory.cpp.
struct clew_axi_times {
    uint32_t hit, closed, miss;  // from the address to the first data
    uint32_t row_cycle;
    uint32_t refresh_interval;  // 0: no refresh
    uint32_t refresh_cycles;
    uint32_t clock_ps, beat_ps;
};

extern "C" {

// An empty store: every atom reads as zero. It costs what is written to it.
clew_store *clew_store_create();

// Frees `store`. If it was selected in this thread, the thread's own default store is seen again.
void clew_store_destroy(clew_store *store);

// Makes `store` the one that the design's accesses from this thread reach. Null: the thread's default store.
void clew_store_select(clew_store *store);

// The store that the design's accesses from this thread reach.
clew_store *clew_store_current();

// Forgets everything in `store`.
void clew_store_clear(clew_store *store);

// Backdoor: copies `count` atoms of eight 32-bit words to or from index `first` on.
void clew_store_load(clew_store *store, uint64_t first, uint64_t count, const uint32_t *atoms);
void clew_store_fetch(const clew_store *store, uint64_t first, uint64_t count, uint32_t *atoms);

// The same for their check bits, one 32-bit word an atom. A design without ECC never looks at them.
void clew_store_load_checks(clew_store *store, uint64_t first, uint64_t count, const uint32_t *checks);
void clew_store_fetch_checks(const clew_store *store, uint64_t first, uint64_t count, uint32_t *checks);

// Writes the bytes of an atom that `enables` names, in the store that is selected.
void clew_store_merge(uint64_t index, const uint32_t *atom, uint32_t enables);

// The times of the memory behind an AXI port: those of `store`, and of the store that is selected.
void clew_store_set_axi_times(clew_store *store, const clew_axi_times *times);
const clew_axi_times &clew_store_axi_times();

// Flips one stored bit of the atom at `index`: 0 to 255 are its data, 256 to 287 its check bits.
void clew_store_flip(clew_store *store, uint64_t index, uint32_t bit);
}
