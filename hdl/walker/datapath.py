"""The walker's datapath: what one instruction does to one context, apart from windows and budgets."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, ShapeLike, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from .isa import AKind, BKind, ExitKind, InstructionLayout, Op, PointerKind, UpdateKind

__all__ = ["Datapath", "Step", "WordsLayout"]

#: Eight 32-bit words: a record, or the registers of a context.
WordsLayout = data.ArrayLayout(32, 8)


class Step(wiring.Signature):
    """The outcome of one instruction, with the tests of window, permission and budget still to come.

    Members
    -------
    taken : Out(1)
    update : Out(1)
        `update_register` becomes `update_value`.
    update_register : Out(3), update_value : Out(32)
    store : Out(1)
        Word `store_word` of the current record becomes `store_value`.
    store_conditional : Out(1)
        Only if it still is `store_expected`.
    store_word : Out(3), store_value : Out(32), store_expected : Out(32)
    exit_kind : Out(ExitKind), exit_target : Out(6)
    exit_value : Out(32)
        The address of a load, the value of a yield.
    exit_code : Out(8)
        The code of a done.
    may_store : Out(1)
        The instruction is a store, taken or not.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "taken": Out(1),
                "update": Out(1),
                "update_register": Out(3),
                "update_value": Out(32),
                "store": Out(1),
                "store_conditional": Out(1),
                "store_word": Out(3),
                "store_value": Out(32),
                "store_expected": Out(32),
                "exit_kind": Out(ExitKind),
                "exit_target": Out(6),
                "exit_value": Out(32),
                "exit_code": Out(8),
                "may_store": Out(1),
            }
        )


class _Bundle:
    """Named signals that go from one stage to the next.

    Not a struct: its fields would be packed into one vector and cut out of it again in every simulated cycle,
    which is a third of what a step costs there.
    """

    def __init__(self, prefix: str, **shapes: ShapeLike) -> None:
        self._shapes = shapes
        self._prefix = prefix
        for name, shape in shapes.items():
            setattr(self, name, Signal(shape, name=f"{prefix}_{name}", reset_less=True))

    def registered(self, m: Module, advance: Value) -> "_Bundle":
        """The same behind a pipeline register."""
        register = _Bundle(f"{self._prefix}_staged", **self._shapes)
        with m.If(advance):
            m.d.sync += [getattr(register, name).eq(getattr(self, name)) for name in self._shapes]
        return register


_EXIT_SHAPES = {"kind": ExitKind, "target": 6, "pointer_kind": PointerKind, "pointer_index": 3, "offset": 12}


def _exit_bundle(prefix: str) -> dict[str, ShapeLike]:
    """The fields of an exit, and `operand`: its pointer as it was before update and store."""
    return {f"{prefix}_{name}": shape for name, shape in (_EXIT_SHAPES | {"operand": 32}).items()}


def _fetched() -> _Bundle:
    """Operands of an instruction: what the first stage hands to the second.

    The operand of the test is `a` where `a_mask` has ones, `a_fill` elsewhere. `store_value` is the register
    to store as it is before the update.
    """
    return _Bundle(
        "fetched",
        op=Op,
        a=32,
        a_mask=32,
        a_fill=1,
        b=32,
        update_kind=UpdateKind,
        update_register=3,
        update_old=32,
        update_source=32,
        store=1,
        store_conditional=1,
        store_word=3,
        store_register=3,
        store_value=32,
        store_expected=32,
        **_exit_bundle("taken"),
        **_exit_bundle("not_taken"),
    )


def _tested() -> _Bundle:
    """After test and update: what the second stage hands to the third."""
    return _Bundle(
        "tested",
        taken=1,
        update=1,
        update_register=3,
        update_value=32,
        may_store=1,
        store_conditional=1,
        store_word=3,
        store_register=3,
        store_value=32,
        store_expected=32,
        **_exit_bundle("exit"),
    )


def _left() -> _Bundle:
    """The whole step: what a fourth stage hands on."""
    return _Bundle("left", **{name: member.shape for name, member in Step().members.items()})


def _word(words: data.View, index: Value) -> Value:
    """`words[index]` as a tree of multiplexers: Yosys writes an array access as a shift of all 256 bits."""
    choices: list[Value] = [words[number] for number in range(8)]
    for bit in index:
        choices = [Mux(bit, choices[at + 1], choices[at]) for at in range(0, len(choices), 2)]
    return choices[0]


