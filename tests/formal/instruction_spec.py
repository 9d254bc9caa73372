"""One instruction as expressions, written from the text of `hdl/walker/INSTRUCTIONS.md` alone.

It reads the raw word by the bits of that page and shares no code with `isa.py`, the datapath, or the golden
interpreter. Where the page defines no meaning (operand kinds that do not exist), the docstring of the
datapath does.
"""

from __future__ import annotations

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

__all__ = ["Meaning", "meaning"]

#: Highest and lowest bit of every field, as the page lists them.
BITS = {
    "immediate": (31, 0),
    "op": (34, 32),
    "a_kind": (36, 35),
    "a_index": (39, 37),
    "a_low": (44, 40),
    "a_width_minus_1": (49, 45),
    "a_signed": (50, 50),
    "b_kind": (52, 51),
    "b_index": (55, 53),
    "update_kind": (58, 56),
    "update_register": (61, 59),
    "update_source_kind": (63, 62),
    "update_source_index": (66, 64),
    "store": (67, 67),
    "store_conditional": (68, 68),
    "store_word": (71, 69),
    "store_register": (74, 72),
    "taken_kind": (76, 75),
    "taken_target": (82, 77),
    "taken_pointer_kind": (84, 83),
    "taken_pointer_index": (87, 85),
    "taken_offset": (99, 88),
    "not_taken_kind": (101, 100),
    "not_taken_target": (107, 102),
    "not_taken_pointer_kind": (109, 108),
    "not_taken_pointer_index": (112, 110),
    "not_taken_offset": (124, 113),
}


@dataclass(frozen=True, kw_only=True)
class Meaning:
    """What the instruction does."""

    a: Value
    b: Value
    old: Value
    """The register of the update before it."""
    source: Value
    new: Value
    """The register of the update after it, where there is one."""
    taken: Value
    updates: Value
    register: Value
    registers: list[Value]
    """After the update."""
    stores: Value
    conditional: Value
    word: Value
    stored: Value
    expected: Value
    exit_kind: Value
    target: Value
    pointer: Value
    """Of a load or a yield, before the offset is added."""
    value: Value
    """Of a load or a yield."""
    code: Value


class _Named:
    """Gives expressions a signal each: what is used often is then written once."""

    def __init__(self, m: Module, prefix: str) -> None:
        self._m = m
        self._prefix = prefix
        self._count = 0

    def __call__(self, value: Value) -> Value:
        signal = Signal(len(value), name=f"{self._prefix}_{self._count}")
        self._count += 1
        self._m.d.comb += signal.eq(value)
        return signal

    def among(self, items: list[Value], index: Value) -> Value:
        """The item of that number."""
        chosen = items[0]
        for number, item in enumerate(items[1:], 1):
            chosen = Mux(index == number, item, chosen)
        return self(chosen)

    def replaced(self, items: list[Value], enable: Value, index: Value, by: Value) -> list[Value]:
        """The items with one of them replaced, if `enable`."""
        return [self(Mux(enable & (index == number), by, item)) for number, item in enumerate(items)]


def meaning(m: Module, word: Value, record: list[Value], registers: list[Value], address: Value) -> Meaning:
    """What the 128-bit `word` does on a record of eight words at `address` with eight registers."""
    named = _Named(m, "spec")
    f = {name: word[low : high + 1] for name, (high, low) in BITS.items()}
    ones = Const(0xFFFFFFFF, 32)
    nothing = Const(0, 32)

    def smaller(left: Value, right: Value) -> Value:
        """As signed numbers: the order of unsigned ones with the sign bits turned over."""
        top = Const(1 << 31, 32)
        return (left ^ top) < (right ^ top)

    # The field of bits [low, low + width - 1], of which those beyond bit 31 are 0.
    cut = named((Cat(named.among(record, f["a_index"]), nothing) >> f["a_low"])[:32])
    beyond = named((ones << (f["a_width_minus_1"] + 1))[:32])
    sign = named.among([cut[bit] for bit in range(32)], f["a_width_minus_1"])
    a_field = named((cut & ~beyond) | Mux(f["a_signed"] & sign, beyond, nothing))
    a = named(
        Mux(
            f["a_kind"] == 0,
            a_field,
            Mux(f["a_kind"] == 1, named.among(registers, f["a_index"]), address),
        )
    )
    b = named(
        Mux(
            f["b_kind"] == 0,
            f["immediate"],
            Mux(f["b_kind"] == 1, named.among(registers, f["b_index"]), named.among(record, f["b_index"])),
        )
    )
    tests: list[Value] = [
        Const(1, 1),
        a == b,
        a != b,
        smaller(a, b),
        ~smaller(a, b),
        a < b,
        ~(a < b),
        (a & b) != 0,
    ]
    taken = named.among(tests, f["op"])

    def pointed(kind: Value, index: Value, words: list[Value], values: list[Value]) -> Value:
        return named(
            Mux(
                kind == 0,
                named.among(words, index),
                Mux(kind == 1, named.among(values, index), Mux(kind == 2, address, f["immediate"])),
            )
        )

    old = named.among(registers, f["update_register"])
    source = pointed(f["update_source_kind"], f["update_source_index"], record, registers)
    results: list[Value] = [
        old,
        source,
        (old + source)[:32],
        (old - source)[:32],
        Mux(smaller(old, source), old, source),
        Mux(smaller(old, source), source, old),
        old & source,
        old | source,
    ]
    updates = named(taken & (f["update_kind"] != 0))
    new = named.among(results, f["update_kind"])
    after = named.replaced(registers, updates, f["update_register"], new)

    stores = named(taken & f["store"])
    stored = named.among(after, f["store_register"])
    expected = named.among(record, f["store_word"])
    current = named.replaced(record, stores, f["store_word"], stored)

    def leave(name: str) -> Value:
        """Everything of one exit in one value."""
        offset = f[f"{name}_offset"]
        pointer = pointed(f[f"{name}_pointer_kind"], f[f"{name}_pointer_index"], current, after)
        signed = Cat(offset, *[offset[11]] * 20)
        return Cat(f[f"{name}_kind"], f[f"{name}_target"], pointer, (pointer + signed)[:32], offset[:8])

    way = named(Mux(taken, leave("taken"), leave("not_taken")))
    return Meaning(
        a=a,
        b=b,
        old=old,
        source=source,
        new=new,
        taken=taken,
        updates=updates,
        register=f["update_register"],
        registers=after,
        stores=stores,
        conditional=f["store_conditional"],
        word=f["store_word"],
        stored=stored,
        expected=expected,
        exit_kind=way[:2],
        target=way[2:8],
        pointer=way[8:40],
        value=way[40:72],
        code=way[72:80],
    )
