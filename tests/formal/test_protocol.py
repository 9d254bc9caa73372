"""No sequence of requests makes the controller break a rule of the timing table."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import reduce
from operator import add
from pathlib import Path

import pytest
from amaranth.hdl import Assert, Cover, Module, Value

from hdl.config import DesignConfig
from hdl.layouts import RefreshMode, RowOp
from hdl.memory.checker import Checker
from hdl.memory.timing import Command
from tests.formal.channel import ChannelProperty
from tests.formal.harness import Proof, quick
from tests.formal.rules import TableSpec
from tests.formal.small import SmallMemory, small_design


class TableProperty(ChannelProperty):
    """The controller and the specification of the table, which finds nothing broken.

    By induction: with what is always so inside the controller. The specification's ages and the controller's
    counters need no such statement: after as many steps as the longest distance they have forgotten the state
    that the induction began with.

    Covers: each of `commands`, and a command at the first cycle that a rule of each name in `tight` allows.
    """

    def __init__(
        self, config: DesignConfig, *, commands: Iterable[Command], tight: Iterable[str], false: bool
    ) -> None:
        self._commands, self._tight = tuple(commands), tuple(tight)
        super().__init__(config, false=false)

    def contents(self, m: Module) -> None:
        controller = self.environment(m)
        spec = TableSpec(m, self.config.memory, row=controller.row, column=controller.column)
        for broken in spec.broken.values():
            m.d.comb += Assert(~broken)
        self._invariants(m, spec)
        m.d.comb += [Cover(spec.events[command].any()) for command in self._commands]
        m.d.comb += [Cover(spec.tight[name]) for name in self._tight]
        if self.false:
            # Were tRTP one cycle longer.
            m.d.comb += Assert(~spec.tight["tRTP"])

    def _invariants(self, m: Module, spec: TableSpec) -> None:
        queues, timers = self.inner.inside("queues"), self.inner.inside("timers")
        opened = queues["state__open"]
        # The controller knows which banks are open, and what it takes for a hit is in an open row.
        m.d.comb += Assert(opened == spec.following)
        for name in queues.names():
            if name.startswith("state__hit__"):
                valid = queues[name.replace("hit", "valid")]
                m.d.comb += Assert((queues[name] & ~(opened & valid)) == 0)
        # From the first PREA to the last REFab nothing is open behind the channel pointer.
        refresher = self.inner.inside("refresher")
        closing = refresher.inside("all_banks")
        channel = closing["pseudo_channel"]
        banks = self.config.memory.organisation.banks
        for p in range(self.config.memory.organisation.pseudo_channels):
            closed = opened[banks * p : banks * (p + 1)] == 0
            passed = closing.state("PRECHARGE", "CLOSE") & (channel > p)
            m.d.comb += Assert(~(passed | closing.state("REFRESH", "SETTLE")) | closed)
        m.d.comb += [
            Assert(closing.state()),
            Assert(closing.state("PRECHARGE", "REFRESH", "CLOSE") | (channel == 0)),
            Assert(self.restart | ~closing.state("CLOSE", "SETTLE")),
            # One kind of refresh at a time, and none in a restart that closes the banks.
            Assert(~closing.state("DRAIN", "PRECHARGE", "REFRESH") | (self.refresh == RefreshMode.ALL_BANK)),
            Assert(
                (refresher["block"] == 0) | ((self.refresh == RefreshMode.PER_BANK) & closing.state("IDLE"))
            ),
        ]
        # Of the counters of a window exactly one has its turn.
        turns: dict[str, list[Value]] = {}
        for name in timers.names():
            if found := re.fullmatch(r"(\w+)_turn\d+", name):
                turns.setdefault(found[1], []).append(timers[name])
        for vectors in turns.values():
            for place in range(len(vectors[0])):
                m.d.comb += Assert(reduce(add, (vector[place] for vector in vectors)) == 1)


class CheckedProperty(ChannelProperty):
    """The controller and the protocol checker, which shares no code with it: it never reports anything."""

    def contents(self, m: Module) -> None:
        controller = self.environment(m)
        m.submodules.checker = checker = Checker(self.config)
        row, column = controller.row, controller.column
        m.d.comb += [
            *(
                getattr(checker.row, name).eq(getattr(row, name))
                for name in ("op", "pseudo_channel", "bank", "row")
            ),
            *(
                getattr(checker.column, name).eq(getattr(column, name))
                for name in ("op", "pseudo_channel", "bank", "column")
            ),
            checker.refresh_enable.eq((self.refresh != RefreshMode.NONE) & ~self.restart),
            Assert(~checker.violation),
            Cover(row.op == RowOp.REFRESH_ALL),
            Cover(row.op == RowOp.REFRESH_BANK),
            Cover(controller.restarted),
        ]
        if self.false:
            m.d.comb += Assert(row.op != RowOp.PRECHARGE)


#: What an open-page controller issues.
COMMANDS = (Command.ACT, Command.PRE, Command.PREA, Command.REFAB, Command.REFPB, Command.RD, Command.WR)
ONE_BANK = ("tRCDRD", "tRCDWR", "tRAS", "tRP", "tRTP", "tWR", "tCCDL", "tRTW", "tWTRL", "tRFC", "tRFCpb")


def table(
    name: str, shape: tuple[int, int, int], *, tight: Iterable[str], cover_depth: int = 45, **others: bool
) -> Proof:
    """The proof that the table is kept, in a memory of some shape."""
    return Proof(
        name=f"table {name}",
        build=lambda false: TableProperty(
            small_design(SmallMemory(shape=shape, cycles={"tREFI": 30})),
            commands=COMMANDS,
            tight=tight,
            false=false,
        ),
        depth=14,
        cover_depth=cover_depth,
        timeout=1800,
        **others,
    )


PROOFS = [
    table("one bank", (1, 1, 1), tight=ONE_BANK),
    table("two channels", (2, 1, 1), tight=ONE_BANK, quick=False),
    table(
        "four banks", (2, 2, 1), tight=(*ONE_BANK, "tRRDS", "tCCDS", "tWTRS", "tPPD", "tRREFD"), quick=False
    ),
    table("eight banks", (2, 2, 2), tight=("tFAW", "tRRDL", "tCCDL", "tWTRL"), cover_depth=24, quick=False),
    Proof(
        name="checker silent",
        build=lambda false: CheckedProperty(
            small_design(SmallMemory(shape=(1, 1, 1), cycles={"tREFI": 30})), false=false
        ),
        mode="bmc",
        depth=40,
        cover_depth=40,
        timeout=1200,
        quick=False,
    ),
]


@pytest.mark.parametrize("proof", quick(PROOFS), ids=lambda proof: proof.name)
def test_the_table_is_kept(proof: Proof, tmp_path: Path) -> None:
    proof.check(tmp_path)
