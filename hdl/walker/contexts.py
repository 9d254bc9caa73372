"""The state of a walker's contexts, in small memories indexed by context."""

from amaranth.hdl import Module, Shape, ShapeLike, Value
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..layouts import ContextWrite, MemoryStatus, VerdictKind, WalkStatus
from .datapath import WordsLayout
from .isa import ExitKind

__all__ = ["Contexts", "Deferred", "Launched", "Outcome", "context_bits"]


class Deferred(data.Struct):
    """What a context still has to put out: a store, then `after`."""

    store: 1
    after: ExitKind
    """GOTO: execute on. LOAD: read the record at the target. YIELD, DONE: put the verdict out."""
    conditional: 1
    word: 3
    value: 32
    expected: 32


class Outcome(data.Struct):
    """A verdict that a context is about to put out."""

    kind: VerdictKind
    status: WalkStatus
    code: 8


class Launched(data.Struct):
    """What a context remembers of its launch."""

    tag: 16
    start: 32
    """The cycle in which it was accepted."""


#: What the committing context writes: shape, and which of the views read it.
_COMMITTED: dict[str, tuple[ShapeLike, frozenset[str]]] = {
    "program_counter": (6, frozenset({"select"})),
    "address": (32, frozenset({"select", "popped"})),
    "target": (32, frozenset({"select", "popped"})),
    "remaining": (24, frozenset({"commit"})),
    # That it is 0: a comparison before a step would come before everything that the step does.
    "spent": (1, frozenset({"commit"})),
    "hops": (32, frozenset({"commit", "verdict"})),
    "deferred": (Deferred, frozenset({"popped"})),
    "launched": (Launched, frozenset({"verdict"})),
    "outcome": (Outcome, frozenset({"verdict"})),
    "value": (32, frozenset({"verdict"})),
}
#: What the host writes: width, and which of the views read it. The record's window is [base, limit).
_CONFIGURED: dict[str, tuple[int, frozenset[str]]] = {
    "base": (32, frozenset({"commit", "ahead"})),
    "limit": (32, frozenset({"commit", "ahead"})),
    "writable": (1, frozenset({"commit"})),
    "budget": (24, frozenset({"ahead"})),
}


def context_bits(contexts: int) -> int:
    """Width of a context number inside a walker of `contexts` contexts."""
    return max(1, ceil_log2(contexts))


