"""The negative control: the same walk after one count, flag or score is flipped must give a wrong verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass

import numpy as np

from sim.model.interpreter import Atom, WalkResult, record_words

from .batches import Batch, BatchBuilder, RingSize, WalkCommand, Window
from .image import WriteRun
from .records import CANDIDATE, DEAD_BIT, DEPTH, NO_SCORE, UNTRIED, BitField
from .walks import Answer, Check, Question

__all__ = ["Control", "build_control", "control_batches"]

#: Runs a question's walk on a memory; gives what it did.
GoldenRun = Callable[[Question, MutableMapping[int, Atom]], WalkResult]
Words = tuple[int, ...]

#: Records of one walk whose fields are tried, from its last read back.
_RECORDS_TRIED = 32
#: Longest walk that is repeated: the control is one small batch, and trying flips takes time.
_HOPS_MAX = 256
_SCORE_MAX = (1 << 31) - 1


@dataclass(frozen=True, kw_only=True)
class Control:
    """One walk of the replay to be repeated on its records as they were, then with one field flipped."""

    check: Check
    question: Question
    window: Window
    trace: int
    """The trace's place among those of the run."""
    records: Mapping[int, Words]
    """Every record that the walk reads with or without the flip, as it was before the walk."""
    flipped_address: int
    flipped_word: int
    flipped_value: int
    flipped_field: str
    answer: Answer
    """What the golden interpreter answers after the flip: a wrong verdict."""


class _Overlay(MutableMapping[int, Atom]):
    """A memory whose stores are kept beside it; remembers which records were read."""

    def __init__(self, under: Mapping[int, Atom], changed: Mapping[int, Atom]) -> None:
        self._under = under
        self._over = dict(changed)
        self.read: set[int] = set()

    def __getitem__(self, address: int) -> Atom:
        self.read.add(address)
        return self._over[address] if address in self._over else self._under[address]

    def __setitem__(self, address: int, atom: Atom) -> None:
        self._over[address] = atom

    def __delitem__(self, address: int) -> None:
        del self._over[address]

    def __contains__(self, address: object) -> bool:
        return address in self._over or address in self._under

    def __iter__(self) -> Iterator[int]:
        return iter(self._over.keys() | self._under.keys())

    def __len__(self) -> int:
        return len(self._over.keys() | self._under.keys())


def build_control(
    question: Question,
    walked: WalkResult,
    memory: Mapping[int, Atom],
    *,
    golden: GoldenRun,
    as_answer: Callable[[WalkResult], Answer],
    window: Window,
    trace: int,
) -> Control | None:
    """The control of a walk that stores nothing and went as `walked` says on `memory`.

    None when it is too long to be repeated in a small batch, or no single flip makes its verdict wrong.
    """
    if walked.hops > _HOPS_MAX:
        return None
    for address in list(dict.fromkeys(reversed(walked.addresses)))[:_RECORDS_TRIED]:
        record = _words(memory, address)
        for field, word, value in _flips(question.check, record):
            flipped = (*record[:word], value, *record[word + 1 :])
            if flipped == record:
                continue
            changed = _Overlay(memory, {address: flipped})
            answer = as_answer(golden(question, changed))
            if question.expectation.right(answer):
                continue
            return Control(
                check=question.check,
                question=question,
                window=window,
                trace=trace,
                records={read: _words(memory, read) for read in sorted({*walked.addresses} | changed.read)},
                flipped_address=address,
                flipped_word=word,
                flipped_value=value,
                flipped_field=field,
                answer=answer,
            )
    return None


def _flips(check: Check, record: Words) -> Iterator[tuple[str, int, int]]:
    """Changes of one field of a record that may change a walk's answer: field, word, the word's new value."""
    if check == "select":
        for score in (NO_SCORE, _SCORE_MAX):
            yield "score", CANDIDATE["score"], score & 0xFFFFFFFF
    elif check == "climb":
        yield "untried", UNTRIED.word, _with_field(record, UNTRIED, 0 if _field(record, UNTRIED) else 1)
        yield "dead", DEAD_BIT.word, _with_field(record, DEAD_BIT, 1 - _field(record, DEAD_BIT))
    elif check == "ancestor":
        depth = _field(record, DEPTH)
        for other in (depth + 1, depth - 1, 0):
            if 0 <= other < 1 << DEPTH.width:
                yield "depth", DEPTH.word, _with_field(record, DEPTH, other)


def _field(record: Words, field: BitField) -> int:
    return record[field.word] >> field.low & (1 << field.width) - 1


def _with_field(record: Words, field: BitField, value: int) -> int:
    ones = (1 << field.width) - 1
    return record[field.word] & ~(ones << field.low) | value << field.low


def control_batches(
    control: Control, *, ring: RingSize, command: Callable[[Question, int], WalkCommand]
) -> Sequence[Batch]:
    """The batches of a control: its records, the walk (number 0), the flip, the walk again (number 1)."""
    builder = BatchBuilder(ring)
    builder.window(control.window)
    for address, record in control.records.items():
        builder.write(WriteRun(address=address, mask=0xFFFFFFFF, data=_atom(record)))
    builder.fence()
    builder.walk(command(control.question, control.window.context), number=0)
    builder.fence()
    record = control.records[control.flipped_address]
    word = control.flipped_word
    flipped = (*record[:word], control.flipped_value, *record[word + 1 :])
    builder.write(WriteRun(address=control.flipped_address, mask=0xF << 4 * word, data=_atom(flipped)))
    builder.fence()
    builder.walk(command(control.question, control.window.context), number=1)
    return builder.finish()


def _words(memory: Mapping[int, Atom], address: int) -> Words:
    return tuple(record_words(memory[address]))


def _atom(record: Words) -> np.ndarray:
    return np.array([record], dtype=np.uint32)
