"""Plans and runs of traces on the fake accelerator: questions, order, verdicts, control, memory."""

import dataclasses

import numpy as np
import pytest

from firmware_py.batches import RingSize
from firmware_py.errors import InputError, InternalError
from firmware_py.image import CreationOrder
from firmware_py.programs import default_image
from firmware_py.replay import make_plan, run_plan
from hdl.config import named_config
from hdl.layouts import WalkStatus
from hdl.registers import CommandOp
from sim.trace.events import Backtrack, Backup, Begin, End, Eval, Expand, Jump, Node, Prune, Select
from sim.trace.schema import Trace

from .fake_accelerator import FakeAccelerator

CONFIG = named_config("simulation")
RING = RingSize(commands=1536, completions=512)


def node(id, *parents, depth=None, **more):
    return Node(id=id, parents=parents, depth=(0 if not parents else 1) if depth is None else depth, **more)


def trace(*events, name="t", file="f.jsonl"):
    return Trace(
        begin=Begin(version=1, trace=name, algorithm="dfs"),
        events=list(events),
        end=End(status="unknown"),
        file=file,
    )


def depth_first(name="t"):
    """Root with two children; down to a dead leaf, back to the root, then to nothing left."""
    return trace(
        node(0),
        Expand(id=0, untried=2, untried_source="declared"),
        node(1, 0, depth=1),
        Expand(id=0, untried=1, untried_source="declared"),
        node(2, 1, depth=2),
        Prune(id=2, reason="dead_end"),
        Backtrack(from_=2, to=0, untried_source="declared"),
        Expand(id=0, untried=0, untried_source="declared"),
        node(3, 0, depth=1),
        Prune(id=3, reason="dead_end"),
        Backtrack(from_=3, to=None, untried_source="lookahead"),
        name=name,
    )


def beam():
    return trace(
        node(0),
        *(node(index, 0, depth=1) for index in range(1, 6)),
        *(Eval(id=index, score=score) for index, score in enumerate([1.0, 3.0, 3.0, None, 2.0], start=1)),
        Prune(id=2, reason="impossible"),
        Select(candidates=(1, 2, 3, 4, 5), chosen=(2, 3, 5)),
        Select(candidates=(1, 2, 3, 4, 5), chosen=(3, 2, 5), order="score"),
        Select(candidates=(1, 2, 3, 4, 5), chosen=(3, 5), live_only=True),
        Select(candidates=(4, 1, 4), chosen=(1, 4)),
        node(6, 2, depth=2),
        node(7, 3, depth=2),
        Jump(from_=6, to=7),
        Jump(from_=7, to=3, check="none", reason="unscored"),
        Jump(from_=7, to=None, check="none", reason="nobody knows"),
        Backup(path=(6, 2, 0), value=0.5),
        Backup(path=(7, 3, 0), value=-0.25),
        Backup(path=(7, 3), value=1.0),
    )


def plan_of(*traces, concurrent=1, ring=RING, memory_atoms=CONFIG.memory.organisation.atoms):
    return make_plan(
        traces,
        program=default_image(),
        layout=CreationOrder(),
        ring=ring,
        memory_atoms=memory_atoms,
        contexts=CONFIG.walker.contexts,
        concurrent=concurrent,
    )


def run(plan, place=0, accelerator=None):
    fake = accelerator or FakeAccelerator(CONFIG)
    return run_plan(plan, program=default_image(), place=place, driver=fake, monitor=fake), fake


def questions(plan):
    return [walk.question for walk in plan.walks]


def test_a_backtrack_climbs_from_the_first_parent_to_the_resume_point():
    plan = plan_of(depth_first())
    first, second = questions(plan)
    assert (first.program, first.start, first.check, first.source) == ("climb", 2, "climb", "declared")
    assert plan.walks[0].golden.value == 1 and plan.walks[0].golden.hops == 2
    assert plan.walks[1].golden.status == WalkStatus.NULL_POINTER.value
    result, _ = run(plan)
    assert result.wrong == [] and result.not_golden == [] and result.memory_differs == []
    assert second.source == "lookahead"


@pytest.mark.parametrize("place", [0, 1])
def test_every_kind_of_question_is_answered_right(place):
    plan = plan_of(beam())
    assert [question.check for question in questions(plan)] == [
        "select",
        "select",
        "select",
        "select",
        "ancestor",
        "none",
        "backup",
        "backup",
    ]
    result, _ = run(plan, place)
    assert result.wrong == [] and result.not_golden == [] and result.memory_differs == []
    (planned,) = plan.traces
    assert [unasked.reason for unasked in planned.unasked] == [
        "nobody knows",
        "backup along a path that ends below its root: the host writes the sums",
    ]