class Contexts(wiring.Component):
    """The memories. Every one has one write port; reads are asynchronous and see the last cycle's writes.

    With `shared` the selecting and the committing context are the same by construction (one execute
    stage), and `select.context` alone addresses every view but `verdict`, and all that is committed. Without
    `checked_ahead` the committing context addresses the view `ahead`, too.

    Members
    -------
    configure : In(ContextWrite)
        A context that does not exist is ignored.
    select : In/Out
        `context` In; `program_counter`, `address` (of the current record), `target` (of the latest load),
        `status` (of its response): what the choice of an instruction reads.
    operands : In/Out
        `context` In; `record`, `registers`: what the instruction reads.
    commit : In/Out
        `context` In; `remaining` (budget), `spent` (none is left), `hops` and the configured `base`,
        `limit`, `writable`: what the end of an instruction reads.
    ahead : In/Out
        `context` In; the configured `base`, `limit`, `budget`: what an instruction or a launch reads that can
        be read before its end.
    popped : In/Out
        `context` In; `address`, `target`, `deferred`: what a context reads that had to wait.
    verdict : In/Out
        `context` In; `hops`, `launched`, `outcome`, `value`, `registers` (r0..r2).
    write : In
        For each of `program_counter`, `address`, `target`, `remaining`, `spent`, `hops`, `deferred`,
        `launched`, `outcome`, `value`: `enable` and `data`, written to the context of `write_committed`;
        `deferred` to that of `write_deferred`.
    write_committed, write_deferred : In
        `context`.
    write_registers : In
        `lanes` (8), `data` (8 words), written to the context of `write_committed`.
    write_record : In
        `context`, `lanes` (8), `data` (8 words).
    write_status : In
        `context`, `enable`, `data`.
    """

    def __init__(self, contexts: int, *, shared: bool, checked_ahead: bool) -> None:
        self._contexts = contexts
        self._shared = shared
        self._checked_ahead = checked_ahead
        bits = context_bits(contexts)

        def view(name: str, more: dict[str, ShapeLike]) -> wiring.Signature:
            kept = {**_COMMITTED, **_CONFIGURED}
            shapes = {field: shape for field, (shape, views) in kept.items() if name in views}
            outputs = {field: Out(shape) for field, shape in (shapes | more).items()}
            return wiring.Signature({"context": In(bits), **outputs})

        super().__init__(
            {
                "configure": In(ContextWrite()),
                "select": Out(view("select", {"status": MemoryStatus})),
                "operands": Out(view("operands", {"record": WordsLayout, "registers": WordsLayout})),
                "commit": Out(view("commit", {})),
                "ahead": Out(view("ahead", {})),
                "popped": Out(view("popped", {})),
                "verdict": Out(view("verdict", {"registers": data.ArrayLayout(32, 3)})),
                "write": In(
                    wiring.Signature(
                        {
                            name: Out(wiring.Signature({"enable": Out(1), "data": Out(shape)}))
                            for name, (shape, _) in _COMMITTED.items()
                        }
                    )
                ),
                "write_committed": In(wiring.Signature({"context": Out(bits)})),
                "write_deferred": In(wiring.Signature({"context": Out(bits)})),
                "write_registers": In(wiring.Signature({"lanes": Out(8), "data": Out(WordsLayout)})),
                "write_record": In(
                    wiring.Signature({"context": Out(bits), "lanes": Out(8), "data": Out(WordsLayout)})
                ),
                "write_status": In(
                    wiring.Signature({"context": Out(bits), "enable": Out(1), "data": Out(MemoryStatus)})
                ),
            }
        )

    def _memory(self, m: Module, name: str, shape: ShapeLike) -> Memory:
        # At least two deep: a depth of 1 has no address bit.
        memory = Memory(shape=shape, depth=max(2, self._contexts), init=[])
        m.submodules[name] = memory
        return memory

    def _read(self, m: Module, memory: Memory, *readers: tuple[Value, Value]) -> None:
        """An asynchronous read port for every distinct context number among (number, output)."""
        ports: dict[int, Value] = {}
        for context, output in readers:
            if id(context) not in ports:
                port = memory.read_port(domain="comb")
                m.d.comb += port.addr.eq(context)
                ports[id(context)] = port.data
            m.d.comb += output.eq(ports[id(context)])

    def elaborate(self, platform: object) -> Module:
        m = Module()
        select, operands, verdict = self.select, self.operands, self.verdict
        contexts = {"select": select.context, "verdict": verdict.context} | {
            name: select.context if self._shared else getattr(self, name).context
            for name in ("operands", "commit", "ahead", "popped", "write_committed", "write_deferred")
        }
        if not self._checked_ahead:
            contexts["ahead"] = contexts["commit"]

        for name, (shape, views) in _COMMITTED.items():
            memory = self._memory(m, name, shape)
            port = memory.write_port()
            write = getattr(self.write, name)
            m.d.comb += [
                port.addr.eq(contexts["write_deferred" if name == "deferred" else "write_committed"]),
                port.en.eq(write.enable),
                port.data.eq(write.data),
            ]
            self._read(
                m, memory, *((contexts[view], getattr(getattr(self, view), name)) for view in sorted(views))
            )

        configured = self.configure.enable & (self.configure.index < self._contexts)
        for name, (width, views) in _CONFIGURED.items():
            memory = self._memory(m, name, width)
            port = memory.write_port()
            m.d.comb += [
                port.addr.eq(self.configure.index),
                port.en.eq(configured),
                port.data.eq(getattr(self.configure, name)),
            ]
            self._read(
                m, memory, *((contexts[view], getattr(getattr(self, view), name)) for view in sorted(views))
            )

        width = Shape.cast(WordsLayout).width
        record = self._memory(m, "record", width)
        port = record.write_port(granularity=32)
        m.d.comb += [
            port.addr.eq(self.write_record.context),
            port.en.eq(self.write_record.lanes),
            port.data.eq(self.write_record.data),
        ]
        self._read(m, record, (contexts["operands"], operands.record.as_value()))

        registers = self._memory(m, "registers", width)
        port = registers.write_port(granularity=32)
        m.d.comb += [
            port.addr.eq(contexts["write_committed"]),
            port.en.eq(self.write_registers.lanes),
            port.data.eq(self.write_registers.data),
        ]
        # r0..r2 are the lowest words: the assignment takes them alone.
        self._read(
            m,
            registers,
            (contexts["operands"], operands.registers.as_value()),
            (verdict.context, verdict.registers.as_value()),
        )

        status = self._memory(m, "status", MemoryStatus)
        port = status.write_port()
        m.d.comb += [
            port.addr.eq(self.write_status.context),
            port.en.eq(self.write_status.enable),
            port.data.eq(self.write_status.data),
        ]
        self._read(m, status, (select.context, select.status))
        return m
