"""The address map is a bijection, in Python, in numpy and as wires, whatever bit list declares it."""

from __future__ import annotations

import random

import numpy as np
import pytest
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st

from hdl.config import MemoryConfig
from hdl.memory.address import AddressMap, Place
from hdl.memory.address_bits import BitMatrix, address_of_place, field_widths
from hdl.memory.timing import PRESETS, Organisation

FIELDS = ("pseudo_channel", "bank_group", "bank", "row", "column")
DEFAULT = MemoryConfig().address_map
SMALL = {"rows": 4, "columns": 4}

#: Maps for a memory of 4 rows and 4 columns a bank, each with what it is there for.
MAPS = {
    "fields": FIELDS,
    "fields reversed": FIELDS[::-1],
    "default": DEFAULT,
    "slices": ("pseudo_channel", "column[0]", "bank_group", "row[1:0]", "column[1]", "bank[1]", "bank[0]"),
    "open slice": ("row[0]", "pseudo_channel", "bank", "column", "bank_group", "row[:1]"),
    "bank by row": ("pseudo_channel", "bank_group", "column", "bank^row", "row"),
    "group by two": ("pseudo_channel", "bank_group^row[1:0]^column[1:0]", "column", "bank", "row"),
    "one bit by both": ("pseudo_channel^row[0]^row[1]^column[0]", "bank_group", "column", "bank", "row"),
    "row by column": ("pseudo_channel", "bank_group", "bank", "row^column", "column"),
    "chain": (
        "bank[0]^row[1]",
        "row[1]^column[0]",
        "column",
        "bank[1]",
        "row[0]",
        "bank_group",
        "pseudo_channel",
    ),
}


@st.composite
def declared(draw: st.DrawFn) -> MemoryConfig:
    """A random map of a random small geometry: shuffled bits or slices, some of them with XOR."""
    name = draw(st.sampled_from(sorted(PRESETS)))
    plain = MemoryConfig(
        preset=name, rows=1 << draw(st.integers(1, 10)), columns=1 << draw(st.integers(1, 5))
    )
    widths = field_widths(plain.organisation)
    pieces: list[tuple[str, int, int]] = []
    for field, width in widths.items():
        low = 0
        while low < width:
            high = draw(st.integers(low, width - 1))
            pieces.append((field, high, low))
            low = high + 1
    entries = []
    for field, high, low in draw(st.permutations(pieces)):
        size = high - low + 1
        entry = field if size == widths[field] and draw(st.booleans()) else f"{field}[{high}:{low}]"
        # Row and column stay as they are, so every XOR of them can be undone.
        if field not in ("row", "column"):
            for other in draw(st.lists(st.sampled_from(("row", "column")), max_size=2)):
                if size <= widths[other]:
                    start = draw(st.integers(0, widths[other] - size))
                    entry += f"^{other}[{start + size - 1}:{start}]"
        entries.append(entry)
    return MemoryConfig(preset=name, rows=plain.rows, columns=plain.columns, address_map=tuple(entries))


def _simulate(address_map: AddressMap, addresses: list[int]) -> None:
    """Asserts that the wires give the place that Python gives, for each of `addresses`."""
    organisation = address_map.organisation
    m = Module()
    address = Signal(32)
    found = address_map.wires(address)
    outputs = [Signal.like(value) for value in found]
    m.d.comb += [output.eq(value) for output, value in zip(outputs, found, strict=True)]

    async def bench(ctx) -> None:
        for value in addresses:
            ctx.set(address, value)
            unit, row, column, atom, out_of_range = (ctx.get(output) for output in outputs)
            assert out_of_range == (value >= address_map.atoms)
            if not out_of_range:
                place = address_map.decode(value)
                assert (unit, row, column) == (
                    place.pseudo_channel * organisation.banks + place.bank,
                    place.row,
                    place.column,
                )
                assert atom == place.row * organisation.columns + place.column

    simulator = Simulator(m)
    simulator.add_testbench(bench)
    simulator.run()


def _corners(address_map: AddressMap, rng: random.Random, count: int) -> list[int]:
    bits = [1 << bit for bit in range(address_map.width)]
    ends = [0, address_map.atoms - 1, address_map.atoms, (1 << 32) - 1]
    return ends + bits + [rng.randrange(2 * address_map.atoms) for _ in range(count)]


