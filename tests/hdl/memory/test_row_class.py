"""The row class of every access, against what the commands on the buses say that it found."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from hdl.config import named_config
from hdl.layouts import ColumnOp, RefreshMode, RowClass, RowOp
from sim.compiled import ACCESS_RECORD
from sim.compiled_memory import CompiledMemory, requests
from sim.model.command_checker import ROW_BUS


@pytest.fixture(scope="module")
def memory() -> Iterator[CompiledMemory]:
    with CompiledMemory(named_config("simulation")) as running:
        yield running


def _classes(commands: np.ndarray) -> list[tuple[int, RowClass]]:
    """Cycle and class of each access: conflict, if its ACT follows a PRE that no refresh came after."""
    fresh: dict[tuple[int, int], RowClass] = {}
    closed_by_precharge: dict[tuple[int, int], bool] = {}
    found = []
    for command in commands:
        unit = (int(command["pseudo_channel"]), int(command["bank"]))
        if command["bus"] == ROW_BUS:
            match RowOp(int(command["op"])):
                case RowOp.ACTIVATE:
                    conflict = closed_by_precharge.get(unit, False)
                    fresh[unit] = RowClass.CONFLICT if conflict else RowClass.CLOSED
                case RowOp.PRECHARGE:
                    closed_by_precharge[unit] = True
                case RowOp.REFRESH_BANK:
                    closed_by_precharge[unit] = False
                case RowOp.PRECHARGE_ALL | RowOp.REFRESH_ALL:
                    for other in closed_by_precharge:
                        if other[0] == unit[0]:
                            closed_by_precharge[other] = False
                case RowOp.NOP:
                    pass
        elif command["op"] != ColumnOp.NOP.value:
            found.append((int(command["cycle"]), fresh.pop(unit, RowClass.HIT)))
            closed_by_precharge[unit] = False
    return found


@pytest.mark.parametrize("refresh", RefreshMode)
def test_what_an_access_found_is_what_the_commands_say(memory: CompiledMemory, refresh: RefreshMode) -> None:
    rng = np.random.default_rng(5)
    # Few rows of few banks and long pauses: rows stay open until somebody wants another, or a refresh comes.
    count, atoms = 4_000, memory.map.atoms
    places = rng.choice(rng.integers(atoms, size=64), size=count)
    asked = requests(places, priority=1, delay=np.cumsum(rng.integers(0, 60, size=count)))
    run = memory.run(asked, refresh=refresh)
    assert not run.faults and not run.violations
    commands = run.commands[run.commands["cycle"] >= run.begin]
    accesses = run.accesses[run.accesses["cycle"] >= run.begin]
    assert accesses.dtype == ACCESS_RECORD
    found = [
        (int(access["cycle"]), RowClass(int(access["row_class"])))
        for access in accesses[np.argsort(accesses["cycle"], kind="stable")]
    ]
    assert {row_class for _, row_class in found} == {RowClass.HIT, RowClass.CLOSED, RowClass.CONFLICT}
    assert found == _classes(commands)
