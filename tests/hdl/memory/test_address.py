"""The address map is a bijection, in Python, in numpy and as wires."""

from __future__ import annotations

import random

import numpy as np
import pytest
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator
from hypothesis import given
from hypothesis import strategies as st

from hdl.config import MemoryConfig
from hdl.memory.address import AddressMap, Place

FIELDS = ("pseudo_channel", "bank_group", "bank", "row", "column")

configs = st.builds(
    lambda order, rows, columns: MemoryConfig(rows=1 << rows, columns=1 << columns, address_map=tuple(order)),
    st.permutations(FIELDS),
    st.integers(1, 14),
    st.integers(1, 5),
)


@given(configs, st.data())
def test_decode_and_encode_are_inverse(config: MemoryConfig, data: st.DataObject) -> None:
    address_map = AddressMap(config)
    assert address_map.atoms == config.organisation.atoms
    address = data.draw(st.integers(0, address_map.atoms - 1))
    assert address_map.encode(address_map.decode(address)) == address


@pytest.mark.parametrize("order", [FIELDS, FIELDS[::-1], MemoryConfig().address_map])
def test_every_atom_has_its_own_place(order: tuple[str, ...]) -> None:
    address_map = AddressMap(MemoryConfig(rows=4, columns=4, address_map=order))
    addresses = np.arange(address_map.atoms)
    places = address_map.decode(addresses)
    assert np.array_equal(address_map.encode(places), addresses)
    assert np.array_equal(np.sort(address_map.storage_index(addresses)), addresses)
    assert len(set(zip(*(part.tolist() for part in places), strict=True))) == address_map.atoms


def test_default_map_interleaves_pseudo_channels_then_bank_groups() -> None:
    address_map = AddressMap(MemoryConfig())
    assert [address_map.decode(a)[:2] for a in range(9)] == [(p, g) for g in range(4) for p in (0, 1)] + [
        (0, 0)
    ]
    assert address_map.decode(8) == Place(0, 0, 0, 1)


def test_errors_show_what_was_given_and_what_is_expected() -> None:
    address_map = AddressMap(MemoryConfig(rows=4, columns=4))
    with pytest.raises(ValueError, match=r"address is 512: expected 0 to 511"):
        address_map.decode(512)
    with pytest.raises(ValueError, match=r"address is .*-1.*: expected 0 to 511"):
        address_map.decode(np.array([3, -1]))
    with pytest.raises(ValueError, match=r"bank is 16: expected 0 to 15"):
        address_map.encode(Place(0, 16, 0, 0))


@pytest.mark.parametrize("order", [FIELDS, MemoryConfig().address_map])
def test_wires_agree_with_python(order: tuple[str, ...]) -> None:
    address_map = AddressMap(MemoryConfig(rows=64, columns=8, address_map=order))
    organisation = address_map.organisation
    m = Module()
    address = Signal(32)
    found = address_map.wires(address)
    outputs = [Signal.like(value) for value in found]
    m.d.comb += [output.eq(value) for output, value in zip(outputs, found, strict=True)]
    rng = random.Random(1)
    addresses = [0, address_map.atoms - 1, address_map.atoms, (1 << 32) - 1]
    addresses += [rng.randrange(2 * address_map.atoms) for _ in range(200)]

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
