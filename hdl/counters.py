"""The event counters: what the memory did inside batches, for the COUNT_ registers."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .layouts import AccessMonitor, RowClass, RowOp

__all__ = ["EventCounters"]


class EventCounters(wiring.Component):
    """Counts accesses by kind and row class, refresh commands and violations; all 32 bits, wrapping.

    Members
    -------
    active : In(1)
        A batch executes: only then anything but violations counts.
    clear : In(1)
    access : In(AccessMonitor, as outputs of the controller)
    row_op : In(RowOp)
    violation : In(1)
    cycles : Out(64), and one Out(32) for each COUNT_ register
    """

    active: In(1)
    clear: In(1)
    access: In(AccessMonitor())
    row_op: In(RowOp)
    violation: In(1)
    cycles: Out(64)
    reads: Out(32)
    writes: Out(32)
    row_hits: Out(32)
    row_closed: Out(32)
    row_conflicts: Out(32)
    refreshes: Out(32)
    violations: Out(32)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        accessed = self.access.row_class != RowClass.NONE
        for counter, event in (
            (self.reads, accessed & ~self.access.write),
            (self.writes, accessed & self.access.write),
            (self.row_hits, self.access.row_class == RowClass.HIT),
            (self.row_closed, self.access.row_class == RowClass.CLOSED),
            (self.row_conflicts, self.access.row_class == RowClass.CONFLICT),
            (self.refreshes, (self.row_op == RowOp.REFRESH_ALL) | (self.row_op == RowOp.REFRESH_BANK)),
        ):
            with m.If(self.active & event):
                m.d.sync += counter.eq(counter + 1)
        with m.If(self.active):
            m.d.sync += self.cycles.eq(self.cycles + 1)
        with m.If(self.violation):
            m.d.sync += self.violations.eq(self.violations + 1)
        with m.If(self.clear):
            m.d.sync += [
                counter.eq(0)
                for counter in (
                    self.cycles,
                    self.reads,
                    self.writes,
                    self.row_hits,
                    self.row_closed,
                    self.row_conflicts,
                    self.refreshes,
                    self.violations,
                )
            ]
        return m
