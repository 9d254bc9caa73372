// The compiled model of a design behind its UART: the top of hdl/serial_top.py under Verilator, of which the
// outside sees the two lines only. Python hands in the bytes to send and takes those that came.

#include <cstdint>
#include <memory>

#include "Vclew.h"
#include "storage.h"
#include "verilated.h"

namespace {

constexpr int RESET_CYCLES = 4;

// A byte on a line: ten bits of `divisor` cycles, lowest first. Exact, for both ends have the same clock.
class Sender {
   public:
    explicit Sender(uint32_t divisor) : divisor(divisor) {}
    bool idle() const { return left == 0; }
    void start(uint8_t byte) {
        bits = 0x200u | uint32_t(byte) << 1;
        left = 10 * divisor;
    }
    // The level in this cycle.
    uint8_t level() {
        if (left == 0) return 1;
        return bits >> (10 - (left-- + divisor - 1) / divisor) & 1;
    }

   private:
    const uint32_t divisor;
    uint32_t bits = 0, left = 0;
};

class Listener {
   public:
    explicit Listener(uint32_t divisor) : divisor(divisor) {}
    // Takes the level of this cycle; true: `byte` is whole.
    bool take(uint8_t level) {
        if (cycle == 0 && level) return false;
        const uint32_t bit = cycle / divisor;
        if (cycle++ % divisor == divisor / 2) bits |= uint32_t(level) << bit;
        if (cycle < 10 * divisor - divisor / 2) return false;
        byte = bits >> 1;
        cycle = bits = 0;
        return true;
    }
    bool idle() const { return cycle == 0; }
    uint8_t byte = 0;

   private:
    const uint32_t divisor;
    uint32_t bits = 0, cycle = 0;
};

struct Board {
    VerilatedContext context;
    std::unique_ptr<Vclew> top;
    clew_store *store;
    Sender sender;
    Listener listener;
    const uint32_t divisor;
    uint64_t cycle = 0;

    explicit Board(uint32_t divisor)
        : store(clew_store_create()), sender(divisor), listener(divisor), divisor(divisor) {
        context.fatalOnError(false);
        context.randReset(0);
        top = std::make_unique<Vclew>(&context, "clew");
        top->clk = 1;
        top->rst = 1;
        top->rx = 1;
        clew_store_select(store);
        top->eval();
        for (int i = 0; i < RESET_CYCLES; ++i) step();
        top->rst = 0;
        step();  // the design is still in reset
    }
    ~Board() {
        top->final();
        top.reset();
        clew_store_destroy(store);
    }

    void step() {
        top->clk = 0;
        top->eval();
        top->clk = 1;
        top->eval();
        ++cycle;
    }
};

}  // namespace

// Everything else stays hidden, so that calls inside the library are direct.
#define EXPORT __attribute__((visibility("default")))

extern "C" {

EXPORT void *clew_board_create(uint32_t divisor) { return new Board(divisor); }

EXPORT void clew_board_destroy(void *handle) {
    Board *board = static_cast<Board *>(handle);
    clew_store_select(board->store);
    delete board;
}

EXPORT uint64_t clew_board_cycle(void *handle) { return static_cast<Board *>(handle)->cycle; }

// A batch is executing.
EXPORT int32_t clew_board_busy(void *handle) { return static_cast<Board *>(handle)->top->batch_active; }

// Sends the `count` bytes of `in` and runs `cycles` after that, less when an answer has come and the line has
// been silent for two bytes. Puts the bytes that come into `out` and returns how many: at most one for every
// ten bits' time, and one. -1: the design stopped itself, an assertion failed.
EXPORT int32_t clew_board_run(void *handle, uint64_t cycles, const uint8_t *in, uint32_t count, uint8_t *out) {
    Board &board = *static_cast<Board *>(handle);
    clew_store_select(board.store);
    uint32_t sent = 0, received = 0, silent = 0;
    for (uint64_t left = cycles; left || sent < count || !board.sender.idle();) {
        if (sent == count && board.sender.idle()) --left;
        if (sent < count && board.sender.idle()) board.sender.start(in[sent++]);
        board.top->rx = board.sender.level();
        board.top->clk = 0;
        board.top->eval();
        if (board.listener.take(board.top->tx)) {
            out[received++] = board.listener.byte;
            silent = 0;
        }
        board.top->clk = 1;
        board.top->eval();
        ++board.cycle;
        silent = board.listener.idle() ? silent + 1 : 0;
        if (sent == count && received && silent > 20 * board.divisor) break;
    }
    return board.context.gotFinish() || board.context.gotError() ? -1 : int32_t(received);
}
}
