"""A refresher with the timing counters and a free scheduler: what proofs of more than one bank are made of.

A whole controller with several banks and a whole round of refreshes is more than a solver sees through. The
scheduler here decides whatever the proofs of `test_scheduler` and `test_protocol` leave it.
"""

from __future__ import annotations

from amaranth.hdl import Assume, Const, Module, Mux, Signal
from amaranth.lib.wiring import In

from hdl.config import DesignConfig
from hdl.layouts import ColumnOp, RefreshMode, RowOp
from hdl.memory.refresher import Refresher
from hdl.memory.timers import Timers
from tests.formal.harness import Internals, Property
from tests.formal.rules import named

__all__ = ["RefresherProperty"]


class RefresherProperty(Property):
    """A refresher in one mode whose scheduler decides any command that timing, the refresher's claims and
    the state of the banks allow; what is queued, for whom, and whether the rest is quiet, is free.

    `row_op` and `row_unit` are the row bus, a cycle behind the decision. A restart lasts until it is done,
    and there is one at the beginning.
    """

    def __init__(self, config: DesignConfig, mode: RefreshMode, *, false: bool) -> None:
        self.config = config
        self.mode = mode
        self.commands = config.memory.timing.commands
        organisation = config.memory.organisation
        self.units = units = organisation.pseudo_channels * organisation.banks
        super().__init__(
            {
                "scheduled_row_op": In(RowOp),
                "scheduled_row_unit": In(range(units)),
                "scheduled_column_op": In(ColumnOp),
                "scheduled_column_unit": In(range(units)),
                "busy": In(units),
                "reads": In(units),
                "walks": In(1),
                "quiet": In(1),
                "restart": In(1),
            },
            false=false,
        )

    def environment(self, m: Module) -> None:
        """Add the refresher and what surrounds it; `refresher` then shows what is inside it."""
        block, timers = (
            Refresher(self.config, commands=self.commands),
            Timers(self.config.memory, commands=self.commands),
        )
        assert block.per_bank, f"{self.config.memory.timing.name} has no REFpb"
        self.refresher = Internals(block)
        m.submodules.refresher = self.refresher.fragment
        m.submodules.timers = timers
        units = self.units
        opened = Signal(units, name="opened")
        decided, decided_unit = Signal(RowOp, name="decided"), Signal(range(units), name="decided_unit")
        m.d.comb += [
            block.mode.eq(self.mode),
            block.restart.eq(self.restart),
            block.quiet.eq(self.quiet),
            block.settled.eq(timers.idle),
            block.busy.eq(self.busy),
            block.reads.eq(self.reads),
            block.open.eq(opened),
            block.walks.eq(self.walks),
            block.precharge_all.eq(timers.precharge_all),
            block.refresh_all.eq(timers.refresh_all),
            block.precharge.eq(timers.precharge),
            block.refresh_bank.eq(timers.refresh_bank),
            block.bank_rested.eq(timers.bank_rested),
            decided.eq(Mux(block.row_block, block.row_op, self.scheduled_row_op)),
            decided_unit.eq(Mux(block.row_block, block.row_unit, self.scheduled_row_unit)),
            timers.row_op.eq(decided),
            timers.row_unit.eq(decided_unit),
            timers.column_op.eq(self.scheduled_column_op),
            timers.column_unit.eq(self.scheduled_column_unit),
        ]

        # -- What the scheduler may decide --
        row_place = named(m, "row_place", (Const(1) << self.scheduled_row_unit)[:units])
        column_place = named(m, "column_place", (Const(1) << self.scheduled_column_unit)[:units])
        activates, precharges = (self.scheduled_row_op == op for op in (RowOp.ACTIVATE, RowOp.PRECHARGE))
        op = self.scheduled_column_op
        reads = (op == ColumnOp.READ) | (op == ColumnOp.READ_AUTO)
        writes = (op == ColumnOp.WRITE) | (op == ColumnOp.WRITE_AUTO)
        closes = (op == ColumnOp.READ_AUTO) | (op == ColumnOp.WRITE_AUTO)
        for allowed in (
            (self.scheduled_row_op == RowOp.NOP) | activates | precharges,
            (op == ColumnOp.NOP) | reads | writes,
            ~activates | ~(row_place & (opened | ~timers.activate | block.hold_activate)).any(),
            ~precharges | ~(row_place & (~opened | ~timers.precharge)).any(),
            ~(activates | precharges) | (~(row_place & block.block).any() & ~block.row_block),
            ~(reads | writes) | ~(column_place & (block.block | ~opened)).any(),
            ~reads | (~block.hold_read & (column_place & timers.read).any()),
            ~writes | (~block.hold_write & (column_place & timers.write).any()),
            # A bank with a row hit is not closed.
            ~(precharges & (reads | writes)) | (row_place != column_place),
        ):
            m.d.comb += Assume(allowed)

        # -- What the commands do to the banks --
        everywhere = decided == RowOp.PRECHARGE_ALL
        banks = self.config.memory.organisation.banks
        place = named(m, "decided_place", (Const(1) << decided_unit)[:units])
        for unit in range(units):
            here = place[unit] & (decided == RowOp.PRECHARGE)
            here |= everywhere & place[unit // banks * banks : (unit // banks + 1) * banks].any()
            here |= column_place[unit] & closes
            m.d.sync += opened[unit].eq((opened[unit] & ~here) | (place[unit] & (decided == RowOp.ACTIVATE)))

        # -- The row bus, and restarts --
        self.row_op, self.row_unit = Signal(RowOp, name="bus_op"), Signal(range(units), name="bus_unit")
        restarting, begun = Signal(name="restarting"), Signal(name="begun")
        m.d.sync += [
            self.row_op.eq(decided),
            self.row_unit.eq(decided_unit),
            restarting.eq(self.restart & ~block.restarted),
            begun.eq(1),
        ]
        m.d.comb += [Assume(~restarting | self.restart), Assume(begun | self.restart)]
