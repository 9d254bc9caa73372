"""The scheduler: which row command and which column command a channel decides in this cycle.

Within a bank, in this order: reads of walks (`priority`) that nothing orders go first, unless the write
buffer is being drained; what is old or ordered goes strictly oldest first; walks go before bulk; row hits
pass the oldest request at most `row_hit_cap` times; else the oldest goes first. What is old lets one read
of a walk pass, and then goes itself. Between banks: old before priority before the rest, round robin among
equals.

Reads and writes of a pseudo channel take turns. Writes wait for their turn, which comes when the write
buffer is filled to its mark, when a write holds something up (a request of the same atom, a full bank
queue, somebody who waits for room), when half of the age cap has passed since one came, or when no read has
waited for `drain_idle` cycles. Where both wait, a turn that others wait for lasts `drain_burst` cycles, so
that neither starves; a turn of writes that a walk's read waits for only `walk_turn`, and a bank that such a
read waits for opens no row for a write in it.

When the turn of a pseudo channel changes, its banks change one by one: each as soon as its row hits of the
old direction are served. So rows for the new direction are open by the time the data bus changes.

With the last hit of a row the page policy may close it (auto-precharge), which saves the row bus a command:
`open` never does, `closed` always, `adaptive` where a request for another row waits or `PagePredictor` says
so.

A request becomes old when it has waited for between half and the whole of `age_cap` and no request that was
old before is left. From then on it waits only for others that are old, at most a full channel of them; for
the turn of its direction; and for refresh. `wait_bound` says for how long at most.
"""

from __future__ import annotations

from functools import reduce
from operator import and_, or_

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from ..clock_gate import SLEPT_BITS
from ..config import DesignConfig, MemoryConfig
from ..layouts import ColumnOp, RowOp
from .bank import BankState, pair_index

__all__ = ["Scheduler", "turn_tail", "walk_turn"]


def turn_tail(config: MemoryConfig) -> int:
    """Cycles after a change of turn for which row hits of the old direction still use the bus: what it takes
    the row opened last to be read or written, and one hit more in every bank group."""
    timing = config.timing
    opened = timing.activate_lag + max(timing["tRCDRD"], timing["tRCDWR"])
    return opened + config.organisation.bank_groups * timing["tCCDS"]


def walk_turn(config: MemoryConfig) -> int:
    """Cycles of a turn of writes that walks wait for: the change to it, and a write in every bank group."""
    timing = config.timing
    return timing["tRTW"] + config.organisation.bank_groups * timing["tCCDS"]


