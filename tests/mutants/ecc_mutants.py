"""Mutants of the error correction and of the writes that it makes read-modify-writes."""

from __future__ import annotations

from .mutant import Mutant, Replace

__all__ = ["ECC_MUTANTS"]

_ATOMIC = "hdl/memory/atomic.py"
_CONTROLLER = "hdl/memory/controller.py"
_CORRECTION = "hdl/memory/correction.py"
_ECC = "hdl/memory/ecc.py"

_CODE = ("tests/hdl/memory/test_ecc.py",)
_STAGE = ("tests/hdl/memory/test_correction.py",)

ECC_MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        name="ECC encoder bit wrong",
        defect="a check bit does not cover one of its data bits",
        edits=(
            Replace(
                _ECC,
                "for bit, column in enumerate(COLUMNS) if column >> row & 1]\n            m.d",
                "for bit, column in enumerate(COLUMNS) if column >> row & 1][row == 3 :]\n            m.d",
            ),
        ),
        tests=_CODE,
    ),
    Mutant(
        name="ECC double taken for none",
        defect="an uncorrectable word is returned as good",
        edits=(Replace(_ECC, "syndrome.any() & ~self.corrected", "0"),),
        tests=_CODE,
    ),
    Mutant(
        name="ECC double taken for single",
        defect="a double error counts as corrected",
        edits=(Replace(_ECC, "wrong_data.any() | wrong_check.any()", "syndrome.any()"),),
        tests=_CODE,
    ),
    Mutant(
        name="ECC single not put right",
        defect="a single error is reported, and the data stays wrong",
        edits=(Replace(_ECC, "corrected_data.eq(self.data ^ wrong_data)", "corrected_data.eq(self.data)"),),
        tests=_CODE,
    ),
    Mutant(
        name="poisoned data returned as good",
        defect="the status of an uncorrectable read is CORRECTED",
        edits=(Replace(_CORRECTION, "MemoryStatus.POISONED,", "MemoryStatus.CORRECTED,"),),
        tests=_STAGE,
    ),
    Mutant(
        name="error at the wrong address",
        defect="an error is reported with the address of the read behind it",
        edits=(Replace(_CORRECTION, "read.addr.eq(arrived)", "read.addr.eq(arrived + 1)"),),
        tests=_STAGE,
    ),
    Mutant(
        name="check bits of the write before",
        defect="the encoder's check bits reach the bus a write too late",
        edits=(
            Replace(
                _CONTROLLER, "self.column.write_check.eq(encoder.check)", "self.column.write_check.eq(last)"
            ),
            Replace(
                _CONTROLLER,
                "            with m.If(writes):\n                m.d.sync += self.column.write_check",
                "            last = Signal.like(encoder.check)\n            with m.If(writes):\n"
                "                m.d.sync += last.eq(encoder.check)\n"
                "                m.d.sync += self.column.write_check",
            ),
        ),
        campaign="hbm2 with ECC",
    ),
    Mutant(
        name="partial write clears the word",
        defect="the bytes that a partial write leaves out become those of its own data",
        edits=(
            Replace(
                _ATOMIC,
                "Mux(enable, kept.data.word_select(n, 8), found.data.word_select(n, 8))",
                "kept.data.word_select(n, 8)",
            ),
        ),
        campaign="hbm2 with ECC",
    ),
    Mutant(
        name="read-modify-write not atomic",
        defect="a partial write takes the first answer to anybody for its own",
        edits=(
            Replace(
                _ATOMIC,
                "own.eq(reading & (found.tag.source == Source.CONTROLLER))",
                "own.eq(reading & (found.tag.context == kept.tag.context))",
            ),
        ),
        campaign="hbm2 with ECC",
    ),
)
