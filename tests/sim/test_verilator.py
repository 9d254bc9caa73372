"""The build cache: a build happens once, and one that fails leaves nothing that looks built."""

from __future__ import annotations

import multiprocessing
import time
from pathlib import Path

import pytest

from sim import verilator
from sim.verilator import BuildError, build_once, cache_folder, content_key, run_cocotb, tool_environment


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of this test alone."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "clew"


def test_cache_folder_follows_the_environment(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_folder() == cache
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/somebody")
    assert cache_folder() == Path("/home/somebody/.cache/clew")


def test_a_build_happens_once(cache: Path) -> None:
    calls = []

    def build(folder: Path) -> None:
        calls.append(folder)
        (folder / "product").write_text("made")

    first = build_once("thing", "key", build)
    assert build_once("thing", "key", build) == first
    assert (first / "product").read_text() == "made"
    assert len(calls) == 1
    assert build_once("thing", "other", build) != first


def test_a_build_that_fails_leaves_nothing(cache: Path) -> None:
    def build(folder: Path) -> None:
        (folder / "half").write_text("made")
        raise BuildError("planted")

    with pytest.raises(BuildError, match="planted"):
        build_once("thing", "key", build)
    assert [path.name for path in cache.iterdir()] == ["locks"]


def _slow_build(folder: Path) -> None:
    with (folder.parent / "count").open("a") as count:
        count.write("x")
    time.sleep(0.2)  # without the lock, the others would start meanwhile
    (folder / "product").write_text("made")


def _build_in_process() -> None:
    build_once("thing", "key", _slow_build)


def test_processes_share_one_build(cache: Path) -> None:
    cache.mkdir()
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_build_in_process) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0, 0]
    assert (cache / "count").read_text() == "x"


def test_key_follows_content_and_its_boundaries(tmp_path: Path) -> None:
    source = tmp_path / "source.cpp"
    source.write_text("int x;")
    key = content_key("ab", "c", source)
    assert key == content_key("ab", "c", source)
    assert key != content_key("a", "bc", source)
    source.write_text("int y;")
    assert key != content_key("ab", "c", source)


def test_a_missing_compiler_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verilator.shutil, "which", lambda tool: None if tool == "g++" else f"/usr/bin/{tool}")
    with pytest.raises(BuildError, match=r"not on PATH: g\+\+:"):
        tool_environment()


def test_outer_make_does_not_reach_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAKEFLAGS", "n")
    monkeypatch.setenv("MAKELEVEL", "2")
    environment = tool_environment()
    assert "OPT_FAST=-O1" in environment["MAKEFLAGS"]
    assert "MAKELEVEL" not in environment


def test_verilog_with_a_warning_does_not_build(cache: Path) -> None:
    text = "module leaf(input clk, output [1:0] value);\n  assign value = {clk, undeclared};\nendmodule\n"
    with pytest.raises(BuildError, match="leaf: "):
        run_cocotb(text, toplevel="leaf", module="no_such_testbench")
    assert [path.name for path in cache.iterdir()] == ["locks"]
