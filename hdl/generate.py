"""Verilog of a component, the same text on every machine and from every path."""

from __future__ import annotations

import gc
import itertools
import os
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from amaranth.back import verilog as amaranth_verilog
from amaranth.hdl import ClockDomain, Fragment, Signal, Value

# The back end's own `convert` takes the directions of named ports by it; Amaranth exports it nowhere else.
from amaranth.hdl._ir import PortDirection
from amaranth.lib.wiring import In

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amaranth.lib.wiring import Component

__all__ = ["port_values", "verilog"]

#: The members that lead to a port: names, and numbers in arrays.
_Path = tuple[str | int, ...]


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


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Spares Amaranth the search for cycles among its millions of short-lived objects: half of its time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


#: A combinational process of one assignment. Larger ones have a trigger from Yosys.
_SHORT_PROCESS = re.compile(r"^  always @\*\n    (?P<assignment>[^;\n]+;)$", re.MULTILINE)
#: The trigger that Yosys gives its larger processes.
_TRIGGER = re.compile(r"^  reg (?P<name>\\\$auto\$verilog_backend\S+ ) = 0;$", re.MULTILINE)


def _wake_processes(text: str) -> str:
    """`text` with a change to wait for, once at the start, in every combinational process.

    `always @*` runs when something that it reads changes. One that assigns a constant never runs; another one
    not before its first change, and until then a four-state simulator has an unknown. Yosys makes larger
    processes read a register whose initialisation is a change, which is done here for the small ones too.
    By SystemVerilog's rules, which Icarus Verilog follows, initial values come before every process waits:
    a nonblocking assignment comes after.
    """
    numbers = itertools.count(1)

    def declared(name: str) -> str:
        return f"  reg {name};\n  initial {name} <= 0;"

    def wake(found: re.Match[str]) -> str:
        name = rf"\trigger${next(numbers)} "
        return (
            f"{declared(name)}\n"
            f"  always @* begin\n"
            f"    if ({name}) begin end\n"
            f"    {found['assignment']}\n"
            f"  end"
        )

    text = _SHORT_PROCESS.sub(wake, text)
    return _TRIGGER.sub(lambda found: declared(found["name"]), text)


def _port_name(path: _Path) -> str:
    """The Verilog name of a port: `member__port`, but plain AMBA names for the members of an AXI bus.

    Tools know an AXI interface by the names of its ports: `s_axil_awaddr`, `m_axi_0_araddr`.
    """
    axi = str(path[0]).startswith(("s_axi", "m_axi"))
    return ("_" if axi else "__").join(map(str, path))


def port_values(component: Component) -> dict[str, tuple[_Path, Value, PortDirection]]:
    """The ports of `component`'s signature by their Verilog name: their members, value and direction."""
    return {
        _port_name(path): (
            path,
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
    connected = {name: (value, direction) for name, (_, value, direction) in port_values(component).items()}
    with _pinned_yosys(), _without_garbage_collection():
        text = amaranth_verilog.convert(
            design, name=name, ports=connected | domain, emit_src=False, strip_internal_attrs=True
        )
    return _wake_processes(text)
