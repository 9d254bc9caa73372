// Log records that every compiled model writes, and how they are taken from a top's monitor outputs.
// sim/compiled.py declares the same as numpy types.

#pragma once

#include <cstdint>
#include <vector>

// A port of a nested interface: Verilator writes the two underscores of its name as ___05F.
#define PORT(interface, name) interface##___05F##name

// One command on a bus.
struct CommandRecord {
    uint64_t cycle;
    uint8_t bus;  // 0 row, 1 column
    uint8_t op;   // RowOp or ColumnOp
    uint8_t pseudo_channel;
    uint8_t bank;
    uint32_t row_or_column;
};

// One column access, with the tag it serves.
struct AccessRecord {
    uint64_t cycle;
    uint8_t source;
    uint8_t context;
    uint8_t row_class;
    uint8_t write;
    uint32_t unused;
};

// What ECC found in the data of one read.
struct ErrorRecord {
    uint64_t cycle;
    uint32_t address;
    uint32_t uncorrectable;  // 0: it was corrected
};

static_assert(sizeof(CommandRecord) == 16 && sizeof(AccessRecord) == 16 && sizeof(ErrorRecord) == 16,
              "sim/compiled.py and sim/compiled_memory.py declare records of 16 bytes");

// Appends what is on the command buses of `top` in this cycle.
template <class Top>
void log_commands(const Top &top, uint64_t cycle, std::vector<CommandRecord> &log) {
    if (top.PORT(row, op)) {
        log.push_back({cycle, 0, top.PORT(row, op), top.PORT(row, pseudo_channel), top.PORT(row, bank),
                       top.PORT(row, row)});
    }
    if (top.PORT(column, op)) {
        log.push_back({cycle, 1, top.PORT(column, op), top.PORT(column, pseudo_channel),
                       top.PORT(column, bank), top.PORT(column, column)});
    }
}

// Appends the access whose column command is on the bus of `top` in this cycle.
template <class Top>
void log_access(const Top &top, uint64_t cycle, std::vector<AccessRecord> &log) {
    if (!top.PORT(access, row_class)) return;
    const uint32_t tag = top.PORT(access, tag);  // source 3, context 6
    log.push_back({cycle, static_cast<uint8_t>(tag & 7), static_cast<uint8_t>(tag >> 3 & 63),
                   top.PORT(access, row_class), top.PORT(access, write), 0});
}

// Appends what the error monitor of `top` says in this cycle; a top without ECC has none.
template <class Top>
void log_error(const Top &top, uint64_t cycle, std::vector<ErrorRecord> &log) {
    if constexpr (requires { top.PORT(errors, corrected); }) {
        if (!(top.PORT(errors, corrected) | top.PORT(errors, uncorrectable))) return;
        log.push_back({cycle, top.PORT(errors, address), top.PORT(errors, uncorrectable)});
    }
}
