"""The datapath against an independent description of one instruction."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
from amaranth.sim import Simulator
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hdl.walker.datapath import Datapath, Step
from hdl.walker.isa import Exit, ExitKind, Instruction, InstructionLayout, Op, PointerKind, Update, UpdateKind

from .reference import WIDTHS, Outcome, execute, pack

#: An instruction's fields, a record, registers and an address.
Vector = tuple[dict[str, int], list[int], list[int], int]

EDGES = [0, 1, 2, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFE, 0xFFFFFFFF, 0xAAAAAAAA]
words32 = st.sampled_from(EDGES) | st.integers(0, 0xFFFFFFFF)
#: Few different values, so that equal operands are as common as different ones.
eight_words = st.lists(words32, min_size=8, max_size=8)


@st.composite
def vectors(draw: Any) -> Vector:
    """Any 128-bit word, undefined kinds and reserved bits included, on any operands."""
    fields = {name: draw(st.integers(0, (1 << width) - 1)) for name, width in WIDTHS.items()}
    fields["immediate"] = draw(words32)
    return fields, draw(eight_words), draw(eight_words), draw(words32)


def outcome(ctx: Any, dut: Datapath) -> Outcome:
    """The RTL's step, with what has no meaning taken out."""
    step = SimpleNamespace(**{name: ctx.get(getattr(dut.step, name)) for name in Step().members})
    return Outcome(
        taken=bool(step.taken),
        update=(step.update_register, step.update_value) if step.update else None,
        store=(step.store_word, step.store_value, step.store_expected, bool(step.store_conditional))
        if step.store
        else None,
        exit_kind=int(step.exit_kind),
        exit_target=step.exit_target,
        exit_value=step.exit_value,
        exit_code=step.exit_code,
    )


class _Bench:
    """One elaborated datapath for many runs: vectors go in one a cycle, steps come out."""

    def __init__(self, stages: int) -> None:
        self.stages = stages
        self.dut = Datapath(stages=stages)
        self.queue: list[Vector] = []
        self.steps: list[Outcome] = []
        self.used = False
        self.simulator = Simulator(self.dut)
        if stages > 1:
            self.simulator.add_clock(1e-9)
        self.simulator.add_testbench(self._drive)

    async def _drive(self, ctx: Any) -> None:
        dut = self.dut
        ctx.set(dut.advance, 1)
        for number in range(len(self.queue) + self.stages - 1):
            fields, record, registers, address = self.queue[min(number, len(self.queue) - 1)]
            ctx.set(dut.instruction, InstructionLayout.from_bits(pack(fields)))
            ctx.set(dut.record, record)
            ctx.set(dut.registers, registers)
            ctx.set(dut.address, address)
            if number >= self.stages - 1:
                self.steps.append(outcome(ctx, dut))
            if self.stages > 1:
                await ctx.tick()

    def __call__(self, queue: list[Vector]) -> list[Outcome]:
        self.queue, self.steps = queue, []
        if self.used:
            self.simulator.reset()
        self.used = True
        self.simulator.run()
        return self.steps


bench = cache(_Bench)


@pytest.mark.parametrize("stages", [1, 2, 3, 4])
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(queue=st.lists(vectors(), min_size=1, max_size=20))
def test_any_word_on_any_operands(stages: int, queue: list[Vector]) -> None:
    assert bench(stages)(queue) == [execute(*vector) for vector in queue]


@pytest.mark.parametrize("op", list(Op))
def test_every_comparison_of_edge_values(op: Op) -> None:
    queue: list[Vector] = [
        ({"op": op, "a_kind": 1, "a_index": 3, "immediate": b}, [0] * 8, [0, 0, 0, a, 0, 0, 0, 0], 0)
        for a in EDGES
        for b in EDGES
    ]
    expected = [execute(*vector) for vector in queue]
    assert bench(1)(queue) == expected
    assert op == Op.ALWAYS or {step.taken for step in expected} == {False, True}


def test_edge_values_tell_every_two_operations_apart() -> None:
    """The negative control of the two tests around: no operation passes for another one."""

    def results(**fields: int) -> list[Outcome]:
        common = {"a_kind": 1, "update_source_kind": 3}
        return [
            execute(common | fields | {"immediate": b}, [0] * 8, [a] * 8, 0) for a in EDGES for b in EDGES
        ]

    for field, count in (("op", len(Op)), ("update_kind", len(UpdateKind))):
        columns = [tuple(map(repr, results(**{field: value}))) for value in range(count)]
        assert len(set(columns)) == count


