"""The timeline: events as their format asks, and the walks, loops and commands of the run in them."""

import json
from collections import Counter

import pytest

from firmware_py.design import design_for
from firmware_py.far_help import parse_help
from firmware_py.report.perfetto import trace_events, write_perfetto
from tests.trace_events import require_trace_events

from .fake_accelerator import HOP_CYCLES, FakeAccelerator
from .test_compare import comparison
from .test_replay import beam, depth_first


@pytest.mark.parametrize("concurrent", [1, 3])
@pytest.mark.parametrize("channels", [1, 2])
def test_the_file_is_what_the_format_asks(tmp_path, concurrent, channels):
    found = comparison(depth_first("a"), beam(), depth_first("b"), concurrent=concurrent, channels=channels)
    path = tmp_path / "timeline.json"
    write_perfetto(path, found)
    document = json.loads(path.read_text())
    require_trace_events(document)
    names = {event["args"]["name"] for event in document["traceEvents"] if event["name"] == "process_name"}
    assert names == {"near", "far"}


@pytest.mark.parametrize("memory", ["hbm3_6400", "hbm3e_9600", "hbm4_8000"])
def test_slices_stay_nested_in_whole_nanoseconds_whatever_the_clock(memory):
    """Seen with Perfetto's trace processor: with a clock of 0.625 ns it dropped one slice in fifty."""
    fake = FakeAccelerator(design_for(memory), slower=3)
    found = comparison(depth_first(), beam(), fake=fake, concurrent=3, far="cxl_memory", memory=memory)
    require_trace_events({"displayTimeUnit": "ns", "traceEvents": list(trace_events(found))})


def test_walks_loops_and_commands_are_those_of_the_run():
    found = comparison(depth_first(), beam())
    events = list(trace_events(found))
    for process, (name, figures) in enumerate(found.places.items(), start=1):
        slices = [event for event in events if event["ph"] == "X" and event["pid"] == process]
        loops = [event for event in slices if event["name"] == "loop"]
        assert len(loops) == figures.loop.count
        assert {round(1000 * loop["dur"]) for loop in loops} == {HOP_CYCLES[figures.run.place]}
        walks = [event for event in slices if "walk" in event["args"]]
        assert [walk["args"]["walk"] for walk in walks] == list(range(figures.walk.count))
        assert Counter(walk["name"] for walk in walks) == Counter(
            walk.question.program for walk in figures.plan.walks
        )
        reads = sum(event["name"] == "RD" for event in slices)
        assert reads >= figures.loop.count
        # A near walk crosses the link twice, a far one twice for every read.
        crossings = sum(event["ph"] == "b" and event["pid"] == process for event in events)
        assert crossings == 2 * (figures.walk.count if name == "near" else figures.loop.count)


def test_commands_of_a_bank_lie_within_the_time_that_their_row_is_open():
    rows = {}
    seen = set()
    for event in trace_events(comparison(depth_first(), beam())):
        if event["ph"] != "X":
            continue
        track = event["pid"], event["tid"]
        if event["name"].startswith("row "):
            rows[track] = event
        elif event["name"] in ("ACT", "RD", "WR", "PRE"):
            seen.add(event["name"])
            row = rows[track]
            assert row["ts"] <= event["ts"], event
            assert event["ts"] + event["dur"] <= row["ts"] + row["dur"] + 1e-9, event
    assert {"ACT", "RD", "WR"} <= seen


def test_a_comparison_with_help_has_the_bare_far_place_too():
    found = comparison(depth_first(), far_help=parse_help("stack"), bare_far=True)
    document = {"displayTimeUnit": "ns", "traceEvents": list(trace_events(found))}
    require_trace_events(document)
    names = [event["args"]["name"] for event in document["traceEvents"] if event["name"] == "process_name"]
    assert names == ["near", "far", "far without help"]
