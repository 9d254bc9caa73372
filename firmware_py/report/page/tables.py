"""Tables of the page as HTML, each in a frame of its own that scrolls; every cell is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from rich.table import Table

from ..figures.picture import Numbers

__all__ = ["card", "rich_table", "table"]


def card(title: str, content: Numbers) -> str:
    """A table with its title above it."""
    return f'<h3>{escape(title)}</h3><div class="card">{table(content, title)}</div>'


def table(content: Numbers, title: str) -> str:
    """A table that scrolls in its own frame; a column of numbers alone is set to the right."""
    right = [
        bool(content.rows) and all(_is_number(row[index]) for row in content.rows)
        for index in range(len(content.header))
    ]
    heads = "".join(
        f'<th scope="col"{_numeric(at)}>{escape(head)}</th>'
        for head, at in zip(content.header, right, strict=True)
    )
    rows = "".join(f"<tr>{_cells(row, right)}</tr>" for row in content.rows)
    return (
        f'<div class="wide" tabindex="0" role="group" aria-label="{escape(title)}">'
        f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _cells(row: Sequence[str], right: Sequence[bool]) -> str:
    return "".join(
        f'<td class="number">{escape(cell)}</td>' if at else f'<td class="quoted">{escape(cell)}</td>'
        for cell, at in zip(row, right, strict=True)
    )


def _numeric(at: bool) -> str:
    return ' class="number"' if at else ""


def _is_number(text: str) -> bool:
    return text.replace(",", "").replace(".", "").replace("-", "0").isdigit()


def rich_table(table: Table, name: str, *, titled: bool) -> str:
    """A table of the terminal as one of the page."""
    columns = [list(column.cells) for column in table.columns]
    right = [column.justify == "right" for column in table.columns]
    heads = "".join(
        f'<th scope="col"{_numeric(at)}>{escape(str(column.header))}</th>'
        for column, at in zip(table.columns, right, strict=True)
    )
    starts = [False, *(row.end_section for row in table.rows)]
    rows = "".join(
        ('<tr class="section-start">' if start else "<tr>")
        + "".join(
            f"<td{_numeric(at)}>{escape(str(cell))}</td>" for cell, at in zip(cells, right, strict=True)
        )
        + "</tr>"
        for start, cells in zip(starts, zip(*columns, strict=True), strict=False)
    )
    return (
        (f"<h3>{escape(name)}</h3>" if titled else "")
        + f'<div class="card"><div class="wide" tabindex="0" role="group" aria-label="{escape(name)}">'
        f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
        + (f'<p class="note setting">{escape(str(table.caption))}</p>' if table.caption else "")
        + "</div>"
    )
