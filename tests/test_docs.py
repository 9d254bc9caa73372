"""The documentation: it builds without a warning, says what the code says, and its tutorial runs."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from typer.main import get_command

import firmware_py
from firmware_py.app import app
from firmware_py.settings import DesignSettings, ReplaySettings
from firmware_py.sweep.definition import AXES
from hdl.registers import REGISTERS
from sim.trace.importers import importers

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; the tutorial is not run, for another test does that."""
    out = tmp_path_factory.mktemp("site")
    sphinx = [sys.executable, "-P", "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    options = ["-D", "nb_execution_mode=off", "-d", str(out / "doctrees")]
    done = subprocess.run(
        [*sphinx, *options, str(DOCS), str(out / "html")],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    return out / "html"


def _text(page: Path) -> str:
    """What a page says, without its tags."""
    return re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8"))


def test_the_command_line_is_whole(site: Path) -> None:
    page = _text(site / "commands.html")
    commands = getattr(get_command(app), "commands", {})
    assert {"compare", "sweep", "trace"} <= commands.keys()
    for name in commands:
        assert f"clew {name}" in page
    assert "--far-help" in page and "--scheduler" in page


def test_generated_pages_are_included(site: Path) -> None:
    registers, traces = _text(site / "registers.html"), _text(site / "traces.html")
    assert all(register.name in registers for register in REGISTERS)
    assert "tRCDRD" in _text(site / "timing.html") and "PointerKind" in _text(site / "instructions.html")
    assert all(importer.name in traces for importer in importers())
    ports = _text(site / "ports.html")
    assert "s_axil_awaddr" in ports and "near_hop__event" in ports


def test_everything_public_is_in_the_reference(site: Path) -> None:
    page = (site / "api.html").read_text(encoding="utf-8")
    for name in firmware_py.__all__:
        assert f'id="firmware_py.{name}' in page


def test_every_axis_of_a_sweep_is_documented_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| .* \| (.+) \|$", (DOCS / "sweeps.md").read_text("utf-8"), re.M))
    assert set(rows) == set(AXES)
    for settings in (DesignSettings, ReplaySettings):
        for field in dataclasses.fields(settings):
            if field.default is not None:
                shown = rows[field.name].strip("`")
                expected = str(field.default).lower() if field.type == "bool" else field.default
                assert shown == ('""' if expected == "" else str(expected))


def test_the_tutorial_is_stored_without_results_and_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = nbformat.read(DOCS / "tutorial.ipynb", as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in cells)
    client = NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    shown = [output for cell in cells for output in cell.outputs]
    tables = [output.data["text/html"] for output in shown if "text/html" in output.get("data", {})]
    assert len(tables) == 2 and all("walk latency" in table for table in tables)
    assert any("image/png" in output.get("data", {}) for output in shown)
    assert any("far node 1 reads 3" in output.get("text", "") for output in shown)
