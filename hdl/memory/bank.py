"""The bank queues: what waits at every bank of a channel, and which row each bank has open.

Nothing here is one machine per bank. Every fact about slot s of all banks is one packed vector, a bit a
bank, so the scheduler looks at all banks in a few vector operations. What is wide (row, column, tag) lives
in small memories that are indexed by bank and read only where a command or a comparison needs it.

The last slot of a bank is for reads of walks that find the others taken. What else finds them taken waits in
the overflow, behind the others of its bank. When one of those slots is served, the next one moves there in
the next cycle: a bank with requests in the overflow has them all filled but in that one cycle. So no walk's
read waits behind bulk traffic in the overflow, unless a write there changes its atom.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from ..config import DesignConfig
from ..layouts import RowClass, RowOp, Tag
from .overflow import Overflow

__all__ = ["BankQueues", "BankState", "pair_index"]


def pair_index(slots: int, first: int, second: int) -> int:
    """Index into `BankState.before` of the pair of slots `first` < `second`."""
    return first * slots - first * (first + 1) // 2 + second - first - 1


class BankState(wiring.Signature):
    """Every queued request, as one vector a slot with one bit a bank. Bits of an empty slot are 0.

    Members
    -------
    valid, write, hit, ordered, seen, old, priority, batch : Out(units).array(slots)
        `hit`: the request's row is open. `ordered`: an older request of the bank has the same atom, and one
        of the two writes. `seen`: a tick, of which there are two in the age cap, has passed since it came.
        `old`: it has waited for at least half of the age cap, and no request that was old before is left.
        `batch`: it was there when the last batch began.
    before : Out(units).array(slots * (slots - 1) / 2)
        The request in the first slot of the pair is older than the one in the second.
    open : Out(units)
        The bank has a row open.
    overflow : Out(units)
        More requests of the bank wait for a slot.
    overflow_old : Out(1)
        One of those is old.
    """

    def __init__(self, *, units: int, slots: int) -> None:
        vectors = ("valid", "write", "hit", "ordered", "seen", "old", "priority", "batch")
        super().__init__(
            {name: Out(units).array(slots) for name in vectors}
            | {"before": Out(units).array(slots * (slots - 1) // 2)}
            | {"open": Out(units), "overflow": Out(units), "overflow_old": Out(1)}
        )


@dataclass(frozen=True, kw_only=True)
class _Entrance:
    """A way into the slots: the request that enters slot `slot` (one hot, 0 for none) of bank `unit`."""

    name: str
    unit: Value
    slot: Value
    atom: Value
    owner: Value
    write: Value
    priority: Value
    seen: Value
    old: Value


class BankQueues(wiring.Component):
    """The queues of all banks: one request enters a cycle, one row and one column command act a cycle.

    Members
    -------
    state : Out(BankState)
    enqueue : In(1)
        Take the request on `unit`, `row`, `column`, `write`, `priority`, `tag`, `entry`; needs `room`.
    entry : In(write buffer entries)
        Where the data of a write waits.
    room : Out(1)
        There is a place for a request of `unit`, in its queue or in the overflow.
    overflow_writes : Out(1)
        A write waits in the overflow.
    alone : Out(1)
        The request that is taken comes to a bank where nothing is queued.
    same_row : Out(1)
        The request on `unit` and `row` wants the row that was opened there last.
    tick : In(1)
        Half of the age cap has passed.
    ripen : In(1)
        What was there at the tick before is old.
    begin_batch : In(1)
        What is in the slots now is the next batch.
    row_op, row_unit : In
        The row command decided in this cycle. All-bank commands address the pseudo channel of `row_unit`.
    row_slot : In(slots), one hot
        Whose row to open; `row_row` : Out(row) is that row.
    activated : Out(units)
        The bank where a row is opened.
    column_issue, column_unit : In, column_slot : In(slots), one hot
        The request that is served in this cycle and leaves its slot.
    column_closes : In(1)
        It is served with auto-precharge.
    column_column, column_row, column_tag, column_entry, column_class : Out
        What it asked for, and what it found.
        With three decision stages or more these, and `row_row`, are there a cycle after the decision.
    busy : Out(units)
        A request is queued at the bank.
    walks_waiting : Out(units)
        A walk's request (`priority`) is queued at the bank.
    empty : Out(1)
        Nothing is queued anywhere.
    """

    def __init__(self, config: DesignConfig) -> None:
        organisation = config.memory.organisation
        self._looks_later = config.controller.decision_stages >= 3
        self._slots = config.controller.bank_queue
        self._overflow = config.controller.overflow
        self._pseudo_channels = organisation.pseudo_channels
        self._units = organisation.pseudo_channels * organisation.banks
        self._row_bits = organisation.rows.bit_length() - 1
        self._column_bits = organisation.columns.bit_length() - 1
        unit = range(self._units)
        entry = range(config.controller.write_buffer)
        self._owner_width = len(Value.cast(Signal(Tag))) + len(Signal(entry))
        super().__init__(
            {
                "state": Out(BankState(units=self._units, slots=self._slots)),
                "enqueue": In(1),
                "unit": In(unit),
                "row": In(self._row_bits),
                "column": In(self._column_bits),
                "write": In(1),
                "priority": In(1),
                "tag": In(Tag),
                "entry": In(entry),
                "room": Out(1),
                "overflow_writes": Out(1),
                "alone": Out(1),
                "same_row": Out(1),
                "tick": In(1),
                "ripen": In(1),
                "begin_batch": In(1),
                "row_op": In(RowOp),
                "row_unit": In(unit),
                "row_slot": In(self._slots),
                "row_row": Out(self._row_bits),
                "activated": Out(self._units),
                "column_issue": In(1),
                "column_unit": In(unit),
                "column_slot": In(self._slots),
                "column_closes": In(1),
                "column_column": Out(self._column_bits),
                "column_row": Out(self._row_bits),
                "column_tag": Out(Tag),
                "column_entry": Out(entry),
                "column_class": Out(RowClass),
                "busy": Out(self._units),
                "walks_waiting": Out(self._units),
                "empty": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        units, slots, state = self._units, self._slots, self.state

        def one(enable: Value, unit: Value, name: str) -> Signal:
            vector = Signal(units, name=name)
            m.d.comb += vector.eq((enable << unit)[:units])
            return vector

        # -- What the commands do to the banks --
        activated = self.activated
        m.d.comb += activated.eq(one(self.row_op == RowOp.ACTIVATE, self.row_unit, "activated_unit"))
        precharged = one(self.row_op == RowOp.PRECHARGE, self.row_unit, "precharged")
        refreshed = one(self.row_op == RowOp.REFRESH_BANK, self.row_unit, "refreshed")
        all_closed = Signal(units)
        banks = units // self._pseudo_channels
        channel = self.row_unit[banks.bit_length() - 1 :]
        for p in range(self._pseudo_channels):
            chosen = (self.row_op == RowOp.PRECHARGE_ALL) & (channel == p if len(channel) else 1)
            m.d.comb += all_closed[banks * p : banks * (p + 1)].eq(chosen.replicate(banks))
        closed = Signal(units)
        closing = one(self.column_issue & self.column_closes, self.column_unit, "closing")
        m.d.comb += closed.eq(precharged | all_closed | closing)
        m.d.sync += state.open.eq((state.open & ~closed) | activated)

        # -- What is looked up for them, in this cycle or in the next; no slot is filled anew before that --
        def looked(value: Value, name: str) -> Value:
            if not self._looks_later:
                return value
            register = Signal(len(value), name=f"{name}_looked_up")
            m.d.sync += register.eq(value)
            return register

        opens = looked(self.row_op == RowOp.ACTIVATE, "opens")
        row_unit, row_slot = looked(self.row_unit, "row_unit"), looked(self.row_slot, "row_slot")
        column_unit = looked(self.column_unit, "column_unit")
        column_slot = looked(self.column_slot, "column_slot")

        m.submodules.open_row = open_row = memory.Memory(shape=unsigned(self._row_bits), depth=units, init=[])
        opened = open_row.write_port()
        m.d.comb += [
            opened.en.eq(opens),
            opened.addr.eq(row_unit),
            opened.data.eq(self.row_row),
        ]

        # -- The slots' memories, one of each kind a slot --
        atoms, owners = [], []
        for s in range(slots):
            atom = memory.Memory(shape=unsigned(self._column_bits + self._row_bits), depth=units, init=[])
            owner = memory.Memory(shape=unsigned(self._owner_width), depth=units, init=[])
            m.submodules[f"atom{s}"], m.submodules[f"owner{s}"] = atom, owner
            atoms.append(atom)
            owners.append(owner)

        def read(words: memory.Memory, unit: Value) -> Value:
            port = words.read_port(domain="comb")
            m.d.comb += port.addr.eq(unit)
            return Value.cast(port.data)

        def row_of(atom: Value) -> Value:
            return Value.cast(atom[self._column_bits :])

        def column_of(atom: Value) -> Value:
            return Value.cast(atom[: self._column_bits])

        # -- Into the slots --
        arrival, refill = self._entrances(m)
        for s in range(slots):
            atom_write, owner_write = atoms[s].write_port(), owners[s].write_port()
            refilled = refill.slot[s]
            m.d.comb += [
                atom_write.en.eq(arrival.slot[s] | refilled),
                atom_write.addr.eq(Mux(refilled, refill.unit, arrival.unit)),
                atom_write.data.eq(Mux(refilled, refill.atom, arrival.atom)),
                owner_write.en.eq(atom_write.en),
                owner_write.addr.eq(atom_write.addr),
                owner_write.data.eq(Mux(refilled, refill.owner, arrival.owner)),
            ]

        def finds(entrance: _Entrance) -> tuple[Signal, Signal]:
            """Its row was opened last in its bank; an older request there has the same atom, one a write."""
            same_row = Signal(name=f"{entrance.name}_same_row")
            same_atom = Signal(name=f"{entrance.name}_same_atom")
            m.d.comb += [
                same_row.eq(read(open_row, entrance.unit) == row_of(entrance.atom)),
                # A request that leaves in this cycle still counts: marking one too many is harmless.
                same_atom.eq(
                    Cat(
                        state.valid[s].bit_select(entrance.unit, 1)
                        & (state.write[s].bit_select(entrance.unit, 1) | entrance.write)
                        & (read(atoms[s], entrance.unit) == entrance.atom)
                        for s in range(slots)
                    ).any()
                ),
            ]
            return same_row, same_atom

        found = [(entrance, *finds(entrance)) for entrance in (arrival, refill)]
        m.d.comb += self.same_row.eq(found[0][1])

        # -- The cycle after the look-up of an ACT: compare that bank's slots with its new row --
        compare = Signal()
        compare_unit = Signal.like(self.row_unit)
        compare_row = Signal.like(self.row_row)
        m.d.sync += compare.eq(opens)
        with m.If(opens):
            m.d.sync += [compare_unit.eq(row_unit), compare_row.eq(self.row_row)]

        # -- The vectors --
        still_open = Signal(units)
        if self._looks_later:
            # The row that was opened last is not known yet where ACT was decided in the cycle before: the
            # comparison finds what comes there now.
            opening = Signal(units)
            m.d.sync += opening.eq(activated)
            m.d.comb += still_open.eq(state.open & ~closed & ~opening)
        else:
            m.d.comb += still_open.eq(state.open & ~closed)
        entered_slots = []
        for s in range(slots):
            left = one(self.column_issue & self.column_slot[s], self.column_unit, f"left{s}")
            kept = Signal(units, name=f"kept{s}")
            matches = row_of(read(atoms[s], compare_unit)) == compare_row
            matched = one(compare & matches, compare_unit, f"matched{s}")
            ticks, ripens = self.tick.replicate(units), self.ripen.replicate(units)
            m.d.comb += kept.eq(state.valid[s] & ~left)
            entered: Value = Const(0, units)
            flags: dict[str, Value] = dict.fromkeys(
                ("write", "priority", "ordered", "hit", "old", "seen"), Const(0, units)
            )
            for entrance, same_row, same_atom in found:
                here = one(entrance.slot[s], entrance.unit, f"{entrance.name}{s}")
                entered = entered | here
                for name, flag in (
                    ("write", entrance.write),
                    ("priority", entrance.priority),
                    ("ordered", same_atom),
                    ("hit", same_row),
                    ("old", entrance.old),
                    ("seen", entrance.seen),
                ):
                    flags[name] = flags[name] | (here & flag.replicate(units))
            entered_slots.append(Signal(units, name=f"entered{s}"))
            m.d.comb += entered_slots[s].eq(entered)
            m.d.sync += [
                state.valid[s].eq(kept | entered_slots[s]),
                state.write[s].eq((state.write[s] & kept) | flags["write"]),
                state.priority[s].eq((state.priority[s] & kept) | flags["priority"]),
                state.ordered[s].eq((state.ordered[s] & kept) | flags["ordered"]),
                state.hit[s].eq((((state.hit[s] & ~closed) | matched) & kept) | (flags["hit"] & still_open)),
                state.old[s].eq(((state.old[s] | (state.seen[s] & ripens)) & kept) | flags["old"]),
                state.seen[s].eq(((state.seen[s] | ticks) & kept) | flags["seen"]),
                state.batch[s].eq((state.batch[s] | self.begin_batch.replicate(units)) & kept),
            ]
        for s in range(slots):
            for other in range(s):
                # The slot that was filled last is the younger of its pair.
                before = state.before[pair_index(slots, other, s)]
                m.d.sync += before.eq((before | entered_slots[s]) & ~entered_slots[other])
        m.d.comb += [
            self.busy.eq(reduce(or_, state.valid, state.overflow)),
            self.walks_waiting.eq(reduce(or_, state.priority)),
            self.empty.eq(~self.busy.any()),
        ]

        # -- What the commands need to know --
        def choose(slot: Value, words: list[Value]) -> Value:
            chosen = words[0] & slot[0].replicate(len(words[0]))
            for s in range(1, slots):
                chosen = chosen | (words[s] & slot[s].replicate(len(words[s])))
            return chosen

        owner = Signal(self._owner_width)
        m.d.comb += [
            self.row_row.eq(choose(row_slot, [row_of(read(atom, row_unit)) for atom in atoms])),
            Cat(self.column_column, self.column_row).eq(
                choose(column_slot, [read(atom, column_unit) for atom in atoms])
            ),
            owner.eq(choose(column_slot, [read(words, column_unit) for words in owners])),
            Cat(self.column_entry, Value.cast(self.column_tag)).eq(owner),
        ]

        # -- Row class: what the first access after an ACT cost. Refresh leaves a bank closed.
        fresh = Signal(units)
        conflicting = Signal(units)
        served = one(self.column_issue, self.column_unit, "served")
        m.d.sync += [
            fresh.eq((fresh & ~served) | activated),
            conflicting.eq((conflicting & ~served & ~all_closed & ~refreshed) | precharged),
        ]
        found_class = Mux(
            fresh.bit_select(self.column_unit, 1),
            Mux(conflicting.bit_select(self.column_unit, 1), RowClass.CONFLICT, RowClass.CLOSED),
            RowClass.HIT,
        )
        m.d.comb += self.column_class.eq(looked(found_class, "class"))
        return m

    def _entrances(self, m: Module) -> tuple[_Entrance, _Entrance]:
        """The request from the port, and the one from the overflow, which takes the slot that was served in
        the cycle before.

        The memories of a slot are written at one bank a cycle: where both want the same slot, of different
        banks, the port's takes another, or waits for a cycle.
        """
        slots, state = self._slots, self.state
        common = slots - 1
        atom = Cat(self.column, self.row)
        owner = Cat(self.entry, self.tag)
        request = Cat(atom, owner, self.write, self.priority)
        m.submodules.overflow = overflow = Overflow(
            units=self._units, depth=self._overflow, width=len(request), key_width=len(atom)
        )
        m.d.comb += [
            state.overflow.eq(overflow.waiting),
            state.overflow_old.eq(overflow.waiting_old),
            self.overflow_writes.eq(overflow.waiting_write),
        ]

        served = Signal()
        refill_unit = Signal.like(self.column_unit)
        served_slot = Signal(slots)
        refilled = Signal(slots)
        m.d.sync += served.eq(self.column_issue)
        with m.If(self.column_issue):
            m.d.sync += [refill_unit.eq(self.column_unit), served_slot.eq(self.column_slot)]
        m.d.comb += [
            overflow.tick.eq(self.tick),
            overflow.ripen.eq(self.ripen),
            overflow.remove.eq(
                served & served_slot[:common].any() & overflow.waiting.bit_select(refill_unit, 1)
            ),
            overflow.remove_unit.eq(refill_unit),
            refilled.eq(served_slot & overflow.remove.replicate(slots)),
        ]

        filled = Signal(slots)
        free = Signal(common)
        behind, passes = Signal(), Signal()
        taken = Signal(slots)
        m.d.comb += [
            filled.eq(Cat(valid.bit_select(self.unit, 1) for valid in state.valid)),
            free.eq(~filled[:common] & ~refilled[:common]),
            behind.eq(filled[:common].all() | overflow.waiting.bit_select(self.unit, 1)),
            passes.eq(behind & self.priority & ~self.write & ~filled[common] & ~overflow.writes_key),
            self.room.eq(passes | Mux(behind, overflow.room, free.any())),
            self.alone.eq(self.enqueue & ~filled.any()),
            taken.eq(
                Mux(
                    self.enqueue,
                    Mux(behind, passes << common, free & (~free + 1)[:common]),
                    0,
                )
            ),
            overflow.append.eq(self.enqueue & behind & ~passes),
            overflow.append_unit.eq(self.unit),
            overflow.append_request.eq(request),
            overflow.append_key.eq(atom),
            overflow.append_write.eq(self.write),
        ]
        removed = overflow.removed_request
        atom_end, owner_end = len(atom), len(atom) + len(owner)
        return (
            _Entrance(
                name="arrival",
                unit=self.unit,
                slot=taken,
                atom=atom,
                owner=owner,
                write=self.write,
                priority=self.priority,
                seen=Const(0, 1),
                old=Const(0, 1),
            ),
            _Entrance(
                name="refill",
                unit=refill_unit,
                slot=refilled,
                atom=removed[:atom_end],
                owner=removed[atom_end:owner_end],
                write=removed[owner_end],
                priority=removed[owner_end + 1],
                seen=overflow.removed_seen,
                old=overflow.removed_old,
            ),
        )
