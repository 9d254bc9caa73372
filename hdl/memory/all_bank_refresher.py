"""The all-bank refresher: every bank closed at once, for REFab or for a restart."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..config import DesignConfig
from ..layouts import RowOp
from .timers import waits
from .timing import Command

__all__ = ["AllBankRefresher"]


class AllBankRefresher(wiring.Component):
    """The sequence PREA, REFab to all pseudo channels in consecutive cycles, and the closing for a restart.

    A refresh that is due begins when no walk waits, and in any case when more than `refresh_postpone` are
    owed. Once begun it takes its course: for `drain` cycles it claims what would hold PREA up, as late as
    the timing table allows (row commands first, then writes, then reads), so that PREA comes in the cycle
    after, REFab as soon as the banks are closed, and hardly a cycle is idle. An idle memory needs no drain.

    Where bulk traffic goes on, one refresh begins for every `turn`: what is owed is not done in one go.

    Members
    -------
    enable : In(1)
        Low: nothing is owed.
    tick : In(1)
        One refresh more is owed.
    turn : In(1)
        Half an interval has passed.
    walks : In(1)
        Walks wait.
    idle : In(1)
        Nothing is queued and nothing was for a while.
    restart : In(1), restarted : Out(1)
        See `Refresher`.
    quiet : In(1), settled : In(1)
        Nothing is under way; every timing counter has run out.
    precharge_all, refresh_all : In(pseudo channels)
        The timing table allows the command.
    hold_row, hold_write, hold_read : Out(1)
        Row commands, writes, reads of others would hold the sequence up.
    row_op : Out(RowOp), pseudo_channel : Out
        The command decided.
    sleeps : Out(1)
        See `ClockGate`.
    """

    def __init__(self, config: DesignConfig, *, commands: frozenset[Command]) -> None:
        timing = config.memory.timing
        self._postpone = config.controller.refresh_postpone
        self._pseudo_channels = channels = config.memory.organisation.pseudo_channels
        table = waits(timing, commands)

        def longest(before: tuple[Command, ...], after: Command) -> int:
            return max((w.cycles for w in table if w.before in before and w.after is after), default=0)

        to_refresh = longest((Command.PREA,), Command.REFAB)

        def ahead(*before: Command) -> int:
            """Cycles from the last of `before` to the PREA that holds up neither this nor its REFab."""
            return max(1, longest(before, Command.PREA), longest(before, Command.REFAB) - to_refresh)

        self._rows_ahead = ahead(Command.ACT, Command.PRE)
        self._writes_ahead = ahead(Command.WR, Command.WRA)
        self._reads_ahead = ahead(Command.RD, Command.RDA)
        #: Cycles of the drain: all of what is claimed first, but for the cycle of PREA.
        self.drain = max(self._rows_ahead, self._writes_ahead, self._reads_ahead) - 1
        #: Cycles from the tick to the last REFab on the bus: two to begin, the drain, PREA to REFab, the
        #: pseudo channels in turn (the register behind the decision takes the place of PREA's own cycle).
        self.lead = 1 + self.drain + to_refresh + channels
        super().__init__(
            {
                "enable": In(1),
                "tick": In(1),
                "turn": In(1),
                "walks": In(1),
                "idle": In(1),
                "restart": In(1),
                "restarted": Out(1),
                "quiet": In(1),
                "settled": In(1),
                "precharge_all": In(channels),
                "refresh_all": In(channels),
                "hold_row": Out(1),
                "hold_write": Out(1),
                "hold_read": Out(1),
                "row_op": Out(RowOp),
                "pseudo_channel": Out(range(channels)),
                "sleeps": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        owed = Signal(range(self._postpone + 2))
        my_turn = Signal()
        begin = Signal()
        with m.If(~self.enable):
            m.d.sync += [owed.eq(0), my_turn.eq(0)]
        with m.Else():
            m.d.sync += [owed.eq(owed + self.tick - begin), my_turn.eq((my_turn & ~begin) | self.turn)]

        # Disabled, it owes nothing from the next cycle on.
        stays = self.enable | ~(owed.any() | my_turn)

        channel = self.pseudo_channel
        finished = Signal()

        def each_channel(ready: Signal, op: RowOp) -> None:
            """Decide `op` for one pseudo channel after the other, each as soon as it is ready."""
            with m.If(ready.bit_select(channel, 1)):
                m.d.comb += self.row_op.eq(op)
                with m.If(channel == self._pseudo_channels - 1):
                    m.d.comb += finished.eq(1)
                    m.d.sync += channel.eq(0)
                with m.Else():
                    m.d.sync += channel.eq(channel + 1)

        left = Signal(range(self.drain + 1))
        # What is held in the next cycle. A register, for all commands of the channel wait for it.
        held = Cat(self.hold_row, self.hold_write, self.hold_read)
        ahead = (self._rows_ahead, self._writes_ahead, self._reads_ahead)

        def hold(everything: bool) -> None:
            m.d.sync += held.eq(Const(everything).replicate(len(held)))

        with m.FSM():
            with m.State("IDLE"):
                hold(False)
                with m.If(self.restart):
                    with m.If(self.quiet):
                        hold(True)
                        m.next = "CLOSE"
                with m.Elif((owed > self._postpone) | ((owed != 0) & ~self.walks & (self.idle | my_turn))):
                    m.d.comb += begin.eq(1)
                    m.d.sync += [
                        left.eq(self.drain),
                        held.eq(Cat(Const(self.drain < each) for each in ahead)),
                    ]
                    m.next = "DRAIN"
                    with m.If(self.idle):
                        hold(True)
                        m.next = "PRECHARGE"
                with m.Else():
                    m.d.comb += self.sleeps.eq(stays & ~(self.tick | self.turn | held.any()))
            with m.State("DRAIN"):
                # In this cycle `left` are left, this one included, before that of PREA.
                m.d.sync += [left.eq(left - 1), held.eq(Cat(left <= each for each in ahead))]
                with m.If(left == 1):
                    hold(True)
                    m.next = "PRECHARGE"
            with m.State("PRECHARGE"):
                each_channel(self.precharge_all, RowOp.PRECHARGE_ALL)
                with m.If(finished):
                    m.next = "REFRESH"
            with m.State("REFRESH"):
                each_channel(self.refresh_all, RowOp.REFRESH_ALL)
                with m.If(finished):
                    hold(False)
                    m.next = "IDLE"
            with m.State("CLOSE"):
                each_channel(self.precharge_all, RowOp.PRECHARGE_ALL)
                with m.If(finished):
                    m.next = "SETTLE"
            with m.State("SETTLE"):
                with m.If(self.settled):
                    hold(False)
                    m.next = "RESTARTED"
            with m.State("RESTARTED"):
                m.d.comb += self.restarted.eq(self.restart)
                with m.If(~self.restart):
                    m.next = "IDLE"
        return m