@pytest.mark.parametrize("kind", list(UpdateKind))
def test_every_update_of_edge_values(kind: UpdateKind) -> None:
    queue: list[Vector] = [
        (
            {"update_kind": kind, "update_register": 5, "update_source_kind": 3, "immediate": b},
            [0] * 8,
            [0, 0, 0, 0, 0, a, 0, 0],
            0,
        )
        for a in EDGES
        for b in EDGES
    ]
    assert bench(1)(queue) == [execute(*vector) for vector in queue]


@pytest.mark.parametrize("signed", [0, 1])
def test_every_bit_field(signed: int) -> None:
    queue: list[Vector] = [
        (
            {
                "op": Op.ANY,
                "a_index": 6,
                "a_low": low,
                "a_width_minus_1": width,
                "a_signed": signed,
                "immediate": bit,
            },
            [0, 0, 0, 0, 0, 0, value, 0],
            [0] * 8,
            0,
        )
        for low in range(32)
        for width in range(32)
        for value, bit in ((0xDEADBEEF, 1 << width), (0x5A5A5A5A, 1 << 31), (0xDEADBEEF, 1 << (low + 7) % 32))
    ]
    assert bench(1)(queue) == [execute(*vector) for vector in queue]


def test_exit_sees_the_updated_register_and_the_stored_word() -> None:
    for pointer, index in ((1, 2), (0, 4)):
        fields = {
            "update_kind": UpdateKind.ADD,
            "update_register": 2,
            "update_source_kind": 3,
            "immediate": 100,
            "store": 1,
            "store_word": 4,
            "store_register": 2,
            "taken_kind": ExitKind.LOAD,
            "taken_pointer_kind": pointer,
            "taken_pointer_index": index,
            "taken_offset": 0xFFF,
        }
        (step,) = bench(1)([(fields, [9] * 8, [7] * 8, 1)])
        assert step.store == (4, 107, 9, False)
        assert step.exit_value == 106


def test_the_declared_encoding_is_the_one_decoded_here() -> None:
    """`Instruction.encode` and this file's field list, through the datapath."""
    instruction = Instruction(
        op=Op.LT_S,
        a_index=4,
        a_low=0,
        a_width_minus_1=12,
        a_signed=True,
        immediate=1,
        update=Update(kind=UpdateKind.MAX, register=3, source_kind=PointerKind.ADDRESS),
        store=True,
        store_conditional=True,
        store_word=7,
        store_register=3,
        taken=Exit(
            kind=ExitKind.LOAD, target=63, pointer_kind=PointerKind.WORD, pointer_index=1, offset=-2048
        ),
        not_taken=Exit(kind=ExitKind.DONE, offset=255),
    )
    word = instruction.encode()
    fields = {}
    for name, width in WIDTHS.items():
        fields[name] = word & (1 << width) - 1
        word >>= width
    for status in (0x1FFF, 0x0001):
        vector: Vector = fields, [0, 5000, 0, 0, status, 0, 0, 6], [0, 0, 0, 8, 0, 0, 0, 0], 77
        (step,) = bench(1)([vector])
        assert step == execute(*vector)
        if status == 0x1FFF:
            assert (step.update, step.store, step.exit_value) == ((3, 77), (7, 77, 6, True), 2952)
        else:
            assert (step.update, step.store, step.exit_kind, step.exit_code) == (None, None, 3, 255)


def test_stages_hold_without_advance() -> None:
    dut = Datapath(stages=3)

    async def drive(ctx: Any) -> None:
        ctx.set(dut.instruction, InstructionLayout.from_bits(pack({"taken_pointer_kind": 2})))
        for address, advance in ((1, 1), (2, 0), (3, 1), (4, 0), (5, 1)):
            ctx.set(dut.address, address)
            ctx.set(dut.advance, advance)
            await ctx.tick()
        seen.append(ctx.get(dut.step.exit_value))

    seen: list[int] = []
    simulator = Simulator(dut)
    simulator.add_clock(1e-9)
    simulator.add_testbench(drive)
    simulator.run()
    assert seen == [3]


@pytest.mark.parametrize("stages", [0, 5])
def test_stages_out_of_range(stages: int) -> None:
    with pytest.raises(ValueError, match=f"stages is {stages}: expected 1 to 4"):
        Datapath(stages=stages)
