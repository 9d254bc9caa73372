"""A far place with help on the fake accelerator: plans, verdicts, figures, reports; many searches."""

import dataclasses
import json
from collections import Counter
from contextlib import contextmanager

import numpy as np
import pytest

from firmware_py.batches import BatchBuilder, RingSize, WalkCommand
from firmware_py.compare import TraceFile, compare, repeated
from firmware_py.design import design_for
from firmware_py.errors import InputError
from firmware_py.far_help import STACK_LEVEL_CYCLES, STREAM_RESULT_CYCLES, parse_help
from firmware_py.hits import hits_by_file
from firmware_py.image import CreationOrder
from firmware_py.machine import Machine
from firmware_py.paths import far_path
from firmware_py.place import AT_THE_MEMORY, Place
from firmware_py.programs import default_image
from firmware_py.replay import make_plan
from firmware_py.report.document import document
from firmware_py.throughput import busy_cycles
from firmware_py.walk_numbers import walk_numbers
from hdl.registers import CommandOp
from tests.compare_schema import require_schema

from .fake_accelerator import COPY_CYCLES, CROSSING_CYCLES, HOP_CYCLES, FakeAccelerator
from .test_compare import _text
from .test_replay import CONFIG, RING, beam, depth_first, run

MARKS = 2


def plan_of(*traces, text="", concurrent=1, contexts=CONFIG.walker.contexts):
    return make_plan(
        traces,
        program=default_image(),
        layout=CreationOrder(),
        ring=RING,
        memory_atoms=CONFIG.memory.atoms,
        contexts=contexts,
        concurrent=concurrent,
        far_help=parse_help(text),
    )


def comparison(*traces, text="", near=AT_THE_MEMORY, concurrent=1):
    config = design_for("hbm2_2000", concurrent=concurrent)
    opened = []

    @contextmanager
    def open_machine(config, announce):
        fake = FakeAccelerator(config)
        opened.append((config, fake))
        yield Machine(driver=fake, monitor=fake)

    result = compare(
        [TraceFile(file="f.jsonl", format="clew", traces=traces)],
        config=config,
        far="v100_hbm2",
        near=near,
        far_help=parse_help(text),
        concurrent=concurrent,
        program=default_image(),
        layout=CreationOrder(),
        open_machine=open_machine,
        announce=lambda text: None,
        progress=lambda place, done, total: None,
    )
    return result, opened


# -- The path stack --


def test_climbs_on_the_stack_read_nothing_and_cost_their_levels():
    plan = plan_of(depth_first(), text="stack")
    assert [walk.local.help for walk in plan.walks] == ["stack", "stack"]
    result, _ = run(plan, 1)
    assert (result.wrong, result.not_golden, result.memory_differs) == ([], [], [])
    # Two levels up to the root, then the root alone.
    assert result.walk_cycles.tolist() == [2 * STACK_LEVEL_CYCLES, STACK_LEVEL_CYCLES]
    assert [answer.hops for answer in result.answers] == [0, 0]
    assert len(result.logs.hops) == 0


def test_a_wrong_answer_of_the_stack_is_seen():
    plan = plan_of(depth_first(), text="stack")
    first = plan.walks[0]
    lie = dataclasses.replace(first.local, answer=dataclasses.replace(first.local.answer, value=3))
    plan.walks[0] = dataclasses.replace(first, local=lie)
    result, _ = run(plan, 1)
    assert result.wrong == [0] and result.not_golden == [0]


def test_the_stack_stands_in_for_plain_climbs_only():
    with pytest.raises(InputError, match="expected --program climb, not climb_compressed"):
        compare(
            [TraceFile(file="f", format="clew", traces=[depth_first()])],
            config=CONFIG,
            far="v100_hbm2",
            far_help=parse_help("stack"),
            climbing="climb_compressed",
            concurrent=1,
            program=default_image(),
            layout=CreationOrder(),
            open_machine=None,
            announce=print,
            progress=print,
        )


# -- Streams --


