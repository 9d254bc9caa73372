"""The comparison on the fake accelerator: its figures, its document, its table and its faults."""

import dataclasses
import json
from contextlib import contextmanager
from pathlib import Path

import pytest
from rich.console import Console

from firmware_py.compare import TraceFile, compare, read_files
from firmware_py.design import design_for, refresh_named
from firmware_py.driver import MemoryErrors
from firmware_py.errors import InputError
from firmware_py.image import CreationOrder
from firmware_py.machine import Machine
from firmware_py.paths import far_path
from firmware_py.placement import FewestSearches, RoundRobin
from firmware_py.programs import default_image
from firmware_py.report.document import document, write_document
from firmware_py.report.table import comparison_table, print_comparison
from firmware_py.walks import Answer
from hdl.config import named_config
from hdl.layouts import RefreshMode, WalkStatus
from hdl.memory import timing
from sim.trace.errors import TraceError
from tests.compare_schema import require_schema

from .fake_accelerator import CROSSING_CYCLES, HOP_CYCLES, FakeAccelerator
from .test_replay import beam, depth_first, node, trace

STATISTICS = {"count", "min", "mean", "p50", "p99", "p999", "max"}
PLACE = {"walk_ns", "reads_per_walk", "loop_cycles", "loop_ns", "bound_ns", "ratio_to_bound", "row"}


def comparison(
    *traces,
    fake=None,
    concurrent=1,
    far="v100_hbm2",
    files=None,
    memory="hbm2_2000",
    ecc=False,
    channels=1,
    **options,
):
    config = design_for(memory, channels=channels, ecc=ecc)
    accelerator = fake or FakeAccelerator(config)

    @contextmanager
    def open_machine(config, announce):
        yield Machine(driver=accelerator, monitor=accelerator)

    return compare(
        files or [TraceFile(file="f.jsonl", format="clew", traces=traces)],
        config=config,
        far=far,
        concurrent=concurrent,
        program=default_image(),
        layout=CreationOrder(),
        open_machine=open_machine,
        announce=lambda text: None,
        **({"progress": lambda place, done, total: None} | options),
    )


def test_the_document_has_the_keys_of_its_schema():
    result = document(comparison(depth_first(), beam()))
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    require_schema(result)
    assert result["schema"] == "clew.compare/1"
    assert result["memory"] == "hbm2_2000" and result["clock_ns"] == 1.0 and result["concurrent"] == 1
    (entry,) = result["traces"]
    assert entry == {
        "file": "f.jsonl",
        "format": "clew",
        "problems": 2,
        "nodes": 4 + 8,
        "walks": 10,
        "verdicts_checked": 9,
        "verdicts_wrong": 0,
        "verdicts_unchecked": 3,
        "by_source": {
            "declared": {"checked": 1, "wrong": 0},
            "lookahead": {"checked": 1, "wrong": 0},
        },
    }
    assert set(result["paths"]) == {"near", "far"}
    assert set(result["paths"]["near"]) == PLACE
    assert set(result["paths"]["far"]) == PLACE | {"preset", "source"}
    for place in result["paths"].values():
        for name in ("walk_ns", "reads_per_walk", "loop_cycles", "loop_ns"):
            assert set(place[name]) == STATISTICS
        assert set(place["bound_ns"]) == {"mean"}
        assert set(place["row"]) == {"hit", "closed", "conflict"}
        assert sum(place["row"].values()) == pytest.approx(1)
    assert set(result["speedup"]) == {"walk_mean", "walk_p50", "loop_mean"}
    assert result["violations"] == 0
    assert result["details"]["failures"] == []
    assert set(result["details"]["negative_control"]) == {"climb", "select", "ancestor"}


@pytest.mark.parametrize("mode", RefreshMode)
def test_the_refresh_asked_for_is_set_and_shown(mode):
    fake = FakeAccelerator(named_config("simulation"))
    found = comparison(depth_first(), fake=fake, refresh=mode)
    assert fake.refresh is mode
    name = mode.name.lower()
    assert document(found)["details"]["refresh"] == name
    shown = "no refresh" if mode is RefreshMode.NONE else f"{name.replace('_', '-')} refresh"
    assert f", {shown}, 1 cycle = 1 ns" in str(comparison_table(found).title)


