"""No sequence of requests makes the controller break a rule of the timing table."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import reduce
from operator import add
from pathlib import Path

import pytest
from amaranth.hdl import Assert, Cover, Module, Signal, Value

from hdl.config import DesignConfig
from hdl.layouts import ColumnOp, RefreshMode, RowOp
from hdl.memory.all_bank_refresher import AllBankRefresher
from hdl.memory.checker import Checker
from hdl.memory.controller import CONTROLLER_COMMANDS, Controller
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

    Covers: each of `commands`, a command at the first cycle that a rule of each name in `tight` allows, and
    an ACT at the first that auto-precharge allows. False: were the rule `longer` one cycle longer.
    """

    def __init__(
        self,
        config: DesignConfig,
        *,
        commands: Iterable[Command],
        tight: Iterable[str],
        longer: str,
        false: bool,
    ) -> None:
        self._commands, self._tight, self._longer = tuple(commands), tuple(tight), longer
        super().__init__(config, false=false)

    def contents(self, m: Module) -> None:
        controller = self.environment(m)
        spec = TableSpec(m, self.config.memory, row=controller.row, column=controller.column)
        for broken in spec.broken.values():
            m.d.comb += Assert(~broken)
        self._invariants(m, spec)
        self._claims(m, controller, spec)
        m.d.comb += [Cover(spec.events[command].any()) for command in self._commands]
        m.d.comb += [Cover(spec.tight[name]) for name in self._tight]
        m.d.comb += [
            Cover(spec.tight_after[name, Command.ACT]) for name in AUTO_PRECHARGE if name in self._tight
        ]
        if self.false:
            m.d.comb += Assert(~spec.tight[self._longer])

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
        # What it holds up is in registers, a cycle ahead of its states.
        holding = closing.state("PRECHARGE", "REFRESH", "CLOSE", "SETTLE")
        given = CONTROLLER_COMMANDS & self.config.memory.timing.commands
        built = AllBankRefresher(self.config, commands=given)
        for name, ahead in (
            ("hold_row", built._rows_ahead),
            ("hold_write", built._writes_ahead),
            ("hold_read", built._reads_ahead),
        ):
            drained = closing.state("DRAIN") & (closing["left"] < ahead)
            m.d.comb += Assert(closing[name] == (holding | drained))
        # Of the counters of a window exactly one has its turn.
        turns: dict[str, list[Value]] = {}
        for name in timers.names():
            if found := re.fullmatch(r"(\w+)_turn\d+", name):
                turns.setdefault(found[1], []).append(timers[name])
        for vectors in turns.values():
            for place in range(len(vectors[0])):
                m.d.comb += Assert(reduce(add, (vector[place] for vector in vectors)) == 1)

    def _claims(self, m: Module, controller: Controller, spec: TableSpec) -> None:
        """What the refresher claims or holds up when a command is decided is not on the bus a cycle later."""
        refresher, row = self.inner.inside("refresher"), controller.row
        claims = ("block", "hold_activate", "hold_read", "hold_write", "row_block", "row_op")
        before: dict[str, Signal] = {}
        for name in claims:
            before[name] = Signal.like(refresher[name], name=f"{name}_before")
            m.d.sync += before[name].eq(refresher[name])
        reads = spec.events[Command.RD] | spec.events[Command.RDA]
        writes = spec.events[Command.WR] | spec.events[Command.WRA]
        m.d.comb += [
            Assert((spec.activated & (before["block"] | before["hold_activate"])) == 0),
            Assert(((reads | writes) & before["block"]) == 0),
            Assert(~before["hold_read"] | (reads == 0)),
            Assert(~before["hold_write"] | (writes == 0)),
            Assert(~before["row_block"] | (Value.cast(row.op) == Value.cast(before["row_op"]))),
        ]


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
            Cover(column.op == ColumnOp.READ_AUTO),
            Cover(column.op == ColumnOp.WRITE_AUTO),
            Cover(controller.restarted),
        ]
        if self.false:
            m.d.comb += Assert(column.op != ColumnOp.WRITE_AUTO)


#: The rules that count an auto-precharge.
AUTO_PRECHARGE = ("tRTP+tRP", "tWR+tRP")
ONE_BANK = (
    *("tRCDRD", "tRCDWR", "tRAS", "tRP", "tRTP", "tWR", "tCCDL", "tRTW", "tWTRL", "tRFC", "tRFCpb"),
    *AUTO_PRECHARGE,
)


def table(
    name: str,
    shape: tuple[int, int, int],
    *,
    tight: Iterable[str],
    longer: str = "tRTP",
    cover_depth: int = 45,
    ecc: bool = False,
    quick: bool = False,
) -> Proof:
    """The proof that the table is kept, in a memory of some shape."""
    return Proof(
        name=f"table {name}",
        build=lambda false: TableProperty(
            small_design(SmallMemory(shape=shape, cycles={"tREFI": 30}), ecc=ecc),
            commands=Command,
            tight=tight,
            longer=longer,
            false=false,
        ),
        depth=14,
        cover_depth=cover_depth,
        timeout=1800,
        quick=quick,
    )


PROOFS = [
    table("one bank", (1, 1, 1), tight=ONE_BANK, quick=True),
    # The rules are those of the table without ECC; the covers show that its commands come, too.
    table(
        "one bank, ECC", (1, 1, 1), tight=("tRCDRD", "tRTP+tRP"), longer="tRCDRD", cover_depth=24, ecc=True
    ),
    table("two channels", (2, 1, 1), tight=ONE_BANK, longer="tRTP+tRP"),
    table(
        "four banks",
        (2, 2, 1),
        tight=(*ONE_BANK, "tRRDS", "tCCDS", "tWTRS", "tPPD", "tRREFD"),
        longer="tWR+tRP",
    ),
    table("eight banks", (2, 2, 2), tight=("tFAW", "tRRDL", "tCCDL", "tWTRL"), cover_depth=24),
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
