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
constexpr uint32_t PAGE_ATOMS = 128;  // 4 KiB

using Page = std::array<uint32_t, size_t{PAGE_ATOMS} * ATOM_WORDS>;

}  // namespace

struct clew_store {
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

    const uint32_t *read(uint64_t index) {
        static constexpr uint32_t zeros[ATOM_WORDS] = {};
        const Page *page = find(index / PAGE_ATOMS);
        return page ? page->data() + index % PAGE_ATOMS * ATOM_WORDS : zeros;
    }

    uint32_t *write(uint64_t index) {
        return make(index / PAGE_ATOMS)->data() + index % PAGE_ATOMS * ATOM_WORDS;
    }

    void clear() {
        pages.clear();
        last_number = UINT64_MAX;
        last = nullptr;
    }
};

namespace {

thread_local clew_store *selected = nullptr;

clew_store &current() {
    static thread_local clew_store fallback;
    return selected ? *selected : fallback;
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

void clew_store_clear(clew_store *store) { store->clear(); }

void clew_store_load(clew_store *store, uint64_t first, uint64_t count, const uint32_t *atoms) {
    for (uint64_t i = 0; i < count; ++i) {
        std::copy_n(atoms + i * ATOM_WORDS, ATOM_WORDS, store->write(first + i));
    }
}

void clew_store_fetch(const clew_store *store, uint64_t first, uint64_t count, uint32_t *atoms) {
    auto *readable = const_cast<clew_store *>(store);  // reading only moves the remembered page
    for (uint64_t i = 0; i < count; ++i) {
        std::copy_n(readable->read(first + i), ATOM_WORDS, atoms + i * ATOM_WORDS);
    }
}

// -- DPI: what clew_storage.v imports --

void clew_storage_read(unsigned int index, svBitVecVal *data) {
    std::memcpy(data, current().read(index), ATOM_WORDS * sizeof(uint32_t));
}

void clew_storage_write(unsigned int index, const svBitVecVal *data, const svBitVecVal *mask) {
    uint32_t *atom = current().write(index);
    const uint32_t enables = mask[0];
    if (enables == UINT32_MAX) {
        std::memcpy(atom, data, ATOM_WORDS * sizeof(uint32_t));
        return;
    }
    for (uint32_t word = 0; word < ATOM_WORDS; ++word) {
        uint32_t bits = 0;
        for (uint32_t byte = 0; byte < 4; ++byte) {
            if (enables >> (4 * word + byte) & 1) bits |= 0xffu << 8 * byte;
        }
        atom[word] = (atom[word] & ~bits) | (data[word] & bits);
    }
}
}
