// The compiled model: one Clew top under Verilator behind a C interface that Python reaches through ctypes.
//
// It owns the clock, is the AXI4-Lite manager of the host port, and takes the logs from the top's monitor
// outputs in every cycle. One cycle is: settle with the clock low, look, raise the clock. What is looked at
// is therefore what a listener on the rising edge sees, as in a cocotb testbench.
//
// CLEW_CHANNELS is the number of memory channels that the top was built with.

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "Vclew.h"
#include "storage.h"
#include "verilated.h"

// A port of a nested interface: Verilator writes the two underscores of its name as ___05F.
#define PORT(interface, name) interface##___05F##name
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
// It prefixes names that some C++ compiler reserves.
#define INTERRUPT __SYM__interrupt

namespace {

// Layouts of the log records; sim/compiled.py declares the same as numpy types.
struct CommandRecord {
    uint64_t cycle;
    uint8_t bus;  // 0 row, 1 column
    uint8_t op;   // RowOp or ColumnOp
    uint8_t pseudo_channel;
    uint8_t bank;
    uint32_t row_or_column;
};
struct HopRecord {
    uint64_t cycle;
    uint32_t address;
    uint8_t event;
    uint8_t context;
    uint8_t place;    // 0 near, 1 far
    uint8_t channel;  // of a near walker; 0 of the far one
};
struct AccessRecord {
    uint64_t cycle;
    uint8_t source;
    uint8_t context;
    uint8_t row_class;
    uint8_t write;
    uint32_t channel;
};
static_assert(sizeof(CommandRecord) == 16 && sizeof(HopRecord) == 16 && sizeof(AccessRecord) == 16,
              "sim/compiled.py declares records of 16 bytes");

enum Status : int32_t { OK = 0, TIMEOUT = -1, STOPPED = -2 };  // positive: the AXI response

// Cycles after which an unanswered bus transaction is given up.
constexpr uint64_t BUS_TIMEOUT = 1000000;
constexpr uint32_t ADDRESS_MASK = (1u << 20) - 1;
constexpr int RESET_CYCLES = 4;

struct Model {
    VerilatedContext context;
    std::unique_ptr<Vclew> top;
    clew_store *store;
    uint64_t cycle = 0;
    bool logging = true;
    std::array<std::vector<CommandRecord>, CLEW_CHANNELS> commands;  // by channel
    std::vector<HopRecord> hops;
    std::vector<AccessRecord> accesses;

    Model() : store(clew_store_create()) {
        context.fatalOnError(false);
        context.randReset(0);
        top = std::make_unique<Vclew>(&context, "clew");
        top->clk = 1;
        top->rst = 0;
        clew_store_select(store);
        top->eval();
    }
    ~Model() {
        top->final();
        top.reset();
        clew_store_destroy(store);
    }

    void log_command(uint32_t channel, uint8_t bus, uint8_t op, uint8_t pseudo_channel, uint8_t bank,
                     uint32_t row_or_column) {
        if (op) commands[channel].push_back({cycle, bus, op, pseudo_channel, bank, row_or_column});
    }

    void log_hop(uint8_t place, uint8_t channel, uint8_t event, uint8_t context, uint32_t address) {
        if (event) hops.push_back({cycle, address, event, context, place, channel});
    }

    void log_access(uint32_t channel, uint8_t row_class, uint32_t tag, uint8_t write) {
        if (!row_class) return;
        const auto source = static_cast<uint8_t>(tag & 7), context = static_cast<uint8_t>(tag >> 3 & 63);
        accesses.push_back({cycle, source, context, row_class, write, channel});
    }

    void look() {
#define LOG_COMMANDS(N)                                                                             \
    log_command(N, 0, top->CHANNEL_PORT(row, N, op), top->CHANNEL_PORT(row, N, pseudo_channel),      \
                top->CHANNEL_PORT(row, N, bank), top->CHANNEL_PORT(row, N, row));                    \
    log_command(N, 1, top->CHANNEL_PORT(column, N, op), top->CHANNEL_PORT(column, N, pseudo_channel), \
                top->CHANNEL_PORT(column, N, bank), top->CHANNEL_PORT(column, N, column));
#define LOG_PROGRESS(N)                                                                              \
    log_hop(0, N, top->CHANNEL_PORT(near_hop, N, event), top->CHANNEL_PORT(near_hop, N, context),    \
            top->CHANNEL_PORT(near_hop, N, address));                                                \
    log_access(N, top->CHANNEL_PORT(access, N, row_class), top->CHANNEL_PORT(access, N, tag),        \
               top->CHANNEL_PORT(access, N, write));

        EACH_CHANNEL(LOG_COMMANDS)
        if (!top->batch_active) return;
        EACH_CHANNEL(LOG_PROGRESS)
        log_hop(1, 0, top->PORT(far_hop, event), top->PORT(far_hop, context), top->PORT(far_hop, address));
    }

    // Settles with the clock low: the outputs are those of this cycle.
    void settle() {
        top->clk = 0;
        top->eval();
    }

    // Ends the cycle that was settled.
    void edge() {
        if (logging) look();
        top->clk = 1;
        top->eval();
        ++cycle;
    }

    void step() {
        settle();
        edge();
    }

