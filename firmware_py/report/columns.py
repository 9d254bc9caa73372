"""Documents as rows of a table: every figure in a typed column that is named by its path in the document."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow

__all__ = ["arrow_table", "flattened", "unit_of"]

#: Units by the word that stands for them in a name.
_UNITS = {
    "bytes": "B",
    "cycles": "cycles",
    "joule": "J",
    "joules": "J",
    "ms": "ms",
    "nj": "nJ",
    "ns": "ns",
    "pj": "pJ",
    "second": "s",
    "seconds": "s",
    "us": "us",
}


def flattened(document: Mapping[str, Any]) -> dict[str, Any]:
    """The leaves of plain JSON types by path: keys and positions of objects in lists, with dots between.

    A list of texts or numbers is one leaf, as is an empty list. An empty object has none.
    """
    return dict(_leaves(document, ""))


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple) and any(isinstance(item, Mapping | list | tuple) for item in value):
        for position, item in enumerate(value):
            yield from _leaves(item, f"{path}.{position}")
    else:
        yield path, list(value) if isinstance(value, tuple) else value


def unit_of(name: str) -> str:
    """The unit that a column's name says, from its end: `ns`, `cycles`, `B`, `1/s`...; `1` without one."""
    segments = name.split(".")
    if segments[-1] == "count":
        return "1"
    for segment in reversed(segments):
        ratio = re.search(r"([a-z]+)_per_([a-z]+)", segment)
        if ratio is not None:
            return f"{_UNITS.get(ratio[1], '1')}/{_UNITS.get(ratio[2], ratio[2])}"
        for word in reversed(segment.split("_")):
            if word in _UNITS:
                return _UNITS[word]
    return "1"


def arrow_table(
    rows: Sequence[Mapping[str, Any]],
    *,
    kinds: Mapping[str, type] | None = None,
    metadata: Mapping[str, str] | None = None,
) -> pyarrow.Table:
    """The rows as an Arrow table, columns in the order in which they are first met; what a row lacks is null.

    A column is boolean, int64, float64 or text, or lists of these, by its values in all rows; one without any
    value is of the type in `kinds`, else float64, for it is figures that may be null; lists without any
    element are of texts. A column of numbers says its unit in its field's metadata (`unit`). `metadata` is
    put on the table. Raises ValueError for a column of both texts and numbers, or lists and others.
    """
    import pyarrow

    names = list(dict.fromkeys(name for row in rows for name in row))
    # Where one row has an object another one may have null: the object's columns say so already.
    objects = {name.rsplit(".", count)[0] for name in names for count in range(1, name.count(".") + 1)}
    fields, columns = [], []
    for name in names:
        values = [row.get(name) for row in rows]
        if name in objects and all(value is None for value in values):
            continue
        kind = _kind(name, values, (kinds or {}).get(name, float))
        element = kind.value_type if pyarrow.types.is_list(kind) else kind
        numeric = pyarrow.types.is_integer(element) or pyarrow.types.is_floating(element)
        fields.append(pyarrow.field(name, kind, metadata={"unit": unit_of(name)} if numeric else None))
        columns.append(pyarrow.array(values, type=kind))
    schema = pyarrow.schema(fields, metadata=dict(metadata or {}))
    return pyarrow.Table.from_arrays(columns, schema=schema)


def _kind(name: str, values: Sequence[Any], usual: type) -> pyarrow.DataType:
    import pyarrow

    found = {type(value) for value in values if value is not None} or {usual}
    if found == {list}:
        return pyarrow.list_(_kind(name, [item for value in values for item in value or ()], str))
    if found == {bool}:
        return pyarrow.bool_()
    if found == {str}:
        return pyarrow.string()
    if found == {int}:
        return pyarrow.int64()
    if found <= {int, float}:
        return pyarrow.float64()
    raise ValueError(f"column {name} holds {', '.join(sorted(t.__name__ for t in found))}: expected one type")
