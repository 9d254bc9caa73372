"""The design as others take it: Verilog, its description, a file list and a FuseSoC core."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from .clock_gate import CLOCK_GATE_MODULE
from .config import DesignConfig, named_config
from .generate import verilog
from .port_table import ports
from .registers import MEMORY_WINDOW, MEMORY_WINDOW_BYTES, REGISTERS, SCRATCHPAD_WINDOW, VERSION_VALUE

if TYPE_CHECKING:
    from amaranth.lib.wiring import Component

__all__ = ["DESIGN_SCHEMA", "SLANG_WAIVERS", "VERILATOR_WAIVERS", "side_car", "write_design"]

#: Format of the JSON side-car of a design.
DESIGN_SCHEMA = "clew.design/1"

#: The named waivers of Verilator's -Wall and of slang's -Weverything, the only ones in the project.
VERILATOR_WAIVERS = Path(__file__).parent / "lint" / "verilator.vlt"
SLANG_WAIVERS = VERILATOR_WAIVERS.with_name("slang.f")


def _git_revision() -> str | None:
    """The commit of this checkout, `-dirty` after it when files differ; None outside a checkout."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        done = subprocess.run(
            command, cwd=Path(__file__).parent, capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
    except FileNotFoundError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _external_modules(config: DesignConfig) -> list[str]:
    """The modules that the Verilog of `config` instantiates and does not hold: those with a body in C, and
    the cell of a clock gate."""
    return [
        *(["clew_storage"] if config.memory.end == "model" and config.memory.storage == "dpi" else []),
        *(["clew_cache_cells"] if config.cache.body == "dpi" else []),
        *([CLOCK_GATE_MODULE] if config.sleeps else []),
    ]


def side_car(config: DesignConfig, component: Component, *, name: str) -> dict[str, object]:
    """What a user of the Verilog needs to know about it, as plain JSON types."""
    return {
        "schema": DESIGN_SCHEMA,
        "top": "clew",
        "configuration": name,
        "configuration_hash": f"{config.hash:#010x}",
        "git_revision": _git_revision(),
        "parameters": config.as_dict(),
        "memory_end": config.memory.end,
        "clock_ns": config.memory.timing.clock_ns,
        "external_modules": _external_modules(config),
        "ports": [dataclasses.asdict(port) for port in ports(component)],
        "registers": [dataclasses.asdict(register) for register in REGISTERS],
        "windows": {
            "scratchpad": {"offset": SCRATCHPAD_WINDOW, "bytes": 32 * config.scratchpad.atoms},
            "memory": {"offset": MEMORY_WINDOW, "bytes": MEMORY_WINDOW_BYTES},
        },
    }


def _file_list(config: DesignConfig, *, name: str) -> str:
    """A file list as simulators and synthesis tools read it with `-f`, in the folder that holds it."""
    lines = [f"// Clew, configuration {name}"]
    lines += [f"// needs the module {module} of sim/native" for module in _external_modules(config)]
    return "\n".join([*lines, "clew.v", ""])


def _core(config: DesignConfig, *, name: str) -> str:
    """The description of the design that FuseSoC reads (CAPI2); its version is that of the register map.

    Target `default` is the Verilog for another core to depend on, `lint` Verilator with the named waivers.
    """
    return f"""\
CAPI=2:

name: "::clew:{VERSION_VALUE >> 16}.{VERSION_VALUE & 0xFFFF}.0"
description: "Tree search next to an HBM-like memory; configuration {name}, hash {config.hash:#010x}"

filesets:
  rtl:
    files:
      - clew.v
    file_type: verilogSource-2005
  waivers:
    files:
      - clew.vlt
    file_type: vlt

targets:
  default:
    filesets: [rtl]
    toplevel: clew
  lint:
    description: "Verilator -Wall with the waivers of clew.vlt"
    filesets: [waivers, rtl]
    toplevel: clew
    flow: lint
    flow_options:
      tool: verilator
      verilator_options: [-Wall]
"""


def _ended(config: DesignConfig, *, end: str | None, channels: int | None) -> DesignConfig:
    """`config` with another memory end or number of channels; None: its own. Raises ValueError."""
    memory = config.memory
    if end is not None:
        memory = dataclasses.replace(memory, end=end)
    if channels is not None:
        memory = dataclasses.replace(memory, channels=channels)
    if not memory.controlled:
        # The size of a configuration's own device says nothing of the memory behind the port.
        memory = dataclasses.replace(memory, rows=None, columns=None)
    return dataclasses.replace(config, memory=memory)


def write_design(
    config_name: str, out_dir: Path, *, end: str | None = None, channels: int | None = None
) -> list[Path]:
    """Writes the design of a named configuration into a folder; gives the paths of what is there now.

    `clew.v` is the Verilog, `clew.json` its side-car, `clew.f` the file list, `clew.core` FuseSoC's
    description and `clew.vlt` Verilator's waivers. They take their names only when all are written. `end` and
    `channels` are other ones than the configuration's; with the end `axi4` the memory has the preset's own
    size. Raises ValueError for an unknown configuration, and for an end and channels that cannot be built.
    """
    # Here, so that describing one block does not load the whole design.
    from .top import Clew

    config = _ended(named_config(config_name), end=end, channels=channels)
    component = Clew(config)
    # The side-car first: converting elaborates the component.
    description = json.dumps(side_car(config, component, name=config_name), indent=2) + "\n"
    contents = {
        "clew.v": verilog(component, name="clew", registered_reset=True),
        "clew.json": description,
        "clew.f": _file_list(config, name=config_name),
        "clew.core": _core(config, name=config_name),
        "clew.vlt": VERILATOR_WAIVERS.read_text(encoding="utf-8"),
    }
    out_dir.mkdir(parents=True, exist_ok=True)
    temporary = {name: out_dir / f".{name}.{os.getpid()}" for name in contents}
    try:
        for name, text in contents.items():
            temporary[name].write_text(text, encoding="utf-8")
        for name, path in temporary.items():
            path.rename(out_dir / name)
    finally:
        for path in temporary.values():
            path.unlink(missing_ok=True)
    return [out_dir / name for name in contents]
