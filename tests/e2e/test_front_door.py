"""A design whose memory is block RAM, as on a board: images come in and memory is read through the design."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from firmware_py.front_door import FrontDoorMonitor
from firmware_py.machine import compiled_machine
from hdl.config import named_config
from sim.compiled import CompiledModel

from .replays import plan_of, run, write_traces

#: 17 walks in 65 atoms.
_SEED, _NODES = 3, 20


def test_a_replay_needs_no_backdoor(tmp_path: Path) -> None:
    """The machine of `clew compare`; the logs are there, and what memory holds is read back and checked."""
    config = named_config("small")
    write_traces(tmp_path / "random.jsonl", seed=_SEED, nodes=_NODES)
    plan = plan_of(tmp_path / "random.jsonl", config=config, concurrent=2)
    with ExitStack() as stack:
        machine = stack.enter_context(compiled_machine(config, print))
        assert isinstance(machine.monitor, FrontDoorMonitor)
        near, far = (
            run(plan, place=place, accelerator=machine.driver, monitor=machine.monitor) for place in (0, 1)
        )
        for outcome in (near, far):
            assert outcome.wrong == outcome.not_golden == outcome.memory_differs == []
        assert sum(near.walk_cycles) < sum(far.walk_cycles)
        # What a monitor says of memory is what is there.
        image = next(image for image in plan.images if image.size)
        machine.monitor.clear_logs()
        assert (machine.monitor.fetch(image.base, 1) != 0).any()


def test_there_is_no_backdoor() -> None:
    with CompiledModel(named_config("small")) as model:
        with pytest.raises(ValueError, match="'array': expected 'dpi' for a backdoor"):
            model.load(0, np.zeros((1, 8), dtype=np.uint32))
        with pytest.raises(ValueError, match="backdoor"):
            model.fetch(0, 1)
        with pytest.raises(ValueError, match="backdoor"):
            model.flip(0, 1)
