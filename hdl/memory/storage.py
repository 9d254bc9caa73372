"""The storage of a device: every atom of a channel, one access a cycle."""

from __future__ import annotations

from amaranth.hdl import Cat, ClockSignal, Instance, Module, Signal, Value, unsigned
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from ..config import MemoryConfig
from ..layouts import ATOM_BYTES, ATOM_CHECK_WIDTH, ATOM_WIDTH
from .ecc import ATOM_WORDS, CHECK_WIDTH, WORD_BYTES

__all__ = ["ARRAY_ATOMS_MAX", "CHECK_STORAGE_MODULE", "STORAGE_MODULE", "Storage"]

#: The largest memory that `storage="array"` takes: Amaranth writes one line of Verilog for every word.
ARRAY_ATOMS_MAX = 1 << 16
#: The Verilog module of `storage="dpi"`; its source is simulation only.
STORAGE_MODULE = "clew_storage"
#: The same for the check bits.
CHECK_STORAGE_MODULE = "clew_check_storage"


class Storage(wiring.Component):
    """A memory of 256-bit atoms with one access a cycle: a write, or a read answered one cycle later.

    With `storage="array"` it is an Amaranth memory (`array` names it, for testbenches); with
    `storage="dpi"` an instance of the Verilog module `clew_storage`, whose contents live in C. With `ecc` a
    second memory beside it (`check_array`, or `clew_check_storage`) keeps the check bits. Raises ValueError
    for an array of more than 65,536 atoms.

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
    write_check : In(32), read_check : Out(32)
        Check bits, written with their word: the byte enables of a word are all alike. Only with `ecc`.
    """

    def __init__(self, config: MemoryConfig, *, channel: int = 0, ecc: bool = False) -> None:
        self._config = config
        self._channel = channel
        self._ecc = ecc
        atoms = config.organisation.atoms
        if config.storage == "array":
            if atoms > ARRAY_ATOMS_MAX:
                raise ValueError(
                    f"memory.storage 'array' has {atoms} atoms: expected at most {ARRAY_ATOMS_MAX}; "
                    "reduce memory.rows and memory.columns or use 'dpi'"
                )
            self.array = memory.Memory(shape=unsigned(ATOM_WIDTH), depth=atoms, init=[])
            if ecc:
                self.check_array = memory.Memory(shape=unsigned(ATOM_CHECK_WIDTH), depth=atoms, init=[])
        members = {
            "read_enable": In(1),
            "write_enable": In(1),
            "index": In(32),
            "write_data": In(ATOM_WIDTH),
            "write_mask": In(ATOM_BYTES),
            "read_data": Out(ATOM_WIDTH),
        }
        if ecc:
            members |= {"write_check": In(ATOM_CHECK_WIDTH), "read_check": Out(ATOM_CHECK_WIDTH)}
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        if self._config.storage == "dpi":
            m.submodules.cells = self._instance(
                STORAGE_MODULE, self.write_data, self.write_mask, self.read_data
            )
            if self._ecc:
                m.submodules.check_cells = self._instance(
                    CHECK_STORAGE_MODULE, self.write_check, self._word_mask(), self.read_check
                )
            return m
        m.submodules.cells = self.array
        self._connect(m, self.array, self.write_data, self.write_mask, self.read_data, granularity=8)
        if self._ecc:
            m.submodules.check_cells = self.check_array
            self._connect(
                m,
                self.check_array,
                self.write_check,
                self._word_mask(),
                self.read_check,
                granularity=CHECK_WIDTH,
            )
        return m

    def _word_mask(self) -> Value:
        """An enable for each code word: that of its first byte."""
        return Value.cast(Cat(self.write_mask[word * WORD_BYTES] for word in range(ATOM_WORDS)))

    def _instance(self, module: str, write_data: Signal, write_mask: Value, read_data: Signal) -> Instance:
        return Instance(
            module,
            i_clk=ClockSignal(),
            i_read_enable=self.read_enable,
            i_write_enable=self.write_enable,
            i_index=self.index | self._channel * self._config.organisation.atoms,
            i_write_data=write_data,
            i_write_mask=write_mask,
            o_read_data=read_data,
        )

    def _connect(
        self,
        m: Module,
        array: memory.Memory,
        write_data: Signal,
        write_mask: Value,
        read_data: Signal,
        *,
        granularity: int,
    ) -> None:
        write = array.write_port(granularity=granularity)
        read = array.read_port()
        m.d.comb += [
            write.addr.eq(self.index),
            write.data.eq(write_data),
            write.en.eq(write_mask & self.write_enable.replicate(len(write_mask))),
            read.addr.eq(self.index),
            read.en.eq(self.read_enable),
            read_data.eq(read.data),
        ]