class Scheduler(wiring.Component):
    """The choice of one row and one column command a cycle from the state of all banks.

    Members
    -------
    state : In(BankState)
    activate, precharge, read, write : In(units)
        The banks whose timing allows the command now.
    read_room : In(1)
        A response slot is free.
    hold_activate : In(units), hold_read, hold_write : In(1)
        Commands that would hold a refresh up.
    block : In(units)
        The banks that the refresher claims: decide nothing for them.
    row_block : In(1)
        The row bus is the refresher's in this cycle.
    drain : In(1)
        The write buffer wants to be drained.
    press : In(1)
        Somebody waits for room in it: writes take turns with reads.
    close : In(units)
        The banks whose row is probably not wanted again (`adaptive` only).
    tick : Out(1)
        Half of the age cap has passed.
    ripen : Out(1)
        It has, and no request is old any more: what waited at the tick before is old from now on.
    begin_batch : Out(1)
        Nothing of the last batch is left to be served: what is queued now is the next one.
    row_op : Out(RowOp), row_unit : Out, row_slot : Out(slots), one hot
    column_op : Out(ColumnOp), column_unit : Out, column_slot : Out(slots), one hot
    slept : In(SLEPT_BITS), sleeps : Out(1)
        See `ClockGate`; only while nothing is queued.
    """

    def __init__(self, config: DesignConfig) -> None:
        organisation = config.memory.organisation
        self._config = config.controller
        self._slots = config.controller.bank_queue
        self._pseudo_channels = organisation.pseudo_channels
        self._units = organisation.pseudo_channels * organisation.banks
        self._turn_tail = turn_tail(config.memory)
        self._walk_turn = walk_turn(config.memory)
        vector, unit = In(self._units), range(self._units)
        super().__init__(
            {
                "state": In(BankState(units=self._units, slots=self._slots)),
                "activate": vector,
                "precharge": vector,
                "read": vector,
                "write": vector,
                "read_room": In(1),
                "hold_activate": vector,
                "hold_read": In(1),
                "hold_write": In(1),
                "block": vector,
                "row_block": In(1),
                "drain": In(1),
                "press": In(1),
                "close": vector,
                "tick": Out(1),
                "ripen": Out(1),
                "begin_batch": Out(1),
                "row_op": Out(RowOp),
                "row_unit": Out(unit),
                "row_slot": Out(self._slots),
                "column_op": Out(ColumnOp),
                "column_unit": Out(unit),
                "column_slot": Out(self._slots),
                "slept": In(SLEPT_BITS),
                "sleeps": Out(1),
            }
        )

    # -- Vector helpers --

    def _named(self, m: Module, name: str, value: Value) -> Signal:
        vector = Signal(len(value), name=name)
        m.d.comb += vector.eq(value)
        return vector

    def _older(self, first: int, second: int) -> Value:
        """The banks in which slot `first` holds an older request than slot `second`."""
        if first < second:
            return self.state.before[pair_index(self._slots, first, second)]
        return ~self.state.before[pair_index(self._slots, second, first)]

    def _first(self, m: Module, name: str, members: list[Signal]) -> list[Signal]:
        """Of the requests that are `members`, the oldest of each bank, as one vector a slot."""
        return [
            self._named(
                m,
                f"{name}{s}",
                reduce(
                    and_,
                    (~members[j] | self._older(s, j) for j in range(self._slots) if j != s),
                    members[s],
                ),
            )
            for s in range(self._slots)
        ]

    def _any(self, m: Module, name: str, vectors: list[Value]) -> Signal:
        return self._named(m, name, reduce(or_, vectors))

    def _several(self, m: Module, name: str, vectors: list[Signal]) -> Signal:
        """The banks that are in more than one of `vectors`."""
        once: Value = vectors[0]
        twice: Value = Const(0, self._units)
        for vector in vectors[1:]:
            twice = twice | (once & vector)
            once = once | vector
        return self._named(m, name, twice)

    def _best(self, m: Module, name: str, levels: list[Value]) -> Signal:
        """The first of `levels` that has a candidate."""
        level = levels[-1]
        for better in reversed(levels[:-1]):
            level = Mux(better.any(), better, level)
        return self._named(m, f"{name}_level", level)

    def _pick(self, m: Module, name: str, level: Value, taken: Value) -> tuple[Signal, Signal]:
        """Round robin in `level`: (one hot, its number)."""
        above = Signal(self._units, name=f"{name}_above")
        upper = self._named(m, f"{name}_upper", level & above)
        chosen = self._named(m, f"{name}_chosen", Mux(upper.any(), upper, level))
        # Every bank above the first one.
        beyond: Value = (chosen << 1)[: self._units]
        for distance in (1 << k for k in range((self._units - 2).bit_length())):
            beyond = self._named(m, f"{name}_beyond{distance}", beyond | (beyond << distance)[: self._units])
        lowest = self._named(m, f"{name}_lowest", chosen & ~beyond)
        with m.If(taken):
            # Each pseudo channel goes round on its own: in one common round the other channel's turn would
            # take this one back to its start.
            banks = self._units // self._pseudo_channels
            for p in range(self._pseudo_channels):
                span = slice(banks * p, banks * (p + 1))
                with m.If(lowest[span].any()):
                    m.d.sync += above[span].eq(beyond[span])
        number = Signal(range(self._units), name=f"{name}_number")
        for k in range(len(number)):
            mask = sum(1 << unit for unit in range(self._units) if unit >> k & 1)
            m.d.comb += number[k].eq((lowest & mask).any())
        return lowest, number

    def _handed(
        self, m: Module, name: str, value: Value, *, stages: int, masked: Value | None = None
    ) -> Value:
        """A vector as what follows sees it: of this cycle, or with `stages` decision stages of the cycle
        before, without the banks in `masked`, which a command was decided for then."""
        if self._config.decision_stages < stages:
            return self._named(m, name, value)
        register = Signal(len(value), name=name)
        m.d.sync += register.eq(value if masked is None else value & ~masked)
        return register

    def _picked(
        self,
        m: Module,
        name: str,
        value: Value,
        *,
        masked: Value | None = None,
        still: Value | None = None,
    ) -> Value:
        """The same for what one of the best is picked from, with four stages. `still` are the banks that the
        refresher leaves in this cycle. Time and the room for responses leave all but those in `masked`: the
        table relates commands of one bus, and those of one bank."""
        vector = self._handed(m, name, value, stages=4, masked=masked)
        if still is None or self._config.decision_stages < 4:
            return vector
        return self._named(m, f"{name}_still", vector & still)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        state, slots, units = self.state, self._slots, self._units
        each = range(slots)

        half = self._config.age_cap // 2
        age = Signal(range(half))
        # A period in which nothing is queued ends awake, too.
        aged = Signal(range(half + (1 << SLEPT_BITS)))
        m.d.comb += aged.eq(age + self.slept + 1)
        m.d.sync += age.eq(aged)
        # While any is old no other becomes it: so what is old is served once no more than a full channel is.
        any_old = self._any(m, "any_old", list(state.old))
        m.d.comb += [
            self.tick.eq(age == half - 1),
            self.ripen.eq(self.tick & ~(any_old.any() | state.overflow_old)),
        ]

        # -- What may be served: direction, then order and age, then priority, then the row-hit cap --
        strict = self._any(m, "strict", [state.ordered[s] | state.old[s] for s in each])
        # Banks where the reads of walks go before everything. What is old lets one pass, then goes itself.
        yielded = Signal(units)
        claims = [
            self._named(
                m,
                f"claims{s}",
                state.valid[s] & state.priority[s] & ~state.write[s] & ~state.ordered[s],
            )
            for s in each
        ]
        seen_writes = self._any(m, "seen_writes", [state.seen[s] & state.write[s] for s in each])
        claimed = self._named(
            m,
            "claimed",
            reduce(or_, claims) & ~(reduce(or_, state.old) & yielded) & ~self.drain.replicate(units),
        )
        oldest = self._first(m, "oldest", list(state.valid))
        reads = self._any(m, "reads", [state.valid[s] & ~state.write[s] for s in each])
        writes = self._any(m, "writes", list(state.write))
        oldest_writes = self._any(m, "oldest_writes", [oldest[s] & state.write[s] for s in each])
        # In a strict bank only the oldest request counts as waiting.
        read_waits = self._named(m, "read_waits", reads & ~(strict & oldest_writes & ~claimed))
        write_waits = self._named(m, "write_waits", (writes & ~strict) | oldest_writes)
        urgent = self._named(
            m, "urgent", (strict & write_waits) | seen_writes | (state.overflow & writes & ~reads)
        )
        writing, bus_writes, turning = self._turns(
            m,
            *(
                self._handed(m, f"turn_{name}", vector, stages=5)
                for name, vector in (("reads", read_waits), ("writes", write_waits), ("urgent", urgent))
            ),
        )
        m.d.comb += self.sleeps.eq((aged < half - 1) & ~turning)

        first_cut = []
        for s in each:
            in_turn = (state.write[s] & writing) | (state.valid[s] & ~state.write[s] & ~(writing & writes))
            unclaimed = (in_turn & ~strict) | (oldest[s] & strict)
            first_cut.append(self._named(m, f"in_turn{s}", (unclaimed & ~claimed) | (claims[s] & claimed)))
        walks = self._any(m, "walks", [first_cut[s] & state.priority[s] for s in each])
        acted = Signal(units)
        permitted = [
            self._handed(
                m,
                f"permitted{s}",
                first_cut[s] & (state.priority[s] | ~walks),
                stages=5,
                masked=acted,
            )
            for s in each
        ]
        claimed, walks = (
            self._handed(m, f"permitted_{name}", vector, stages=5)
            for name, vector in (("claimed", claimed), ("walks", walks))
        )
        head = self._first(m, "head", permitted)
        capped = Signal(units)
        candidates = [self._named(m, f"candidate{s}", permitted[s] & (head[s] | ~capped)) for s in each]
        hits = [self._named(m, f"hits{s}", candidates[s] & state.hit[s]) for s in each]
        any_hit = self._any(m, "any_hit", list(hits))
        write_hit = self._any(m, "write_hit", [hits[s] & state.write[s] for s in each])
        in_batch = self._any(m, "in_batch", [candidates[s] & state.batch[s] for s in each])
        m.d.comb += self.begin_batch.eq(~(in_batch & ~self.block).any())

        # -- What the choice sees of that --
        seen = {
            name: self._handed(m, f"seen_{name}", vector, stages=2, masked=acted if masked else None)
            for name, vector, masked in (
                ("any_hit", any_hit, True),
                ("waiting", reduce(or_, candidates) & ~any_hit, True),
                ("write_hit", write_hit, False),
                ("claimed", claimed, False),
                ("old", self._any(m, "old", [candidates[s] & state.old[s] for s in each]), False),
                ("walks", walks, False),
                ("in_batch", in_batch, False),
                ("overflow", state.overflow, False),
                ("several", self._several(m, "several", list(state.valid)), False),
                ("closing", self._closing(m), False),
            )
        }
        old, walks = seen["old"], seen["walks"]
        # In each bank, the slot whose request would be served, for which a row would be opened or closed,
        # and what is first in order.
        column_slots, row_slots, heads = (
            [
                self._picked(m, f"{name}_slot{s}", self._handed(m, f"seen_{name}_slot{s}", vector, stages=2))
                for s, vector in enumerate(vectors)
            ]
            for name, vectors in (
                ("column", self._first(m, "first_hit", hits)),
                ("row", self._first(m, "first_candidate", candidates)),
                ("head", head),
            )
        )

        # -- Column command. Batches keep the banks of a stream in step: what came before goes first, so the
        # hits of one row are all served before those of the next row take turns with them --
        read_room = self.read_room.replicate(units)
        read_free, write_free = ((~hold).replicate(units) for hold in (self.hold_read, self.hold_write))
        write_hit = seen["write_hit"]
        # In its turn a bank's candidates all read or all write, but for strict banks out of turn.
        column = self._named(
            m,
            "column_candidates",
            seen["any_hit"]
            & ~self.block
            & (
                (bus_writes & write_hit & self.write & write_free)
                | (~bus_writes & ~write_hit & self.read & read_free & read_room)
            ),
        )
        column_level = self._best(
            m, "column", [column & old, column & walks, column & seen["in_batch"], column]
        )
        issues_column = Signal()
        serves_write = self._picked(m, "serves_write", write_hit)
        column_level = self._picked(
            m,
            "column_picked",
            column_level,
            masked=acted | issues_column.replicate(units),
            still=~self.block & Mux(serves_write, write_free, read_free),
        )
        lowest_column, column_unit = self._pick(m, "column", column_level, issues_column)
        closing = (lowest_column & self._picked(m, "picked_closing", seen["closing"])).any()
        m.d.comb += [
            issues_column.eq(column_level.any()),
            self.column_unit.eq(column_unit),
            self.column_slot.eq(Cat((lowest_column & slot).any() for slot in column_slots)),
            self.column_op.eq(
                Mux(
                    issues_column,
                    Mux(
                        (lowest_column & serves_write).any(),
                        Mux(closing, ColumnOp.WRITE_AUTO, ColumnOp.WRITE),
                        Mux(closing, ColumnOp.READ_AUTO, ColumnOp.READ),
                    ),
                    ColumnOp.NOP,
                )
            ),
        ]
        served_claims = lowest_column & self._picked(m, "picked_claimed", seen["claimed"])
        m.d.sync += yielded.eq((yielded & ~lowest_column) | served_claims)
        self._count_passing_hits(m, lowest_column, column_unit, column_slots, heads, capped)

        # -- Row command: ACT before PRE, which needs the bus only once; among ACTs, banks with more to do --
        row_free = ~self.block & (~self.row_block).replicate(units)
        wanted = self._named(m, "row_wanted", seen["waiting"] & row_free)
        to_open = self._named(m, "to_open", wanted & ~state.open & self.activate & ~self.hold_activate)
        to_close = self._named(m, "to_close", wanted & state.open & self.precharge)
        row_level = self._best(
            m,
            "row",
            [
                *(to_open & old, to_close & old),
                *(to_open & walks, to_close & walks),
                *(to_open & seen["overflow"], to_open & seen["several"], to_open, to_close),
            ],
        )
        issues_row = Signal()
        opens = self._picked(m, "opens", to_open)
        row_level = self._picked(
            m,
            "row_picked",
            row_level,
            masked=acted | issues_row.replicate(units),
            still=row_free & ~(opens & self.hold_activate),
        )
        lowest_row, row_unit = self._pick(m, "row", row_level, issues_row)
        m.d.comb += [
            issues_row.eq(row_level.any()),
            self.row_unit.eq(row_unit),
            self.row_slot.eq(Cat((lowest_row & slot).any() for slot in row_slots)),
            self.row_op.eq(
                Mux(issues_row, Mux((lowest_row & opens).any(), RowOp.ACTIVATE, RowOp.PRECHARGE), RowOp.NOP)
            ),
            acted.eq(lowest_column | lowest_row),
        ]
        return m

    def _closing(self, m: Module) -> Value:
        """The banks whose next column command closes the row."""
        state, slots = self.state, range(self._slots)
        if self._config.page_policy == "open":
            return Const(0, self._units)
        last_hit = ~self._several(m, "more_hits", list(state.hit))
        if self._config.page_policy == "closed":
            return last_hit
        other_row = self._any(m, "other_row", [state.valid[s] & ~state.hit[s] for s in slots])
        return last_hit & (other_row | self.close)

    def _turns(
        self, m: Module, read_waits: Value, write_waits: Value, urgent: Value
    ) -> tuple[Signal, Signal, Value]:
        """Which banks write (others read), and where the data bus does, both as vectors of banks; and whether
        the turn of a pseudo channel changes.

        When a pseudo channel's turn changes, a bank follows as soon as it has no row hit of the old direction
        left, so that it opens rows for the new one; the bus follows when no bank has, or after `turn_tail`,
        or at once from writes to the read of a walk.
        """
        state, slots = self.state, range(self._slots)
        banks = self._units // self._pseudo_channels
        idle_limit, burst = self._config.drain_idle, self._config.drain_burst
        read_hits = self._any(m, "read_hits", [state.hit[s] & ~state.write[s] for s in slots])
        write_hits = self._any(m, "write_hits", [state.hit[s] & state.write[s] for s in slots])
        walk_reads = self._any(
            m, "walk_reads", [state.priority[s] & state.valid[s] & ~state.write[s] for s in slots]
        )
        idle = Signal(range(idle_limit + 1))
        with m.If(read_waits.any()):
            m.d.sync += idle.eq(0)
        with m.Elif(idle != idle_limit):
            longer = idle + self.slept + 1
            m.d.sync += idle.eq(Mux(longer > idle_limit, idle_limit, longer))
        turns, buses, turning = [], [], []
        for p in range(self._pseudo_channels):
            span = slice(banks * p, banks * (p + 1))
            turn = Signal(name=f"turn{p}")
            bus = Signal(name=f"bus{p}")
            spent = Signal(range(max(burst, self._turn_tail) + 1), name=f"turn_cycles{p}")
            read, write, pressed, change, tail = (
                Signal(name=f"{n}{p}") for n in ("any_read", "any_write", "pressed", "change", "tail")
            )
            # A turn's cycles count from when the bus has followed.
            expired = spent >= burst
            walk = walk_reads[span].any()
            m.d.comb += [
                read.eq(read_waits[span].any()),
                write.eq(write_waits[span].any()),
                pressed.eq(urgent[span].any() | self.drain | self.press),
                change.eq(
                    (turn == bus)
                    & Mux(
                        turn,
                        ~write | (read & (~pressed | expired | (walk & (spent >= self._walk_turn)))),
                        write & Mux(read, pressed & expired, pressed | (idle == idle_limit)),
                    )
                ),
                # The hits of a row opened in the cycle of the change show two cycles after it.
                tail.eq(
                    (spent < 2)
                    | (
                        Mux(bus, write_hits[span].any() & ~walk, read_hits[span].any())
                        & (spent < self._turn_tail)
                    )
                ),
            ]
            follow = (turn != bus) & ~tail
            m.d.sync += [turn.eq(turn ^ change), bus.eq(bus ^ follow)]
            with m.If(change | follow):
                m.d.sync += spent.eq(0)
            with m.Elif(~expired | (turn != bus)):
                longer = spent + self.slept + 1
                m.d.sync += spent.eq(Mux((turn == bus) & (longer > burst), burst, longer))
            turning.append(change | (turn != bus))
            turns.append(turn.replicate(banks))
            buses.append(bus.replicate(banks))
        turn_writes = self._named(m, "turn_writes", Value.cast(Cat(turns)))
        bus_writes = self._named(m, "bus_writes", Value.cast(Cat(buses)))
        # Where turn and bus differ, the bus has the old direction.
        left = (turn_writes & read_hits) | (~turn_writes & write_hits)
        keeps = self._named(m, "keeps_direction", left & (turn_writes ^ bus_writes))
        return self._named(m, "writing", turn_writes ^ keeps), bus_writes, Value.cast(Cat(turning)).any()

    def _count_passing_hits(
        self, m: Module, here: Value, unit: Value, served: list[Value], heads: list[Value], capped: Signal
    ) -> None:
        """Count, a bank, the column commands since its oldest permitted request was served last.

        `here` is the bank of this cycle's, one hot, and `unit` its number; `served` has the slots. With five
        stages it is counted in the next cycle, before the bank takes part again.
        """
        head_served = Cat((here & slot & head).any() for slot, head in zip(served, heads, strict=True))
        here = self._handed(m, "counted", here, stages=5)
        unit = self._handed(m, "counted_unit", unit, stages=5)
        head_served = self._handed(m, "head_served", head_served, stages=5)
        cap = self._config.row_hit_cap
        m.submodules.passed = passed = memory.Memory(
            shape=unsigned(cap.bit_length()), depth=self._units, init=[]
        )
        before, after = passed.read_port(domain="comb"), passed.write_port()
        count = Mux(head_served.any(), 0, before.data + 1)
        m.d.comb += [
            before.addr.eq(unit),
            after.addr.eq(unit),
            after.en.eq(here.any()),
            after.data.eq(count),
        ]
        m.d.sync += capped.eq((capped & ~here) | (here & (count == cap).replicate(self._units)))
