"""The datapath does what the instruction set says, for any word, record, registers and address.

That of one stage is compared with the specification, that of 2 with that of 1, and that of 3 with that of 2.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest
from amaranth.hdl import Assert, Assume, Cover, Module, Mux, Signal, Value
from amaranth.lib.wiring import In

from hdl.walker.datapath import Datapath, WordsLayout
from hdl.walker.isa import INSTRUCTION_WIDTH
from tests.formal.harness import Internals, Proof, Property, quick
from tests.formal.instruction_spec import Meaning, meaning

#: Kinds of exits.
LOAD, YIELD, DONE = 1, 2, 3


_INPUTS = {
    "instruction": In(INSTRUCTION_WIDTH),
    "record": In(WordsLayout),
    "registers": In(WordsLayout),
    "address": In(32),
}


def _words(value: Value) -> list[Value]:
    return [value[32 * n : 32 * (n + 1)] for n in range(8)]


class InstructionProperty(Property):
    """The datapath of one stage, which is a function of its inputs, beside the specification.

    It is proved in `parts`, each of which may assume those before it: a solver does not see by itself that
    two sums are equal because their operands are.
    """

    PARTS = ("operands", "test and update", "pointer", "outcome")

    def __init__(self, *, part: str, false: bool) -> None:
        self._part = part
        super().__init__(_INPUTS, false=false)

    def contents(self, m: Module) -> None:
        block = Datapath(stages=1)
        inner = Internals(block)
        m.submodules.block = inner.fragment
        record, registers = Value.cast(self.record), Value.cast(self.registers)
        m.d.comb += [
            block.advance.eq(1),
            Value.cast(block.instruction).eq(self.instruction),
            Value.cast(block.record).eq(record),
            Value.cast(block.registers).eq(registers),
            block.address.eq(self.address),
        ]
        says = meaning(m, self.instruction, _words(record), _words(registers), self.address)
        step = block.step
        kind = Value.cast(step.exit_kind)
        points = (kind == LOAD) | (kind == YIELD)
        updated = [
            Mux(step.update & (step.update_register == n), step.update_value, word)
            for n, word in enumerate(_words(registers))
        ]
        # The field, and its sign where it has no bits.
        mask, fill = inner["fetched_a_mask"], inner["fetched_a_fill"].replicate(32)
        tested = (inner["fetched_a"] & mask) | (fill & ~mask)
        parts: dict[str, list[Value]] = {
            "operands": [
                (tested == says.a) & (inner["fetched_b"] == says.b),
                (inner["fetched_update_old"] == says.old) & (inner["fetched_update_source"] == says.source),
            ],
            "test and update": [
                step.taken == says.taken,
                step.update == says.updates,
                ~says.updates | (step.update_value == says.new),
                ~says.updates | (step.update_register == says.register),
            ],
            "pointer": [
                kind == says.exit_kind,
                ~points | (inner["operand"] == says.pointer),
                ~says.stores | (step.store_value == says.stored),
            ],
            "outcome": [
                *(now == then for now, then in zip(updated, says.registers, strict=True)),
                step.store == says.stores,
                ~step.store | (step.store_conditional == says.conditional),
                ~step.store | (step.store_word == says.word),
                ~step.store | (step.store_expected == says.expected),
                ~step.store | step.may_store,
                (kind == DONE) | (step.exit_target == says.target),
                ~points | (step.exit_value == says.value),
                (kind != DONE) | (step.exit_code == says.code),
            ],
        }
        for part in self.PARTS[: self.PARTS.index(self._part)]:
            m.d.comb += [Assume(holds) for holds in parts[part]]
        m.d.comb += [Assert(holds) for holds in parts[self._part]]
        if self.false:
            m.d.comb += Assert(self._false(says))
        forwarded = says.updates & says.stores & (says.register == self.instruction[72:75])
        m.d.comb += [
            Cover(forwarded & (kind == LOAD) & (says.stored != 0)),
            Cover(~says.taken & (kind == YIELD) & (says.value == 0xFFFFFFFF)),
            Cover(says.taken & (kind == DONE) & (says.code == 0xA5)),
            Cover(says.stores & says.conditional),
        ]

    def _false(self, says: Meaning) -> Value:
        """What is not so: a slip in the specification, for each part one."""
        word = self.instruction
        return {
            # The sign of a field is ignored.
            "operands": ~((word[32:35] != 0) & (word[35:37] == 0) & word[50] & says.a[31])
            | (word[45:50] == 31),
            # A sum of a register and itself is never odd, nor is any other update.
            "test and update": ~says.updates | ~says.new[0],
            # An exit sees the registers as they were before the update.
            "pointer": ~(says.updates & (word[83:85] == 1) & (word[85:88] == says.register))
            | (says.pointer == says.old),
            # An offset is not negative.
            "outcome": (says.exit_kind != LOAD) | (says.value >= says.pointer),
        }[self._part]


class PipelineProperty(Property):
    """The datapath of 2 or 3 stages gives the steps of that of one stage less, an advance later.

    Proved by induction over any sequence of inputs, advances and holds. What relates a state to the past is
    that the results of each stage are those of a stage less, an advance earlier.
    """

    #: By stages: results of the pipeline, those of a stage less that are the same, and the advances between.
    KEPT: ClassVar = {
        2: (("fetched_staged", "fetched", 1), ("tested", "tested", 1)),
        3: (("fetched_staged", "fetched_staged", 0), ("tested_staged", "tested", 1)),
    }

    def __init__(self, *, stages: int, false: bool) -> None:
        self._stages = stages
        super().__init__(_INPUTS | {"advance": In(1)}, false=false)

    def contents(self, m: Module) -> None:
        pipeline, less = Datapath(stages=self._stages), Datapath(stages=self._stages - 1)
        inner, reference = Internals(pipeline), Internals(less)
        m.submodules.pipeline, m.submodules.less = inner.fragment, reference.fragment
        for block in (pipeline, less):
            m.d.comb += block.advance.eq(self.advance)
            m.d.comb += [
                Value.cast(getattr(block, name)).eq(Value.cast(getattr(self, name))) for name in _INPUTS
            ]
        advanced = Signal()
        with m.If(self.advance):
            m.d.sync += advanced.eq(1)

        def earlier(value: Value) -> Value:
            """What `value` was when the stages last advanced."""
            register = Signal(len(value), reset_less=True)
            with m.If(self.advance):
                m.d.sync += register.eq(value)
            return register

        for ours, theirs, advances in self.KEPT[self._stages]:
            fields = [name for name in inner.names() if name.startswith(f"{ours}_")]
            if ours == "tested":
                fields = [name for name in fields if not name.startswith("tested_staged_")]
            for name in fields:
                then = Value.cast(reference[name.replace(ours, theirs, 1)])
                then = earlier(then) if advances else then
                m.d.comb += Assert(~advanced | (Value.cast(inner[name]) == then))
        for ours, theirs in zip(self._fields(pipeline), self._fields(less), strict=True):
            m.d.comb += Assert(~advanced | (ours == earlier(theirs)))
        step, kind = pipeline.step, Value.cast(pipeline.step.exit_kind)
        if self.false:
            # It takes no advance more.
            m.d.comb += Assert(step.exit_value == less.step.exit_value)
        held = Signal()
        m.d.sync += held.eq(advanced & ~self.advance)
        m.d.comb += [
            Cover(held & step.update & step.store & (step.store_value != 0) & (kind == LOAD)),
            Cover(advanced & ~held & ~step.taken & (kind == DONE) & (step.exit_code == 0xA5)),
        ]

    @staticmethod
    def _fields(block: Datapath) -> list[Value]:
        return [Value.cast(value) for _, _, value in block.step.signature.flatten(block.step)]


PROOFS = [
    Proof(
        name=f"instruction, {part}",
        build=lambda false, part=part: InstructionProperty(part=part, false=false),
        # A function of the inputs of one cycle, all of them free: one cycle is all.
        mode="bmc",
        depth=1,
        cover_depth=1,
    )
    for part in InstructionProperty.PARTS
] + [
    Proof(
        name=f"instruction in {stages} stages",
        build=lambda false, stages=stages: PipelineProperty(stages=stages, false=false),
        depth=1,
        cover_depth=stages + 3,
    )
    for stages in (2, 3)
]


@pytest.mark.parametrize("proof", quick(PROOFS), ids=lambda proof: proof.name.replace(" ", "_"))
def test_proof(proof: Proof, tmp_path: Path) -> None:
    proof.check(tmp_path)
