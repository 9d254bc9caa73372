"""Which walk of a plan each walk of the hop log is: every walk has as many loops as it read records."""

import numpy as np
import pytest

from firmware_py.assembler import Image
from firmware_py.batches import ring_size
from firmware_py.design import design_for
from firmware_py.far_help import FarHelp, parse_help
from firmware_py.image import CreationOrder
from firmware_py.ledger import make_ledger
from firmware_py.plan import make_plan
from firmware_py.programs import default_image
from firmware_py.replay import run_plan
from firmware_py.walk_numbers import walk_numbers
from hdl.memory.stack import StackMap

from .fake_accelerator import FakeAccelerator
from .test_replay import beam, depth_first

PROGRAM: Image = default_image()


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize(
    ("concurrent", "channels", "text"),
    [(1, 1, ""), (3, 1, ""), (20, 1, ""), (2, 1, "stream"), (2, 1, "stack"), (1, 4, ""), (3, 4, "")],
)
def test_walks_of_the_hop_log_are_found_in_the_plan(place, concurrent, channels, text):
    config = design_for("hbm2_2000", channels=channels)
    plan = make_plan(
        [depth_first("a"), beam(), depth_first("b"), beam()],
        program=PROGRAM,
        layout=CreationOrder(),
        ring=ring_size(config),
        memory_atoms=config.memory.atoms,
        contexts=config.walker.contexts,
        concurrent=concurrent,
        channels=channels,
        far_help=parse_help(text) if place else FarHelp(),
    )
    fake = FakeAccelerator(config)
    run = run_plan(plan, program=PROGRAM, place=place, driver=fake, monitor=fake)
    stack = StackMap(config.memory)
    loops = make_ledger(
        place=place,
        hops=run.logs.hops,
        hop_batch=run.logs.hop_batch,
        accesses=run.logs.accesses,
        access_batch=run.logs.access_batch,
        commands=run.logs.commands,
        timing=config.memory.timing,
        stack=stack,
    ).loops
    number = walk_numbers(plan, place=place, stack=stack)[loops.walk]
    assert (number >= 0).all(), "a mark of time reads nothing"
    read = [0 if walk.local else walk.golden.hops for walk in plan.walks]
    assert np.bincount(number, minlength=len(plan.walks)).tolist() == read
    starts = {walk: int(loops.address[np.flatnonzero(number == walk)[0]]) for walk in set(number.tolist())}
    assert starts == {walk: plan.walks[walk].question.start for walk in starts}
