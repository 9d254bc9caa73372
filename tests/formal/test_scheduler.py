"""The scheduler decides only what timing, the state of the banks and the refresher's claims allow."""

from __future__ import annotations

from functools import reduce
from itertools import permutations
from operator import or_
from pathlib import Path

import pytest
from amaranth.hdl import Assert, Assume, Const, Cover, Module, Signal, Value
from amaranth.lib.wiring import In

from hdl.config import DesignConfig
from hdl.layouts import ColumnOp, RowOp
from hdl.memory.bank import BankState, pair_index
from hdl.memory.scheduler import Scheduler
from tests.formal.harness import Proof, Property, quick
from tests.formal.rules import named
from tests.formal.small import SmallMemory, small_design

_STATE = ("valid", "write", "hit", "ordered", "seen", "old", "priority", "batch")
_ALLOWED = ("activate", "precharge", "read", "write", "block", "close")


class ChoiceProperty(Property):
    """A scheduler in any state with free inputs, but for what `BankState` says of itself.

    These are what the proofs of the refresher alone take for granted (`RefresherProperty`): what is claimed
    gets no command, no command comes before its time, PRE and column commands go to open banks and ACT to
    closed ones, and no bank is closed in the cycle of a hit.
    """

    def __init__(self, config: DesignConfig, *, false: bool) -> None:
        self._config = config
        organisation = config.memory.organisation
        self._units = units = organisation.pseudo_channels * organisation.banks
        self._slots = slots = config.controller.bank_queue
        super().__init__(
            {
                **{f"state_{name}": In(units).array(slots) for name in _STATE},
                "state_before": In(units).array(slots * (slots - 1) // 2),
                "state_open": In(units),
                "state_overflow": In(units),
                "state_overflow_old": In(1),
                **{name: In(units) for name in _ALLOWED},
                "read_room": In(1),
                "row_block": In(1),
                "drain": In(1),
                "press": In(1),
            },
            false=false,
        )

    def contents(self, m: Module) -> None:
        m.submodules.scheduler = scheduler = Scheduler(self._config)
        units, slots = self._units, self._slots
        state, each = scheduler.state, range(slots)
        for name in BankState(units=units, slots=slots).members:
            theirs, free = getattr(state, name), getattr(self, f"state_{name}")
            pairs = [(theirs, free)] if isinstance(theirs, Signal) else zip(theirs, free, strict=True)
            m.d.comb += [one.eq(other) for one, other in pairs]
        m.d.comb += [
            getattr(scheduler, name).eq(getattr(self, name))
            for name in (*_ALLOWED, "read_room", "row_block", "drain", "press")
        ]

        # -- What the state says of itself --
        def older(first: int, second: int) -> Value:
            if first < second:
                return state.before[pair_index(slots, first, second)]
            return ~state.before[pair_index(slots, second, first)]

        for s in each:
            for name in set(_STATE) - {"valid"}:
                m.d.comb += Assume((getattr(state, name)[s] & ~state.valid[s]) == 0)
            m.d.comb += Assume((state.hit[s] & ~state.open) == 0)
        for a, b, c in permutations(each, 3):
            m.d.comb += Assume((older(a, b) & older(b, c) & older(c, a)) == 0)

        # -- Row commands --
        row, column = scheduler.row_op, scheduler.column_op
        row_here = named(m, "row_here", (Const(1) << scheduler.row_unit)[:units])
        column_here = named(m, "column_here", (Const(1) << scheduler.column_unit)[:units])

        def chosen(slot: Value, vectors: list[Value]) -> Value:
            return reduce(or_, (vectors[s] & slot[s].replicate(units) for s in each))

        def one_hot(slot: Value) -> Value:
            return (slot != 0) & ((slot & (slot - 1)) == 0)

        activates, precharges = row == RowOp.ACTIVATE, row == RowOp.PRECHARGE
        may_open = ~self.block & ~state.open & self.activate
        may_close = ~self.block & state.open & self.precharge
        m.d.comb += [
            Assert((row == RowOp.NOP) | activates | precharges),
            Assert((row == RowOp.NOP) | ~self.row_block),
            Assert(~activates | (row_here & may_open).any()),
            Assert(~precharges | (row_here & may_close).any()),
            # An ACT opens the row of one request, and no bank is closed that has a request for its row.
            Assert(~activates | one_hot(scheduler.row_slot)),
            Assert(~activates | (row_here & chosen(scheduler.row_slot, list(state.valid))).any()),
        ]

        # -- Column commands --
        reads = (column == ColumnOp.READ) | (column == ColumnOp.READ_AUTO)
        writes = (column == ColumnOp.WRITE) | (column == ColumnOp.WRITE_AUTO)
        closes = (column == ColumnOp.READ_AUTO) | (column == ColumnOp.WRITE_AUTO)
        served = named(m, "served_hit", chosen(scheduler.column_slot, list(state.hit)))
        wrote = named(m, "served_write", chosen(scheduler.column_slot, list(state.write)))
        others = [state.hit[s] & ~scheduler.column_slot[s].replicate(units) for s in each]
        m.d.comb += [
            Assert((column == ColumnOp.NOP) | reads | writes),
            Assert(~(reads | writes) | one_hot(scheduler.column_slot)),
            Assert(~(reads | writes) | (column_here & served & ~self.block).any()),
            Assert(~reads | (self.read_room & (column_here & self.read & ~wrote).any())),
            Assert(~writes | (column_here & self.write & wrote).any()),
            # A row is closed only with its last hit, and not by both at once.
            Assert(~closes | ~(column_here & reduce(or_, others)).any()),
            Assert(~(precharges & (reads | writes)) | (row_here != column_here)),
        ]

        # -- A claim stops what would be done otherwise, and only that --
        claimed = Signal(units, name="claimed_before")
        m.d.sync += claimed.eq(self.block)
        m.d.comb += [
            Cover(activates & (self.block != 0) & self.activate.all()),
            Cover(reads & (self.block & state.hit[0] & self.read).any()),
            Cover(writes & (self.block & state.hit[0] & self.write).any()),
            Cover(precharges & (row_here & claimed).any()),
            Cover((column == ColumnOp.READ_AUTO) & (column_here & claimed).any()),
            Cover((column == ColumnOp.WRITE_AUTO) & (column_here & claimed).any()),
        ]
        if self.false:
            # Were a bank claimed for one cycle longer.
            m.d.comb += Assert(~(reads | writes) | ~(column_here & claimed).any())


PROOFS = [
    Proof(
        name="scheduler honours claims",
        build=lambda false: ChoiceProperty(
            small_design(SmallMemory(shape=(2, 2, 2)), bank_queue=4), false=false
        ),
        depth=2,
        cover_depth=12,
    ),
]


@pytest.mark.parametrize("proof", quick(PROOFS), ids=lambda proof: proof.name)
def test_the_scheduler_decides_what_it_may(proof: Proof, tmp_path: Path) -> None:
    proof.check(tmp_path)
