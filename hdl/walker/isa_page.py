"""The instruction set as a Markdown page, generated from the declarations in `hdl/walker/isa.py`."""

from __future__ import annotations

import enum
import inspect

from . import isa

__all__ = ["markdown"]

#: What each field of the instruction means; the test of the page fails if one is missing.
_MEANINGS: dict[str, str] = {
    "immediate": "The 32-bit constant of the test and of the update.",
    "op": "`Op`: the comparison a OP b.",
    "a_kind": "`AKind`: where a comes from.",
    "a_index": "Record word or register of a.",
    "a_low": "Lowest bit of the field of record word a.",
    "a_width_minus_1": "Width of that field, less 1.",
    "a_signed": "The field is sign extended to 32 bits.",
    "b_kind": "`BKind`: where b comes from.",
    "b_index": "Record word or register of b.",
    "update_kind": "`UpdateKind`: what a taken instruction does to a register.",
    "update_register": "That register.",
    "update_source_kind": "`PointerKind`: where the source of the update comes from.",
    "update_source_index": "Record word or register of the source.",
    "store": "A taken instruction stores.",
    "store_conditional": "Only if memory still holds the word that was read.",
    "store_word": "Record word that is stored to.",
    "store_register": "Register that is stored, updated.",
    "kind": "`ExitKind`: what comes next when {}.",
    "target": "Instruction that comes next.",
    "pointer_kind": "`PointerKind` of a load's address or a yield's value.",
    "pointer_index": "Its record word or register.",
    "offset": "12-bit signed, added to the pointer; for `done` the 8-bit code.",
    "reserved": "0.",
}
_ENUMS: tuple[type[enum.IntEnum], ...] = (
    isa.Op,
    isa.AKind,
    isa.BKind,
    isa.UpdateKind,
    isa.PointerKind,
    isa.ExitKind,
)


def markdown() -> str:
    """The page: semantics, the 128 bits field by field, the values of every enumeration."""
    semantics = inspect.getdoc(isa) or ""
    lines = [
        "# The walker's instruction",
        "",
        "Generated from `hdl/walker/isa.py` by `clew instructions`.",
        "",
        # The first line of the module's text is its own title.
        semantics.partition("\n")[2].strip(),
        "",
        "## Fields",
        "",
        "| bits | field | what |",
        "| --- | --- | --- |",
    ]
    for name, placed in isa.InstructionLayout:
        high = placed.offset + placed.width - 1
        bits = f"{high}:{placed.offset}" if placed.width > 1 else f"{high}"
        lines.append(f"| {bits} | `{name}` | {_meaning(str(name))} |")
    for kind in _ENUMS:
        lines += [
            "",
            f"## {kind.__name__}",
            "",
            _first_paragraph(kind),
            "",
            "| value | name |",
            "| --- | --- |",
        ]
        lines += [f"| {member.value} | {member.name} |" for member in kind]
    return "\n".join(lines) + "\n"


def _meaning(name: str) -> str:
    for prefix, when in (("not_taken_", "the test fails"), ("taken_", "the test holds")):
        if name.startswith(prefix):
            return _MEANINGS[name.removeprefix(prefix)].format(when)
    return _MEANINGS[name]


def _first_paragraph(kind: type[enum.IntEnum]) -> str:
    return (inspect.getdoc(kind) or "").partition("\n\n")[0]
