"""The bank queues: what waits at every bank of a channel, and which row each bank has open.

Nothing here is one machine per bank. Every fact about slot s of all banks is one packed vector, a bit a
bank, so the scheduler looks at all banks in a few vector operations. What is wide (row, column, tag) lives
in small memories that are indexed by bank and read only where a command or a comparison needs it.
"""

from __future__ import annotations

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from ..config import DesignConfig
from ..layouts import RowClass, RowOp, Tag

__all__ = ["BankQueues", "BankState", "pair_index"]


def pair_index(slots: int, first: int, second: int) -> int:
    """Index into `BankState.before` of the pair of slots `first` < `second`."""
    return first * slots - first * (first + 1) // 2 + second - first - 1


class BankState(wiring.Signature):
    """Every queued request, as one vector a slot with one bit a bank. Bits of an empty slot are 0.

    Members
    -------
    valid, write, hit, ordered, old, priority : Out(units).array(slots)
        `hit`: the request's row is open. `ordered`: an older request of the bank has the same atom, and one
        of the two writes. `old`: it has waited for at least half of the age cap.
    before : Out(units).array(slots * (slots - 1) / 2)
        The request in the first slot of the pair is older than the one in the second.
    open : Out(units)
        The bank has a row open.
    """

    def __init__(self, *, units: int, slots: int) -> None:
        vectors = ("valid", "write", "hit", "ordered", "old", "priority")
        super().__init__(
            {name: Out(units).array(slots) for name in vectors}
            | {"before": Out(units).array(slots * (slots - 1) // 2), "open": Out(units)}
        )


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
        The queue of `unit` has a free slot.
    tick : In(1)
        Half of the age cap has passed.
    row_op, row_unit : In
        The row command decided in this cycle. All-bank commands address the pseudo channel of `row_unit`.
    row_slot : In(slots), one hot
        Whose row to open; `row_row` : Out(row) is that row.
    column_issue, column_unit : In, column_slot : In(slots), one hot
        The request that is served in this cycle and leaves its slot.
    column_column, column_row, column_tag, column_entry, column_class : Out
        What it asked for, and what it found.
    busy : Out(units)
        A request is queued at the bank.
    walks_waiting : Out(units)
        A walk's request (`priority`) is queued at the bank.
    empty : Out(1)
        Nothing is queued anywhere.
    """

    def __init__(self, config: DesignConfig) -> None:
        organisation = config.memory.organisation
        self._slots = config.controller.bank_queue
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
                "tick": In(1),
                "row_op": In(RowOp),
                "row_unit": In(unit),
                "row_slot": In(self._slots),
                "row_row": Out(self._row_bits),
                "column_issue": In(1),
                "column_unit": In(unit),
                "column_slot": In(self._slots),
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

        # -- What the row command does to the banks --
        activated = one(self.row_op == RowOp.ACTIVATE, self.row_unit, "activated")
        precharged = one(self.row_op == RowOp.PRECHARGE, self.row_unit, "precharged")
        all_closed = Signal(units)
        banks = units // self._pseudo_channels
        channel = self.row_unit[banks.bit_length() - 1 :]
        for p in range(self._pseudo_channels):
            chosen = (self.row_op == RowOp.PRECHARGE_ALL) & (channel == p if len(channel) else 1)
            m.d.comb += all_closed[banks * p : banks * (p + 1)].eq(chosen.replicate(banks))
        closed = Signal(units)
        m.d.comb += closed.eq(precharged | all_closed)
        m.d.sync += state.open.eq((state.open & ~closed) | activated)

        m.submodules.open_row = open_row = memory.Memory(shape=unsigned(self._row_bits), depth=units, init=[])
        opened = open_row.write_port()
        m.d.comb += [
            opened.en.eq(self.row_op == RowOp.ACTIVATE),
            opened.addr.eq(self.row_unit),
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

        # -- Enqueue: into the lowest free slot --
        free = Signal(slots)
        taken = Signal(slots)
        entering = Cat(self.column, self.row)
        m.d.comb += [
            free.eq(Cat(~valid.bit_select(self.unit, 1) for valid in state.valid)),
            self.room.eq(free.any()),
            taken.eq(Mux(self.enqueue, free & (~free + 1)[:slots], 0)),
        ]
        for s in range(slots):
            atom_write, owner_write = atoms[s].write_port(), owners[s].write_port()
            m.d.comb += [
                atom_write.en.eq(taken[s]),
                atom_write.addr.eq(self.unit),
                atom_write.data.eq(entering),
                owner_write.en.eq(taken[s]),
                owner_write.addr.eq(self.unit),
                owner_write.data.eq(Cat(self.entry, self.tag)),
            ]
        row_is_open = Signal()
        same_atom = Signal()
        m.d.comb += [
            row_is_open.eq(
                (state.open & ~closed).bit_select(self.unit, 1) & (read(open_row, self.unit) == self.row)
            ),
            # A request that leaves in this cycle still counts: marking one too many is harmless.
            same_atom.eq(
                Cat(
                    state.valid[s].bit_select(self.unit, 1)
                    & (state.write[s].bit_select(self.unit, 1) | self.write)
                    & (read(atoms[s], self.unit) == entering)
                    for s in range(slots)
                ).any()
            ),
        ]

        # -- The cycle after ACT: compare that bank's slots with its new row --
        compare = Signal()
        compare_unit = Signal.like(self.row_unit)
        compare_row = Signal.like(self.row_row)
        m.d.sync += compare.eq(self.row_op == RowOp.ACTIVATE)
        with m.If(self.row_op == RowOp.ACTIVATE):
            m.d.sync += [compare_unit.eq(self.row_unit), compare_row.eq(self.row_row)]

        # -- The vectors --
        entered_slots = [one(Value.cast(taken[s]), self.unit, f"entered{s}") for s in range(slots)]
        for s, entered in enumerate(entered_slots):
            left = one(self.column_issue & self.column_slot[s], self.column_unit, f"left{s}")
            kept = Signal(units, name=f"kept{s}")
            matches = row_of(read(atoms[s], compare_unit)) == compare_row
            matched = one(compare & matches, compare_unit, f"matched{s}")
            seen = Signal(units, name=f"seen{s}")
            m.d.comb += kept.eq(state.valid[s] & ~left)

            def bit(flag: Value, entered: Signal = entered) -> Value:
                """The bank that a request enters, if `flag`."""
                return entered & flag.replicate(units)

            m.d.sync += [
                state.valid[s].eq(kept | entered),
                state.write[s].eq((state.write[s] & kept) | bit(self.write)),
                state.priority[s].eq((state.priority[s] & kept) | bit(self.priority)),
                state.ordered[s].eq((state.ordered[s] & kept) | bit(same_atom)),
                state.hit[s].eq((((state.hit[s] & ~closed) | matched) & kept) | bit(row_is_open)),
                state.old[s].eq((state.old[s] | (seen & self.tick.replicate(units))) & kept),
                seen.eq((seen | self.tick.replicate(units)) & kept),
            ]
            for other in range(s):
                # The slot that was filled last is the younger of its pair.
                before = state.before[pair_index(slots, other, s)]
                m.d.sync += before.eq((before | entered) & ~entered_slots[other])
        m.d.comb += [
            self.busy.eq(reduce(or_, state.valid)),
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
            self.row_row.eq(choose(self.row_slot, [row_of(read(atom, self.row_unit)) for atom in atoms])),
            Cat(self.column_column, self.column_row).eq(
                choose(self.column_slot, [read(atom, self.column_unit) for atom in atoms])
            ),
            owner.eq(choose(self.column_slot, [read(words, self.column_unit) for words in owners])),
            Cat(self.column_entry, Value.cast(self.column_tag)).eq(owner),
        ]

        # -- Row class: what the first access after an ACT cost. Refresh leaves a bank closed.
        fresh = Signal(units)
        conflicting = Signal(units)
        served = one(self.column_issue, self.column_unit, "served")
        m.d.sync += [
            fresh.eq((fresh & ~served) | activated),
            conflicting.eq((conflicting & ~served & ~all_closed) | precharged),
        ]
        m.d.comb += self.column_class.eq(
            Mux(
                fresh.bit_select(self.column_unit, 1),
                Mux(conflicting.bit_select(self.column_unit, 1), RowClass.CONFLICT, RowClass.CLOSED),
                RowClass.HIT,
            )
        )
        return m
