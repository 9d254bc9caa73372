"""The stack map: which channel of the stack an atom address lies in, and where in it."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Value

from ..config import MemoryConfig
from .address import AddressMap

__all__ = ["StackMap"]


class StackMap:
    """The bijection between atom addresses of the stack and (channel, atom address within the channel).

    The top bits of an address are its channel, so consecutive atoms, and with them a tree, lie in one
    channel, and each channel's own map (`channel_map`) is what it is without a stack. The Python methods take
    and return integers or numpy integer arrays alike; they raise ValueError for what is out of range.
    """

    def __init__(self, config: MemoryConfig) -> None:
        self.channels = config.channels
        self.channel_map = AddressMap(config)
        self._channel_bits = config.channels.bit_length() - 1

    @property
    def channel_atoms(self) -> int:
        """Capacity of one channel."""
        return self.channel_map.atoms

    @property
    def atoms(self) -> int:
        """Addresses from this one on are beyond the stack."""
        return self.channels * self.channel_atoms

    def first(self, channel: int) -> int:
        """The lowest address of a channel."""
        if not 0 <= channel < self.channels:
            raise ValueError(f"channel is {channel!r}: expected 0 to {self.channels - 1}")
        return channel * self.channel_atoms

    def channel(self, address: Any) -> Any:
        """The channel of an address."""
        self._check(address)
        return address // self.channel_atoms

    def local(self, address: Any) -> Any:
        """The address within its channel."""
        self._check(address)
        return address % self.channel_atoms

    def storage_index(self, address: Any) -> Any:
        """Where the storage keeps an atom: the channels' storages one after another."""
        return address - self.local(address) + self.channel_map.storage_index(self.local(address))

    def channel_wires(self, address: Value) -> Value:
        """The channel as RTL: a slice of `address`; an address beyond the stack has one too."""
        low = self.channel_map.width
        return address[low : low + self._channel_bits]

    def _check(self, address: Any) -> None:
        wrong = (address < 0) | (address >= self.atoms)
        if wrong.any() if hasattr(wrong, "any") else wrong:
            raise ValueError(f"address is {address!r}: expected 0 to {self.atoms - 1}")
