"""The files of a comparison from the RTL: the timeline, the command list and the page of a demonstration."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from firmware_py import cli
from hdl.config import named_config
from sim.model.command_checker import check
from sim.trace.searches import demonstration_traces
from tests.chromium import Watched, chromium
from tests.firmware_py.test_command_list import read_commands
from tests.trace_events import require_trace_events

MEMORY = named_config("simulation").memory
#: What the page of any comparison stays under.
PAGE_BYTES = 5_000_000


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("outputs")
    files = demonstration_traces(folder / "traces")
    options = [
        part
        for name, suffix in (("html", "html"), ("perfetto", "trace"), ("commands", "csv"), ("json", "json"))
        for part in (f"--{name}", str(folder / f"x.{suffix}"))
    ]
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as caught:
        patch.setattr(sys, "argv", ["clew", "compare", *map(str, files), "--concurrent", "3", *options])
        cli.main()
    assert not caught.value.code
    return folder


def test_the_timeline_is_what_its_format_asks(outputs: Path) -> None:
    events = json.loads((outputs / "x.trace").read_text())
    require_trace_events(events)
    tracks = {event["args"]["name"] for event in events["traceEvents"] if event["name"] == "thread_name"}
    assert {
        "walks of context 0",
        "walks of context 2",
        "channel 0.0 refresh",
        "channel 0.0 bank 00",
    } <= tracks
    refreshes = [event for event in events["traceEvents"] if event["name"] == "REFab"]
    assert {round(1000 * event["dur"]) for event in refreshes} == {
        MEMORY.timing["tRFC"] * MEMORY.timing.clock_ns
    }


def test_the_command_list_obeys_the_timing_table(outputs: Path) -> None:
    logs = read_commands(outputs / "x.csv")
    assert set(logs) == {("near", 0), ("far", 0)}
    for log in logs.values():
        assert len(log) > 1000
        assert list(check(log, MEMORY.timing, MEMORY.organisation, refresh_windows=[])) == []


def test_the_page_shows_the_figures_of_the_document(outputs: Path) -> None:
    document = json.loads((outputs / "x.json").read_text())
    assert (outputs / "x.html").stat().st_size < PAGE_BYTES
    with (
        chromium() as browser,
        Watched(browser, outputs / "x.html", viewport={"width": 320, "height": 700}) as it,
    ):
        page = it.page
        assert page.evaluate("document.documentElement.scrollWidth") <= 320
        for place in ("near", "far"):
            mean = document["paths"][place]["walk_ns"]["mean"]
            shown = page.locator(f".headline .{place}").first.inner_text().split()[0]
            assert float(shown.replace(",", "")) == pytest.approx(mean, rel=1e-3)
        page.click("#forward")
        page.focus("#replay")
        page.keyboard.press("End")
        for place in ("near", "far"):
            assert "verdict after" in page.locator(f"#lane-{place} .state").inner_text()
