"""The walker's datapath: what one instruction does to one context, apart from windows and budgets."""

from collections.abc import Sequence

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from .isa import AKind, BKind, Exit, ExitKind, InstructionLayout, Op, PointerKind, UpdateKind

__all__ = ["Datapath", "Step", "WordsLayout"]

#: Eight 32-bit words: a record, or the registers of a context.
WordsLayout = data.ArrayLayout(32, 8)


class Step(data.Struct):
    """The outcome of one instruction, with the tests of window, permission and budget still to come."""

    taken: 1
    update: 1
    """`update_register` becomes `update_value`."""
    update_register: 3
    update_value: 32
    store: 1
    """Word `store_word` of the current record becomes `store_value`."""
    store_conditional: 1
    """Only if it still is `store_expected`."""
    store_word: 3
    store_value: 32
    store_expected: 32
    exit_kind: ExitKind
    exit_target: 6
    exit_value: 32
    """The address of a load, the value of a yield."""
    exit_code: 8
    """The code of a done."""
    may_store: 1
    """The instruction is a store, taken or not."""


class _Exit(data.Struct):
    kind: ExitKind
    target: 6
    pointer_kind: PointerKind
    pointer_index: 3
    offset: 12
    operand: 32
    """The pointer as it was before update and store."""


class _Fetched(data.Struct):
    """Operands of an instruction: what the first stage hands to the second."""

    op: Op
    a: 32
    b: 32
    update_kind: UpdateKind
    update_register: 3
    update_old: 32
    update_source: 32
    store: 1
    store_conditional: 1
    store_word: 3
    store_register: 3
    store_value: 32
    """The register to store, before the update."""
    store_expected: 32
    taken: _Exit
    not_taken: _Exit


class _Tested(data.Struct):
    """After test and update: what the second stage hands to the third."""

    taken: 1
    update: 1
    update_register: 3
    update_value: 32
    may_store: 1
    store_conditional: 1
    store_word: 3
    store_register: 3
    store_value: 32
    store_expected: 32
    exit: _Exit


def _word(words: data.View, index: Value) -> Value:
    """`words[index]` as a tree of multiplexers: Yosys writes an array access as a shift of all 256 bits."""
    choices: list[Value] = [words[number] for number in range(8)]
    for bit in index:
        choices = [Mux(bit, choices[at + 1], choices[at]) for at in range(0, len(choices), 2)]
    return choices[0]


def _pointer(kind: Value, word: Value, register: Value, address: Value, immediate: Value) -> Value:
    return Mux(kind[1], Mux(kind[0], immediate, address), Mux(kind[0], register, word))


