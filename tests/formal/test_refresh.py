"""No refresh is later than the refresher says, and REFpb goes round the banks, whatever is asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from amaranth.hdl import Assert, Assume, Cat, Cover, Module, Mux, Signal, Value, signed

from hdl.config import DesignConfig
from hdl.layouts import RefreshMode, RowOp
from hdl.memory.controller import CONTROLLER_COMMANDS
from hdl.memory.refresher import Refresher
from tests.formal.channel import ChannelProperty
from tests.formal.harness import Internals, Proof, Property, quick
from tests.formal.refresher import RefresherProperty
from tests.formal.small import SmallMemory, small_design


def ones(vector: Value) -> Value:
    """The number of ones of a vector."""
    return Value.cast(sum(vector[n] for n in range(len(vector))))


class Deadlines:
    """What is owed, as seen on the bus, to every bank, in a listener added to `m`.

    Bank by bank a debt grows by one at the end of every tREFI after a restart, `bound` cycles late, and
    shrinks with every refresh. The n-th refresh is on the bus by (n + `refresh_postpone`) x tREFI + `bound`
    exactly if the debt never exceeds `refresh_postpone`.

    `refreshed`: the banks refreshed on the bus in this cycle. The listener's own place is shown by induction
    from how the block `refresher` keeps the same debts.
    """

    def __init__(
        self,
        m: Module,
        config: DesignConfig,
        mode: RefreshMode,
        *,
        refresher: Internals,
        refreshed: list[Value],
        restart: Value,
        false: bool,
    ) -> None:
        self._config, self._refresher, self._restart = config, refresher, restart
        self._block = Refresher(config, commands=CONTROLLER_COMMANDS & config.memory.timing.commands)
        self._interval = interval = config.memory.timing["tREFI"]
        self._bound = bound = self._block.bound[mode]
        postpone = config.controller.refresh_postpone
        # Where the listener is in its interval.
        self._late, self._phase, self._end = Signal(range(bound + 1)), Signal(range(interval)), Signal()
        with m.If(restart):
            m.d.sync += [self._late.eq(0), self._phase.eq(0)]
        with m.Elif(self._late != bound):
            m.d.sync += self._late.eq(self._late + 1)
        with m.Else():
            m.d.comb += self._end.eq(self._phase == interval - 1)
            m.d.sync += self._phase.eq(Mux(self._end, 0, self._phase + 1))
        self._debts = []
        for unit, event in enumerate(refreshed):
            here, debt = Signal(name=f"refreshed{unit}"), Signal(signed(8), name=f"debt{unit}")
            m.d.comb += here.eq(event)
            with m.If(restart):
                m.d.sync += debt.eq(0)
            with m.Else():
                m.d.sync += debt.eq(debt + self._end - here)
            after = debt - here
            self._debts.append(after)
            m.d.comb += [
                Assert(restart | (after <= postpone)),
                Cover(~restart & here),
            ]
            if false:
                # Nothing is ever postponed in full; bank by bank, nothing is done early.
                early = mode is RefreshMode.PER_BANK
                m.d.comb += Assert(restart | ((after >= 0) if early else (debt < postpone)))
        m.d.comb += [
            Assert(self._phase < interval),
            Assert(self._late <= bound),
            Assert((self._late == bound) | (self._phase == 0)),
        ]
        if mode is RefreshMode.ALL_BANK:
            self._all_banks(m)
        else:
            self._round(m, refreshed)
            self._bank_by_bank(m)

    def _all_banks(self, m: Module) -> None:
        """How the refresher keeps the same debt: owed, or begun and not yet on the bus."""
        refresher, organisation = self._refresher, self._config.memory.organisation
        machine, restart = refresher.inside("all_banks"), self._restart
        owed, channel, elapsed = machine["owed"], machine["pseudo_channel"], refresher["elapsed"]
        # The tick comes so long before the end of the interval.
        early = self._interval - 1 - self._block._all_banks.lead
        m.d.comb += [
            Assert(restart | (elapsed == self._phase)),
            Assert(owed <= self._config.controller.refresh_postpone + 1),
            Assert(restart | ~machine.state("CLOSE", "SETTLE")),
            Assert(machine.state()),
            Assert(machine.state("PRECHARGE", "REFRESH", "CLOSE") | (channel == 0)),
            Assert(~machine.state("DRAIN") | (machine["left"] <= self._block._all_banks.drain)),
        ]
        spec = self._block._all_banks
        holding = machine.state("PRECHARGE", "REFRESH", "CLOSE", "SETTLE")
        for name, ahead in (
            ("hold_row", spec._rows_ahead),
            ("hold_write", spec._writes_ahead),
            ("hold_read", spec._reads_ahead),
        ):
            drained = machine.state("DRAIN") & (machine["left"] < ahead)
            m.d.comb += Assert(machine[name] == (holding | drained))
        for unit, debt in enumerate(self._debts):
            begun = machine.state("DRAIN", "PRECHARGE") | (
                machine.state("REFRESH") & (channel <= unit // organisation.banks)
            )
            m.d.comb += Assert(restart | (debt == owed + begun - (elapsed > early)))

    def _round(self, m: Module, refreshed: list[Value]) -> None:
        """No bank is refreshed twice before every other of its pseudo channel is once."""
        banks = self._config.memory.organisation.banks
        self._had: list[Value] = []
        for p in range(len(refreshed) // banks):
            now = Cat(refreshed[banks * p : banks * (p + 1)])
            had, after = Signal(banks, name=f"had{p}"), Signal(banks, name=f"had_after{p}")
            whole = Signal(name=f"round{p}")
            m.d.comb += [after.eq(had | now), whole.eq(after.all())]
            m.d.sync += had.eq(Mux(whole | self._restart, 0, after))
            m.d.comb += [Assert(self._restart | ~(had & now).any()), Cover(~self._restart & whole)]
            self._had.append(Mux(whole, 0, after))

    def _bank_by_bank(self, m: Module) -> None:
        """How the refresher keeps the same debts: owed, claimed in this round, or claimed and to come.

        A tick is a `banks`-th of an interval and the first comes early by half an interval; `ahead` are the
        ticks of which the listener does not know yet.
        """
        refresher, restart, interval = self._refresher, self._restart, self._interval
        block, organisation = refresher.inside("banks"), self._config.memory.organisation
        banks, claimed = organisation.banks, refresher["block"]
        elapsed, hard = refresher["elapsed"], self._block._banks.hard
        ahead = Signal(range(4 * banks), name="ahead")
        m.d.sync += ahead.eq(Mux(restart, 0, ahead + refresher["wraps"] - Mux(self._end, banks, 0)))
        machine = refresher.inside("all_banks")
        m.d.comb += [
            Assert(elapsed < interval),
            Assert(
                restart | (ahead * interval + elapsed == (self._phase + self._late) * banks + interval // 2)
            ),
            Assert(machine.state("IDLE", "CLOSE", "SETTLE", "RESTARTED")),
            Assert(restart | machine.state("IDLE", "RESTARTED")),
            Assert(machine["owed"] == 0),
        ]
        for p in range(organisation.pseudo_channels):
            span = slice(banks * p, banks * (p + 1))
            owed, claims = block[f"owed{p}"], block[f"claims{p}"]
            here, done, ending = claimed[span], block["done"][span], block["ending"][span]
            last = ending.any()
            if hard:
                # It is postponed until it has to be.
                m.d.comb += Cover(owed > hard)
            m.d.comb += [
                Assert(claims == ones(here)),
                Assert(claims <= self._block._banks.claims),
                Assert(~done.all()),
                # A bank that is claimed belongs to this round or, before any of it, to what ends the last.
                Assert((ending & ~here) == 0),
                Assert((ending & done) == 0),
                Assert((here & ~done & ~ending) == 0),
                Assert(~last | ((done & ~here) == 0)),
                Assert(restart | (self._had[p] == Mux(last, ~ending, done & ~here))),
                Assert(owed <= hard + 1 + banks),
            ]
            for n, debt in enumerate(self._debts[span]):
                m.d.comb += Assert(
                    restart
                    | (debt * banks == owed + ones(done) + (here[n] * banks) - (done[n] * banks) - ahead)
                )


class ControllerDeadline(ChannelProperty):
    """A controller with free requests in one mode of refresh."""

    def __init__(self, config: DesignConfig, mode: RefreshMode, *, false: bool) -> None:
        self._mode = mode
        super().__init__(config, false=false)

    def contents(self, m: Module) -> None:
        row, organisation = self.environment(m).row, self.config.memory.organisation
        # The bound counts from the end of a restart: there is one at the beginning.
        begun = Signal()
        m.d.sync += begun.eq(1)
        m.d.comb += [Assume(self.refresh == self._mode), Assume(begun | self.restart)]
        refreshed = []
        for unit in range(organisation.pseudo_channels * organisation.banks):
            channel, bank = divmod(unit, organisation.banks)
            command = (
                (row.op == RowOp.REFRESH_ALL)
                if self._mode is RefreshMode.ALL_BANK
                else (row.op == RowOp.REFRESH_BANK) & (row.bank == bank)
            )
            refreshed.append(command & (row.pseudo_channel == channel))
        Deadlines(
            m,
            self.config,
            self._mode,
            refresher=self.inner.inside("refresher"),
            refreshed=refreshed,
            restart=self.restart,
            false=self.false,
        )


class RefresherDeadline(RefresherProperty):
    """A refresher with a free scheduler, bank by bank."""

    def __init__(self, config: DesignConfig, mode: RefreshMode, *, false: bool) -> None:
        assert mode is RefreshMode.PER_BANK, mode
        super().__init__(config, mode, false=false)

    def contents(self, m: Module) -> None:
        self.environment(m)
        Deadlines(
            m,
            self.config,
            self.mode,
            refresher=self.refresher,
            refreshed=[
                (self.row_op == RowOp.REFRESH_BANK) & (self.row_unit == unit) for unit in range(self.units)
            ],
            restart=self.restart,
            false=self.false,
        )


def deadline(
    name: str,
    shape: tuple[int, int, int],
    mode: RefreshMode,
    *,
    block: Callable[..., Property] = ControllerDeadline,
    postpone: int,
    interval: int,
    depth: int,
    cover_depth: int = 0,
    quick: bool,
) -> Proof:
    """The proof that no refresh is late, in a memory of some shape."""
    return Proof(
        name=name,
        build=lambda false: block(
            small_design(SmallMemory(shape=shape, cycles={"tREFI": interval}), refresh_postpone=postpone),
            mode,
            false=false,
        ),
        depth=depth,
        cover_depth=cover_depth or 2 * interval,
        timeout=3600,
        quick=quick,
    )


PROOFS = [
    deadline(
        "refresh all banks", (1, 1, 1), RefreshMode.ALL_BANK, postpone=1, interval=30, depth=26, quick=True
    ),
    deadline(
        "refresh all banks, two channels",
        (2, 1, 1),
        RefreshMode.ALL_BANK,
        postpone=1,
        interval=30,
        depth=26,
        quick=False,
    ),
    deadline(
        "refresh bank by bank",
        (1, 1, 1),
        RefreshMode.PER_BANK,
        postpone=0,
        interval=70,
        depth=40,
        quick=True,
    ),
    *(
        deadline(
            f"refresh bank by bank, {name}",
            shape,
            RefreshMode.PER_BANK,
            block=RefresherDeadline,
            postpone=postpone,
            interval=interval,
            depth=40,
            cover_depth=90,
            quick=False,
        )
        for name, shape, postpone, interval in (
            ("two banks", (1, 2, 1), 2, 60),
            # Intervals so short that the covers, a whole round and a postponed refresh, are soon reached.
            ("four banks", (1, 2, 2), 1, 44),
            ("two channels", (2, 2, 1), 2, 64),
        )
    ),
]


@pytest.mark.parametrize("proof", quick(PROOFS), ids=lambda proof: proof.name)
def test_no_refresh_is_late(proof: Proof, tmp_path: Path) -> None:
    proof.check(tmp_path)
