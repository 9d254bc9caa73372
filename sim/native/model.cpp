// The compiled model: one Clew top under Verilator behind a C interface that Python reaches through ctypes.
//
// It owns the clock, is the AXI4-Lite manager of the host port, and takes the logs from the top's monitor
// outputs in every cycle. One cycle is: settle with the clock low, look, raise the clock. What is looked at
// is therefore what a listener on the rising edge sees, as in a cocotb testbench.

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "Vclew.h"
#include "channels.h"
#include "records.h"
#include "storage.h"
#include "verilated.h"
#include "waves.h"

// Verilator prefixes names that some C++ compiler reserves.
#define INTERRUPT __SYM__interrupt

namespace {

// As HOP_RECORD in sim/compiled.py.
struct HopRecord {
    uint64_t cycle;
    uint32_t address;
    uint8_t event;
    uint8_t context;
    uint8_t place;    // 0 near, 1 far
    uint8_t channel;  // of a near walker; 0 of the far one
};
static_assert(sizeof(HopRecord) == 16, "sim/compiled.py declares records of 16 bytes");

// As PORT_RECORD in sim/compiled.py.
struct PortRecord {
    uint64_t cycle;
    uint8_t source;
    uint8_t context;
    uint8_t write;     // 0 a read, 1 a write, 2 a conditional write (a response: 0 or 1)
    uint8_t response;  // 0 a request is accepted, 1 a response leaves
    uint32_t channel;
};
static_assert(sizeof(PortRecord) == 16, "sim/compiled.py declares records of 16 bytes");

// As BATCH_RECORD in sim/compiled.py.
struct BatchRecord {
    uint64_t begin;
    uint64_t end;
};
static_assert(sizeof(BatchRecord) == 16, "sim/compiled.py declares records of 16 bytes");

enum Status : int32_t { OK = 0, TIMEOUT = -1, STOPPED = -2 };  // positive: the AXI response

// Cycles after which an unanswered bus transaction is given up.
constexpr uint64_t BUS_TIMEOUT = 1000000;
constexpr uint32_t ADDRESS_MASK = (1u << 20) - 1;
constexpr int RESET_CYCLES = 4;

struct Model {
    VerilatedContext context;
    Waves<Vclew> waves;
    std::unique_ptr<Vclew> top;
    clew_store *store;
    uint64_t cycle = 0;
    bool logging = true;
    std::array<std::vector<CommandRecord>, CLEW_CHANNELS> commands;  // by channel
    std::vector<HopRecord> hops;
    std::vector<AccessRecord> accesses;
    std::vector<PortRecord> ports;
    std::vector<BatchRecord> batches;

