"""The refresher: all-bank refresh on a hard deadline, and the return to a known state for a restart."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..config import MemoryConfig
from ..layouts import RowOp
from .timers import waits
from .timing import Command

__all__ = ["Refresher"]

#: Cycles between the decision to refresh and the bus that are not waits of the table: the state machine
#: sees the interval end, blocks the scheduler, and commands leave through a register.
_PIPELINE = 3


class Refresher(wiring.Component):
    """Closes and refreshes every bank once in tREFI, and closes every bank for a restart.

    Commands to the pseudo channels are decided in consecutive cycles. The n-th refresh of a pseudo channel
    is on the bus no later than n x tREFI cycles after `restart` fell with `enable` high: it starts early
    by the longest time that the scheduler's last commands can hold it up.

    Members
    -------
    enable : In(1)
        Low: the interval is held at its beginning.
    restart : In(1), restarted : Out(1)
        `restarted` is high while `restart` is, once everything is done, closed and quiet.
    quiet : In(1)
        Nothing is queued or under way.
    settled : In(1)
        Every timing counter has run out.
    precharge_all, refresh_all : In(pseudo channels)
        The timing table allows the command.
    block : Out(1)
        The refresher owns the buses.
    row_op : Out(RowOp), pseudo_channel : Out
        Its command.
    """

    def __init__(self, config: MemoryConfig, *, commands: frozenset[Command]) -> None:
        self._pseudo_channels = config.organisation.pseudo_channels
        self._interval = config.timing["tREFI"]
        table = waits(config.timing, commands)

        def longest(after: Command, before: Command | None = None) -> int:
            return max(w.cycles for w in table if w.after is after and before in (None, w.before))

        # A refresh is never due within tRFC of the one before.
        to_close = max(w.cycles for w in table if w.after is Command.PREA and w.before is not Command.REFAB)
        to_refresh = longest(Command.REFAB, Command.PREA)
        #: Cycles by which a refresh begins before its deadline.
        self.lead = _PIPELINE + to_close + to_refresh + 2 * self._pseudo_channels
        if self.lead + longest(Command.REFAB) >= self._interval:
            raise ValueError(
                f"tREFI is {self._interval} cycles: expected more than {self.lead + longest(Command.REFAB)}"
            )
        channels = self._pseudo_channels
        super().__init__(
            {
                "enable": In(1),
                "restart": In(1),
                "restarted": Out(1),
                "quiet": In(1),
                "settled": In(1),
                "precharge_all": In(channels),
                "refresh_all": In(channels),
                "block": Out(1),
                "row_op": Out(RowOp),
                "pseudo_channel": Out(range(channels)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        elapsed = Signal(range(self._interval))
        due = Signal()
        with m.If(self.restart | ~self.enable | (elapsed == self._interval - 1)):
            m.d.sync += elapsed.eq(0)
        with m.Else():
            m.d.sync += elapsed.eq(elapsed + 1)
        begin = self.enable & ~self.restart & (elapsed == self._interval - 1 - self.lead)
        with m.If(begin):
            m.d.sync += due.eq(1)

        channel = self.pseudo_channel
        last = Signal()
        m.d.comb += last.eq(channel == self._pseudo_channels - 1)

        def each_channel(ready: Signal, op: RowOp) -> None:
            """Decide `op` for every pseudo channel in consecutive cycles, once all are ready."""
            with m.If(ready.all() | (channel != 0)):
                m.d.comb += self.row_op.eq(op)
                m.d.sync += channel.eq(channel + 1)
                with m.If(last):
                    m.d.sync += channel.eq(0)

        finished = Signal()
        m.d.comb += finished.eq((self.row_op != RowOp.NOP) & last)
        with m.FSM():
            with m.State("IDLE"):
                with m.If(self.restart):
                    m.d.sync += due.eq(0)
                    with m.If(self.quiet):
                        m.next = "CLOSE"
                with m.Elif(due):
                    m.next = "CLOSE"
            with m.State("CLOSE"):
                m.d.comb += self.block.eq(1)
                each_channel(self.precharge_all, RowOp.PRECHARGE_ALL)
                with m.If(finished & due):
                    m.next = "REFRESH"
                with m.Elif(finished):
                    m.next = "SETTLE"
            with m.State("REFRESH"):
                m.d.comb += self.block.eq(1)
                each_channel(self.refresh_all, RowOp.REFRESH_ALL)
                with m.If(finished):
                    m.d.sync += due.eq(0)
                    m.next = "IDLE"
            with m.State("SETTLE"):
                m.d.comb += self.block.eq(1)
                with m.If(self.settled):
                    m.next = "RESTARTED"
            with m.State("RESTARTED"):
                m.d.comb += self.restarted.eq(self.restart)
                with m.If(~self.restart):
                    m.next = "IDLE"
        return m