def test_selections_are_read_as_streams():
    plan = plan_of(beam(), text="stream")
    helped = [walk.local.help if walk.local else None for walk in plan.walks]
    assert helped == ["stream"] * 4 + [None] * 4
    result, _ = run(plan, 1)
    assert (result.wrong, result.not_golden, result.memory_differs) == ([], [], [])
    # In the fake a command takes a cycle and a walk without a read its crossings.
    marks = 2 * CROSSING_CYCLES + 3
    expected = [
        marks + COPY_CYCLES * walk.question.records + STREAM_RESULT_CYCLES * len(walk.local.answer.yields)
        for walk in plan.walks[:4]
    ]
    assert result.walk_cycles[:4].tolist() == expected
    near, _ = run(plan_of(beam()), 0)
    assert [a.yields for a in near.answers] == [a.yields for a in result.answers]


def test_a_wrong_stream_is_seen():
    plan = plan_of(beam(), text="stream")
    first = plan.walks[0]
    yields = tuple(reversed(first.local.answer.yields))
    lie = dataclasses.replace(first.local, answer=dataclasses.replace(first.local.answer, yields=yields))
    plan.walks[0] = dataclasses.replace(first, local=lie)
    result, _ = run(plan, 1)
    assert result.wrong == [0] and result.not_golden == [0]


def _builder(commands=30):
    return BatchBuilder(RingSize(commands=commands, completions=8), stream=True)


def test_a_stream_is_alone_between_its_marks_and_outside_the_rings():
    builder = _builder()
    marker = WalkCommand(entry=5, context=1, address=0)
    builder.walk(WalkCommand(entry=2, context=0, address=9), number=0)
    builder.stream(address=40, count=7, marker=marker, number=1)
    builder.stream(address=50, count=10, marker=marker, number=2)
    batches = builder.finish()
    assert builder.stream_atoms == 10
    rows = [row for batch in batches for row in batch.atoms.tolist()]
    ops = [row[0] & 15 for row in rows]
    walk, copy, fence = CommandOp.WALK, CommandOp.COPY, CommandOp.FENCE
    assert ops == [walk, fence, walk, copy, fence, walk, fence, walk, copy, fence, walk]
    assert [row[1] for row in rows if row[0] & 15 == copy] == [40, 50]
    assert all(row[2] == 20 for row in rows if row[0] & 15 == copy)
    (batch,) = batches
    assert [(stream.number, stream.verdict) for stream in batch.streams] == [(1, 1), (2, 3)]
    assert batch.mark_rows == (2, 5, 7, 10) and batch.walk_rows == (0,)
    assert batch.completions == 5
    far = batch.in_place(1)
    assert [row[0] >> 4 & 1 for row in far.tolist() if row[0] & 15 == walk] == [1] * 5


def test_a_stream_never_lies_in_two_batches():
    for before in range(1, 25):
        builder = _builder()
        for _ in range(before):
            builder.walk(WalkCommand(entry=0, context=0, address=1), number=0)
        builder.stream(address=40, count=1, marker=WalkCommand(entry=0, context=0, address=0), number=1)
        batch = builder.finish()[-1]
        assert len(batch.streams) == 1 and len(batch.mark_rows) == MARKS
        assert batch.streams[0].verdict == len(batch.walk_rows)


@pytest.mark.parametrize("count", [0, 11])
def test_a_list_that_does_not_fit_is_no_stream(count):
    with pytest.raises(ValueError, match=rf"list of {count} atoms: expected 1 to 10"):
        _builder().stream(address=1, count=count, marker=WalkCommand(entry=0, context=0, address=0), number=0)


# -- Reports --


