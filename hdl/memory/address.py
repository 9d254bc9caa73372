"""The address map: which bits of an atom address are pseudo channel, bank, row and column."""

from __future__ import annotations

from functools import reduce
from operator import xor
from typing import Any, NamedTuple

from amaranth.hdl import Cat, Const, Value

from ..config import MemoryConfig
from .address_bits import address_of_place, field_widths
from .timing import Organisation

__all__ = ["AddressMap", "DecodedAddress", "Place"]


class Place(NamedTuple):
    """Where an atom is. `bank` counts within the pseudo channel, bank group in the low bits."""

    pseudo_channel: Any
    bank: Any
    row: Any
    column: Any


class DecodedAddress(NamedTuple):
    """The RTL's view of an atom address.

    `unit` numbers the banks of the channel: bank in the low bits, pseudo channel above it.
    `atom` is row and column together: two requests of one unit with equal `atom` address the same atom.
    """

    unit: Value
    row: Value
    column: Value
    atom: Value
    out_of_range: Value


class AddressMap:
    """The bijection between atom addresses [0, atoms) and places, as declared by the configuration
    (`address_bits` has the notation).

    The Python methods take and return integers or numpy integer arrays alike.
    """

    def __init__(self, config: MemoryConfig) -> None:
        organisation: Organisation = config.organisation
        self.organisation = organisation
        self._to_address = address_of_place(config.address_map, organisation)
        inverse = self._to_address.inverse()
        assert inverse is not None, "a declaration that was accepted has an inverse"
        self._to_index = inverse
        widths = field_widths(organisation)
        self._column_bits = widths["column"]
        self._row_bits = widths["row"]
        self._bank_bits = widths["bank_group"] + widths["bank"]
        self.width = sum(widths.values())

    @property
    def atoms(self) -> int:
        """Addresses from this one on are out of range."""
        return 1 << self.width

    def decode(self, address: Any) -> Place:
        """The place of an atom address. Raises ValueError for an address that is out of range."""
        index = self.storage_index(address)
        row, bank = index >> self._column_bits, index >> self._column_bits + self._row_bits
        return Place(
            pseudo_channel=bank >> self._bank_bits,
            bank=bank & (1 << self._bank_bits) - 1,
            row=row & (1 << self._row_bits) - 1,
            column=index & (1 << self._column_bits) - 1,
        )

    def encode(self, place: Place) -> Any:
        """The atom address of a place. Raises ValueError for a place that the memory does not have."""
        organisation = self.organisation
        for name, count in (
            ("pseudo_channel", organisation.pseudo_channels),
            ("bank", organisation.banks),
            ("row", organisation.rows),
            ("column", organisation.columns),
        ):
            self._check(name, getattr(place, name), count)
        return self._to_address.apply(self._index(place))

    def storage_index(self, address: Any) -> Any:
        """Where the storage keeps an atom: ((pseudo_channel*banks + bank)*rows + row)*columns + column."""
        self._check("address", address, self.atoms)
        return self._to_index.apply(address)

    def wires(self, address: Value) -> DecodedAddress:
        """The same decoding as RTL: bits of `address`, XORs where they are declared, and the range check."""
        index = [
            reduce(xor, (address[source] for source in range(self.width) if row >> source & 1))
            for row in self._to_index.rows
        ]
        bank = self._column_bits + self._row_bits
        beyond = address[self.width :]
        return DecodedAddress(
            unit=Value.cast(Cat(index[bank:])),
            row=Value.cast(Cat(index[self._column_bits : bank])),
            column=Value.cast(Cat(index[: self._column_bits])),
            atom=Value.cast(Cat(index[:bank])),
            out_of_range=beyond.any() if len(beyond) else Const(0, 1),
        )

    def address_wires(self, *, unit: Value, row: Value, column: Value) -> Value:
        """The inverse of `wires` as RTL: the atom address of a place, as wide as the address map."""
        index = Cat(column, row, unit)
        return Value.cast(
            Cat(
                reduce(xor, (index[source] for source in range(self.width) if bits >> source & 1))
                for bits in self._to_address.rows
            )
        )

    def _index(self, place: Place) -> Any:
        unit = place.pseudo_channel << self._bank_bits | place.bank
        return (unit << self._row_bits | place.row) << self._column_bits | place.column

    @staticmethod
    def _check(name: str, value: Any, count: int) -> None:
        wrong = (value < 0) | (value >= count)
        if wrong.any() if hasattr(wrong, "any") else wrong:
            raise ValueError(f"{name} is {value!r}: expected 0 to {count - 1}")
