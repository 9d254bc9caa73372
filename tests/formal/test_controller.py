"""Every request that the controller accepts is answered: once, as it was asked, and in time."""

from __future__ import annotations

from functools import reduce
from itertools import combinations, permutations
from operator import add, or_
from pathlib import Path

import pytest
from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cat, Const, Cover, Module, Mux, Signal, Value
from amaranth.lib.wiring import In

from hdl.config import DesignConfig
from hdl.layouts import ColumnOp, MemoryRequest, RefreshMode, Source, Tag
from hdl.memory.address import AddressMap
from hdl.memory.bank import pair_index
from tests.formal.channel import ChannelProperty
from tests.formal.harness import Internals, Proof, quick
from tests.formal.small import SmallMemory, small_design


def ones(vector: Value) -> Value:
    """The number of ones of a vector."""
    return reduce(add, (vector[n] for n in range(len(vector))))


def older(queues: Internals, slots: int, first: int, second: int) -> Value:
    """The banks in which slot `first` of `slots` holds an older request than slot `second`."""
    if first < second:
        return queues[f"state__before__{pair_index(slots, first, second)}"]
    return ~queues[f"state__before__{pair_index(slots, second, first)}"]


class Overflowing:
    """What waits in the overflow of two entries, and what its lists keep: no two share an entry."""

    def __init__(self, m: Module, inner: Internals, *, units: int) -> None:
        used = ~inner["free"]
        entries = range(len(used))
        assert len(entries) == 2, f"{len(entries)} entries: the lists here are of two at most"
        self.requests = [inner.word(m, "requests", Const(e, 1), f"overflow_request{e}") for e in entries]
        # A request is the atom, the entry of the write buffer, the tag, `write` and `priority`.
        wrote = Cat(request[-2] for request in self.requests)
        self.writes, self.reads = used & wrote, used & ~wrote
        self.removed = inner["removed_request"][:-2]
        waiting = inner["waiting"]
        ends = []
        for unit in range(units):
            head = inner.word(m, "heads", Const(unit, units.bit_length()), f"overflow_head{unit}")
            tail = inner.word(m, "tails", Const(unit, units.bit_length()), f"overflow_tail{unit}")
            second = inner.word(m, "following", head, f"overflow_second{unit}")
            ends.append((head, tail))
            m.d.comb += Assert(
                ~waiting[unit]
                | (used.bit_select(head, 1) & used.bit_select(tail, 1) & ((head == tail) | (second == tail)))
            )
        for one, other in combinations(range(units), 2):
            shared = reduce(or_, (a == b for a in ends[one] for b in ends[other]))
            m.d.comb += Assert(~(waiting[one] & waiting[other] & shared))


