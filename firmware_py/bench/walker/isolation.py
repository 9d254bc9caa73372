"""What the deepest legal walks of one tenant cost those of another one, and what keeping them apart costs.

A tenant climbs a long chain of nodes at random places, or goes through a long candidate list, in one context.
The other tenant walks in 1 to 63 others as long as that takes, each at the worst that a program may do:

* reads: dependent reads at random places;
* one_bank: dependent reads that all open another row of one bank;
* stores: the same as reads, with a store to every record;
* conditional_stores: the same with conditional stores;
* one_bank_stores: the same as one_bank, with a store to every record;
* one_atom: conditional stores to one record that all walks share, each with a read of it;
* store_flood: stores without reads, of each walk to a record of its own;
* jumps: no access at all, an instruction in every cycle that it gets.

`isolation_p99_ratio` is p99 of the first tenant's loops outside refresh over that of the same walk alone.

`joint_hops_per_ns` is the other side of it: the hops of both tenants together while both climb at random
places, each in half of the contexts. Beside it stands that of as many contexts of one tenant, which are not
kept apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hdl.layouts import HopEvent, RefreshMode, WalkStatus
from hdl.memory.address import AddressMap
from sim.compiled import CompiledModel
from sim.model.command_checker import check

from ... import commands
from ...assembler import Image, Program, done, goto, link, load, store
from ...driver import Accelerator
from ...errors import InternalError
from ...ledger import loops
from ...operands import field, r0
from ...programs import climb, select_k
from ...records import CANDIDATE, PARENT, BitField
from ...transport.inprocess import InProcessTransport
from ..measures import Measure, Target
from ..near_loop import refresh_caused
from .joint import JOINT_CONTEXTS, joint_hops
from .machine import walker_design

__all__ = ["DEEDS", "OTHERS", "WALKS", "Tenants", "isolation_measures"]

_SEED = 2026
#: Contexts of the other tenant.
OTHERS = (1, 3, 7, 15, 31, 63)
#: What the first tenant does.
WALKS = ("climb", "select_k")
#: What the other one does.
DEEDS = (
    "reads",
    "one_bank",
    "stores",
    "conditional_stores",
    "one_bank_stores",
    "one_atom",
    "store_flood",
    "jumps",
)
_WRITING = ("stores", "conditional_stores", "one_bank_stores", "one_atom", "store_flood")
#: Those without an end of their own, which the budget ends.
_ENDLESS = ("one_atom", "store_flood", "jumps")
#: Cycles of a step of all walks of the other tenant together, at best.
_STEP_CYCLES = {"jumps": 1, "store_flood": 8, "conditional_stores": 30, "one_atom": 12}
_CHAIN_STEP_CYCLES = 4
_MODES = (RefreshMode.NONE, RefreshMode.ALL_BANK)
#: Nodes of the first tenant's walk, those of a walk of the other one, and atoms of the window of each tenant.
_HOPS, _OTHER_HOPS = 2_000, 4_000
_WINDOW = 1 << 19
#: Records of the lists, and passes over one.
_LIST, _PASSES = 400, 4
#: Cycles that walks without reads must last, at an instruction a cycle.
_CYCLES = 400_000
_TARGET = Target(at_most=2)


def isolation_measures(
    *,
    files: Sequence[Path],
    announce: Callable[[str], None],
    progress: Callable[[str, int, int], None],
) -> list[Measure]:
    """Every figure of isolation, measured now. The files play no part in it. Raises InternalError when a walk
    does not end as it must, or a rule of the timing table is broken."""
    runs = [(refresh, walk, deed) for refresh in _MODES for walk in WALKS for deed in DEEDS]
    measures = list[Measure]()
    with CompiledModel(walker_design(contexts=1 + max(OTHERS)), announce=announce) as model:
        tenants = Tenants(model)
        for number, (refresh, walk, deed) in enumerate(runs):
            progress("two tenants", number, len(runs))
            alone = tenants.p99(walk, deed, 0, refresh)
            measures += [
                Measure(
                    name="isolation_p99_ratio",
                    where={"walk": walk, "others": deed, "contexts": others, "refresh": refresh.name.lower()},
                    value=tenants.p99(walk, deed, others, refresh) / alone,
                    unit="of alone",
                    target=_TARGET,
                )
                for others in OTHERS
            ]
        progress("two tenants", len(runs), len(runs))
        measures += [
            Measure(
                name="joint_hops_per_ns",
                where={"contexts": contexts, "tenants": count, "refresh": refresh.name.lower()},
                value=joint_hops(model, contexts, refresh, tenants=count),
                unit="hops/ns",
            )
            for refresh in _MODES
            for contexts in JOINT_CONTEXTS
            for count in (1, 2)
        ]
    return measures


@cache
def _image() -> Image:
    """The walks of the first tenant and the deeds of the other."""
    deeds = Program("deeds")
    for name in ("reads", "one_bank"):
        deeds.entry(name)
        deeds.when(field(PARENT) == 0, then=goto("end"), otherwise=load(field(PARENT), name))
    for name in ("stores", "conditional_stores", "one_bank_stores", "one_atom"):
        deeds.entry(name)
        conditional = name in ("conditional_stores", "one_atom")
        deeds.always(r0.add(1), store(field(BitField(7)), r0, conditional=conditional))
        deeds.when(field(PARENT) == 0, then=goto("end"), otherwise=load(field(PARENT), name))
    deeds.entry("store_flood")
    deeds.when(r0 == 0, store(field(BitField(7)), r0), then=goto("store_flood"))
    deeds.always(then=goto("end"))
    deeds.entry("jumps")
    deeds.when(r0 == 0, then=goto("jumps"))
    deeds.label("end")
    deeds.always(then=done())
    return link([climb.build(), select_k.build(), deeds])


@dataclass(frozen=True, kw_only=True)
class _Launch:
    address: int
    registers: tuple[int, ...]
    ends: WalkStatus


class Tenants:
    """Both tenants on one design: their records, and what a run of them gives."""

    def __init__(self, model: CompiledModel) -> None:
        self._model = model
        self._accelerator = Accelerator(InProcessTransport(model))
        self._accelerator.load_program(_image().words)
        self._map = AddressMap(model.config.memory)

    def p99(self, walk: str, deed: str, others: int, refresh: RefreshMode, *, tenant: int = 1) -> float:
        """The 99th percentile of the loops of `walk`, in cycles, beside `others` walks that do `deed`.

        `tenant` is that of the others; the walk's own is 0. Raises what `isolation_measures` raises.
        """
        model, accelerator, config = self._model, self._accelerator, self._model.config
        rng = np.random.default_rng(_SEED)
        atoms = np.zeros((2 * _WINDOW, 8), dtype=np.uint32)
        first = self._first(walk, atoms, rng)
        accelerator.configure_context(0, base=1, limit=_WINDOW, writable=False)
        batch = [self._walk(walk, 0, first)]
        for context, start in enumerate(self._chains(deed, others, atoms, rng), 1):
            accelerator.configure_context(
                context,
                base=_WINDOW,
                limit=2 * _WINDOW,
                writable=deed in _WRITING,
                budget=_CYCLES // (_STEP_CYCLES[deed] * others) if deed in _ENDLESS else (1 << 24) - 1,
                tenant=tenant,
            )
            batch.append(
                self._walk(deed, context, _Launch(address=start, registers=(), ends=WalkStatus.DONE))
            )
        accelerator.load_image(0, atoms)
        accelerator.set_refresh(refresh)
        model.clear_logs()
        records = accelerator.run_batch(np.concatenate(batch)).records
        accelerator.set_refresh(RefreshMode.ALL_BANK)
        wanted = {0: first.ends} | dict.fromkeys(
            range(1, others + 1), WalkStatus.BUDGET_SPENT if deed in _ENDLESS else WalkStatus.DONE
        )
        for record in records[records["kind"] == 0]:
            if record["status"] != wanted[int(record["context"])].value:
                raise InternalError(
                    f"a walk of two tenants ended with {WalkStatus(int(record['status'])).name}"
                )
        hops, bus, windows = model.hops(), model.commands(), model.batch_windows()
        # Before the batch are the last writes of the run before, to rows that were opened before the log.
        bus = bus[bus["cycle"] >= windows["begin"][0]]
        memory = config.memory
        broken = check(
            bus,
            memory.timing,
            memory.organisation,
            refresh_windows=[] if refresh is RefreshMode.NONE else windows.tolist(),
        )
        if len(broken):
            raise InternalError(f"two tenants: {len(broken)} broken rules: {broken.by_rule()}")
        verdicts = hops[hops["event"] == HopEvent.VERDICT.value]
        own = int(verdicts["cycle"][verdicts["context"] == 0][0])
        # While the others are all there.
        until = min([own, *verdicts["cycle"][verdicts["context"] != 0].tolist()])
        found = loops(
            batch=np.zeros(len(hops), dtype=np.int64),
            **{name: hops[name] for name in ("cycle", "context", "event", "address")},
        )
        counted = (found.context == 0) & (found.requested + found.cycles <= until)
        counted &= ~refresh_caused(found, bus, memory.timing, self._map)
        if np.count_nonzero(counted) < _HOPS // 2:
            raise InternalError(f"two tenants: {deed} in {others} contexts ended long before {walk}")
        return float(np.percentile(found.cycles[counted], 99))

    @staticmethod
    def _walk(name: str, context: int, launch: _Launch) -> commands.Atoms:
        return commands.walk(
            place=0,
            entry=_image().entries[name],
            context=context,
            address=launch.address,
            registers=launch.registers,
        )

    @staticmethod
    def _first(walk: str, atoms: NDArray[np.uint32], rng: np.random.Generator) -> _Launch:
        """The records of the first tenant, and the launch of its walk."""
        places = 1 + rng.permutation(_WINDOW - 1)
        if walk == "climb":
            chain = places[:_HOPS]
            atoms[chain[:-1], PARENT.word] = chain[1:]
            return _Launch(address=int(chain[0]), registers=(), ends=WalkStatus.NULL_POINTER)
        chain = places[:_LIST]
        atoms[chain[:-1], CANDIDATE["next"]] = chain[1:]
        atoms[chain, CANDIDATE["sequence"]] = rng.permutation(_LIST)
        atoms[chain, CANDIDATE["score"]] = rng.integers(100, size=_LIST)
        return _Launch(address=int(chain[0]), registers=(_PASSES,), ends=WalkStatus.DONE)

    def _chains(
        self, deed: str, others: int, atoms: NDArray[np.uint32], rng: np.random.Generator
    ) -> list[int]:
        """The records of the other tenant, and where each of its walks starts."""
        if deed == "jumps":
            return [_WINDOW + context for context in range(others)]
        if deed == "one_atom":
            atoms[_WINDOW, PARENT.word] = _WINDOW
            return [_WINDOW] * others
        places = _WINDOW + rng.permutation(_WINDOW)
        if deed == "store_flood":
            return places[:others].tolist()
        if deed.startswith("one_bank"):
            place = self._map.decode(places)
            one = (place.bank == 0) & (place.pseudo_channel == 0)
            # Rows in an order in which no two neighbours are alike.
            places = places[one]
        # So many that they outlast the first tenant: together they do one in so many cycles at best.
        apart = _STEP_CYCLES.get(deed, _CHAIN_STEP_CYCLES)
        each = min(_OTHER_HOPS, len(places) // max(others, 1), _CYCLES // (apart * max(others, 1)))
        starts = []
        for number in range(others):
            chain = places[number * each : (number + 1) * each]
            atoms[chain[:-1], PARENT.word] = chain[1:]
            starts.append(int(chain[0]))
        return starts
