// Log records that every compiled model writes, and how they are taken from a top's monitor outputs.
// sim/compiled.py declares the same as numpy types.

#pragma once

#include <cstdint>
#include <vector>

// A port of a nested interface: Verilator writes the two underscores of its name as ___05F.
#define PORT(interface, name) interface##___05F##name

// CLEW_CHANNELS is the number of memory channels of the top; a header that the build writes may say another.
#ifndef CLEW_CHANNELS
#define CLEW_CHANNELS 1
#endif
// A port of the monitors that each channel has: an array by channel when there are several.
#if CLEW_CHANNELS == 1
#define CHANNEL_PORT(interface, channel, name) PORT(interface, name)
#else
#define CHANNEL_PORT(interface, channel, name) interface##___05F##channel##___05F##name
#endif
// EACH_CHANNEL(X): X(0) X(1) ... for every channel.
#define CHANNELS_1(X) X(0)
#define CHANNELS_2(X) CHANNELS_1(X) X(1)
#define CHANNELS_4(X) CHANNELS_2(X) X(2) X(3)
#define CHANNELS_8(X) CHANNELS_4(X) X(4) X(5) X(6) X(7)
#define CHANNELS_16(X) CHANNELS_8(X) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define CHANNELS_OF(count, X) CHANNELS_##count(X)
#define EXPAND_CHANNELS(count, X) CHANNELS_OF(count, X)
#define EACH_CHANNEL(X) EXPAND_CHANNELS(CLEW_CHANNELS, X)

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
    uint32_t channel;
};

// What ECC found in the data of one read.
struct ErrorRecord {
    uint64_t cycle;
    uint32_t address;
    uint32_t uncorrectable;  // 0: it was corrected
};

static_assert(sizeof(CommandRecord) == 16 && sizeof(AccessRecord) == 16 && sizeof(ErrorRecord) == 16,
              "sim/compiled.py and sim/compiled_memory.py declare records of 16 bytes");

inline void log_command(std::vector<CommandRecord> &log, uint64_t cycle, uint8_t bus, uint8_t op,
                        uint8_t pseudo_channel, uint8_t bank, uint32_t row_or_column) {
    if (op) log.push_back({cycle, bus, op, pseudo_channel, bank, row_or_column});
}

inline void log_access(std::vector<AccessRecord> &log, uint64_t cycle, uint8_t row_class, uint32_t tag,
                       uint8_t write, uint32_t channel) {
    if (!row_class) return;
    const uint8_t source = tag & 7, context = tag >> 3 & 63;
    log.push_back({cycle, source, context, row_class, write, channel});
}

// Appends what is on the command buses of a channel of `top` in this cycle.
#define LOG_COMMANDS(top, channel, cycle, log)                                                          \
    log_command(log, cycle, 0, (top).CHANNEL_PORT(row, channel, op),                                     \
                (top).CHANNEL_PORT(row, channel, pseudo_channel), (top).CHANNEL_PORT(row, channel, bank), \
                (top).CHANNEL_PORT(row, channel, row));                                                  \
    log_command(log, cycle, 1, (top).CHANNEL_PORT(column, channel, op),                                  \
                (top).CHANNEL_PORT(column, channel, pseudo_channel),                                     \
                (top).CHANNEL_PORT(column, channel, bank), (top).CHANNEL_PORT(column, channel, column));

// Appends the access whose column command is on the bus of a channel of `top` in this cycle.
#define LOG_ACCESS(top, channel, cycle, log)                                                             \
    log_access(log, cycle, (top).CHANNEL_PORT(access, channel, row_class),                               \
               (top).CHANNEL_PORT(access, channel, tag), (top).CHANNEL_PORT(access, channel, write), channel);

// Appends what the error monitor of `top` says in this cycle; a top without ECC has none.
template <class Top>
void log_error(const Top &top, uint64_t cycle, std::vector<ErrorRecord> &log) {
    if constexpr (requires { top.PORT(errors, corrected); }) {
        if (!(top.PORT(errors, corrected) | top.PORT(errors, uncorrectable))) return;
        log.push_back({cycle, top.PORT(errors, address), top.PORT(errors, uncorrectable)});
    }
}
