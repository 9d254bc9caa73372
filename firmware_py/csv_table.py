"""The tables of `data/*.csv`: rows of text under a known header, each fault named by file, line and field."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from importlib import resources

from .errors import InputError

__all__ = ["Row", "data_text", "table_rows"]

_NUMBER = re.compile(r"\d+(\.\d+)?")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row: its fields by name, and where it stands."""

    where: str
    """File and line, as a message begins."""
    cells: dict[str, str]

    def number(self, field: str) -> float:
        """A positive number. Raises InputError."""
        text = self.cells[field]
        if not _NUMBER.fullmatch(text) or float(text) == 0:
            raise InputError(f"{self.where}: field {field} is {text!r}: expected a positive number")
        return float(text)

    def whole(self, field: str) -> int:
        """A positive whole number. Raises InputError."""
        value = self.number(field)
        if value != int(value):
            raise InputError(
                f"{self.where}: field {field} is {self.cells[field]!r}: expected a positive whole number"
            )
        return int(value)

    def one_of(self, field: str, known: Collection[str]) -> str:
        """One of the known words. Raises InputError."""
        text = self.cells[field]
        if text not in known:
            raise InputError(f"{self.where}: field {field} is {text!r}: expected one of {', '.join(known)}")
        return text


def table_rows(
    text: str, *, file: str, columns: Sequence[str], optional: Collection[str] = ()
) -> Iterator[Row]:
    """The rows of a CSV table with the header `columns`; the first column names a row.

    Raises InputError naming file, line and field for a wrong header, a wrong number of fields, an empty field
    that is not `optional`, or a name that repeats.
    """
    rows = csv.reader(io.StringIO(text))
    header = next(rows, [])
    if header != list(columns):
        raise InputError(f"{file}: line 1: header is {','.join(header)!r}: expected {','.join(columns)}")
    seen: set[str] = set()
    for row in rows:
        where = f"{file}: line {rows.line_num}"
        if len(row) != len(columns):
            raise InputError(f"{where}: {len(row)} fields: expected {len(columns)}")
        cells = dict(zip(columns, row, strict=True))
        for field, value in cells.items():
            if not value.strip() and field not in optional:
                raise InputError(f"{where}: field {field} is empty: expected a value")
        if row[0] in seen:
            raise InputError(f"{where}: field {columns[0]} is {row[0]!r}: expected a name not used before")
        seen.add(row[0])
        yield Row(where=where, cells=cells)


def data_text(file: str) -> str:
    """The text of one of the project's own data files."""
    return resources.files("firmware_py").joinpath("data", file).read_text(encoding="utf-8")
