"""The HBM-like device: storage behind a row bus and a column bus, with the preset's read latency."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal, Value, unsigned
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from ..config import DesignConfig
from ..layouts import ColumnBus, ColumnOp, FaultInjection, RowBus, RowOp
from .injector import FaultInjector
from .storage import Storage

__all__ = ["Device"]


class Device(wiring.Component):
    """A channel's memory: read data comes back CL + burst cycles after its command, in command order.

    Reads and writes reach the storage in the cycle of their command, so their order is the order of the
    column bus. It trusts the controller: an access to a closed bank reaches the row that was open last
    (the checker reports it), and nothing is lost without refresh. With ECC it keeps the check bits and has a
    fault injector, so that what ECC does can be tried on any board.

    Parameters
    ----------
    channel : int
        Its number in the stack, which only the storage needs.

    Members
    -------
    row : In(RowBus())
    column : In(ColumnBus(ecc=...))
    fault : In(FaultInjection())
        Only with `config.controller.ecc`.
    sleeps : Out(1)
        See `ClockGate`.
    """

    def __init__(self, config: DesignConfig, *, channel: int = 0) -> None:
        self._config = config
        self._ecc = config.controller.ecc
        self.storage = Storage(config.memory, channel=channel, ecc=self._ecc)
        members = {"row": In(RowBus()), "column": In(ColumnBus(ecc=self._ecc)), "sleeps": Out(1)}
        if self._ecc:
            members["fault"] = In(FaultInjection())
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        organisation = self._config.memory.organisation
        latency = self._config.memory.timing.row_hit
        pseudo_bits = organisation.pseudo_channels.bit_length() - 1
        bank_bits = organisation.banks.bit_length() - 1
        m.submodules.storage = storage = self.storage

        def unit(pseudo_channel: Signal, bank: Signal) -> Value:
            return Value.cast(Cat(bank[:bank_bits], pseudo_channel[:pseudo_bits]))

        # -- Open rows --
        m.submodules.open_row = open_row = memory.Memory(
            shape=unsigned(organisation.rows.bit_length() - 1),
            depth=organisation.pseudo_channels * organisation.banks,
            init=[],
        )
        opened = open_row.write_port()
        m.d.comb += [
            opened.en.eq(self.row.op == RowOp.ACTIVATE),
            opened.addr.eq(unit(self.row.pseudo_channel, self.row.bank)),
            opened.data.eq(self.row.row),
        ]

        # -- The access, at command time --
        accessed = open_row.read_port(domain="comb")
        place = unit(self.column.pseudo_channel, self.column.bank)
        column = self.column.column[: organisation.columns.bit_length() - 1]
        read = Signal()
        write = Signal()
        m.d.comb += [
            accessed.addr.eq(place),
            read.eq((self.column.op == ColumnOp.READ) | (self.column.op == ColumnOp.READ_AUTO)),
            write.eq((self.column.op == ColumnOp.WRITE) | (self.column.op == ColumnOp.WRITE_AUTO)),
            storage.index.eq(Cat(column, accessed.data, place)),
            storage.read_enable.eq(read),
            storage.write_enable.eq(write),
            storage.write_data.eq(self.column.write_data),
            storage.write_mask.eq(self.column.write_mask),
        ]

        # -- What the storage returns in the cycle after: data, and check bits above it --
        returned = Value.cast(storage.read_data)
        read_data = Value.cast(self.column.read_data)
        if self._ecc:
            m.submodules.injector = injector = FaultInjector(self._config.memory)
            wiring.connect(m, wiring.flipped(self.fault), injector.control)
            m.d.comb += [
                injector.read.eq(read),
                injector.index.eq(storage.index),
                storage.write_check.eq(self.column.write_check),
            ]
            returned = Cat(storage.read_data, storage.read_check) ^ injector.flips
            read_data = Cat(self.column.read_data, self.column.read_check)

        # -- Read latency: `flight[n]` says that a read's command was on the bus n + 1 cycles ago. The data
        # waits in a small ring memory, not in a shift register 256 bits wide. It enters the ring in cycle 1
        # (the storage's answer) and is read out in cycle latency - 1, to be there in cycle latency.
        flight = Signal(latency)
        m.d.sync += flight.eq(Cat(read, flight[:-1]))
        depth = 1 << (latency - 2).bit_length()
        m.submodules.ring = ring = memory.Memory(shape=unsigned(len(returned)), depth=depth, init=[])
        time = Signal(range(depth))
        enter = ring.write_port()
        leave = ring.read_port()
        with m.If(flight.any()):
            m.d.sync += time.eq(time + 1)
        m.d.comb += [
            self.sleeps.eq(~(read | write | flight.any())),
            enter.en.eq(flight[0]),
            enter.addr.eq(time),
            enter.data.eq(returned),
            leave.en.eq(flight[latency - 2]),
            leave.addr.eq(time - (latency - 2)),
            self.column.read_valid.eq(flight[latency - 1]),
            read_data.eq(leave.data),
        ]
        return m