def _bit(word: Value, index: Value) -> Value:
    """`word[index]` as a tree of multiplexers."""
    choices: list[Value] = [word[number] for number in range(len(word))]
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
    step: Out(Step())

    def __init__(self, *, stages: int = 1) -> None:
        if not 1 <= stages <= 4:
            raise ValueError(f"datapath stages is {stages}: expected 1 to 4")
        self._stages = stages
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        fetched, tested = _fetched(), _tested()
        self._fetch(m, fetched)
        if self._stages >= 2:
            fetched = fetched.registered(m, self.advance)
        self._test(m, fetched, tested)
        if self._stages >= 3:
            tested = tested.registered(m, self.advance)
        if self._stages < 4:
            self._leave(m, tested, self.step)
            return m
        left = _left()
        self._leave(m, tested, left)
        left = left.registered(m, self.advance)
        m.d.comb += [getattr(self.step, name).eq(getattr(left, name)) for name in self.step.signature.members]
        return m

    def _fetch(self, m: Module, fetched: _Bundle) -> None:
        """Operands: everything that needs the record or the registers."""
        instruction, record, registers = self.instruction, self.record, self.registers

        shifted = Signal(32)
        highest = Signal(6)
        a_word = Signal(32)
        m.d.comb += [
            a_word.eq(_word(record, instruction.a_index)),
            shifted.eq(a_word >> instruction.a_low),
            highest.eq(instruction.a_low + instruction.a_width_minus_1),
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
                m.d.comb += [
                    fetched.a.eq(shifted),
                    # Ones up to the field's highest bit, which is found beside the shift and not behind it.
                    fetched.a_mask.eq(~(0xFFFFFFFE << instruction.a_width_minus_1)),
                    fetched.a_fill.eq(instruction.a_signed & ~highest[5] & _bit(a_word, highest[:5])),
                ]
            with m.Case(AKind.REGISTER):
                m.d.comb += [
                    fetched.a.eq(_word(registers, instruction.a_index)),
                    fetched.a_mask.eq(0xFFFFFFFF),
                ]
            with m.Default():
                m.d.comb += [fetched.a.eq(self.address), fetched.a_mask.eq(0xFFFFFFFF)]
        with m.Switch(instruction.b_kind):
            with m.Case(BKind.IMMEDIATE):
                m.d.comb += fetched.b.eq(instruction.immediate)
            with m.Case(BKind.REGISTER):
                m.d.comb += fetched.b.eq(_word(registers, instruction.b_index))
            with m.Default():
                m.d.comb += fetched.b.eq(_word(record, instruction.b_index))
        for prefix in ("taken", "not_taken"):
            exit_fields = {name: getattr(instruction, f"{prefix}_{name}") for name in _EXIT_SHAPES}
            operand = _pointer(
                exit_fields["pointer_kind"],
                _word(record, exit_fields["pointer_index"]),
                _word(registers, exit_fields["pointer_index"]),
                self.address,
                instruction.immediate,
            )
            for name, value in (exit_fields | {"operand": operand}).items():
                m.d.comb += getattr(fetched, f"{prefix}_{name}").eq(value)

    def _test(self, m: Module, fetched: _Bundle, tested: _Bundle) -> None:
        """The test, the update, and the choice of the exit."""
        a, b = Signal(32), fetched.b
        m.d.comb += a.eq((fetched.a & fetched.a_mask) | (fetched.a_fill.replicate(32) & ~fetched.a_mask))
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
        ]
        for name in (*_EXIT_SHAPES, "operand"):
            chosen = Mux(taken, getattr(fetched, f"taken_{name}"), getattr(fetched, f"not_taken_{name}"))
            m.d.comb += getattr(tested, f"exit_{name}").eq(chosen)

    def _leave(self, m: Module, tested: _Bundle, step: Any) -> None:
        """The store and the exit, with what the update and the store changed forwarded to them."""
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
            operand.eq(tested.exit_operand),
        ]
        with m.If(tested.exit_pointer_kind == PointerKind.REGISTER):
            with m.If(tested.update & (tested.update_register == tested.exit_pointer_index)):
                m.d.comb += operand.eq(tested.update_value)
        with m.Elif(tested.exit_pointer_kind == PointerKind.WORD):
            with m.If(store & (tested.store_word == tested.exit_pointer_index)):
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
            step.exit_kind.eq(tested.exit_kind),
            step.exit_target.eq(tested.exit_target),
            # The offset is sign extended to the operand's width.
            step.exit_value.eq(operand + Cat(tested.exit_offset, tested.exit_offset[-1].replicate(20))),
            step.exit_code.eq(tested.exit_offset[:8]),
            step.may_store.eq(tested.may_store),
        ]