def test_a_backup_changes_visits_and_value_sums_in_memory():
    only_backups = [event for event in beam().events if isinstance(event, Node | Backup)]
    result, fake = run(plan_of(trace(*only_backups)))
    assert result.memory_differs == []
    root, six, seven = fake.memory[1], fake.memory[7], fake.memory[8]
    assert root[7] >> 16 == 2 and root[5] == 0x4000
    assert six[7] >> 16 == 1 and six[5] == 0x8000
    assert seven[7] >> 16 == 2 and seven[5] == 0xC000


def test_a_backtrack_from_a_root_starts_no_walk_and_is_said():
    plan = plan_of(trace(node(0), Backtrack(from_=0, to=None)))
    assert plan.walks == []
    assert "without a parent" in plan.traces[0].unasked[0].reason
    run(plan)


def test_unchecked_walks_get_no_verdict_but_are_compared_with_the_golden_interpreter():
    events = [node(0), node(1, 0, depth=1), Jump(from_=1, to=0, check="none", reason="unscored")]
    plan = plan_of(trace(*events))
    fake = FakeAccelerator(CONFIG)
    fake.corrupt = lambda result, walk: dataclasses.replace(result, hops=result.hops + 1)
    result, _ = run(plan, accelerator=fake)
    assert result.wrong == [] and result.not_golden == [0]


def test_a_trace_that_lies_gets_wrong_verdicts():
    lying = trace(
        node(0),
        Expand(id=0, untried=1, untried_source="declared"),
        node(1, 0, depth=1),
        Expand(id=1, untried=1, untried_source="declared"),
        node(2, 1, depth=2),
        Backtrack(from_=2, to=0),
        Eval(id=1, score=1.0),
        Eval(id=2, score=2.0),
        Select(candidates=(1, 2), chosen=(1,)),
        Select(candidates=(1, 2), chosen=(1,), order="score"),
    )
    result, _ = run(plan_of(lying))
    assert result.wrong == [0, 1, 2] and result.not_golden == []


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"value": 99}, True),
        ({"status": WalkStatus.BUDGET_SPENT}, True),
        ({"hops": 9}, False),
        ({"registers": (1, 2, 3, 0, 0, 0, 0, 0)}, False),
    ],
)
def test_a_wrong_answer_of_the_hardware_is_noticed(change, wrong):
    fake = FakeAccelerator(CONFIG)
    fake.corrupt = lambda result, walk: dataclasses.replace(result, **change) if walk == 0 else result
    result, _ = run(plan_of(depth_first()), accelerator=fake)
    assert result.not_golden == [0]
    assert result.wrong == ([0] if wrong else [])


def test_lost_and_reordered_yields_are_noticed():
    for change in (lambda yields: yields[:-1], lambda yields: yields[::-1]):
        fake = FakeAccelerator(CONFIG)
        fake.corrupt = lambda result, walk, change=change: (
            dataclasses.replace(result, yields=change(result.yields)) if walk == 0 else result
        )
        result, _ = run(plan_of(beam()), accelerator=fake)
        assert result.wrong == [0] and result.not_golden == [0]


def test_a_lost_write_of_the_last_search_is_noticed_in_memory():
    fake = FakeAccelerator(CONFIG)
    fake.forget_write = lambda address: address == 6
    result, _ = run(plan_of(beam()), accelerator=fake)
    assert 6 in result.memory_differs


def test_every_check_has_a_negative_control_that_turns_its_verdict_wrong():
    plan = plan_of(depth_first(), beam())
    assert set(plan.controls) == {"climb", "select", "ancestor"}
    for control in plan.controls.values():
        assert not control.question.expectation.right(control.answer)
    run(plan, 0)
    run(plan, 1)


def test_a_control_whose_verdict_stays_right_is_an_internal_error():
    plan = plan_of(depth_first())
    fake = FakeAccelerator(CONFIG)
    flipped_walk = len(plan.walks) + 1

    def blind(result, walk):
        as_before = dataclasses.replace(result, status=WalkStatus.DONE, value=1)
        return as_before if walk == flipped_walk else result

    fake.corrupt = blind
    with pytest.raises(InternalError, match=r"negative control of climb .* is right: expected wrong"):
        run(plan, accelerator=fake)


def test_a_run_without_a_decisive_field_has_no_control():
    plan = plan_of(trace(node(0), Backup(path=(0,), value=1.0)))
    assert plan.controls == {}
    result, _ = run(plan)
    assert result.wrong == []