def test_every_help_is_named_with_what_was_given_and_what_measured():
    result, opened = comparison(depth_first(), beam(), text="cache=a100_l2:1MiB,stack,stream")
    assert result.failures == []
    shown = document(result)
    require_schema(shown)
    assert json.loads(json.dumps(shown, allow_nan=False)) == shown
    help_ = shown["details"]["far_help"]
    assert list(help_) == ["cache", "stack", "stream"]
    assert help_["cache"]["bytes_input"] == 1 << 20 and help_["cache"]["hit_ns_input"] == 145.8
    assert help_["cache"]["misses"] > 0 and help_["cache"]["hit_rate"] == 0
    assert help_["stack"] == {"cycles_per_level_input": STACK_LEVEL_CYCLES, "answered": 2}
    assert help_["stream"] == {"cycles_per_result_input": STREAM_RESULT_CYCLES, "answered": 4}
    text = _text(result)
    for words in (
        "far help: cache a100_l2:1MiB, 1MiB, a hit 145.8 ns, published beside a100_hbm2e",
        "far help: stack, 2 cycles on chip for each level looked at (stated, not measured)",
        "far help: stream, lists through the bulk channel (measured)",
        "answered by help",
        "2 of 10",
        "4 of 10",
        "walks per second",
        "reads that hit",
    ):
        assert words in " ".join(text.replace("\n", " ").split()), words
    assert max(map(len, text.splitlines())) <= 110
    # The near place runs on the design without the cache.
    (plain, _), (cached, machine) = opened
    assert not plain.cache.built and cached.cache.built
    assert machine.cache["ways"] << machine.cache["sets_log2"] == (1 << 20) // 32


def test_a_miss_takes_the_published_time_as_before():
    plain = design_for("hbm2_2000")
    cached = parse_help("cache=v100_l2").built_into(plain)
    one, other = far_path("v100_hbm2", plain), far_path("v100_hbm2", cached)
    assert one.isolated_cycles == other.isolated_cycles
    assert other.floor_cycles == one.floor_cycles + 1


def test_without_help_nothing_is_said_of_it():
    result, opened = comparison(depth_first())
    assert len(opened) == 1
    assert document(result)["details"]["far_help"] == {}
    assert document(result)["details"]["near_place"] == {"preset": "memory"}
    assert "help" not in _text(result)


def test_a_near_walker_behind_a_port_pays_for_both_crossings():
    result, _ = comparison(depth_first(), near="u280_hbm_axi_closed")
    far = far_path("v100_hbm2", CONFIG)
    crossing = far.latency_up + far.latency_down + 2
    # The fake's far walker: two reads, its own crossings.
    assert result.near.walk.max == 2 * HOP_CYCLES[1] + 2 * CROSSING_CYCLES + crossing
    assert result.near.run.place == 1 and result.failures == []
    assert result.isolated_speedup == pytest.approx(315 / 122)
    shown = document(result)["details"]["near_place"]
    assert shown["preset"] == "u280_hbm_axi_closed" and shown["published_ns_input"] == 122.2
    assert "near: u280_hbm_axi_closed, 122.2 ns a dependent read" in _text(result)
    place = Place.near("u280_hbm_axi_hit", "v100_hbm2", CONFIG)
    assert (place.walker, place.crossing) == (1, crossing)


# -- Many searches --


@pytest.mark.parametrize("concurrent", [5, 9, 40])
def test_searches_beyond_the_contexts_share_them(concurrent):
    traces = [depth_first(str(number)) for number in range(45)]
    plan = plan_of(*traces, concurrent=concurrent, contexts=4)
    used = Counter()
    for batch in plan.batches:
        for row in batch.walk_rows:
            used[int(batch.atoms[row][0]) >> 12 & 63] += 1
    assert set(used) == set(range(4))
    # The walks of a round are as long as each other here, and none waits while a context is idle.
    assert max(used.values()) <= 2 * min(used.values())
    windows = {(w.base, w.limit) for batch in plan.batches for w in batch.windows}
    assert windows == {(1, CONFIG.memory.atoms)}
    result, _ = run(plan)
    assert (result.wrong, result.not_golden, result.memory_differs) == ([], [], [])
    alone = plan_of(*traces, concurrent=1)
    assert Counter(walk.golden.hops for walk in plan.walks) == Counter(w.golden.hops for w in alone.walks)


def test_traces_are_repeated_only_beyond_the_contexts():
    traces = [depth_first("a"), depth_first("b"), depth_first("c")]
    assert repeated(traces, 4, beyond=4) == traces
    assert [one.name for one in repeated(traces, 7, beyond=4)] == list("abcabca")
    assert repeated(traces, 2, beyond=1) == traces
    assert repeated([], 7, beyond=4) == []