def test_another_address_map_is_built_and_shown():
    entries = "pseudo_channel,bank_group,column,bank^row[1:0],row"
    config = design_for("hbm2_2000", address_map=entries)
    assert config.memory.address_map == tuple(entries.split(","))
    usual = comparison(depth_first())
    assert document(usual)["details"]["address_map"] == list(design_for("hbm2_2000").memory.address_map)
    assert "address map" not in comparison_table(usual).title
    found = dataclasses.replace(usual, config=config)
    assert document(found)["details"]["address_map"] == entries.split(",")
    assert f", address map {entries}, " in comparison_table(found).title


def test_a_bad_address_map_is_an_error_of_the_input():
    with pytest.raises(InputError, match=r"memory\.address_map: row\[0\] is declared 0 times"):
        design_for("hbm2_2000", address_map="pseudo_channel,bank_group,column,bank")


def test_a_slower_memory_side_and_more_stages_are_built_and_shown():
    usual = comparison(depth_first())
    assert document(usual)["details"]["clock_ratio"] == document(usual)["details"]["execute_stages"] == 1
    assert (
        "of the clock" not in comparison_table(usual).title and "stages" not in comparison_table(usual).title
    )
    config = design_for("hbm2_2000", stages=2, clock_ratio=4)
    assert (config.walker.execute_stages, config.clock_ratio) == (2, 4)
    found = dataclasses.replace(usual, config=config)
    details = document(found)["details"]
    assert (details["execute_stages"], details["clock_ratio"]) == (2, 4)
    assert (
        ", logic at the memory at 1/4 of the clock, 2 execute stages, 1 cycle"
        in comparison_table(found).title
    )
    # What the preset chose is an input: the isolated near loop of the usual design, and of this one.
    assert usual.isolated_speedup == usual.far_path.isolated_cycles / 34
    assert found.isolated_speedup == usual.far_path.isolated_cycles / 48


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stages": 7}, r"walker\.execute_stages is 7: expected 1 to 6"),
        ({"clock_ratio": 3}, r"clock_ratio is 3: expected 1, 2 or 4"),
    ],
)
def test_stages_and_ratios_that_are_not_built_are_errors_of_the_input(options, message):
    with pytest.raises(InputError, match=message):
        design_for("hbm2_2000", **options)


def test_an_unknown_refresh_lists_the_known():
    assert refresh_named("per_bank") is RefreshMode.PER_BANK
    with pytest.raises(InputError, match="unknown refresh 'often': expected one of none, all_bank, per_bank"):
        refresh_named("often")


def test_memory_errors_are_shown_with_ecc_only():
    class Faulty(FakeAccelerator):
        def memory_errors(self):
            return MemoryErrors(
                corrected=3, corrected_address=0x40, uncorrectable=0, uncorrectable_address=None
            )

    plain = comparison(depth_first())
    assert document(plain)["details"]["ecc"] is None
    assert "memory errors" not in _text(plain)
    corrected = comparison(depth_first(), fake=Faulty(design_for("hbm2_2000", ecc=True)), ecc=True)
    errors = {"corrected": 3, "corrected_address": 64, "uncorrectable": 0, "uncorrectable_address": None}
    assert document(corrected)["details"]["ecc"] == {"near": errors, "far": errors}
    text = _text(corrected)
    assert "hbm2_2000 with ECC" in text and "memory errors" in text
    # The link of a far preset is what is left of the published time: one cycle of it is ECC's now.
    latencies = [c.far_path.latency_up + c.far_path.latency_down for c in (plain, corrected)]
    assert latencies[0] - latencies[1] == 1


def test_the_figures_are_those_of_the_machine():
    result = document(comparison(depth_first()))
    near, far = result["paths"]["near"], result["paths"]["far"]
    assert near["reads_per_walk"]["count"] == 2 and near["reads_per_walk"]["mean"] == 1.5
    assert near["loop_cycles"]["count"] == 3
    assert (near["loop_cycles"]["min"], far["loop_cycles"]["max"]) == HOP_CYCLES
    assert near["walk_ns"]["max"] == 2 * HOP_CYCLES[0] + 2 * CROSSING_CYCLES
    assert result["speedup"]["loop_mean"] == pytest.approx(HOP_CYCLES[1] / HOP_CYCLES[0])
    assert far["preset"] == "v100_hbm2" and "gpu-benches" in far["source"]
    assert near["ratio_to_bound"] == pytest.approx(near["loop_ns"]["mean"] / near["bound_ns"]["mean"])


