// The waveform of a compiled model: what its signals did in the first cycles of its batches.
//
// A build without CLEW_WAVES_VCD or CLEW_WAVES_FST records nothing: every function here is empty.

#pragma once

#include <cstdint>
#include <memory>

#if defined(CLEW_WAVES_VCD)
#include "verilated_vcd_c.h"
using WaveFile = VerilatedVcdC;
#define CLEW_WAVES
#elif defined(CLEW_WAVES_FST)
#include "verilated_fst_c.h"
using WaveFile = VerilatedFstC;
#define CLEW_WAVES
#endif

#ifdef CLEW_WAVES

template <class Top>
class Waves {
    // A new one for each file: one that is opened again goes on from the time that it had.
    std::unique_ptr<WaveFile> file;
    uint64_t cycle_ps = 0;
    uint64_t time_ps = 0;  // of the cycle that is recorded next, from the first one recorded on
    uint64_t left = 0;     // cycles

   public:
    // Before the top is built.
    static void prepare(VerilatedContext &context) { context.traceEverOn(true); }

    bool open(Top &top, const char *path, uint64_t clock_ps, uint64_t cycles) {
        file = std::make_unique<WaveFile>();
        top.trace(file.get(), 99);
        file->set_time_unit("1ps");
        file->set_time_resolution("1ps");
        file->open(path);
        cycle_ps = clock_ps;
        time_ps = 0;
        left = cycles;
        return file->isOpen();
    }

    void close() {
        left = 0;
        file.reset();
    }

    // The clock is low and the signals have settled; only a cycle of a batch is recorded.
    bool settled(bool batch_active) {
        if (!left || !batch_active) return false;
        file->dump(time_ps + cycle_ps / 2);
        return true;
    }

    // The clock has risen at the end of a cycle that was recorded.
    void risen() {
        --left;
        time_ps += cycle_ps;
        file->dump(time_ps);
    }
};

#else

template <class Top>
class Waves {
   public:
    static void prepare(VerilatedContext &) {}
    bool settled(bool) { return false; }
    void risen() {}
};

#endif
