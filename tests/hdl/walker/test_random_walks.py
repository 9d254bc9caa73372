"""Random programs on random memories: RTL against the golden interpreter, for every pipeline depth."""

from __future__ import annotations

import pytest

from hdl.layouts import Source
from hdl.walker.walker import Walker
from sim.verilator import run_cocotb

from .harness import walker_config

#: Walks of each shape: three shapes make 2,100.
WALKS = 700


def run(stages: int, **environment: str) -> None:
    """The testbench on one of the three shapes."""
    run_cocotb(
        Walker(walker_config(contexts=16, stages=stages), source=Source.NEAR_WALKER),
        toplevel="walker",
        module="sim.bench.walker",
        testcase="random_walks",
        env=environment,
    )


@pytest.mark.cocotb
@pytest.mark.parametrize("stages", [1, 2, 3, 6])
def test_random_walks(stages: int) -> None:
    run(stages, CLEW_WALKS=str(WALKS))


@pytest.mark.cocotb
@pytest.mark.parametrize("broken", ["op", "update", "store", "exit"])
def test_a_walker_that_executes_something_else_is_caught(broken: str) -> None:
    """The negative control: the walker gets programs in which one field is wrong."""
    with pytest.raises(AssertionError, match=r"walker with seed"):
        run(1, CLEW_WALKS=str(WALKS), CLEW_BROKEN=broken)
