"""The bank refresher: per-bank refresh, in whatever order of banks disturbs least."""

from __future__ import annotations

from collections import defaultdict
from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..config import DesignConfig
from ..layouts import RowOp
from .timers import waits
from .timing import Command

__all__ = ["BankRefresher"]

#: Cycles of an epoch of the record of which banks were used.
_EPOCH = 64
#: A bank unused for this many whole epochs is quiet: it is not between two requests of a stream.
_QUIET = 2
#: A quiet bank used in the epochs up to this one was left just now. A stream walks through the banks, so the
#: one it left is the last that it comes back to; the one it has not used for long may be its next.
_LEFT = 6


class BankRefresher(wiring.Component):
    """The choice, closing and refreshing of one bank of a pseudo channel after the other, each once a round.

    A bank is claimed (nothing is decided for it any more), closed if a row is open, and refreshed. Which one
    is claimed, and when, depends on how many refreshes the pseudo channel owes. In this order of preference:

    * a bank left just now, as soon as one refresh is owed;
    * one that is quiet, when half a round is owed;
    * one for which nothing is queued, when half a round is owed, too;
    * one for which nothing, or at least no read, is queued, when three quarters of a round are owed;
    * any that the round still lacks, when `hard` are owed.

    The first three wait for a lull until three quarters of a round are owed: REFpb costs the ACTs that tRREFD
    keeps away, so it comes best when no row waits to be opened. Among bulk traffic one bank is claimed for
    every `turn`: what is owed is not done in one go. While walks wait, nothing is claimed until `soft` are
    owed, then a bank for which nothing is queued. While the memory is idle, whatever is owed is claimed at
    once, so refreshes follow each other at tRREFD.

    Members
    -------
    enable : In(1)
        Low: nothing is owed, nothing claimed, and the round is new.
    tick : In(1)
        Each pseudo channel owes one refresh more.
    turn : In(1)
        Half the time between ticks has passed.
    walks : In(1)
        Walks wait.
    idle : In(1)
        Nothing is queued and nothing was for a while.
    busy, reads, open : In(units)
        The banks for which a request is queued, for which a read is, and those with a row open.
    precharge, refresh : In(units)
        The banks that may take PRE and REFpb now, as far as time is concerned.
    rested : In(units)
        Likewise for REFpb, by the rules of the bank alone.
    block : Out(units)
        The banks claimed.
    hold_activate : Out(units)
        The banks of a pseudo channel whose next command of that kind must be REFpb.
    row_op : Out(RowOp), row_unit : Out(unit)
        The command decided.
    sleeps : Out(1)
        See `ClockGate`: it is disabled.
    """

    def __init__(self, config: DesignConfig, *, commands: frozenset[Command]) -> None:
        timing, organisation = config.memory.timing, config.memory.organisation
        self._pseudo_channels = organisation.pseudo_channels
        self._banks = banks = organisation.banks
        self._units = units = organisation.pseudo_channels * banks
        table = [w for w in waits(timing, commands) if w.before is not Command.REFAB]

        def longest(after: Command) -> int:
            return max(w.cycles for w in table if w.after is after)

        #: Banks of a pseudo channel claimed at once: those that close while others are refreshed.
        self.claims = min(1 + -(-timing["tRP"] // timing["tRREFD"]), banks)
        #: Cycles from a claim to its command on the bus, at most: the bank's own waits for PRE and REFpb, the
        #: claims before it, the row bus, and the register behind the decision.
        self.lead = (
            longest(Command.PRE)
            + longest(Command.REFPB)
            + self.claims * (timing["tRREFD"] + 2 * organisation.pseudo_channels)
        )
        postponed = config.controller.refresh_postpone * banks
        #: Refreshes owed by a pseudo channel from which on a bank is claimed whatever waits for it.
        self.hard = max(0, postponed - 1 - -(-self.lead * banks // timing["tREFI"]))
        #: Refreshes owed from which on waiting walks hold back only the banks that they use.
        self.soft = max(0, self.hard - banks // 2)
        #: Cycles after (n + `refresh_postpone`) x tREFI by which each bank's n-th refresh is on the bus.
        self.bound = self.lead if self.hard == 0 else 0
        super().__init__(
            {
                "enable": In(1),
                "tick": In(1),
                "turn": In(1),
                "walks": In(1),
                "idle": In(1),
                "busy": In(units),
                "reads": In(units),
                "open": In(units),
                "precharge": In(units),
                "refresh": In(units),
                "rested": In(units),
                "block": Out(units),
                "hold_activate": Out(units),
                "row_op": Out(RowOp),
                "row_unit": Out(range(units)),
                "sleeps": Out(1),
            }
        )

    def _span(self, p: int) -> slice:
        return slice(self._banks * p, self._banks * (p + 1))

    def _lowest(self, m: Module, name: str, vector: Value) -> Signal:
        lowest = Signal(self._units, name=name)
        m.d.comb += lowest.eq(vector & (~vector + 1)[: self._units])
        return lowest

    def elaborate(self, platform: object) -> Module:
        m = Module()
        units = self._units
        claimed, done = Signal(units), Signal(units)
        # What is left to refresh of a round in which every bank is claimed: it goes before the next round.
        ending, first = Signal(units, name="ending"), Signal(units)
        m.d.comb += self.block.eq(claimed)
        for p in range(self._pseudo_channels):
            span = self._span(p)
            m.d.comb += first[span].eq(ending[span] | (~ending[span].any()).replicate(self._banks))

        # -- The command: refresh what is ready, else close a row --
        closed, ripe = Signal(units), Signal(units)
        m.d.comb += [
            closed.eq(claimed & first & ~self.open),
            ripe.eq(closed & self.rested),
        ]
        refreshed = self._lowest(m, "refreshed", closed & self.refresh)
        precharged = self._lowest(m, "precharged", claimed & self.open & self.precharge)
        commanded = Signal(units)
        m.d.comb += [
            commanded.eq(Mux(refreshed.any(), refreshed, precharged)),
            self.row_op.eq(
                Mux(
                    refreshed.any(),
                    RowOp.REFRESH_BANK,
                    Mux(precharged.any(), RowOp.PRECHARGE, RowOp.NOP),
                )
            ),
        ]
        for k in range(len(self.row_unit)):
            mask = sum(1 << unit for unit in range(units) if unit >> k & 1)
            m.d.comb += self.row_unit[k].eq((commanded & mask).any())

        # -- The claim, one a cycle --
        quiet, left = self._record_use(m)
        candidate, chosen = Signal(units), Signal(units)
        permits = self._permits(m)
        ready = self.open | self.refresh | (self.rested & permits["hurry"])
        m.d.comb += candidate.eq(~(done | claimed) & ready)
        levels = [
            permits["left"] & candidate & quiet & left,
            permits["quiet"] & candidate & quiet,
            permits["lull"] & candidate & ~self.busy & ~self.open,
            permits["spare"] & candidate & ~self.busy & ~self.open,
            permits["spare"] & candidate & ~self.busy,
            permits["spare"] & candidate & ~self.reads,
            permits["any"] & ~(done | claimed),
        ]
        level = levels[-1]
        for better in reversed(levels[:-1]):
            level = Mux(better.any(), better, level)
        m.d.comb += chosen.eq(level)
        claim = self._lowest(m, "claim", chosen)

        after = Signal(units)
        m.d.comb += after.eq(done | claim)
        m.d.sync += claimed.eq((claimed | claim) & ~refreshed)
        for p in range(self._pseudo_channels):
            span = self._span(p)
            m.d.sync += ending[span].eq(ending[span] & ~refreshed[span])
            with m.If(after[span].all()):
                m.d.sync += [
                    done[span].eq(0),
                    ending[span].eq((claimed[span] | claim[span]) & ~refreshed[span]),
                ]
            with m.Else():
                m.d.sync += done[span].eq(after[span])
            m.d.comb += self.hold_activate[span].eq(ripe[span].any().replicate(self._banks))
            owed, claims, my_turn = self._owed[p], self._claims[p], self._turns[p]
            m.d.sync += [
                my_turn.eq((my_turn & ~claim[span].any()) | self.turn),
                owed.eq(owed + self.tick - claim[span].any()),
                claims.eq(claims + claim[span].any() - refreshed[span].any()),
            ]
        # Cleared in the first cycle in which it is disabled.
        clear = Signal()
        m.d.sync += clear.eq(~self.enable)
        m.d.comb += self.sleeps.eq(clear & ~self.enable)
        with m.If(~self.enable):
            m.d.sync += [
                signal.eq(0) for signal in (claimed, done, ending, *self._owed, *self._claims, *self._turns)
            ]
        return m

    def _record_use(self, m: Module) -> tuple[Value, Value]:
        """The banks that are quiet, and those used not long ago."""
        used = [Signal(self._units, name=f"used{n}") for n in range(_LEFT)]
        epoch = Signal(range(_EPOCH))
        m.d.sync += [epoch.eq(epoch + 1), used[0].eq(used[0] | self.busy)]
        with m.If(epoch == _EPOCH - 1):
            m.d.sync += [used[0].eq(self.busy), *(used[n].eq(used[n - 1]) for n in range(1, _LEFT))]
        with m.If(~self.enable):
            m.d.sync += [epoch.eq(0), *(vector.eq(0) for vector in used)]
        return ~(self.busy | reduce(or_, used[:_QUIET])), reduce(or_, used[_QUIET:])

    def _permits(self, m: Module) -> dict[str, Value]:
        """What each pseudo channel may claim, as vectors of banks."""
        banks, hard, soft = self._banks, self.hard, self.soft
        found: dict[str, list[Value]] = defaultdict(list)
        self._owed, self._claims, self._turns = [], [], []
        for p in range(self._pseudo_channels):
            owed = Signal(range(hard + 2 * banks), name=f"owed{p}")
            claims = Signal(range(self.claims + 1), name=f"claims{p}")
            self._owed.append(owed)
            self._claims.append(claims)
            my_turn = Signal(name=f"my_turn{p}")
            self._turns.append(my_turn)
            free = ~self.walks & (self.idle | my_turn)
            room = (owed != 0) & (claims != self.claims) & self.enable
            late = owed > soft
            half = owed > min(banks // 2, hard)
            pressed = self.idle | (owed > min(banks * 3 // 4, hard))
            lull = ~(self.busy & ~self.open & self.rested)[self._span(p)].any()
            for name, condition in (
                ("left", (free & (pressed | lull)) | late),
                ("quiet", (free & (pressed | (lull & half))) | late),
                ("lull", free & lull & half),
                ("spare", (free & pressed) | late),
                ("any", owed > hard),
                ("hurry", pressed | late),
            ):
                permit = Signal(name=f"{name}{p}")
                m.d.comb += permit.eq(room & condition)
                found[name].append(permit.replicate(banks))
        return {name: Value.cast(Cat(vectors)) for name, vectors in found.items()}
