"""The files that `clew compare` writes: checked first, written whole, each named once."""

import json

import pytest

from firmware_py import waves
from hdl.config import named_config

from .fake_accelerator import FakeAccelerator
from .test_cli import clew, fake, traces

__all__ = ["fake", "traces"]

FILES = {
    "--json": "x.json",
    "--html": "x.html",
    "--plot": "x.svg",
    "--perfetto": "x.trace",
    "--commands": "x.csv",
}


def test_every_file_that_is_asked_for_is_written(monkeypatch, capsys, fake, traces, tmp_path):
    arguments = [part for option, name in FILES.items() for part in (option, tmp_path / name)]
    status, text, errors = clew(monkeypatch, capsys, "compare", traces, *arguments)
    assert (status, errors) == (0, "") and "walk latency" in text
    assert sorted(entry.name for entry in tmp_path.iterdir()) == sorted([*FILES.values(), traces.name])
    starts = {name: (tmp_path / name).read_text()[:20] for name in FILES.values()}
    assert starts["x.html"].startswith("<!DOCTYPE html>") and starts["x.csv"].startswith(
        "place,channel,cycle"
    )
    assert json.loads((tmp_path / "x.trace").read_text())["traceEvents"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--html", "no/x.html"], "no/x.html: expected its folder to exist"),
        (["--perfetto", "no/x.json"], "no/x.json: expected its folder to exist"),
        (["--commands", "."], "expected a file to write, found a folder"),
        (["--plot", "x.txt"], "x.txt: expected a name that ends in one of .png, .svg, .pdf"),
        (["--html", "t.jsonl"], "t.jsonl: expected another file than the input"),
        (["--html", "x", "--json", "x"], "x: expected another file for --html than for --json"),
        (
            ["--commands", "x.near.vcd", "--waves", "x.vcd"],
            "x.near.vcd: expected another file for --waves (near)",
        ),
        (["--waves", "x.txt"], "x.txt: expected a name that ends in .vcd or .fst"),
        (["--waves", "x.vcd", "--waves-cycles", "0"], "--waves-cycles is 0: expected 1 or more"),
        (["--waves", "no/x.vcd"], "no/x.near.vcd: expected its folder to exist"),
    ],
)
def test_a_file_that_cannot_be_written_is_one_line_before_anything_runs(
    monkeypatch, capsys, fake, traces, tmp_path, arguments, message
):
    monkeypatch.chdir(tmp_path)
    status, text, errors = clew(monkeypatch, capsys, "compare", traces.name, *arguments)
    assert (status, text) == (2, "")
    assert len(errors.splitlines()) == 1 and errors.startswith("clew: ") and message in errors
    assert [entry.name for entry in tmp_path.iterdir()] == [traces.name] and fake.batches == []


def test_fst_without_its_headers_names_the_packages(monkeypatch, capsys, fake, traces, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(waves, "missing_headers", lambda names: [name for name in names if name == "lz4.h"])
    status, _, errors = clew(monkeypatch, capsys, "compare", traces.name, "--waves", "x.fst")
    assert status == 2
    assert errors == (
        "clew: x.fst: FST needs lz4.h: expected the system's liblz4-dev, or a name that ends in .vcd\n"
    )


def test_help_with_a_page_measures_the_bare_far_place_and_without_does_not(
    monkeypatch, capsys, traces, tmp_path
):
    from contextlib import contextmanager

    from firmware_py.machine import Machine

    opened = []

    @contextmanager
    def open_machine(config, announce):
        accelerator = FakeAccelerator(named_config("simulation"))
        opened.append(accelerator)
        yield Machine(driver=accelerator, monitor=accelerator)

    monkeypatch.setattr("firmware_py.machine.compiled_machine", open_machine)
    runs = []
    for arguments in ([], ["--html", tmp_path / "x.html"]):
        opened.clear()
        status, *_ = clew(monkeypatch, capsys, "compare", traces, "--far-help", "stack", *arguments)
        assert status == 0
        runs.append(sum(len(accelerator.batches) for accelerator in opened))
    assert runs[1] > runs[0]
    assert "far without help" in (tmp_path / "x.html").read_text()
