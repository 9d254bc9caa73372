"""The event counters: what the memory did inside batches, for the COUNT_ registers."""

from amaranth.hdl import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .clock_gate import SLEPT_BITS
from .layouts import RowClass, RowOp

__all__ = ["EventCounters"]


class EventCounters(wiring.Component):
    """Counts accesses by kind and row class, refresh commands and violations; all 32 bits, wrapping.

    Each counts the events of all enabled channels together.

    Parameters
    ----------
    channels : int
        How many are listened to.

    Members
    -------
    active : In(1)
        A batch executes: only then anything but violations counts.
    clear : In(1)
    enabled : In(channels)
        The channels whose events count; violations count in all of them.
    read, write : In(1), row_class : In(RowClass), row_op : In(RowOp), violation : In(1)
        `channels` times: of this cycle's access, row command and report of the checker.
    cycles : Out(64), and one Out(32) for each COUNT_ register
    slept : In(SLEPT_BITS)
        See `ClockGate`. Whoever counts here is awake when it does.
    """

    def __init__(self, *, channels: int) -> None:
        super().__init__(
            {
                "active": In(1),
                "clear": In(1),
                "enabled": In(channels),
                "read": In(1).array(channels),
                "write": In(1).array(channels),
                "row_class": In(RowClass).array(channels),
                "row_op": In(RowOp).array(channels),
                "violation": In(1).array(channels),
                "cycles": Out(64),
                "slept": In(SLEPT_BITS),
                "reads": Out(32),
                "writes": Out(32),
                "row_hits": Out(32),
                "row_closed": Out(32),
                "row_conflicts": Out(32),
                "refreshes": Out(32),
                "violations": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()

        for counter, events in (
            (self.reads, list(self.read)),
            (self.writes, list(self.write)),
            (self.row_hits, [found == RowClass.HIT for found in self.row_class]),
            (self.row_closed, [found == RowClass.CLOSED for found in self.row_class]),
            (self.row_conflicts, [found == RowClass.CONFLICT for found in self.row_class]),
            (
                self.refreshes,
                [(op == RowOp.REFRESH_ALL) | (op == RowOp.REFRESH_BANK) for op in self.row_op],
            ),
        ):
            counted = Cat(events) & self.enabled
            with m.If(self.active & counted.any()):
                m.d.sync += counter.eq(counter + sum(counted))
        with m.If(self.active):
            m.d.sync += self.cycles.eq(self.cycles + self.slept + 1)
        violated = Cat(self.violation)
        with m.If(violated.any()):
            m.d.sync += self.violations.eq(self.violations + sum(violated))
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
