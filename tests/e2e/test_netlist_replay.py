"""The replay that holds a netlist against its RTL; netlists themselves take minutes (`make netlist`)."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from firmware_py.errors import InternalError
from firmware_py.fpga import netlist_replay
from firmware_py.fpga.netlist_replay import replay_on_netlist
from firmware_py.walks import Answer
from hdl.config import named_config
from sim.compiled import CompiledModel, build_library

from .replays import write_traces

_CONFIG = named_config("small")


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "random.jsonl"
    write_traces(path, seed=3, nodes=8)
    return path


def test_the_rtl_is_itself(trace: Path) -> None:
    found = replay_on_netlist(trace, _CONFIG, library=build_library(_CONFIG))
    assert found.walks >= 10 and found.batch_cycles > 1000 and found.cycles_per_second > 0


@pytest.mark.parametrize("what", ["batch_cycles", "walk_cycles", "answers", "hops"])
def test_any_difference_is_an_error(what: str, trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = netlist_replay._runs
    calls = []

    def spoiled(plan, transport):
        near, far = runs(plan, transport)
        calls.append(transport)
        if len(calls) == 2:
            if what == "hops":
                far.logs.hops["address"][-1] ^= 1
            elif what == "answers":
                far.answers[0] = dataclasses.replace(far.answers[0], hops=far.answers[0].hops + 1)
                assert isinstance(far.answers[0], Answer)
            else:
                cycles = getattr(far, what)
                assert isinstance(cycles, np.ndarray)
                cycles[-1] += 1
        return [near, far]

    monkeypatch.setattr(netlist_replay, "_runs", spoiled)
    with pytest.raises(InternalError, match="far: the netlist is not the RTL"):
        replay_on_netlist(trace, _CONFIG, library=build_library(_CONFIG))


def test_a_hang_is_an_error(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A netlist whose interrupt never comes is given up after as many cycles as the RTL took in all."""
    waited: list[int] = []
    made: list[CompiledModel] = []

    class Hanging(CompiledModel):
        """A model; the second, which is the netlist, never raises its interrupt."""

        def __init__(self, *arguments, **options) -> None:
            made.append(self)
            super().__init__(*arguments, **options)

        def run(self, cycles: int) -> bool:
            if self is made[0]:
                return super().run(cycles)
            waited.append(cycles)
            return False

    monkeypatch.setattr(netlist_replay, "CompiledModel", Hanging)
    with pytest.raises(InternalError, match=r"the netlist is not the RTL: the batch of .* has not ended"):
        replay_on_netlist(trace, _CONFIG, library=build_library(_CONFIG))
    assert len(waited) == 1 and 10_000 < waited[0] < 10_000_000
