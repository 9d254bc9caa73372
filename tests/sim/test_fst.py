"""FST waveforms: what the recorder of the compiled models writes, another project's reader reads.

The format alone differs from VCD, which `tests/e2e/test_waves.py` compares with the logs of a whole design;
so a counter is design enough.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from firmware_py.waves import FST_HEADERS
from sim.verilator import build_shared_library, missing_headers

_COUNTER = """
module counter(input clk, output reg [7:0] count);
  initial count = 0;
  always @(posedge clk) count <= count + 1;
endmodule
"""
_SHIM = """
#define CLEW_WAVES_FST
#include "Vcounter.h"
#include "waves.h"

extern "C" __attribute__((visibility("default"))) int record(const char *path, int cycles, int recorded) {
    VerilatedContext context;
    Waves<Vcounter>::prepare(context);
    Vcounter top{&context};
    Waves<Vcounter> waves;
    if (!waves.open(top, path, 1000, recorded)) return 0;
    for (int cycle = 0; cycle < cycles; ++cycle) {
        top.clk = 0;
        top.eval();
        const bool record = waves.settled(true);
        top.clk = 1;
        top.eval();
        if (record) waves.risen();
    }
    waves.close();
    return 1;
}
"""


def test_the_recorded_cycles_are_in_the_file(tmp_path: Path) -> None:
    if missing := missing_headers(FST_HEADERS):
        pytest.skip(f"Verilator's FST writer is compiled with {' and '.join(missing)}: not on this machine")
    from pywellen import Waveform

    design, shim = tmp_path / "counter.v", tmp_path / "shim.cpp"
    design.write_text(_COUNTER)
    shim.write_text(_SHIM)
    library = build_shared_library(design, toplevel="counter", sources=[shim], flags=["--trace-fst"])
    path = tmp_path / "run.fst"
    assert ctypes.CDLL(str(library)).record(str(path).encode(), 300, 280) == 1
    waveform = Waveform(str(path))
    assert (waveform.file_format, str(waveform.timescale)) == ("FST", "1ps")
    count = next(var for var in waveform.all_vars() if var.name == "count").signal
    # The clock rises at the end of a cycle, and the counter is 8 bits wide.
    assert [count.value_at(1000 * cycle) for cycle in range(1, 281)] == [n % 256 for n in range(1, 281)]
    assert [count.value_at(1000 * cycle + 500) for cycle in range(280)] == [n % 256 for n in range(280)]
    # What came after the cycles that were asked for is not in it.
    assert count.value_at(300_000) == 280 % 256
