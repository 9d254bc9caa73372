"""Verilog of a component: the same text on every machine and from every path."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from amaranth.back import verilog as amaranth_verilog

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amaranth.lib.wiring import Component

__all__ = ["verilog"]


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


def verilog(component: Component, *, name: str) -> str:
    """The Verilog text of `component` with the top module called `name`.

    It holds no source paths, so that it depends on the component and the pinned tools alone. A port of a
    nested member is called `member__port`; a struct port is one vector.
    """
    with _pinned_yosys():
        return amaranth_verilog.convert(component, name=name, emit_src=False, strip_internal_attrs=True)
