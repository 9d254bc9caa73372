"""The address map: which bits of an atom address are pseudo channel, bank, row and column."""

from __future__ import annotations

from typing import Any, NamedTuple

from amaranth.hdl import Cat, Const, Value

from ..config import MemoryConfig
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


def _bits(count: int) -> int:
    return count.bit_length() - 1


class AddressMap:
    """The bijection between atom addresses [0, atoms) and places, as declared by the configuration.

    `fields` lists (name, low bit, width) from the lowest bit up. The Python methods take and return
    integers or numpy integer arrays alike.
    """

    def __init__(self, config: MemoryConfig) -> None:
        organisation: Organisation = config.organisation
        self.organisation = organisation
        self._widths = {
            "pseudo_channel": _bits(organisation.pseudo_channels),
            "bank_group": _bits(organisation.bank_groups),
            "bank": _bits(organisation.banks_per_group),
            "row": _bits(organisation.rows),
            "column": _bits(organisation.columns),
        }
        self.fields: list[tuple[str, int, int]] = []
        low = 0
        for name in config.address_map:
            self.fields.append((name, low, self._widths[name]))
            low += self._widths[name]
        self.width = low

    @property
    def atoms(self) -> int:
        """Addresses from this one on are out of range."""
        return 1 << self.width

    def decode(self, address: Any) -> Place:
        """The place of an atom address. Raises ValueError for an address that is out of range."""
        self._check("address", address, self.atoms)
        parts = {name: address >> low & (1 << width) - 1 for name, low, width in self.fields}
        bank = parts["bank_group"] | parts["bank"] << self._widths["bank_group"]
        return Place(parts["pseudo_channel"], bank, parts["row"], parts["column"])

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
        group_bits = self._widths["bank_group"]
        parts = {
            "pseudo_channel": place.pseudo_channel,
            "bank_group": place.bank & (1 << group_bits) - 1,
            "bank": place.bank >> group_bits,
            "row": place.row,
            "column": place.column,
        }
        address = 0
        for name, low, _ in self.fields:
            address = address | parts[name] << low
        return address

    def storage_index(self, address: Any) -> Any:
        """Where the storage keeps an atom: ((pseudo_channel*banks + bank)*rows + row)*columns + column."""
        place, organisation = self.decode(address), self.organisation
        unit = place.pseudo_channel * organisation.banks + place.bank
        return (unit * organisation.rows + place.row) * organisation.columns + place.column

    def wires(self, address: Value) -> DecodedAddress:
        """The same decoding as RTL: slices of `address`, no logic but the range check."""
        parts = {name: address[low : low + width] for name, low, width in self.fields}
        beyond = address[self.width :]
        return DecodedAddress(
            unit=Value.cast(Cat(parts["bank_group"], parts["bank"], parts["pseudo_channel"])),
            row=Value.cast(parts["row"]),
            column=Value.cast(parts["column"]),
            atom=Value.cast(Cat(parts["column"], parts["row"])),
            out_of_range=beyond.any() if len(beyond) else Const(0, 1),
        )

    @staticmethod
    def _check(name: str, value: Any, count: int) -> None:
        wrong = (value < 0) | (value >= count)
        if wrong.any() if hasattr(wrong, "any") else wrong:
            raise ValueError(f"{name} is {value!r}: expected 0 to {count - 1}")