class CountProperty(ChannelProperty):
    """A controller, its requests counted: what was accepted and not answered is in exactly one place.

    The places: a slot of a bank's queue or its overflow (reads), the responses (reads on their way,
    acknowledgements), and the atomic unit. With the proofs of the latter two, which follow one request
    through them, and an eye on one slot here, whichever it is, every request is answered once and with its
    own tag.
    """

    def contents(self, m: Module) -> None:
        controller = self.environment(m)
        request, response = controller.memory.request, controller.memory.response
        queues, responses = self.inner.inside("queues"), self.inner.inside("responses")
        atomic, buffer = self.inner.inside("atomic"), self.inner.inside("write_buffer")
        scheduler = self.inner.inside("scheduler")
        slots = self.config.controller.bank_queue

        above, below = Signal(7), Signal(7)
        answered = Signal()
        m.d.comb += answered.eq(response.valid & response.ready)
        m.d.sync += [
            above.eq(above + (request.valid & request.ready) - answered),
            below.eq(below + self.inner["accepted"] - responses["read_leaves"] - responses["acknowledged"]),
        ]
        valid = Cat(queues[f"state__valid__{s}"] for s in range(slots))
        write = Cat(queues[f"state__write__{s}"] for s in range(slots))
        overflow = Overflowing(m, queues.inside("overflow"), units=len(queues["state__open"]))
        column = controller.column
        flight = ones(self.flight) + ((column.op == ColumnOp.READ) | (column.op == ColumnOp.READ_AUTO))
        m.d.comb += [
            # Modulo the width: that what is below has no answer of somebody else is not known here.
            # While it reads, the atomic unit has a request of its own below for the one that it keeps.
            Assert((above - below - atomic.state("WRITE", "REFUSE"))[: len(above)] == 0),
            Assert(
                below
                == ones(valid & ~write) + ones(overflow.reads) + responses["reserved"] + responses["queued"]
            ),
            Assert(buffer["count"] == ones(valid & write) + ones(overflow.writes)),
            Assert((write & ~valid) == 0),
            *(
                Assert(
                    (older(queues, slots, a, b) & older(queues, slots, b, c) & older(queues, slots, c, a))
                    == 0
                )
                for a, b, c in permutations(range(slots), 3)
            ),
            Assert(responses["reserved"] == responses["waiting"] + flight),
            Assert(responses["queued"] <= 8),
            Assert(~responses["offered"] | (responses["queued"] != 0)),
            Assert(responses["reserved"] <= self.config.controller.response_slots),
            Assert(atomic.state()),
            # While the atomic unit reads, one of those below is its own: its proof knows which.
            Assert(~answered | (above != 0) | atomic.state("READ")),
            Cover(answered & (above == 3)),
            Cover(ones(valid) == 2),
            Cover(queues["refilled"].any()),
            Cover(atomic.state("REFUSE") & (below != 0)),
        ]
        # One bank's slots, whichever it is: what entered one is what its command asks for.
        units = len(queues["state__open"])
        served, served_slot, refill_unit = (queues[n] for n in ("served", "served_slot", "refill_unit"))
        m.d.comb += Assert(~served | ((served_slot != 0) & (served_slot & (served_slot - 1) == 0)))
        for s in range(slots):
            m.d.comb += Assert(
                ~(served & served_slot[s] & queues[f"state__valid__{s}"].bit_select(refill_unit, 1))
            )
        unit = AnyConst(max((units - 1).bit_length(), 1))
        m.d.comb += Assume(unit < units)
        passed = MemoryRequest(atomic["memory__request__payload"])
        place = AddressMap(self.config.memory).wires(passed.address)
        issues = scheduler["column_op"] != ColumnOp.NOP.value
        chosen = Signal(slots)
        m.d.comb += [
            chosen.eq(Mux(issues & (scheduler["column_unit"] == unit), scheduler["column_slot"], 0)),
            Assert(chosen & (chosen - 1) == 0),
        ]
        watched = AnyConst(len(buffer["entry"]))
        holders = []
        for s in range(slots):
            full = queues[f"state__valid__{s}"].bit_select(unit, 1)
            tag, atom = Signal(Tag, name=f"tag{s}"), Signal.like(place.atom, name=f"atom{s}")
            entry = Signal.like(buffer["entry"], name=f"entry{s}")
            with m.If(queues[f"entered{s}"].bit_select(unit, 1)):
                m.d.sync += Cat(atom, entry, Value.cast(tag)).eq(
                    Mux(
                        queues["refilled"][s] & (refill_unit == unit),
                        overflow.removed,
                        Cat(place.atom, buffer["entry"], Value.cast(passed.tag)),
                    )
                )
            owner = queues.word(m, f"owner{s}", unit, f"owner_kept{s}")
            asked = queues.word(m, f"atom{s}", unit, f"atom_kept{s}")
            holders.append(full & queues[f"state__write__{s}"].bit_select(unit, 1) & (entry == watched))
            m.d.comb += [
                Assert(~full | (owner == Cat(entry, Value.cast(tag)))),
                Assert(~full | (asked == atom)),
                Assert(~chosen[s] | full),
                Assert(~chosen[s] | (queues["column_tag"] == Value.cast(tag))),
                Assert(~chosen[s] | (queues["column_entry"] == entry)),
                Assert(~chosen[s] | (Cat(queues["column_column"], queues["column_row"]) == atom)),
            ]
        if units == 1:
            # An entry of the write buffer that is not free is held by one write, and is given back once.
            held = len(place.atom)
            for e, request in enumerate(overflow.requests):
                holders.append(overflow.writes[e] & (request[held : held + len(watched)] == watched))
            m.d.comb += Assert(reduce(add, holders) == ~buffer["free"].bit_select(watched, 1))
        if self.false:
            m.d.comb += Assert(~(answered & (below == 2)))