@pytest.mark.parametrize("placement", [RoundRobin(), FewestSearches()], ids=lambda policy: policy.name)
def test_a_stack_counts_trees_reads_and_violations_by_channel(placement):
    config = design_for("hbm2_2000", channels=4)
    traces = [depth_first(str(number)) for number in range(6)]
    fake = FakeAccelerator(config)
    result = comparison(*traces, fake=fake, channels=4, concurrent=3, placement=placement)
    assert result.failures == []
    details = document(result)["details"]
    assert details["placement"] == placement.name
    assert [channel["trees"] for channel in details["channels"]] == [2, 2, 1, 1]
    for place in ("near", "far"):
        reads = [channel[place]["reads"] for channel in details["channels"]]
        assert reads == [6, 6, 3, 3]
        assert sum(reads) == document(result)["paths"][place]["loop_cycles"]["count"]
    text = _text(result)
    assert f"4 channels ({placement.name})" in text and "channel 1, 2 trees" in text
    # The same walks as on one channel.
    single = comparison(*traces, concurrent=3)
    assert document(single)["traces"] == document(result)["traces"]
    assert "1 channel" in _text(single) and "channel 0" not in _text(single)

    fake = FakeAccelerator(config)
    fake.bad_command = True
    broken = comparison(*traces, fake=fake, channels=4, concurrent=3, placement=placement)
    counts = [channel["near"]["violations"] for channel in document(broken)["details"]["channels"]]
    assert counts[0] > 0 and counts[1:] == [0, 0, 0]
    assert broken.violations == sum(
        channel[place]["violations"]
        for channel in document(broken)["details"]["channels"]
        for place in ("near", "far")
    )


def test_a_number_of_channels_that_no_stack_has_is_an_input_error():
    with pytest.raises(InputError, match=r"memory.channels is 3: expected a power of two up to 16"):
        design_for("hbm2_2000", channels=3)


def test_the_link_is_set_to_the_preset():
    fake = FakeAccelerator(named_config("simulation"))
    result = comparison(depth_first(), fake=fake)
    assert fake.link == {"up": result.far_path.latency_up, "down": result.far_path.latency_down, "width": 0}


def test_verdicts_are_counted_by_file():
    files = [
        TraceFile(file="a", format="clew", traces=[depth_first("a"), depth_first("b")]),
        TraceFile(file="b", format="clew", traces=[beam()]),
        TraceFile(file="c", format="clew", traces=[trace(node(0))]),
    ]
    result = document(comparison(files=files, concurrent=2))
    assert [entry["file"] for entry in result["traces"]] == ["a", "b", "c"]
    assert [entry["walks"] for entry in result["traces"]] == [4, 8, 0]
    assert [entry["problems"] for entry in result["traces"]] == [2, 1, 1]


def test_traces_without_a_walk_give_empty_figures():
    result = document(comparison(trace(node(0))))
    require_schema(result)
    near = result["paths"]["near"]
    assert near["walk_ns"]["count"] == 0 and near["walk_ns"]["mean"] is None
    assert near["bound_ns"]["mean"] is None and near["ratio_to_bound"] is None
    assert near["row"]["hit"] is None
    assert result["speedup"]["walk_mean"] is None


def test_a_wrong_verdict_is_a_failure_that_names_file_trace_and_event():
    fake = FakeAccelerator(named_config("simulation"))
    fake.corrupt = lambda result, walk: (
        dataclasses.replace(result, value=77, status=WalkStatus.DONE) if walk == 1 else result
    )
    result = comparison(depth_first(), fake=fake)
    assert result.files[0].verdicts.wrong == 1
    wrong, unlike_golden, differ = result.failures
    assert wrong.startswith(
        "near: 1 of 2 verdicts are wrong; the first: f.jsonl: trace t: event 10 (backtrack)"
    )
    assert unlike_golden.startswith(
        "near: 1 of 2 walks differ from the golden interpreter; the first: f.jsonl"
    )
    assert differ == "near and far verdicts differ: expected the same in both places"