    Model() : store(clew_store_create()) {
        context.fatalOnError(false);
        context.randReset(0);
        Waves<Vclew>::prepare(context);
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

    void log_hop(uint8_t place, uint8_t channel, uint8_t event, uint8_t context, uint32_t address) {
        if (event) hops.push_back({cycle, address, event, context, place, channel});
    }

    void log_port(uint8_t passes, uint8_t response, uint32_t tag, uint8_t write, uint32_t channel) {
        if (!passes) return;
        const uint8_t source = tag & 7, context = tag >> 3 & 63;
        ports.push_back({cycle, source, context, write, response, channel});
    }

#define LOG_BUSES(N) LOG_COMMANDS(*top, N, cycle, commands[N])
#define LOG_PROGRESS(N)                                                                           \
    log_hop(0, N, top->CHANNEL_PORT(near_hop, N, event), top->CHANNEL_PORT(near_hop, N, context), \
            top->CHANNEL_PORT(near_hop, N, address));                                             \
    LOG_ACCESS(*top, N, cycle, accesses)                                                          \
    log_port(top->CHANNEL_PORT(port, N, accepted), 0, top->CHANNEL_PORT(port, N, request_tag),    \
             top->CHANNEL_PORT(port, N, request_write)                                            \
                 << top->CHANNEL_PORT(port, N, request_conditional),                              \
             N);                                                                                  \
    log_port(top->CHANNEL_PORT(port, N, answered), 1, top->CHANNEL_PORT(port, N, response_tag),   \
             top->CHANNEL_PORT(port, N, response_write), N);

    void look() {
        EACH_CHANNEL(LOG_BUSES)
        if (!top->batch_active) return;
        if (batches.empty() || batches.back().end != cycle) batches.push_back({cycle, cycle});
        batches.back().end = cycle + 1;
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
        const bool recorded = waves.settled(top->batch_active);
        top->clk = 1;
        top->eval();
        ++cycle;
        if (recorded) waves.risen();
    }

    void step() {
        settle();
        edge();
    }

    // Consecutive words, each offered as soon as the one before is taken; the answers come in order. After an
    // answer that is an error no further word is offered; it is returned when the words under way are answered.
    int32_t write(uint32_t address, const uint32_t *data, uint32_t count) {
        top->s_axil_awprot = 0;
        top->s_axil_wstrb = 15;
        top->s_axil_bready = 1;
        int32_t status = OK;
        uint32_t addresses = 0, words = 0, answers = 0;
        for (uint64_t limit = cycle + BUS_TIMEOUT; answers < count && cycle < limit;) {
            top->s_axil_awvalid = addresses < count;
            top->s_axil_wvalid = words < count;
            if (addresses < count) top->s_axil_awaddr = (address + 4 * addresses) & ADDRESS_MASK;
            if (words < count) top->s_axil_wdata = data[words];
            settle();
            const bool address_taken = addresses < count && top->s_axil_awready;
            const bool word_taken = words < count && top->s_axil_wready;
            const bool answered = top->s_axil_bvalid;
            if (answered && status == OK) status = top->s_axil_bresp;
            edge();
            addresses += address_taken;
            words += word_taken;
            if (answered) {
                ++answers;
                limit = cycle + BUS_TIMEOUT;
            }
            if (status != OK) count = addresses > words ? addresses : words;
        }
        top->s_axil_awvalid = 0;
        top->s_axil_wvalid = 0;
        top->s_axil_bready = 0;
        return answers < count ? TIMEOUT : status;
    }

    // The same for reads.
    int32_t read(uint32_t address, uint32_t *data, uint32_t count) {
        top->s_axil_arprot = 0;
        top->s_axil_rready = 1;
        int32_t status = OK;
        uint32_t addresses = 0, answers = 0;
        for (uint64_t limit = cycle + BUS_TIMEOUT; answers < count && cycle < limit;) {
            top->s_axil_arvalid = addresses < count;
            if (addresses < count) top->s_axil_araddr = (address + 4 * addresses) & ADDRESS_MASK;
            settle();
            const bool address_taken = addresses < count && top->s_axil_arready;
            const bool answered = top->s_axil_rvalid;
            if (answered) {
                if (status == OK) status = top->s_axil_rresp;
                data[answers] = top->s_axil_rdata;
            }
            edge();
            addresses += address_taken;
            if (answered) {
                ++answers;
                limit = cycle + BUS_TIMEOUT;
            }
            if (status != OK) count = addresses;
        }
        top->s_axil_arvalid = 0;
        top->s_axil_rready = 0;
        return answers < count ? TIMEOUT : status;
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
    model.step();  // the design is still in reset
}

EXPORT uint64_t clew_model_cycle(void *handle) { return static_cast<Model *>(handle)->cycle; }

EXPORT void clew_model_set_logging(void *handle, int32_t enable) {
    static_cast<Model *>(handle)->logging = enable != 0;
}

EXPORT int32_t clew_model_write(void *handle, uint32_t address, const uint32_t *data, uint32_t count) {
    return entered(handle).write(address, data, count);
}

EXPORT int32_t clew_model_read(void *handle, uint32_t address, uint32_t *data, uint32_t count) {
    return entered(handle).read(address, data, count);
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

EXPORT void clew_model_load_checks(void *handle, uint64_t count, const uint64_t *index,
                                   const uint32_t *checks) {
    clew_store *store = static_cast<Model *>(handle)->store;
    for (uint64_t i = 0; i < count; ++i) clew_store_load_checks(store, index[i], 1, checks + i);
}

// What the memory behind an AXI port takes; a design with another memory end never looks at it.
EXPORT void clew_model_set_axi_times(void *handle, const clew_axi_times *times) {
    clew_store_set_axi_times(static_cast<Model *>(handle)->store, times);
}

EXPORT void clew_model_flip(void *handle, uint64_t index, uint32_t bit) {
    clew_store_flip(static_cast<Model *>(handle)->store, index, bit);
}

// The command records of a channel, valid until the model runs or the logs are cleared.
EXPORT const void *clew_model_commands(void *handle, uint32_t channel, uint64_t *count) {
    const std::vector<CommandRecord> &log = static_cast<Model *>(handle)->commands.at(channel);
    *count = log.size();
    return log.data();
}

// The records of a log of the whole stack (0 hops, 1 accesses, 2 batches, 3 ports), valid as long.
EXPORT const void *clew_model_log(void *handle, int32_t which, uint64_t *count) {
    const Model &model = *static_cast<Model *>(handle);
    switch (which) {
        case 0: *count = model.hops.size(); return model.hops.data();
        case 1: *count = model.accesses.size(); return model.accesses.data();
        case 2: *count = model.batches.size(); return model.batches.data();
        default: *count = model.ports.size(); return model.ports.data();
    }
}

EXPORT void clew_model_clear_logs(void *handle) {
    Model &model = *static_cast<Model *>(handle);
    for (auto &log : model.commands) log.clear();
    model.hops.clear();
    model.accesses.clear();
    model.ports.clear();
    model.batches.clear();
}

#ifdef CLEW_WAVES
// Records the first `cycles` cycles of batches from now on into a file; 0 when it cannot be written.
EXPORT int32_t clew_model_open_waves(void *handle, const char *path, uint64_t clock_ps, uint64_t cycles) {
    Model &model = entered(handle);
    return model.waves.open(*model.top, path, clock_ps, cycles);
}

EXPORT void clew_model_close_waves(void *handle) { entered(handle).waves.close(); }
#endif
}
