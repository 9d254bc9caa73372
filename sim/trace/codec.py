"""One event as one JSON object and back, checked field by field against the event classes."""

from __future__ import annotations

import dataclasses
import json
import math
import types
from collections.abc import Callable
from functools import cache
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from .errors import FieldError, shorten
from .events import EVENT_TYPES, Event
from .text_file import check_encoding

__all__ = ["decode", "decode_line", "encode", "encode_line"]

Converter = Callable[[str, Any], Any]


def _integer(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise FieldError(name, "an integer", shorten(value))
    return value


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise FieldError(name, "a finite number", shorten(value))
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise FieldError(name, "a finite number", shorten(value))
    return number


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise FieldError(name, "a string", shorten(value))
    return value


def _truth(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise FieldError(name, "true or false", shorten(value))
    return value


def _identifiers(name: str, value: Any) -> tuple[int, ...]:
    if not isinstance(value, list | tuple):
        raise FieldError(name, "a list of integers", shorten(value))
    return tuple(_integer(f"{name}[{position}]", item) for position, item in enumerate(value))


def _plain(name: str, value: Any) -> Any:
    """A value of plain JSON types without NaN or infinity."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return _number(name, value)
    if isinstance(value, list | tuple):
        return [_plain(f"{name}[{position}]", item) for position, item in enumerate(value)]
    if isinstance(value, dict):
        return {_text(name, key): _plain(f"{name}.{key}", item) for key, item in value.items()}
    raise FieldError(name, "plain JSON types", shorten(value))


def _object(name: str, value: Any) -> dict[str, object]:
    if not isinstance(value, dict):
        raise FieldError(name, "an object", shorten(value))
    return _plain(name, value)


def _one_of(choices: tuple[str, ...]) -> Converter:
    def convert(name: str, value: Any) -> str:
        if not isinstance(value, str) or value not in choices:
            raise FieldError(name, f"one of {', '.join(choices)}", shorten(value))
        return value

    return convert


def _converter(annotation: Any) -> Converter:
    """The check of a field, from its annotation in the event class."""
    simple: dict[Any, Converter] = {int: _integer, float: _number, str: _text, bool: _truth}
    if annotation in simple:
        return simple[annotation]
    origin = get_origin(annotation)
    if origin is Literal:
        return _one_of(get_args(annotation))
    if origin is tuple:
        return _identifiers
    if origin is dict:
        return _object
    if origin in (Union, types.UnionType):
        (inner,) = (item for item in get_args(annotation) if item is not type(None))
        convert = _converter(inner)
        return lambda name, value: None if value is None else convert(name, value)
    raise TypeError(f"no JSON form for {annotation!r}")


class _Field(NamedTuple):
    """How one key of an event's object is read."""

    attribute: str
    name: str
    """What an error calls it."""
    convert: Converter
    default: object
    """What it holds where its key is missing; MISSING: the key must be there."""


@cache
def _fields(kind: type[Event]) -> dict[str, _Field]:
    """The fields of an event by JSON key."""
    hints = get_type_hints(kind)
    fields = {}
    for field in dataclasses.fields(kind):
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        key = field.name.rstrip("_")
        fields[key] = _Field(field.name, f"{kind.name}.{key}", _converter(hints[field.name]), default)
    return fields


def decode(record: Any) -> Event:
    """The event that a JSON object describes. Raises FieldError for whatever does not belong there."""
    if not isinstance(record, dict):
        raise FieldError("event", "a JSON object", shorten(record))
    if "event" not in record:
        raise FieldError("event", "a key `event`", f"the keys {shorten(list(record))}")
    name = record["event"]
    kind = EVENT_TYPES.get(name) if isinstance(name, str) else None
    if kind is None:
        raise FieldError("event", f"one of {', '.join(EVENT_TYPES)}", shorten(name))
    fields = _fields(kind)
    values: dict[str, Any] = {}
    for key, value in record.items():
        if key == "event":
            continue
        field = fields.get(key)
        if field is None:
            raise FieldError(f"{name}.{shorten(key)[1:-1]}", f"only {', '.join(fields)}", "an unknown key")
        values[field.attribute] = field.convert(field.name, value)
    for field in fields.values():
        if field.default is dataclasses.MISSING and field.attribute not in values:
            raise FieldError(field.name, "a value", "no such key")
    return kind(**values)


def encode(event: Event) -> dict[str, object]:
    """The JSON object of an event; fields that hold their default are left out. Raises FieldError."""
    record: dict[str, object] = {"event": event.name}
    for key, field in _fields(type(event)).items():
        value = field.convert(field.name, getattr(event, field.attribute))
        if value != field.default:
            record[key] = list(value) if isinstance(value, tuple) else value
    return record


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in keys if keys.count(key) > 1)
        raise FieldError(repeated, "a key once", "it twice in one object")
    return record


#: Made once: `json.loads` with a hook makes a decoder for every line.
_DECODER = json.JSONDecoder(object_pairs_hook=_without_repeats)


def decode_line(line: str) -> Event:
    """The event on one line of a file. Raises FieldError."""
    text = check_encoding(line).strip()
    try:
        record = _DECODER.decode(text)
    except FieldError:
        raise
    except json.JSONDecodeError as error:
        problem = f"{shorten(text)} ({error.msg} at column {error.colno})"
        raise FieldError("JSON", "one complete JSON object", problem) from None
    except (ValueError, RecursionError) as error:
        raise FieldError("JSON", "one complete JSON object", f"{type(error).__name__}: {error}") from None
    return decode(record)


_ENCODER = json.JSONEncoder(allow_nan=False)


def encode_line(event: Event) -> str:
    """One line of text, line end included, that `decode_line` reads back as an equal event."""
    return _ENCODER.encode(encode(event)) + "\n"
