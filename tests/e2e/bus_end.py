"""`python -m tests.e2e.bus_end`: the whole design with its device outside takes the cycles of one inside.

Part of `make soak`: it compiles the design twice.
"""

from __future__ import annotations

import dataclasses
import sys

import numpy as np
from numpy.typing import NDArray

from firmware_py.training import train
from hdl.config import named_config
from sim.compiled import CompiledModel

_LOGS = ("hops", "accesses", "ports", "batch_windows", "commands")


def _logs(end: str) -> dict[str, NDArray[np.void]]:
    """Every log of the training run, with cycles from its beginning."""
    base = named_config("simulation")
    config = dataclasses.replace(base, memory=dataclasses.replace(base.memory, end=end))
    with CompiledModel(config, announce=lambda text: print(f"{end}: {text}", flush=True)) as model:
        begin = model.cycle
        train(model)
        found = {name: getattr(model, name)() for name in _LOGS}
        for log in found.values():
            for column in set(log.dtype.names or ()) & {"cycle", "begin", "end"}:
                log[column] -= begin
        return found


def main() -> int:
    """Compares; 1 when a log differs."""
    inside, outside = _logs("model"), _logs("bus")
    bad = [name for name in _LOGS if not np.array_equal(inside[name], outside[name])]
    counts = ", ".join(f"{len(inside[name]):,} {name}" for name in _LOGS)
    print(f"device inside and outside: {'differ in ' + ', '.join(bad) if bad else 'equal'}: {counts}")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
