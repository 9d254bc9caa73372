"""The clock gate: where the design says that it sleeps, no register changes but those that count cycles."""

from __future__ import annotations

from collections.abc import Iterator

from amaranth.asserts import AnySeq
from amaranth.hdl import Assert, Cat, Cover, Fragment, Module, Signal, Value
from amaranth.hdl._mem import MemoryInstance
from amaranth.lib.wiring import In, connect, flipped

from hdl.clock_gate import SLEPT_BITS, ClockGate
from hdl.config import (
    ControllerConfig,
    DesignConfig,
    LinkConfig,
    MemoryConfig,
    ScratchpadConfig,
    WalkerConfig,
)
from hdl.fabric.axi import AxiLite
from hdl.top import Clew
from tests.formal.harness import Proof, Property

#: Every block of a design that sleeps, each as small as it can be.
CONFIG = DesignConfig(
    walker=WalkerConfig(contexts=2),
    link=LinkConfig(walk_credits=2, bulk_credits=2),
    scratchpad=ScratchpadConfig(banks=1, bank_bytes=1024),
    controller=ControllerConfig(
        bank_queue=2, overflow=2, write_buffer=4, drain_high=2, drain_low=1, response_slots=8
    ),
    memory=MemoryConfig(bank_groups=2, banks_per_group=2, rows=2, columns=2),
    clock_gate=True,
)
_SCHEDULER = "memory_side.channel_0.memory.controller.scheduler"
#: The registers that count cycles, and go on by those slept.
TIME = {
    *(f"link.{channel}.coming" for channel in ("walk_up", "walk_down", "bulk_up", "bulk_down")),
    *("far_walker.verdicts.now", "memory_side.channel_0.near_walker.verdicts.now"),
    *("sequencer.outstanding.clock", "sequencer.control__batch_cycles", "counters.cycles"),
    # The age of requests, cycles without a read, cycles of the turns.
    *(f"{_SCHEDULER}.{name}" for name in ("age", "idle", "turn_cycles0", "turn_cycles1")),
    "memory_side.channel_0.memory.controller.refresher.elapsed",
}


def fragments(fragment: Fragment, path: str = "") -> Iterator[tuple[str, Fragment]]:
    """A fragment and all below it, each with its path."""
    yield path, fragment
    for inner, name, _ in fragment.subfragments:
        yield from fragments(inner, f"{path}{name}.")


def registers(design: Fragment) -> list[tuple[str, Signal]]:
    """Every register of a design that is not part of a memory, with its path."""
    found = {
        id(signal): (f"{path}{signal.name}", signal)
        for path, fragment in fragments(design)
        for domain, statements in fragment.statements.items()
        if domain != "comb"
        for statement in statements
        for signal in statement._lhs_signals()
    }
    return list(found.values())


def forget_memories(m: Module, design: Fragment) -> list[Value]:
    """Takes the memories out of a design, whose reads find anything then; returns the enables of their ports
    that have a register: of all write ports, and some read ports."""
    enables = []
    for _, fragment in list(fragments(design)):
        memories = [inner for inner, _, _ in fragment.subfragments if isinstance(inner, MemoryInstance)]
        fragment.subfragments = [each for each in fragment.subfragments if each[0] not in memories]
        for memory in memories:
            m.d.comb += [port._data.eq(AnySeq(len(port._data))) for port in memory._read_ports]
            enables += [port._en for port in memory._write_ports]
            enables += [port._en for port in memory._read_ports if port._domain != "comb"]
    return enables


class SleepProperty(Property):
    """The whole design without its clock gate; the host does anything, and memories hold anything."""

    def __init__(self, *, false: bool) -> None:
        super().__init__({"s_axil": In(AxiLite()), "slept": In(SLEPT_BITS)}, false=false)

    def contents(self, m: Module) -> None:
        design, gate = Clew(CONFIG), ClockGate()
        m.submodules.design = fragment = Fragment.get(design.on_one_clock(gate), None)
        connect(m, flipped(self.s_axil), design.s_axil)
        m.d.comb += gate.slept.eq(self.slept)
        asleep, slept = Signal(), Signal()
        m.d.comb += asleep.eq(gate.sleeps & ~gate.wake)
        m.d.sync += slept.eq(asleep)
        enables, found = forget_memories(m, fragment), registers(fragment)
        paths = {path for path, _ in found}
        assert paths > TIME
        for path, signal in found:
            if path in TIME and not self.false:
                continue
            before = Signal(len(signal), name=f"before_{path}")
            m.d.sync += before.eq(signal)
            m.d.comb += Assert(~slept | (before == signal))
        m.d.comb += [
            Assert(~(asleep & Cat(enables).any())),
            Cover(asleep & slept),
            Cover(slept & ~asleep),
        ]


PROOFS = [
    Proof(
        name="sleep",
        build=lambda false: SleepProperty(false=false),
        depth=3,
        cover_depth=60,
        # `make test` runs the design with and without its gate, tests/e2e/test_clock_gate.py.
        quick=False,
    )
]