# -- Bijection --


@given(declared(), st.data())
def test_decode_and_encode_are_inverse(config: MemoryConfig, data: st.DataObject) -> None:
    address_map = AddressMap(config)
    organisation = config.organisation
    assert address_map.atoms == organisation.atoms
    address = data.draw(st.integers(0, address_map.atoms - 1))
    assert address_map.encode(address_map.decode(address)) == address
    place = Place(
        data.draw(st.integers(0, organisation.pseudo_channels - 1)),
        data.draw(st.integers(0, organisation.banks - 1)),
        data.draw(st.integers(0, organisation.rows - 1)),
        data.draw(st.integers(0, organisation.columns - 1)),
    )
    assert address_map.decode(address_map.encode(place)) == place


@given(declared(), st.integers(0, 1 << 30))
@settings(max_examples=40)
def test_wires_agree_with_python(config: MemoryConfig, seed: int) -> None:
    address_map = AddressMap(config)
    _simulate(address_map, _corners(address_map, random.Random(seed), 30))


@pytest.mark.parametrize("entries", MAPS.values(), ids=MAPS)
def test_every_atom_has_its_own_place(entries: tuple[str, ...]) -> None:
    address_map = AddressMap(MemoryConfig(**SMALL, address_map=entries))
    addresses = np.arange(address_map.atoms)
    places = address_map.decode(addresses)
    assert np.array_equal(address_map.encode(places), addresses)
    assert np.array_equal(np.sort(address_map.storage_index(addresses)), addresses)
    assert len(set(zip(*(part.tolist() for part in places), strict=True))) == address_map.atoms
    # The integers go the same way as the arrays.
    for address in range(address_map.atoms):
        place = address_map.decode(address)
        assert place == tuple(int(part[address]) for part in places)
        assert address_map.encode(place) == address
    _simulate(address_map, addresses.tolist())


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("entries", [DEFAULT, ("pseudo_channel^row[:14]", *DEFAULT[1:])])
def test_the_map_of_every_preset(preset: str, entries: tuple[str, ...]) -> None:
    rows = MemoryConfig(preset=preset).organisation.rows
    highest = rows.bit_length() - 2
    entries = tuple(entry.replace("[:14]", f"[:{highest}]") for entry in entries)
    address_map = AddressMap(MemoryConfig(preset=preset, address_map=entries))
    rng = random.Random(20261130)
    corners = np.array([a for a in _corners(address_map, rng, 5000) if a < address_map.atoms])
    assert np.array_equal(address_map.encode(address_map.decode(corners)), corners)
    _simulate(address_map, _corners(address_map, rng, 100))


# -- What an entry means --


def test_default_map_interleaves_pseudo_channels_then_bank_groups() -> None:
    address_map = AddressMap(MemoryConfig())
    assert [address_map.decode(a)[:2] for a in range(9)] == [(p, g) for g in range(4) for p in (0, 1)] + [
        (0, 0)
    ]
    assert address_map.decode(8) == Place(0, 0, 0, 1)


def test_bits_lie_where_they_are_declared() -> None:
    entries = ("column[1]", "row[:1]", "bank[1:0]", "column[0]", "pseudo_channel", "bank_group", "row[0]")
    address_map = AddressMap(MemoryConfig(**SMALL, address_map=entries))
    # From the lowest bit: (pseudo channel, bank with the group in its low bits, row, column).
    meaning = [
        Place(0, 0, 0, 2),
        Place(0, 0, 2, 0),
        Place(0, 4, 0, 0),
        Place(0, 8, 0, 0),
        Place(0, 0, 0, 1),
        Place(1, 0, 0, 0),
        Place(0, 1, 0, 0),
        Place(0, 2, 0, 0),
        Place(0, 0, 1, 0),
    ]
    assert [address_map.decode(1 << bit) for bit in range(address_map.width)] == meaning


