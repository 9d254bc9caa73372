"""No refresh is later than the refresher says, whatever requests there are."""

from __future__ import annotations

from pathlib import Path

import pytest
from amaranth.hdl import Assert, Assume, Cover, Module, Mux, Signal, Value, signed

from hdl.config import DesignConfig
from hdl.layouts import RefreshMode, RowOp
from hdl.memory.controller import CONTROLLER_COMMANDS
from hdl.memory.refresher import Refresher
from tests.formal.channel import ChannelProperty
from tests.formal.harness import Proof, quick
from tests.formal.small import SmallMemory, small_design


class DeadlineProperty(ChannelProperty):
    """A controller with free requests: what is owed, as seen on the bus, to every bank.

    Bank by bank a debt grows by one at the end of every tREFI after a restart, `bound` cycles late, and
    shrinks with every refresh. The n-th refresh is on the bus by (n + `refresh_postpone`) x tREFI + `bound`
    exactly if the debt never exceeds `refresh_postpone`.
    """

    def __init__(self, config: DesignConfig, mode: RefreshMode, *, false: bool) -> None:
        self._mode = mode
        commands = CONTROLLER_COMMANDS & config.memory.timing.commands
        self._refresher = Refresher(config, commands=commands)
        super().__init__(config, false=false)

    def contents(self, m: Module) -> None:
        controller = self.environment(m)
        config, organisation = self.config, self.config.memory.organisation
        interval, postpone = config.memory.timing["tREFI"], config.controller.refresh_postpone
        bound = self._refresher.bound[self._mode]
        # The bound counts from the end of a restart: there is one at the beginning.
        begun = Signal()
        m.d.sync += begun.eq(1)
        m.d.comb += [Assume(self.refresh == self._mode), Assume(begun | self.restart)]

        late, phase, end = Signal(range(bound + 1)), Signal(range(interval)), Signal()
        with m.If(self.restart):
            m.d.sync += [late.eq(0), phase.eq(0)]
        with m.Elif(late != bound):
            m.d.sync += late.eq(late + 1)
        with m.Else():
            m.d.comb += end.eq(phase == interval - 1)
            m.d.sync += phase.eq(Mux(end, 0, phase + 1))
        row = controller.row
        debts = []
        for unit in range(organisation.pseudo_channels * organisation.banks):
            channel, bank = divmod(unit, organisation.banks)
            refreshed, debt = Signal(name=f"refreshed{unit}"), Signal(signed(8), name=f"debt{unit}")
            command = (
                (row.op == RowOp.REFRESH_ALL)
                if self._mode is RefreshMode.ALL_BANK
                else (row.op == RowOp.REFRESH_BANK) & (row.bank == bank)
            )
            m.d.comb += refreshed.eq(command & (row.pseudo_channel == channel))
            with m.If(self.restart):
                m.d.sync += debt.eq(0)
            with m.Else():
                m.d.sync += debt.eq(debt + end - refreshed)
            after = debt - refreshed
            debts.append(after)
            m.d.comb += [
                Assert(self.restart | (after <= postpone)),
                Cover(~self.restart & refreshed),
            ]
            if self.false:
                # Nothing is ever postponed in full; where nothing may be, nothing is done early.
                m.d.comb += Assert(self.restart | ((debt < postpone) if postpone else (after >= 0)))
        if self._mode is RefreshMode.ALL_BANK:
            self._all_bank_invariants(m, phase, debts)
        else:
            self._bank_invariants(m, late, phase, debts)

    def _all_bank_invariants(self, m: Module, phase: Signal, debts: list[Value]) -> None:
        """How the refresher keeps the same debt: owed, or begun and not yet on the bus."""
        refresher, organisation = self.inner.inside("refresher"), self.config.memory.organisation
        machine = refresher.inside("all_banks")
        owed, channel, elapsed = machine["owed"], machine["pseudo_channel"], refresher["elapsed"]
        # The tick comes so long before the end of the interval.
        early = self.config.memory.timing["tREFI"] - 1 - self._refresher._all_banks.lead
        m.d.comb += [
            Assert(self.restart | (elapsed == phase)),
            Assert(phase < self.config.memory.timing["tREFI"]),
            Assert(owed <= self.config.controller.refresh_postpone + 1),
            Assert(self.restart | ~machine.state("CLOSE", "SETTLE")),
            Assert(machine.state()),
            Assert(machine.state("PRECHARGE", "REFRESH", "CLOSE") | (channel == 0)),
            Assert(~machine.state("DRAIN") | (machine["left"] <= self._refresher._all_banks.drain)),
        ]
        for unit, debt in enumerate(debts):
            begun = machine.state("DRAIN", "PRECHARGE") | (
                machine.state("REFRESH") & (channel <= unit // organisation.banks)
            )
            m.d.comb += Assert(self.restart | (debt == owed + begun - (elapsed > early)))

    def _bank_invariants(self, m: Module, late: Signal, phase: Signal, debts: list[Value]) -> None:
        """The same for REFpb and one bank in a pseudo channel: owed, or claimed and not yet on the bus.

        What is owed falls due in the middle of the interval; the debt counts it `shift` cycles later.
        """
        refresher = self.inner.inside("refresher")
        banks, elapsed = refresher.inside("banks"), refresher["elapsed"]
        interval, bound = self.config.memory.timing["tREFI"], self._refresher.bound[self._mode]
        half, shift = interval // 2, interval // 2 + bound
        assert len(debts) == self.config.memory.organisation.pseudo_channels and shift < interval
        ticked = Signal()
        with m.If(self.restart):
            m.d.sync += ticked.eq(0)
        with m.Elif(elapsed == interval - 1):
            m.d.sync += ticked.eq(1)
        ahead = Mux(late != bound, late + half, phase + shift)
        m.d.comb += [
            Assert(self.restart | (elapsed == Mux(ahead >= interval, ahead - interval, ahead))),
            Assert(phase < interval),
            Assert(late <= bound),
            Assert((late == bound) | (phase == 0)),
            Assert(self.restart | ticked | (elapsed >= half)),
            Assert(self.restart | ticked | (ahead < interval)),
            Assert(self.restart | ~ticked | (late == bound) | (ahead >= interval)),
        ]
        machine = refresher.inside("all_banks")
        m.d.comb += [
            Assert(machine.state("IDLE", "CLOSE", "SETTLE", "RESTARTED")),
            Assert(self.restart | machine.state("IDLE", "RESTARTED")),
            Assert(machine["owed"] == 0),
        ]
        for p, debt in enumerate(debts):
            claimed = refresher["block"][p]
            m.d.comb += [
                Assert(self.restart | (debt == banks[f"owed{p}"] + claimed - (ticked & (elapsed < shift)))),
                Assert(banks[f"claims{p}"] == claimed),
                Assert(~banks["done"][p]),
                Assert(banks[f"owed{p}"] <= 1),
            ]


def deadline(
    name: str,
    shape: tuple[int, int, int],
    mode: RefreshMode,
    *,
    postpone: int,
    interval: int,
    depth: int,
    quick: bool,
) -> Proof:
    """The proof that no refresh is late, in a memory of some shape."""
    return Proof(
        name=name,
        build=lambda false: DeadlineProperty(
            small_design(SmallMemory(shape=shape, cycles={"tREFI": interval}), refresh_postpone=postpone),
            mode,
            false=false,
        ),
        depth=depth,
        cover_depth=2 * interval,
        timeout=1200,
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
        quick=False,
    ),
]


@pytest.mark.parametrize("proof", quick(PROOFS), ids=lambda proof: proof.name)
def test_no_refresh_is_late(proof: Proof, tmp_path: Path) -> None:
    proof.check(tmp_path)
