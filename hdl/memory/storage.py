"""The storage of a device: every atom of a channel, one access a cycle."""

from __future__ import annotations

from amaranth.hdl import ClockSignal, Instance, Module, unsigned
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from ..config import MemoryConfig
from ..layouts import ATOM_BYTES, ATOM_WIDTH

__all__ = ["ARRAY_ATOMS_MAX", "STORAGE_MODULE", "Storage"]

#: The largest memory that `storage="array"` takes: Amaranth writes one line of Verilog for every word.
ARRAY_ATOMS_MAX = 1 << 16
#: The Verilog module of `storage="dpi"`; its source is simulation only.
STORAGE_MODULE = "clew_storage"


class Storage(wiring.Component):
    """A memory of 256-bit atoms with one access a cycle: a write, or a read answered one cycle later.

    With `storage="array"` it is an Amaranth memory (`array` names it, for testbenches); with
    `storage="dpi"` an instance of the Verilog module `clew_storage`, whose contents live in C. Raises
    ValueError for an array of more than 65,536 atoms.

    Parameters
    ----------
    channel : int
        Its number in the stack: in C the storages of a stack lie one after another.

    Members
    -------
    read_enable : In(1)
    write_enable : In(1)
    index : In(32)
        Atom, counted ((pseudo_channel*banks + bank)*rows + row)*columns + column.
    write_data : In(256)
    write_mask : In(32)
        Byte enables.
    read_data : Out(256)
        The atom as it was when `read_enable` was high, until the next read.
    """

    def __init__(self, config: MemoryConfig, *, channel: int = 0) -> None:
        self._config = config
        self._channel = channel
        atoms = config.organisation.atoms
        if config.storage == "array":
            if atoms > ARRAY_ATOMS_MAX:
                raise ValueError(
                    f"memory.storage 'array' has {atoms} atoms: expected at most {ARRAY_ATOMS_MAX}; "
                    "reduce memory.rows and memory.columns or use 'dpi'"
                )
            self.array = memory.Memory(shape=unsigned(ATOM_WIDTH), depth=atoms, init=[])
        super().__init__(
            {
                "read_enable": In(1),
                "write_enable": In(1),
                "index": In(32),
                "write_data": In(ATOM_WIDTH),
                "write_mask": In(ATOM_BYTES),
                "read_data": Out(ATOM_WIDTH),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        if self._config.storage == "dpi":
            m.submodules.cells = Instance(
                STORAGE_MODULE,
                i_clk=ClockSignal(),
                i_read_enable=self.read_enable,
                i_write_enable=self.write_enable,
                i_index=self.index | self._channel * self._config.organisation.atoms,
                i_write_data=self.write_data,
                i_write_mask=self.write_mask,
                o_read_data=self.read_data,
            )
            return m
        m.submodules.cells = self.array
        write = self.array.write_port(granularity=8)
        read = self.array.read_port()
        m.d.comb += [
            write.addr.eq(self.index),
            write.data.eq(self.write_data),
            write.en.eq(self.write_mask & self.write_enable.replicate(ATOM_BYTES)),
            read.addr.eq(self.index),
            read.en.eq(self.read_enable),
            self.read_data.eq(read.data),
        ]
        return m
