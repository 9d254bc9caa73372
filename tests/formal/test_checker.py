"""The protocol checker and the specification of the proofs, two statements of the table, agree."""

from __future__ import annotations

from pathlib import Path

import pytest
from amaranth.hdl import Assert, Assume, Cover, Module, Signal
from amaranth.lib.wiring import In

from hdl.layouts import ColumnOp, RowOp
from hdl.memory.checker import Checker, published_rules
from hdl.memory.timing import Command
from tests.formal.harness import Proof, Property, quick
from tests.formal.rules import TableSpec
from tests.formal.small import SmallMemory, small_design

#: They count only while refresh is enabled, and have proofs of their own.
REFRESH_RULES = ("refresh overdue", "REFpb out of round")


class AgreementProperty(Property):
    """Both listen to free buses, legal or not: each names the same rules in the same cycles."""

    def __init__(self, memory: SmallMemory, *, false: bool) -> None:
        self._memory = memory
        super().__init__(
            {
                "row_op": In(RowOp),
                "row_channel": In(1),
                "row_bank": In(2),
                "column_op": In(ColumnOp),
                "column_channel": In(1),
                "column_bank": In(2),
            },
            false=false,
        )

    def contents(self, m: Module) -> None:
        m.submodules.checker = checker = Checker(small_design(self._memory))
        organisation = self._memory.organisation
        m.d.comb += [
            checker.row.op.eq(self.row_op),
            checker.row.pseudo_channel.eq(self.row_channel),
            checker.row.bank.eq(self.row_bank),
            checker.column.op.eq(self.column_op),
            checker.column.pseudo_channel.eq(self.column_channel),
            checker.column.bank.eq(self.column_bank),
            Assume(self.row_channel < organisation.pseudo_channels),
            Assume(self.column_channel < organisation.pseudo_channels),
            Assume(self.row_bank < organisation.banks),
            Assume(self.column_bank < organisation.banks),
        ]
        spec = TableSpec(m, self._memory, row=checker.row, column=checker.column)
        # An ACT holds the row bus for its slots: what else is put there has no defined order with it.
        busy = Signal(self._memory.timing.activate_slots - 1)
        m.d.sync += busy.eq((busy << 1) | (self.row_op == RowOp.ACTIVATE))
        m.d.comb += Assume((busy == 0) | (self.row_op == RowOp.NOP))

        started = Signal()
        m.d.sync += started.eq(1)
        for index, name in enumerate(published_rules(self._memory.timing)):
            if name in REFRESH_RULES:
                continue
            before = Signal(name=f"before{index}")
            m.d.sync += before.eq(spec.broken[name])
            m.d.comb += Assert(checker.broken[index] == before)
            if name not in ("row bus", "column bus", "undefined command"):
                m.d.comb += Cover(before & checker.broken[index])
            if self.false and name == "tRTP+tRP":
                # Were an ACT after an RDA to come one cycle later.
                at_limit = Signal()
                m.d.sync += at_limit.eq(spec.tight_after[name, Command.ACT])
                m.d.comb += Assert(checker.broken[index] == (before | at_limit))


PROOFS = [
    Proof(
        name="checker agrees",
        build=lambda false: AgreementProperty(SmallMemory(shape=(2, 2, 1)), false=false),
        mode="bmc",
        depth=14,
        cover_depth=14,
        quick=False,
    ),
]


@pytest.mark.parametrize("proof", quick(PROOFS), ids=lambda proof: proof.name)
def test_the_checker_agrees(proof: Proof, tmp_path: Path) -> None:
    proof.check(tmp_path)
