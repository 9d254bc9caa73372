"""One instruction in plain Python, written from the docstring of `hdl/walker/isa.py` for these tests alone.

It works on the raw 128-bit word, so that it also says what undefined operand kinds do, and shares nothing
with `sim/model/interpreter.py`: three descriptions have to agree.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Outcome", "execute", "pack"]

ONES = 0xFFFFFFFF
#: Fields of the word from bit 0 up, spelled out again.
WIDTHS = {
    "immediate": 32,
    "op": 3,
    "a_kind": 2,
    "a_index": 3,
    "a_low": 5,
    "a_width_minus_1": 5,
    "a_signed": 1,
    "b_kind": 2,
    "b_index": 3,
    "update_kind": 3,
    "update_register": 3,
    "update_source_kind": 2,
    "update_source_index": 3,
    "store": 1,
    "store_conditional": 1,
    "store_word": 3,
    "store_register": 3,
    "taken_kind": 2,
    "taken_target": 6,
    "taken_pointer_kind": 2,
    "taken_pointer_index": 3,
    "taken_offset": 12,
    "not_taken_kind": 2,
    "not_taken_target": 6,
    "not_taken_pointer_kind": 2,
    "not_taken_pointer_index": 3,
    "not_taken_offset": 12,
    "reserved": 3,
}


@dataclass(frozen=True)
class Outcome:
    """What the instruction did; fields without meaning in a case are None."""

    taken: bool
    update: tuple[int, int] | None
    store: tuple[int, int, int, bool] | None
    """Word, value, expected, conditional."""
    exit_kind: int
    exit_target: int
    exit_value: int
    exit_code: int


def pack(fields: dict[str, int]) -> int:
    """The instruction word with these fields, the others 0."""
    word = shift = 0
    for name, width in WIDTHS.items():
        value = fields.get(name, 0)
        assert 0 <= value < 1 << width, (name, value)
        word |= value << shift
        shift += width
    assert shift == 128 and fields.keys() <= WIDTHS.keys()
    return word


def _signed(value: int) -> int:
    return value - (1 << 32) if value & 1 << 31 else value


def execute(fields: dict[str, int], record: list[int], registers: list[int], address: int) -> Outcome:
    """One instruction on one record."""
    f = {name: fields.get(name, 0) for name in WIDTHS}
    record, registers = list(record), list(registers)

    if f["a_kind"] == 0:
        width = f["a_width_minus_1"] + 1
        text = f"{record[f['a_index']]:032b}".zfill(64)
        end = 64 - f["a_low"]
        cut = text[end - width : end]
        a = int(cut, 2)
        if f["a_signed"] and cut[0] == "1":
            a |= ONES << width & ONES
    elif f["a_kind"] == 1:
        a = registers[f["a_index"]]
    else:
        a = address
    b = (f["immediate"], registers[f["b_index"]], record[f["b_index"]], record[f["b_index"]])[f["b_kind"]]
    tests = (
        True,
        a == b,
        a != b,
        _signed(a) < _signed(b),
        not _signed(a) < _signed(b),
        a < b,
        not a < b,
        bool(a & b),
    )
    taken = tests[f["op"]]

    def pointer(kind: int, index: int) -> int:
        return (record[index], registers[index], address, f["immediate"])[kind]

    update = store = None
    if taken:
        if f["update_kind"]:
            old = registers[f["update_register"]]
            new = pointer(f["update_source_kind"], f["update_source_index"])
            results = (
                old,
                new,
                (old + new) & ONES,
                (old - new) & ONES,
                old if _signed(old) < _signed(new) else new,
                new if _signed(old) < _signed(new) else old,
                old & new,
                old | new,
            )
            registers[f["update_register"]] = results[f["update_kind"]]
            update = f["update_register"], results[f["update_kind"]]
        if f["store"]:
            word, value = f["store_word"], registers[f["store_register"]]
            store = word, value, record[word], bool(f["store_conditional"])
            record[word] = value
    way = "taken" if taken else "not_taken"
    offset = f[f"{way}_offset"]
    base = pointer(f[f"{way}_pointer_kind"], f[f"{way}_pointer_index"])
    return Outcome(
        taken=taken,
        update=update,
        store=store,
        exit_kind=f[f"{way}_kind"],
        exit_target=f[f"{way}_target"],
        exit_value=(base + (offset - 4096 if offset >= 2048 else offset)) & ONES,
        exit_code=offset & 0xFF,
    )