def test_xor_spreads_the_rows_of_one_address_range_over_the_banks() -> None:
    plain = AddressMap(MemoryConfig(**SMALL))
    hashed = AddressMap(
        MemoryConfig(**SMALL, address_map=("pseudo_channel", "bank_group", "column", "bank^row[1:0]", "row"))
    )
    # Atoms a row apart with the bank bits of the address at 0: one bank in the one map, four in the other.
    stride = 1 << plain.width - 2
    addresses = [row * stride for row in range(4)]
    assert [plain.decode(a) for a in addresses] == [Place(0, 0, row, 0) for row in range(4)]
    assert [hashed.decode(a) for a in addresses] == [Place(0, row << 2, row, 0) for row in range(4)]
    # bank XOR row is what lies in the address: 3 ^ 1 = 2.
    assert hashed.encode(Place(0, 3 << 2, 1, 0)) == stride | 2 << 5


def test_matrix_of_a_declaration() -> None:
    organisation = Organisation(pseudo_channels=2, bank_groups=2, banks_per_group=2, rows=2, columns=2)
    # Storage index, from the lowest bit: column, row, bank_group, bank, pseudo_channel.
    entries = ("bank^row", "row^column", "column", "pseudo_channel", "bank_group")
    matrix = address_of_place(entries, organisation)
    assert matrix.rows == (0b01010, 0b00011, 0b00001, 0b10000, 0b00100)
    assert matrix.inverse().rows == (0b00100, 0b00110, 0b10000, 0b00111, 0b01000)
    assert BitMatrix([0b11, 0b11]).inverse() is None


# -- Errors --


def test_errors_show_what_was_given_and_what_is_expected() -> None:
    address_map = AddressMap(MemoryConfig(**SMALL))
    with pytest.raises(ValueError, match=r"address is 512: expected 0 to 511"):
        address_map.decode(512)
    with pytest.raises(ValueError, match=r"address is .*-1.*: expected 0 to 511"):
        address_map.decode(np.array([3, -1]))
    with pytest.raises(ValueError, match=r"bank is 16: expected 0 to 15"):
        address_map.encode(Place(0, 16, 0, 0))
    with pytest.raises(ValueError, match=r"address is 512: expected 0 to 511"):
        address_map.storage_index(512)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (DEFAULT[:-1], "row[0] is declared 0 times: expected every bit once"),
        ((), "column[0] is declared 0 times: expected every bit once"),
        ((*DEFAULT, "row[1]"), "row[1] is declared 2 times: expected every bit once"),
        ((*DEFAULT[:-1], "row[0]"), "row[1] is declared 0 times"),
        (
            (*DEFAULT[:-1], "rows"),
            "'rows' names 'rows': expected one of bank, bank_group, column, pseudo_channel",
        ),
        ((*DEFAULT[:-1], "row[2:0]"), "holds 'row[2:0]': row has bits 0 to 1, expected [H:L] with H >= L"),
        ((*DEFAULT[:-1], "row[0:1]"), "holds 'row[0:1]': row has bits 0 to 1, expected [H:L] with H >= L"),
        ((*DEFAULT[:-1], "row[1:]"), "holds 'row[1:]': expected FIELD, FIELD[N] or FIELD[H:L]"),
        ((*DEFAULT[:-1], "row[]"), "holds 'row[]': expected FIELD, FIELD[N] or FIELD[H:L]"),
        ((*DEFAULT[:-1], "row[1"), "holds 'row[1': expected FIELD, FIELD[N] or FIELD[H:L]"),
        ((*DEFAULT[:-1], ""), "'' holds '': expected FIELD, FIELD[N] or FIELD[H:L]"),
        ((*DEFAULT[:-1], "row^"), "'row^' holds '': expected FIELD, FIELD[N] or FIELD[H:L]"),
        (
            (*DEFAULT[:-1], "row^bank"),
            "'row^bank' XORs bank: expected bits of row or column behind ^",
        ),
        (
            ("pseudo_channel^row", *DEFAULT[1:]),
            "'pseudo_channel^row' XORs 2 bits into 1: expected as many behind ^ as before",
        ),
        (
            ("pseudo_channel", "bank_group", "bank", "row^column", "column^row"),
            "the XORs of row^column, column^row cannot be undone",
        ),
        ((*DEFAULT[:-1], "row^row"), "the XORs of row^row cannot be undone"),
    ],
)
def test_a_bad_declaration_is_refused(entries: tuple[str, ...], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        MemoryConfig(**SMALL, address_map=entries)
    assert str(caught.value).startswith("memory.address_map: ") and message in str(caught.value)