def test_a_status_that_no_walk_has_is_shown_as_its_number():
    answer = Answer(status=9, code=0, value=0, registers=(0, 0, 0), hops=1, yields=())
    assert answer.describe(hex) == "status 9 at 0x0 after 1 reads, r0 0x0"


def test_a_lying_trace_is_wrong_in_both_places_but_golden():
    *events, last = depth_first().events
    result = comparison(trace(*events, dataclasses.replace(last, to=0)))
    assert result.files[0].verdicts.wrong == 1
    assert [line.split(";")[0] for line in result.failures] == [
        "near: 1 of 2 verdicts are wrong",
        "far: 1 of 2 verdicts are wrong",
    ]
    by_source = document(result)["traces"][0]["by_source"]
    assert by_source["lookahead"] == {"checked": 1, "wrong": 1}
    assert by_source["declared"] == {"checked": 1, "wrong": 0}


def test_a_protocol_violation_is_a_failure_that_names_the_rule():
    fake = FakeAccelerator(named_config("simulation"))
    fake.bad_command = True
    result = comparison(depth_first(), fake=fake)
    assert result.violations > 0 and document(result)["violations"] == result.violations
    assert any("protocol violations" in line and "tRC" in line for line in result.failures)


def test_progress_tells_every_batch_of_both_places():
    told = []
    comparison(
        depth_first("a"),
        depth_first("b"),
        progress=lambda place, done, total: told.append((place, done, total)),
    )
    assert told == [("near", 1, 2), ("near", 2, 2), ("far", 1, 2), ("far", 2, 2)]


def _text(result):
    target = Console(width=110, no_color=True)
    with target.capture() as capture:
        print_comparison(result, target)
    return capture.get()


def test_the_table_says_every_figure():
    text = _text(comparison(depth_first(), beam()))
    for word in (
        "walk latency",
        "reads per walk",
        "loop latency",
        "p99.9",
        "physical bound",
        "loop / bound",
        "row of a read",
        "verdicts wrong",
        "untried declared",
        "untried lookahead",
        "unchecked events",
        "nobody knows",
        "negative control",
        "protocol violations",
        "isolated: an input",
        "v100_hbm2",
    ):
        assert word in text, word
    assert text.index("walk latency") < text.index("reads per walk") < text.index("loop latency")
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 110


def test_the_table_is_one_and_has_a_row_for_each_statistic():
    assert comparison_table(comparison(depth_first())).row_count > 30


def test_a_failure_follows_the_table_on_a_line_of_its_own():
    fake = FakeAccelerator(named_config("simulation"))
    fake.bad_command = True
    last = _text(comparison(depth_first(), fake=fake)).splitlines()[-1]
    assert last.startswith("far: ") and "protocol violations" in last


def test_a_document_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "out.json"
    with pytest.raises(ValueError):
        write_document(path, {"x": float("nan")})
    assert list(tmp_path.iterdir()) == []
    write_document(path, {"x": 1})
    assert json.loads(path.read_text()) == {"x": 1}
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.json"]


def test_an_unknown_memory_is_refused():
    with pytest.raises(InputError, match="unknown memory preset 'sram': expected one of hbm2_2000"):
        design_for("sram")


def test_a_memory_may_be_a_file(tmp_path):
    own = Path(timing.__file__).parent / "presets" / "hbm2_2000.toml"
    file = tmp_path / "mine.toml"
    file.write_text(
        own.read_text().replace('"hbm2_2000"', '"mine"').replace("tCL = { value = 14", "tCL = { value = 15")
    )
    design = design_for(str(file))
    assert (design.memory.timing.name, design.memory.timing.row_hit) == ("mine", 17)
    with pytest.raises(InputError, match="was measured on hbm2_2000: expected one that fits mine"):
        far_path("v100_hbm2", design)
    assert far_path("cxl_memory", design).isolated_cycles == 250


def test_no_file_is_refused():
    with pytest.raises(InputError, match="no trace file was given"):
        read_files([])


def test_a_file_of_no_known_kind_is_refused(tmp_path):
    path = tmp_path / "x.json"
    path.write_text("hello")
    with pytest.raises(TraceError, match=r"x\.json: content: expected one of the known kinds"):
        read_files([Path(path)])