def test_repeated_searches_are_counted_and_shown():
    result, opened = comparison(depth_first("a"), beam(), concurrent=20)
    ((config, _),) = opened
    assert config.walker.contexts == 64
    # Up to the contexts of a walker nothing is repeated.
    assert result.repeated == 0
    result, _ = comparison(depth_first("a"), beam(), concurrent=100)
    assert result.repeated == 98 and result.failures == []
    shown = document(result)
    assert shown["details"]["repeated_searches"] == 98
    (entry,) = shown["traces"]
    assert entry["problems"] == 100 and entry["walks"] == 50 * 10
    assert "repeated traces" in _text(result)


# -- Throughput and hits --


def test_walks_per_second_is_over_the_time_in_which_walks_are_in_progress():
    plan = plan_of(depth_first("a"), depth_first("b"), concurrent=2)
    result, _ = run(plan)
    ledger = _ledger(plan, result)
    # The fake walks one after another: a round is its two walks and a command between them.
    walks = result.walk_cycles.tolist()
    outside = 2 * CROSSING_CYCLES
    hops = [HOP_CYCLES[0] * answer.hops for answer in result.answers]
    expected = sum(hops) + outside * 2 + 2 * (2 * CROSSING_CYCLES + 1)
    assert sum(walks) == sum(hops) + outside * 4
    assert _busy(plan, result, ledger.loops) == expected


def test_a_round_on_the_stack_lasts_as_long_as_its_longest():
    plan = plan_of(depth_first("a"), depth_first("b"), text="stack", concurrent=2)
    result, _ = run(plan, 1)
    assert _busy(plan, result, _ledger(plan, result).loops) == 3 * STACK_LEVEL_CYCLES


def test_a_log_with_other_verdicts_than_the_plan_is_refused():
    plan = plan_of(depth_first())
    result, _ = run(plan)
    loops = _ledger(plan, result).loops
    result.logs.hops = result.logs.hops[:-1]
    with pytest.raises(ValueError, match="1 verdicts: expected 2 by the plan"):
        _busy(plan, result, loops)


def test_a_walk_that_waits_for_its_context_lengthens_no_round_beyond_its_verdicts():
    """Each round's crossings are those of its walk that waited least, and not the mean."""
    plan = plan_of(depth_first("a"), depth_first("b"), concurrent=2)
    result, _ = run(plan)
    loops = _ledger(plan, result).loops
    without = _busy(plan, result, loops)
    result.walk_cycles[1] += 500
    assert _busy(plan, result, loops) == without


def _busy(plan, result, loops):
    from hdl.memory.stack import StackMap

    numbers = walk_numbers(plan, place=result.place, stack=StackMap(CONFIG.memory))
    return busy_cycles(plan, result, loops, numbers=numbers)


def _ledger(plan, result, cached=False):
    from firmware_py.ledger import make_ledger
    from hdl.memory.stack import StackMap

    logs = result.logs
    return make_ledger(
        place=result.place,
        hops=logs.hops,
        hop_batch=logs.hop_batch,
        accesses=logs.accesses,
        access_batch=logs.access_batch,
        commands=logs.commands,
        timing=CONFIG.memory.timing,
        stack=StackMap(CONFIG.memory),
        cached=cached,
    )


def test_hits_are_told_by_file():
    traces = [depth_first("a"), beam(), depth_first("c")]
    plan = plan_of(*traces)
    result, _ = run(plan, 1)
    # A cache answered every second read of the walker.
    source = result.logs.accesses["source"] == 1
    kept = np.ones(len(source), dtype=bool)
    kept[np.flatnonzero(source)[::2]] = False
    result.logs.accesses = result.logs.accesses[kept]
    result.logs.access_batch = result.logs.access_batch[kept]
    ledger = _ledger(plan, result, cached=True)
    first, second = hits_by_file(plan, ledger, [1, 2])
    reads = [sum(w.golden.hops for w in plan.walks if w.trace in group) for group in ((0,), (1, 2))]
    assert [first.reads, second.reads] == reads
    assert first.hits + second.hits == (sum(reads) + 1) // 2
    with pytest.raises(ValueError, match="expected the"):
        _ledger(plan, result)
