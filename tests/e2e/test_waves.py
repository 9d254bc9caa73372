"""Waveforms: what they record is what the logs of the same run say, and they change nothing else."""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from firmware_py import cli
from hdl.config import named_config
from sim.trace.searches import demonstration_traces

CYCLES = 3000


def _clew(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["clew", *map(str, arguments)])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    return int(caught.value.code or 0)


def _read_vcd(path: Path) -> tuple[str, dict[str, list[tuple[int, int]]]]:
    """Its timescale, and the changes (time, value) of the top's ports by name."""
    text = path.read_text()
    scale = re.search(r"\$timescale\s+(\S+)\s+\$end", text)
    assert scale is not None
    head, _, body = text.partition("$enddefinitions $end")
    # A port and the signal that it is wired to share a code and a name.
    names: dict[str, set[str]] = defaultdict(set)
    depth = 0
    for kind, rest in re.findall(r"\$(scope|upscope|var)\b(.*?)\$end", head, re.DOTALL):
        if kind == "var" and depth <= 2:
            _, _, code, name, *_ = rest.split()
            names[code].add(name)
        depth += {"scope": 1, "upscope": -1}.get(kind, 0)
    changes: dict[str, list[tuple[int, int]]] = defaultdict(list)
    now = 0
    for line in body.split("\n"):
        if line.startswith("#"):
            now = int(line[1:])
        elif line and line[0] in "01b":
            value, code = line[1:].split() if line[0] == "b" else (line[0], line[1:])
            for name in names.get(code, ()):
                changes[name].append((now, int(value, 2)))
    return scale[1], changes


def test_a_waveform_holds_the_first_cycles_of_each_place(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    trace = demonstration_traces(tmp_path / "traces")[0]
    plain, traced = tmp_path / "plain.json", tmp_path / "traced.json"
    assert _clew(monkeypatch, "compare", trace, "--json", plain) == 0
    waves = ("--waves", tmp_path / "run.vcd", "--waves-cycles", CYCLES)
    assert _clew(monkeypatch, "compare", trace, "--json", traced, *waves) == 0
    # What is recorded changes no figure.
    assert json.loads(traced.read_text()) == json.loads(plain.read_text())
    tck_ps = round(1000 * named_config("simulation").memory.timing.clock_ns)
    for place in ("near", "far"):
        scale, changes = _read_vcd(tmp_path / f"run.{place}.vcd")
        assert scale == "1ps"
        rising = [time for time, value in changes["clk"] if value]
        assert len(rising) == CYCLES
        assert rising == [tck_ps * cycle for cycle in range(1, CYCLES + 1)]
        assert {value for _, value in changes["batch_active"]} == {1}
        events = {value for _, value in changes[f"{place}_hop__event"]}
        other = {"near": "far", "far": "near"}[place]
        assert len(events) > 1 and {value for _, value in changes[f"{other}_hop__event"]} == {0}