def test_near_and_far_differ_only_in_the_place_bit():
    plan = plan_of(depth_first(), beam())
    near, far = FakeAccelerator(CONFIG), FakeAccelerator(CONFIG)
    run(plan, 0, near)
    run(plan, 1, far)
    assert len(near.batches) == len(far.batches)
    for ours, theirs in zip(near.batches, far.batches, strict=True):
        difference = ours ^ theirs
        assert set(np.unique(difference)) <= {0, 1 << 4}
        walks = difference[:, 0] != 0
        assert ((ours[walks, 0] & 15) == CommandOp.WALK).all()


@pytest.mark.parametrize("concurrent", [1, 2, 3, 16])
def test_concurrent_searches_run_in_rounds_and_their_answers_do_not_change(concurrent):
    traces = [depth_first("a"), beam(), depth_first("b"), beam(), depth_first("c")]
    plan = plan_of(*traces, concurrent=concurrent)
    result, fake = run(plan)
    assert result.wrong == [] and result.not_golden == [] and result.memory_differs == []
    assert len(plan.walks) == 3 * 2 + 2 * 8
    assert len(plan.traces) == 5
    contexts = {context for context in fake.windows}
    assert contexts <= set(range(concurrent))
    for batch in plan.batches:
        for epoch in _epochs(batch):
            used = [row[0] >> 12 & 63 for row in epoch if row[0] & 15 == CommandOp.WALK]
            kinds = {row[0] & 15 for row in epoch}
            assert len(used) == len(set(used)) <= concurrent
            assert not {CommandOp.WALK, CommandOp.WRITE} <= kinds


def _epochs(batch):
    """The command atoms between fences, data atoms left out."""
    rows, index, epochs = batch.atoms.tolist(), 0, [[]]
    while index < len(rows):
        if rows[index][0] & 15 == CommandOp.FENCE:
            epochs.append([])
        else:
            epochs[-1].append(rows[index])
        if rows[index][0] & 15 == CommandOp.WRITE:
            index += (rows[index][0] >> 4) + 1
        index += 1
    return epochs


def test_searches_have_ranges_of_their_own():
    plan = plan_of(depth_first("a"), depth_first("b"), concurrent=2)
    (first, second) = plan.batches[0].windows
    assert first.limit <= second.base
    assert [walk.question.start for walk in plan.walks[:2]] == [first.base + 1, second.base + 1]


def test_where_batches_end_depends_on_the_ring_and_answers_do_not():
    small = plan_of(beam(), ring=RingSize(commands=12, completions=4))
    large = plan_of(beam())
    assert len(small.batches) > len(large.batches)
    assert all(len(batch.atoms) <= 12 for batch in small.batches)
    assert [walk.golden for walk in small.walks] == [walk.golden for walk in large.walks]
    result, _ = run(small)
    assert result.wrong == [] and result.not_golden == [] and result.memory_differs == []


def test_ranges_are_used_again_when_the_memory_is_small():
    plan = plan_of(*(depth_first(str(index)) for index in range(9)), memory_atoms=20)
    result, _ = run(plan)
    assert result.wrong == [] and result.not_golden == [] and result.memory_differs == []


def test_a_tree_too_big_for_the_memory_is_an_input_error():
    with pytest.raises(InputError) as caught:
        plan_of(depth_first(), memory_atoms=4)
    assert str(caught.value) == (
        "f.jsonl: trace t: needs 4 atoms of memory: expected at most 3 (memory of 4 atoms, 0 in use)"
    )


def test_a_list_too_long_for_the_completion_ring_is_an_input_error():
    with pytest.raises(InputError) as caught:
        plan_of(beam(), ring=RingSize(commands=12, completions=3))
    assert str(caught.value).startswith(
        "f.jsonl: trace t: event 12 (select): walk writes 4 completion records"
    )


@pytest.mark.parametrize("concurrent", [0, 10_001])
def test_concurrency_out_of_range_is_an_input_error(concurrent):
    with pytest.raises(InputError, match=f"--concurrent is {concurrent}: expected 1 to 10000"):
        plan_of(depth_first(), concurrent=concurrent)


def test_a_score_that_a_record_cannot_hold_is_an_input_error():
    with pytest.raises(InputError) as caught:
        plan_of(trace(node(0), Eval(id=0, score=float("nan"))))
    assert str(caught.value).startswith("f.jsonl: trace t: event 1 (eval): field score is NaN: expected")


def test_a_completion_that_belongs_to_no_walk_is_an_internal_error():
    plan = plan_of(depth_first())
    fake = FakeAccelerator(CONFIG)
    original = fake.run_batch

    def with_a_stray(atoms):
        done = original(atoms)
        if len(done.records):
            done.records["tag"][0] += 1
        return done

    fake.run_batch = with_a_stray
    with pytest.raises(InternalError, match="expected that of an open walk"):
        run(plan, accelerator=fake)
