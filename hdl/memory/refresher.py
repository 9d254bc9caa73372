"""The refresher: all-bank or per-bank refresh on a hard deadline, and the return to a known state."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..clock_gate import SLEPT_BITS
from ..config import DesignConfig
from ..layouts import RefreshMode, RowOp
from .all_bank_refresher import AllBankRefresher
from .bank_refresher import BankRefresher
from .timing import Command

__all__ = ["Refresher"]

#: Cycles without any request queued after which the memory counts as idle.
_IDLE = 8
#: Cycles that a walker, its neighbours and ECC may take from a record's last data to the next request.
_WALKER = 8


class Refresher(wiring.Component):
    """Refreshes every bank once in tREFI, by REFab or by REFpb, and closes every bank for a restart.

    Refresh falls due at a steady rate: REFab once in tREFI, REFpb once in tREFI / banks, in each pseudo
    channel. What is due is owed until it is done. While walks wait it is postponed, at most
    `refresh_postpone` intervals; while the memory is idle everything owed is done at once. Bulk traffic
    postpones nothing. Walks wait while a request of theirs is queued, and for `thinking` cycles more.

    Members
    -------
    mode : In(RefreshMode)
        May change only during a restart. NONE: nothing is ever owed.
    restart : In(1), restarted : Out(1)
        `restarted` is high while `restart` is, once everything is done, closed and quiet. Nothing is owed
        then, and the interval begins in the cycle in which `restart` falls.
    quiet : In(1)
        Nothing is queued or under way.
    settled : In(1)
        Every timing counter has run out.
    busy, reads, open : In(units)
        The banks for which a request is queued, for which a read is, and those with a row open.
    walks : In(1)
        A walk's request is queued or arrives.
    precharge_all, refresh_all : In(pseudo channels), precharge, refresh_bank, bank_rested : In(units)
        What the timing table allows, see `Timers`; the last three only where `per_bank`.
    block : Out(units)
        The banks claimed: nothing else may be decided for them.
    hold_activate : Out(units), hold_write, hold_read : Out(1)
        Commands of others that would hold up a refresh.
    row_block : Out(1)
        The row bus is the refresher's in this cycle.
    row_op : Out(RowOp), row_unit : Out(unit)
        Its command.
    slept : In(SLEPT_BITS), sleeps : Out(1)
        See `ClockGate`.
    """

    def __init__(self, config: DesignConfig, *, commands: frozenset[Command]) -> None:
        timing, organisation = config.memory.timing, config.memory.organisation
        self._organisation = organisation
        self._interval = timing["tREFI"]
        self._all_banks = AllBankRefresher(config, commands=commands)
        self._banks = BankRefresher(config, commands=commands) if Command.REFPB in commands else None
        #: Cycles without a walk's request queued after which no walk waits: the data is there `row_hit`
        #: cycles after the column command, and the next request soon after.
        self.thinking = timing.row_hit + _WALKER
        if self._all_banks.lead + timing["tRFC"] >= self._interval:
            raise ValueError(
                f"tREFI is {self._interval} cycles: expected more than "
                f"{self._all_banks.lead + timing['tRFC']}"
            )
        #: Cycles after (n + `refresh_postpone`) x tREFI by which the n-th refresh of each bank is on the bus,
        #: counted from the cycle in which `restart` falls, whatever the neighbours do.
        self.bound = {
            RefreshMode.ALL_BANK: 0,
            RefreshMode.PER_BANK: self._banks.bound if self._banks else 0,
        }
        channels = organisation.pseudo_channels
        units = channels * organisation.banks
        super().__init__(
            {
                "mode": In(RefreshMode),
                "restart": In(1),
                "restarted": Out(1),
                "quiet": In(1),
                "settled": In(1),
                "busy": In(units),
                "reads": In(units),
                "open": In(units),
                "walks": In(1),
                "precharge_all": In(channels),
                "refresh_all": In(channels),
                **(
                    {name: In(units) for name in ("precharge", "refresh_bank", "bank_rested")}
                    if self.per_bank
                    else {}
                ),
                "block": Out(units),
                "hold_activate": Out(units),
                "hold_write": Out(1),
                "hold_read": Out(1),
                "row_block": Out(1),
                "row_op": Out(RowOp),
                "row_unit": Out(range(units)),
                "slept": In(SLEPT_BITS),
                "sleeps": Out(1),
            }
        )

    @property
    def per_bank(self) -> bool:
        """The memory has per-bank refresh; else PER_BANK is as ALL_BANK."""
        return self._banks is not None

    def elaborate(self, platform: object) -> Module:
        m = Module()
        interval = self._interval
        running, per_bank = Signal(), Signal()
        m.d.comb += [
            running.eq((self.mode != RefreshMode.NONE) & ~self.restart),
            per_bank.eq((self.mode == RefreshMode.PER_BANK) & self.per_bank),
        ]
        m.submodules.all_banks = all_banks = self._all_banks

        # -- When refresh falls due: exactly once in tREFI, or once for each bank --
        elapsed = Signal(range(interval))
        later = Signal(range(interval + self._organisation.banks))
        wraps = Signal()
        m.d.comb += [
            # Per-bank refresh does not sleep.
            later.eq(elapsed + Mux(per_bank, self._organisation.banks, self.slept + 1)),
            wraps.eq(later >= interval),
        ]
        # REFpb falls due in the middle of its share of tREFI, so that it is done at the end.
        beginning = Mux(per_bank, interval // 2, 0)
        m.d.sync += elapsed.eq(Mux(running, Mux(wraps, later - interval, later), beginning))
        due = interval - 1 - all_banks.lead

        # -- Whom it would disturb --
        walks, idle = Signal(), Signal()
        walks_lately, walk_left = self._lately(m, "walk", self.walks, self.thinking)
        used_lately, use_left = self._lately(m, "use", self.busy.any(), _IDLE)
        m.d.comb += [walks.eq(walks_lately), idle.eq(~used_lately)]

        # -- Until when it may sleep: the next turn, tick, or end of the interval --
        ends = Signal(range(interval + 1))
        m.d.comb += [
            ends.eq(interval),
        ]
        for moment in sorted((due, (due + interval // 2) % interval), reverse=True):
            with m.If(elapsed <= moment):
                m.d.comb += ends.eq(moment)
        timeless = ~running & (elapsed == beginning)
        m.d.comb += self.sleeps.eq(
            all_banks.sleeps
            & (self._banks.sleeps if self._banks else 1)
            & ~(self.busy.any() | self.walks)
            & (walk_left == 0)
            & (use_left == 0)
            & (timeless | (running & (later < ends)))
        )

        m.d.comb += [
            all_banks.enable.eq(running & ~per_bank),
            all_banks.tick.eq(elapsed == due),
            all_banks.turn.eq((elapsed == due) | (elapsed == (due + interval // 2) % interval)),
            all_banks.walks.eq(walks),
            all_banks.idle.eq(idle),
            all_banks.restart.eq(self.restart),
            self.restarted.eq(all_banks.restarted),
            all_banks.quiet.eq(self.quiet),
            all_banks.settled.eq(self.settled),
            all_banks.precharge_all.eq(self.precharge_all),
            all_banks.refresh_all.eq(self.refresh_all),
            self.hold_write.eq(all_banks.hold_write),
            self.hold_read.eq(all_banks.hold_read),
        ]
        # With a command of its own it holds the row bus anyway.
        row_block: Value = all_banks.hold_row
        row_op: Value = all_banks.row_op
        row_unit: Value = all_banks.pseudo_channel << self._organisation.banks.bit_length() - 1
        if self._banks is not None:
            m.submodules.banks = banks = self._banks
            m.d.comb += [
                banks.enable.eq(running & per_bank),
                banks.tick.eq(wraps),
                banks.turn.eq(wraps | ((elapsed < interval // 2) & (later >= interval // 2))),
                banks.walks.eq(walks),
                banks.idle.eq(idle),
                banks.busy.eq(self.busy),
                banks.reads.eq(self.reads),
                banks.open.eq(self.open),
                banks.precharge.eq(self.precharge),
                banks.refresh.eq(self.refresh_bank),
                banks.rested.eq(self.bank_rested),
                self.block.eq(banks.block),
                self.hold_activate.eq(banks.hold_activate),
            ]
            # The two never command in the same cycle: a restart disables one and the mode the other.
            chosen = banks.row_op != RowOp.NOP
            row_block = row_block | chosen
            row_op, row_unit = Mux(chosen, banks.row_op, row_op), Mux(chosen, banks.row_unit, row_unit)
        m.d.comb += [
            self.row_op.eq(row_op),
            self.row_unit.eq(row_unit),
            self.row_block.eq(row_block),
        ]
        return m

    def _lately(self, m: Module, name: str, event: Value, cycles: int) -> tuple[Value, Signal]:
        """Whether `event` is high, or was in one of the `cycles` cycles before but for a restart; and for how
        many cycles more that is so without it."""
        left = Signal(range(cycles + 1), name=f"{name}_left")
        with m.If(self.restart):
            m.d.sync += left.eq(0)
        with m.Elif(event):
            m.d.sync += left.eq(cycles)
        with m.Elif(left != 0):
            m.d.sync += left.eq(left - 1)
        return event | (left != 0), left
