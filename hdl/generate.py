"""Verilog of a component, the same text on every machine and from every path, and of the whole design."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import re
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from amaranth.back import verilog as amaranth_verilog
from amaranth.hdl import ClockDomain, Fragment, Signal, Value

# The back end's own `convert` takes the directions of named ports by it; Amaranth exports it nowhere else.
from amaranth.hdl._ir import PortDirection
from amaranth.lib.wiring import In

from .config import DesignConfig, named_config
from .registers import MEMORY_WINDOW, MEMORY_WINDOW_BYTES, REGISTERS, SCRATCHPAD_WINDOW

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amaranth.lib.wiring import Component

__all__ = ["DESIGN_SCHEMA", "ports", "side_car", "verilog", "write_design"]

#: Format of the JSON side-car of a design.
DESIGN_SCHEMA = "clew.design/1"


@contextmanager
def _pinned_yosys() -> Iterator[None]:
    """Lets Amaranth find only the Yosys that is pinned with it: another version writes other text."""
    before = os.environ.get("AMARANTH_USE_YOSYS")
    os.environ["AMARANTH_USE_YOSYS"] = "builtin"
    try:
        yield
    finally:
        if before is None:
            del os.environ["AMARANTH_USE_YOSYS"]
        else:
            os.environ["AMARANTH_USE_YOSYS"] = before


_LITERAL = r"\d+'s?[bdh][0-9a-fA-FxXzZ_]+"
#: A combinational process that reads nothing: a constant for some bits of a signal.
_CONSTANT_PROCESS = re.compile(
    rf"^  always @\*\n    (?P<assignment>[^=;\n]+ = (?:{_LITERAL}|{{ {_LITERAL}(?:, {_LITERAL})* }});)$",
    re.MULTILINE,
)


def _wake_constants(text: str) -> str:
    """`text` with something to wait for in every process that assigns a constant.

    Yosys writes `always @*` for it, which never runs because nothing that it reads changes, and the bits
    would stay at their initial value. For its larger processes it has a remedy, which is used here too: a
    register with an initial value, whose initialisation is a change.
    """
    numbers = itertools.count(1)

    def wake(found: re.Match[str]) -> str:
        trigger = rf"\constant${next(numbers)} "
        return (
            f"  reg {trigger} = 0;\n"
            f"  always @* begin\n"
            f"    if ({trigger}) begin end\n"
            f"    {found['assignment']}\n"
            f"  end"
        )

    return _CONSTANT_PROCESS.sub(wake, text)


def _port_name(path: tuple[str | int, ...]) -> str:
    """The Verilog name of a port: `member__port`, but plain AMBA names for the members of an AXI bus.

    Tools know an AXI interface by the names of its ports: `s_axil_awaddr`, `m_axi_0_araddr`.
    """
    axi = str(path[0]).startswith(("s_axi", "m_axi"))
    return ("_" if axi else "__").join(map(str, path))


def _port_values(component: Component) -> dict[str, tuple[Value, PortDirection]]:
    """The ports of `component`'s signature by their Verilog name."""
    return {
        _port_name(path): (
            Value.cast(value),
            PortDirection.Input if member.flow == In else PortDirection.Output,
        )
        for path, member, value in component.signature.flatten(component)
    }


def _with_registered_reset(component: Component) -> tuple[Fragment, dict[str, tuple[Value, PortDirection]]]:
    """`component` with a register behind its `rst`, and its clock and reset."""
    clk, rst = Signal(name="clk"), Signal(name="rst")
    outside, inside = ClockDomain("outside", reset_less=True), ClockDomain("sync")
    outside.clk = inside.clk = clk
    inside.rst = Signal(name="rst_registered")
    fragment = Fragment.get(component, None)
    fragment.add_domains(outside, inside)
    fragment.add_statements("outside", inside.rst.eq(rst))
    return fragment, {name: (value, PortDirection.Input) for name, value in (("clk", clk), ("rst", rst))}


def verilog(component: Component, *, name: str, registered_reset: bool = False) -> str:
    """The Verilog text of `component` with the top module called `name`.

    It holds no source paths, so that it depends on the component and the pinned tools alone. A port of a
    nested member is called `member__port`, those of an AXI bus `s_axil_awaddr` (plain AMBA names); a struct
    port is one vector. With `registered_reset` the component
    is in reset in the cycle after `rst` as well. A whole design should have that: every register's next
    value depends on its reset, and what depends on an input of the top, simulators compute twice a cycle.
    """
    design, domain = _with_registered_reset(component) if registered_reset else (component, {})
    connected = _port_values(component) | domain
    with _pinned_yosys():
        text = amaranth_verilog.convert(
            design, name=name, ports=connected, emit_src=False, strip_internal_attrs=True
        )
    return _wake_constants(text)


def ports(component: Component) -> list[dict[str, object]]:
    """The ports of `component`'s Verilog: name, direction (input or output) and width in bits."""
    found: list[dict[str, object]] = [
        {"name": name, "direction": "input", "width": 1} for name in ("clk", "rst")
    ]
    for name, (value, direction) in _port_values(component).items():
        found.append({"name": name, "direction": direction.value, "width": len(value)})
    return found


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


def side_car(config: DesignConfig, component: Component, *, name: str) -> dict[str, object]:
    """What a user of the Verilog needs to know about it, as plain JSON types."""
    return {
        "schema": DESIGN_SCHEMA,
        "top": "clew",
        "configuration": name,
        "configuration_hash": f"{config.hash:#010x}",
        "git_revision": _git_revision(),
        "parameters": config.as_dict(),
        "clock_ns": config.memory.timing.clock_ns,
        "external_modules": [
            *(["clew_storage"] if config.memory.storage == "dpi" else []),
            *(["clew_cache_cells"] if config.cache.body == "dpi" else []),
        ],
        "ports": ports(component),
        "registers": [dataclasses.asdict(register) for register in REGISTERS],
        "windows": {
            "scratchpad": {"offset": SCRATCHPAD_WINDOW, "bytes": 32 * config.scratchpad.atoms},
            "memory": {"offset": MEMORY_WINDOW, "bytes": MEMORY_WINDOW_BYTES},
        },
    }


def write_design(config_name: str, out_dir: Path) -> tuple[Path, Path]:
    """Writes `clew.v` and its side-car `clew.json` of a named configuration; gives their paths.

    Both are complete or absent: they take their names only when both are written. Raises ValueError for an
    unknown configuration.
    """
    # Here, so that converting one block does not load the whole design.
    from .top import Clew

    config = named_config(config_name)
    component = Clew(config)
    # The side-car first: converting elaborates the component.
    description = json.dumps(side_car(config, component, name=config_name), indent=2) + "\n"
    text = verilog(component, name="clew", registered_reset=True)
    contents = {"clew.v": text, "clew.json": description}
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
    return out_dir / "clew.v", out_dir / "clew.json"
