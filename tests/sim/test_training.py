"""A library that is optimised by a training run: made twice, trained once, and never left half made."""

from __future__ import annotations

import ctypes
from functools import partial
from pathlib import Path

import pytest

from sim.verilator import BuildError, Training, build_shared_library

_COUNTER = """
module counter(input clk, output reg [7:0] count);
  initial count = 0;
  always @(posedge clk) count <= count + 1;
endmodule
"""
_SHIM = """
#include "Vcounter.h"
extern "C" __attribute__((visibility("default"))) int count(int cycles) {
    Vcounter top;
    for (int i = 0; i < cycles; ++i) {
        top.clk = 0;
        top.eval();
        top.clk = 1;
        top.eval();
    }
    return top.count;
}
"""


def _count(library: Path) -> int:
    return ctypes.CDLL(str(library)).count(300)


def _train(told: Path, library: Path) -> None:
    told.write_text(str(_count(library)))


def _fail(library: Path) -> None:
    raise ValueError("the training has no answer")


@pytest.fixture
def sources(tmp_path, monkeypatch) -> tuple[Path, Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    design, shim = tmp_path / "counter.v", tmp_path / "shim.cpp"
    design.write_text(_COUNTER)
    shim.write_text(_SHIM)
    return design, shim


def test_a_trained_library_does_what_the_untrained_one_does(sources, tmp_path):
    design, shim = sources
    told = tmp_path / "told"
    training = Training(run=partial(_train, told), source=Path(__file__))
    said: list[str] = []
    build = partial(build_shared_library, design, toplevel="counter", sources=[shim], announce=said.append)
    trained = build(training=training)
    assert told.read_text() == "44" and len(said) == 2
    assert _count(trained) == 300 % 256
    assert [path.name for path in trained.parent.iterdir()] == ["counter.so"]
    plain = build()
    assert plain != trained and _count(plain) == 300 % 256
    told.unlink()
    assert build(training=training) == trained and not told.exists()


def test_a_training_that_fails_leaves_no_library(sources, tmp_path):
    design, shim = sources
    with pytest.raises(BuildError, match="the training has no answer"):
        build_shared_library(
            design,
            toplevel="counter",
            sources=[shim],
            training=Training(run=_fail, source=Path(__file__)),
        )
    assert not list((tmp_path / "cache" / "clew").glob("library-*"))