class InTimeProperty(ChannelProperty):
    """A controller with reads of walks only, whose taker is always ready, without restart and refresh: no
    request stays in its slot for longer than `limit` cycles, from reset on.

    Writes, and bulk beside walks, may wait until their age counts, and refreshes add up: that takes longer
    than a bounded check can see.
    """

    def __init__(self, config: DesignConfig, *, limit: int, false: bool) -> None:
        self._limit = limit
        super().__init__(config, false=false)

    def contents(self, m: Module) -> None:
        self.environment(m)
        queues = self.inner.inside("queues")
        m.d.comb += [
            Assume(self.refresh == RefreshMode.NONE),
            Assume(~self.restart & ~self.write & self.priority),
            Assume(self.response_ready),
        ]
        limit = self._limit // 2 if self.false else self._limit
        for s in range(self.config.controller.bank_queue):
            valid, entered = queues[f"state__valid__{s}"], queues[f"entered{s}"]
            for unit in range(len(valid)):
                waited = Signal(range(self._limit + 2), name=f"waited{s}_{unit}")
                with m.If(entered[unit]):
                    m.d.sync += waited.eq(1)
                with m.Elif(waited <= self._limit):
                    m.d.sync += waited.eq(waited + 1)
                m.d.comb += [
                    Assert(~valid[unit] | (waited <= limit)),
                    Cover(valid[unit] & (waited == self._limit // 2)),
                ]


class BulkInTimeProperty(ChannelProperty):
    """A controller of one bank with bulk reads and writes, whose taker is always ready, without restart and
    refresh: the column command of one accepted request, whichever it is, is decided within `limit` cycles,
    from reset on.

    Walks are left out, for they go before bulk until that is old; so are conditional writes, which end as a
    write or none, and what is beyond the memory. What requests carry is constant: nothing is decided by it.
    """

    def __init__(self, config: DesignConfig, *, limit: int, false: bool) -> None:
        self._limit = limit
        super().__init__(config, false=false, signature={"watch": In(1)})

    def contents(self, m: Module) -> None:
        self.environment(m)
        queues, scheduler = self.inner.inside("queues"), self.inner.inside("scheduler")
        overflow = queues.inside("overflow")
        m.d.comb += [
            Assume(self.refresh == RefreshMode.NONE),
            Assume(~self.restart & ~self.priority & ~self.conditional & ~self.expected & ~self.read_bit),
            Assume((self.source == Source.MOVER) & (self.context == 0) & ~self.address[-1]),
            Assume(self.response_ready),
        ]
        # Where the request watched waits: a slot, or a place in the one list of the overflow.
        slots, places = self.config.controller.bank_queue, self.config.controller.overflow
        slot, place = Signal(slots, name="watched_slot"), Signal(places, name="watched_place")
        entered = Cat(queues[f"entered{s}"] for s in range(slots))
        refilled, removed = queues["refilled"], queues["refilled"].any()
        served = Mux(scheduler["column_op"] != ColumnOp.NOP.value, scheduler["column_slot"], 0)
        ahead = Signal(range(places + 1), name="ahead")
        m.d.comb += ahead.eq(places - ones(overflow["free"]) - removed)
        behind = Signal(name="behind")
        m.d.comb += behind.eq((entered & ~refilled) == 0)

        waited, watched = Signal(range(self._limit + 2)), Signal()
        begins = Signal()
        m.d.comb += begins.eq(self.watch & ~watched & self.inner["accepted"])
        with m.If(begins):
            m.d.sync += [
                watched.eq(1),
                waited.eq(1),
                slot.eq(entered & ~refilled),
                place.eq(Mux(behind, (1 << ahead)[:places], 0)),
            ]
        with m.Else():
            m.d.sync += [
                slot.eq((slot & ~served) | Mux(place[0], refilled, 0)),
                place.eq(Mux(removed, place >> 1, place)),
            ]
        waits = Signal()
        m.d.comb += waits.eq((slot != 0) | (place != 0))
        with m.If(waits & (waited <= self._limit)):
            m.d.sync += waited.eq(waited + 1)
        limit = self._limit // 2 if self.false else self._limit
        m.d.comb += [
            Assert(~waits | (waited <= limit)),
            # It is where it is thought to be.
            Assert((slot & ~Cat(queues[f"state__valid__{s}"] for s in range(slots))) == 0),
            Assert((place == 0) | (slot == 0)),
            Cover(waits & (waited == self._limit // 2)),
            Cover(place[-1]),
        ]


SMALL = small_design(SmallMemory(shape=(1, 1, 1), cycles={"tREFI": 30}))
#: Distances and caps as short as they can be, so that the longest wait is within a bounded check.
SHORT = small_design(
    SmallMemory(
        shape=(1, 1, 1),
        cycles={
            **{"tCL": 1, "tCWL": 1, "tRCDRD": 2, "tRCDWR": 2, "tRP": 2, "tRAS": 3, "tRC": 5, "tRTP": 2},
            **{"tWR": 1, "tCCDS": 1, "tCCDL": 1, "tRTW": 2, "tWTRS": 1, "tWTRL": 1, "tREFI": 30},
        },
    ),
    age_cap=8,
    drain_idle=1,
    drain_burst=2,
)
#: With room for every queue full of writes: that no entry is given back twice is shown for one bank.
FOUR_BANKS = small_design(SmallMemory(shape=(2, 2, 1), cycles={"tREFI": 30}), write_buffer=16)
PROOFS = [
    Proof(
        name="requests counted",
        build=lambda false: CountProperty(SMALL, false=false),
        depth=3,
        cover_depth=14,
    ),
    Proof(
        name="requests counted, four banks",
        build=lambda false: CountProperty(FOUR_BANKS, false=false),
        depth=3,
        cover_depth=14,
        quick=False,
    ),
    Proof(
        name="reads in time",
        build=lambda false: InTimeProperty(SMALL, limit=36, false=false),
        mode="bmc",
        depth=40,
        cover_depth=40,
        timeout=1200,
        quick=False,
    ),
    Proof(
        name="bulk in time",
        build=lambda false: BulkInTimeProperty(SHORT, limit=40, false=false),
        mode="bmc",
        depth=48,
        cover_depth=32,
        timeout=1800,
        quick=False,
    ),
]


@pytest.mark.parametrize("proof", quick(PROOFS), ids=lambda proof: proof.name)
def test_every_request_is_answered(proof: Proof, tmp_path: Path) -> None:
    proof.check(tmp_path)