    int32_t write(uint32_t address, uint32_t data) {
        top->PORT(s_axil, awaddr) = address & ADDRESS_MASK;
        top->PORT(s_axil, awprot) = 0;
        top->PORT(s_axil, wdata) = data;
        top->PORT(s_axil, wstrb) = 15;
        top->PORT(s_axil, awvalid) = 1;
        top->PORT(s_axil, wvalid) = 1;
        top->PORT(s_axil, bready) = 1;
        int32_t status = TIMEOUT;
        for (const uint64_t limit = cycle + BUS_TIMEOUT; cycle < limit && status == TIMEOUT;) {
            settle();
            const bool address_taken = top->PORT(s_axil, awready);
            const bool data_taken = top->PORT(s_axil, wready);
            if (top->PORT(s_axil, bvalid)) status = top->PORT(s_axil, bresp);
            edge();
            if (address_taken) top->PORT(s_axil, awvalid) = 0;
            if (data_taken) top->PORT(s_axil, wvalid) = 0;
        }
        top->PORT(s_axil, awvalid) = 0;
        top->PORT(s_axil, wvalid) = 0;
        top->PORT(s_axil, bready) = 0;
        return status;
    }

    int32_t read(uint32_t address, uint32_t *data) {
        top->PORT(s_axil, araddr) = address & ADDRESS_MASK;
        top->PORT(s_axil, arprot) = 0;
        top->PORT(s_axil, arvalid) = 1;
        top->PORT(s_axil, rready) = 1;
        int32_t status = TIMEOUT;
        for (const uint64_t limit = cycle + BUS_TIMEOUT; cycle < limit && status == TIMEOUT;) {
            settle();
            const bool address_taken = top->PORT(s_axil, arready);
            if (top->PORT(s_axil, rvalid)) {
                status = top->PORT(s_axil, rresp);
                *data = top->PORT(s_axil, rdata);
            }
            edge();
            if (address_taken) top->PORT(s_axil, arvalid) = 0;
        }
        top->PORT(s_axil, arvalid) = 0;
        top->PORT(s_axil, rready) = 0;
        return status;
    }
};

// The storage behind DPI serves the model that was entered last in this thread.
Model &entered(void *handle) {
    Model &model = *static_cast<Model *>(handle);
    clew_store_select(model.store);
    return model;
}

}  // namespace

// Everything else stays hidden, so that calls inside the library are direct.
#define EXPORT __attribute__((visibility("default")))

extern "C" {

EXPORT void *clew_model_create() { return new Model(); }

EXPORT void clew_model_destroy(void *handle) { delete &entered(handle); }

EXPORT void clew_model_reset(void *handle) {
    Model &model = entered(handle);
    model.top->rst = 1;
    for (int i = 0; i < RESET_CYCLES; ++i) model.step();
    model.top->rst = 0;
    model.step();
}

EXPORT uint64_t clew_model_cycle(void *handle) { return static_cast<Model *>(handle)->cycle; }

EXPORT void clew_model_set_logging(void *handle, int32_t enable) {
    static_cast<Model *>(handle)->logging = enable != 0;
}

EXPORT int32_t clew_model_write(void *handle, uint32_t address, const uint32_t *data, uint32_t count) {
    Model &model = entered(handle);
    int32_t status = OK;
    for (uint32_t i = 0; i < count && status == OK; ++i) status = model.write(address + 4 * i, data[i]);
    return status;
}

EXPORT int32_t clew_model_read(void *handle, uint32_t address, uint32_t *data, uint32_t count) {
    Model &model = entered(handle);
    int32_t status = OK;
    for (uint32_t i = 0; i < count && status == OK; ++i) status = model.read(address + 4 * i, data + i);
    return status;
}

// Runs until the interrupt pin is high: 1, or for `cycles`: 0, or until the design stops: STOPPED.
EXPORT int32_t clew_model_run(void *handle, uint64_t cycles) {
    Model &model = entered(handle);
    Vclew &top = *model.top;
    for (const uint64_t limit = model.cycle + cycles; model.cycle < limit;) {
        model.settle();
        if (top.INTERRUPT) return 1;
        model.edge();
    }
    return model.context.gotFinish() || model.context.gotError() ? STOPPED : 0;
}

// Backdoor: `count` atoms at the places `index` of the storage.
EXPORT void clew_model_load(void *handle, uint64_t count, const uint64_t *index, const uint32_t *atoms) {
    clew_store *store = static_cast<Model *>(handle)->store;
    for (uint64_t i = 0; i < count; ++i) clew_store_load(store, index[i], 1, atoms + 8 * i);
}

EXPORT void clew_model_fetch(void *handle, uint64_t count, const uint64_t *index, uint32_t *atoms) {
    const clew_store *store = static_cast<Model *>(handle)->store;
    for (uint64_t i = 0; i < count; ++i) clew_store_fetch(store, index[i], 1, atoms + 8 * i);
}

// The command records of a channel, valid until the model runs or the logs are cleared.
EXPORT const void *clew_model_commands(void *handle, uint32_t channel, uint64_t *count) {
    const std::vector<CommandRecord> &log = static_cast<Model *>(handle)->commands.at(channel);
    *count = log.size();
    return log.data();
}

// The records of a log of the whole stack (0 hops, 1 accesses), valid as long.
EXPORT const void *clew_model_log(void *handle, int32_t which, uint64_t *count) {
    const Model &model = *static_cast<Model *>(handle);
    *count = which == 0 ? model.hops.size() : model.accesses.size();
    return which == 0 ? static_cast<const void *>(model.hops.data()) : model.accesses.data();
}

EXPORT void clew_model_clear_logs(void *handle) {
    Model &model = *static_cast<Model *>(handle);
    for (auto &log : model.commands) log.clear();
    model.hops.clear();
    model.accesses.clear();
}
}
