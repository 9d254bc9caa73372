"""What the builds of compiled models are kept by."""

from __future__ import annotations

import dataclasses
from importlib import resources
from pathlib import Path

import pytest

from hdl.config import DesignConfig, named_config
from hdl.memory import timing
from sim import compiled, compiled_memory


@pytest.mark.parametrize("module", [compiled, compiled_memory])
def test_a_preset_file_counts_with_its_content_not_its_place(
    module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(module, "verilog", lambda component, **options: "module top; endmodule\n")
    make = compiled.design_verilog if module is compiled else compiled_memory.memory_verilog
    text = resources.files("hdl.memory").joinpath("presets", "hbm2_2000.toml").read_text(encoding="utf-8")
    mine = text.replace('name = "hbm2_2000"', 'name = "mine"')

    def built(file: str, content: str) -> Path:
        (tmp_path / file).write_text(content, encoding="utf-8")
        timing._preset_of_file.cache_clear()  # as in another run
        base = named_config("simulation")
        memory = dataclasses.replace(base.memory, preset=str(tmp_path / file))
        config: DesignConfig = dataclasses.replace(base, memory=memory)
        return make(config)

    first = built("a.toml", mine)
    assert built("a.toml", mine) == first
    assert built("b.toml", mine) == first
    assert built("a.toml", mine.replace("tCL = { value = 14", "tCL = { value = 15")) != first