class Datapath(wiring.Component):
    """One instruction on one record: a pure function of its inputs, `stages` - 1 cycles later.

    Test, update, store and exit as `isa.py` describes them, in that order: a load, a yield or a store sees
    the updated register, and a load or a yield sees the stored word. Words that no assembler writes mean:
    `a_kind` 3 is ADDRESS, `b_kind` 3 is WORD, an exit's pointer IMMEDIATE is the instruction's immediate,
    the bits of a field beyond bit 31 are 0, and the reserved bits are ignored. It has no notion of validity:
    whoever uses it carries that beside it, and holds both with `advance`.

    Members
    -------
    advance : In(1)
        The stages move on. Without meaning for one stage.
    instruction : In(InstructionLayout), record : In(8 words), registers : In(8 words), address : In(32)
        The address is that of the record.
    step : Out(Step)
    """

    advance: In(1)
    instruction: In(InstructionLayout)
    record: In(WordsLayout)
    registers: In(WordsLayout)
    address: In(32)
    step: Out(Step)

    def __init__(self, *, stages: int = 1) -> None:
        if stages not in (1, 2, 3):
            raise ValueError(f"datapath stages is {stages}: expected 1, 2 or 3")
        self._stages = stages
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        fetched = Signal(_Fetched)
        self._fetch(m, fetched)
        tested = Signal(_Tested)
        self._test(m, self._staged(m, fetched, present=self._stages >= 2), tested)
        self._leave(m, self._staged(m, tested, present=self._stages >= 3))
        return m

    def _staged(self, m: Module, value: data.View, *, present: bool) -> data.View:
        """`value` behind a pipeline register, or itself."""
        if not present:
            return value
        register = Signal(value.shape(), reset_less=True)
        with m.If(self.advance):
            m.d.sync += register.eq(value)
        return register

    def _fetch(self, m: Module, fetched: data.View) -> None:
        """Operands: everything that needs the record or the registers."""
        instruction, record, registers = self.instruction, self.record, self.registers

        shifted = Signal(32)
        mask = Signal(32)
        negative = Signal()
        a_field = Signal(32)
        a_word = Signal(32)
        m.d.comb += [
            a_word.eq(_word(record, instruction.a_index)),
            shifted.eq(a_word >> instruction.a_low),
            # Ones up to the field's highest bit.
            mask.eq(~(0xFFFFFFFE << instruction.a_width_minus_1)),
            negative.eq(instruction.a_signed & shifted.bit_select(instruction.a_width_minus_1, 1)),
            a_field.eq(Mux(negative, shifted | ~mask, shifted & mask)),
            fetched.op.eq(instruction.op),
            fetched.update_kind.eq(instruction.update_kind),
            fetched.update_register.eq(instruction.update_register),
            fetched.update_old.eq(_word(registers, instruction.update_register)),
            fetched.update_source.eq(
                _pointer(
                    instruction.update_source_kind,
                    _word(record, instruction.update_source_index),
                    _word(registers, instruction.update_source_index),
                    self.address,
                    instruction.immediate,
                )
            ),
            fetched.store.eq(instruction.store),
            fetched.store_conditional.eq(instruction.store_conditional),
            fetched.store_word.eq(instruction.store_word),
            fetched.store_register.eq(instruction.store_register),
            fetched.store_value.eq(_word(registers, instruction.store_register)),
            fetched.store_expected.eq(_word(record, instruction.store_word)),
        ]
        with m.Switch(instruction.a_kind):
            with m.Case(AKind.WORD):
                m.d.comb += fetched.a.eq(a_field)
            with m.Case(AKind.REGISTER):
                m.d.comb += fetched.a.eq(_word(registers, instruction.a_index))
            with m.Default():
                m.d.comb += fetched.a.eq(self.address)
        with m.Switch(instruction.b_kind):
            with m.Case(BKind.IMMEDIATE):
                m.d.comb += fetched.b.eq(instruction.immediate)
            with m.Case(BKind.REGISTER):
                m.d.comb += fetched.b.eq(_word(registers, instruction.b_index))
            with m.Default():
                m.d.comb += fetched.b.eq(_word(record, instruction.b_index))
        for prefix, leave in (("taken", fetched.taken), ("not_taken", fetched.not_taken)):
            kind, target, pointer_kind, index, offset = _exit_fields(instruction, prefix)
            m.d.comb += [
                leave.kind.eq(kind),
                leave.target.eq(target),
                leave.pointer_kind.eq(pointer_kind),
                leave.pointer_index.eq(index),
                leave.offset.eq(offset),
                leave.operand.eq(
                    _pointer(
                        pointer_kind,
                        _word(record, index),
                        _word(registers, index),
                        self.address,
                        instruction.immediate,
                    )
                ),
            ]

    def _test(self, m: Module, fetched: data.View, tested: data.View) -> None:
        """The test, the update, and the choice of the exit."""
        a, b = fetched.a, fetched.b
        taken = Signal()
        with m.Switch(fetched.op):
            for op, result in (
                (Op.ALWAYS, 1),
                (Op.EQ, a == b),
                (Op.NE, a != b),
                (Op.LT_S, a.as_signed() < b.as_signed()),
                (Op.GE_S, a.as_signed() >= b.as_signed()),
                (Op.LT_U, a < b),
                (Op.GE_U, a >= b),
                (Op.ANY, (a & b).any()),
            ):
                with m.Case(op):
                    m.d.comb += taken.eq(result)
        old, source = fetched.update_old, fetched.update_source
        smaller = old.as_signed() < source.as_signed()
        with m.Switch(fetched.update_kind):
            for kind, result in (
                (UpdateKind.ADD, old + source),
                (UpdateKind.SUB, old - source),
                (UpdateKind.MIN, Mux(smaller, old, source)),
                (UpdateKind.MAX, Mux(smaller, source, old)),
                (UpdateKind.AND, old & source),
                (UpdateKind.OR, old | source),
            ):
                with m.Case(kind):
                    m.d.comb += tested.update_value.eq(result)
            with m.Default():
                m.d.comb += tested.update_value.eq(source)
        m.d.comb += [
            tested.taken.eq(taken),
            tested.update.eq(taken & (fetched.update_kind != UpdateKind.NONE)),
            tested.update_register.eq(fetched.update_register),
            tested.may_store.eq(fetched.store),
            tested.store_conditional.eq(fetched.store_conditional),
            tested.store_word.eq(fetched.store_word),
            tested.store_register.eq(fetched.store_register),
            tested.store_value.eq(fetched.store_value),
            tested.store_expected.eq(fetched.store_expected),
            tested.exit.eq(Mux(taken, fetched.taken, fetched.not_taken)),
        ]

    def _leave(self, m: Module, tested: data.View) -> None:
        """The store and the exit, with what the update and the store changed forwarded to them."""
        step, leave = self.step, tested.exit
        # Local signals for what is used again: reading a field of `step` would look like a loop through it.
        store = Signal()
        store_value = Signal(32)
        operand = Signal(32)
        m.d.comb += [
            store.eq(tested.taken & tested.may_store),
            store_value.eq(
                Mux(
                    tested.update & (tested.update_register == tested.store_register),
                    tested.update_value,
                    tested.store_value,
                )
            ),
            operand.eq(leave.operand),
        ]
        with m.If(leave.pointer_kind == PointerKind.REGISTER):
            with m.If(tested.update & (tested.update_register == leave.pointer_index)):
                m.d.comb += operand.eq(tested.update_value)
        with m.Elif(leave.pointer_kind == PointerKind.WORD):
            with m.If(store & (tested.store_word == leave.pointer_index)):
                m.d.comb += operand.eq(store_value)
        m.d.comb += [
            step.taken.eq(tested.taken),
            step.update.eq(tested.update),
            step.update_register.eq(tested.update_register),
            step.update_value.eq(tested.update_value),
            step.store.eq(store),
            step.store_conditional.eq(tested.store_conditional),
            step.store_word.eq(tested.store_word),
            step.store_value.eq(store_value),
            step.store_expected.eq(tested.store_expected),
            step.exit_kind.eq(leave.kind),
            step.exit_target.eq(leave.target),
            # The offset is sign extended to the operand's width.
            step.exit_value.eq(operand + Cat(leave.offset, leave.offset[-1].replicate(20))),
            step.exit_code.eq(leave.offset[:8]),
            step.may_store.eq(tested.may_store),
        ]


def _exit_fields(instruction: data.View, prefix: str) -> Sequence[Value]:
    """The fields of the exit `taken` or `not_taken` in the order of `isa.Exit`."""
    names = ("kind", "target", "pointer_kind", "pointer_index", "offset")
    assert set(names) == set(Exit.__dataclass_fields__)
    return [getattr(instruction, f"{prefix}_{name}") for name in names]
