"""Struct payloads in a cocotb testbench: Verilog has them as one vector, tests want fields."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Shape
from amaranth.lib import data

__all__ = ["Packing"]


class Packing:
    """The fields of a struct or layout as offset and width: `pack` and `unpack` plain integers.

    Fields of nested structs are named `outer.inner`, elements of an array `field.0`, `field.1`, ...
    """

    def __init__(self, layout: Any) -> None:
        self._fields: dict[str, tuple[int, int]] = {}
        self._collect(data.Layout.cast(layout), "", 0)

    def _collect(self, layout: Any, prefix: str, base: int) -> None:
        for name, field in layout:
            path = f"{prefix}{name}"
            try:
                nested = data.Layout.cast(field.shape)
            except TypeError:
                self._fields[path] = base + field.offset, Shape.cast(field.shape).width
            else:
                self._collect(nested, f"{path}.", base + field.offset)

    @property
    def fields(self) -> dict[str, tuple[int, int]]:
        """(low bit, width) of every field."""
        return dict(self._fields)

    def pack(self, values: dict[str, int]) -> int:
        """The vector with these fields, the others 0. Raises ValueError for a value that does not fit."""
        word = 0
        for path, value in values.items():
            offset, width = self._fields[path]
            if not 0 <= value < 1 << width:
                raise ValueError(f"{path} is {value}: expected {width} bits")
            word |= value << offset
        return word

    def unpack(self, word: int) -> dict[str, int]:
        """Every field of the vector."""
        return {path: word >> offset & (1 << width) - 1 for path, (offset, width) in self._fields.items()}
