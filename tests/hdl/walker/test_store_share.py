"""Which requests wait because of stores while two tenants walk."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from hdl.walker.store_share import CROWD_PATIENCE, StoreShare

from ..streams import run

CONTEXTS = 8
ATOM, OTHER = 0x123, 0x456


@dataclass(frozen=True, kw_only=True)
class Ask:
    """What a context is about to ask for."""

    context: int
    address: int = ATOM
    store: bool = True
    dependent: bool = False


class Bench:
    """The block, driven one request a cycle."""

    def __init__(self, ctx: Any, dut: StoreShare) -> None:
        self.ctx, self.dut = ctx, dut

    def set(self, **values: int) -> None:
        """Set inputs for good."""
        for name, value in values.items():
            self.ctx.set(getattr(self.dut, name), value)

    def holds(self, ask: Ask) -> bool:
        """Whether this would have to wait."""
        self.set(context=ask.context, address=ask.address, store=ask.store, dependent=ask.dependent)
        return bool(self.ctx.get(self.dut.holds))

    def held(self) -> set[int]:
        """The contexts that still wait."""
        bits = self.ctx.get(self.dut.held)
        return {context for context in range(CONTEXTS) if bits >> context & 1}

    async def act(self, ask: Ask) -> bool:
        """The context gets a slot: it puts its request out, or waits. Whether it put it out."""
        waits = self.holds(ask)
        self.set(waits=waits, issue=ask.store and not waits, goes=not ask.store and not waits)
        await self.ctx.tick()
        self.set(waits=0, issue=0, goes=0)
        return not waits

    async def answer(self, context: int) -> None:
        """A store of the context is answered."""
        self.set(answer=1, answer_context=context)
        await self.ctx.tick()
        self.set(answer=0)


def drive(body: Callable[[Bench], Awaitable[None]], *, contested: bool = True) -> None:
    """Run `body` on a new block, while two tenants walk or one."""
    dut = StoreShare(CONTEXTS)

    async def bench(ctx: Any) -> None:
        driven = Bench(ctx, dut)
        driven.set(contested=contested)
        await body(driven)

    run(dut, bench)


def test_one_tenant_alone_never_waits() -> None:
    async def body(bench: Bench) -> None:
        bench.set(crowded=1, outstanding=0xFF)
        for context in range(CONTEXTS):
            for dependent in (False, True):
                assert await bench.act(Ask(context=context, dependent=dependent))
            assert await bench.act(Ask(context=context, store=False))
        assert not bench.held() and not bench.ctx.get(bench.dut.presses)

    drive(body, contested=False)


def test_stores_wait_while_memory_is_crowded() -> None:
    async def body(bench: Bench) -> None:
        assert await bench.act(Ask(context=1))
        bench.set(crowded=1)
        assert not bench.ctx.get(bench.dut.presses)
        assert not await bench.act(Ask(context=2))
        assert bench.held() == {2} and bench.ctx.get(bench.dut.presses)
        assert await bench.act(Ask(context=3, store=False))
        bench.set(crowded=0)
        assert not bench.held() and not bench.holds(Ask(context=2)) and not bench.ctx.get(bench.dut.presses)

    drive(body)


def test_one_store_goes_when_the_crowd_does_not_end() -> None:
    async def body(bench: Bench) -> None:
        bench.set(crowded=1)
        for context in (2, 3):
            assert not await bench.act(Ask(context=context))
        for context, others in ((2, {3}), (3, set[int]())):
            waited = 0
            while bench.held():
                assert bench.held() == {context} | others
                await bench.ctx.tick()
                waited += 1
                assert waited <= CROWD_PATIENCE
            assert waited >= CROWD_PATIENCE - 1
            assert await bench.act(Ask(context=context))

    drive(body)


def test_one_dependent_store_is_under_way() -> None:
    async def body(bench: Bench) -> None:
        assert await bench.act(Ask(context=1, dependent=True))
        # Its own context waits with any store, others with dependent ones.
        assert not await bench.act(Ask(context=1, address=OTHER))
        assert not await bench.act(Ask(context=2, address=OTHER, dependent=True))
        assert bench.held() == {1, 2}
        assert await bench.act(Ask(context=3, address=OTHER))
        assert await bench.act(Ask(context=4, address=OTHER, store=False))
        await bench.answer(3)
        assert bench.held() == {1, 2}
        await bench.answer(1)
        assert not bench.held()
        assert await bench.act(Ask(context=2, address=OTHER, dependent=True))
        assert bench.holds(Ask(context=1, dependent=True))

    drive(body)


def test_a_context_waits_for_its_answers_before_a_dependent_store() -> None:
    async def body(bench: Bench) -> None:
        bench.set(outstanding=1 << 5)
        assert not await bench.act(Ask(context=5, dependent=True))
        assert bench.held() == {5}
        assert await bench.act(Ask(context=6, dependent=True))
        await bench.answer(6)
        bench.set(outstanding=0)
        assert not bench.held() and await bench.act(Ask(context=5, dependent=True))

    drive(body)


def test_requests_for_the_atom_of_a_dependent_store_go_before_the_next_one() -> None:
    async def body(bench: Bench) -> None:
        assert await bench.act(Ask(context=1, dependent=True))
        assert not await bench.act(Ask(context=2, store=False))
        assert not await bench.act(Ask(context=3))
        assert not await bench.act(Ask(context=4, dependent=True))
        assert bench.held() == {2, 3, 4}
        await bench.answer(1)
        assert bench.held() == {4} and bench.holds(Ask(context=5, dependent=True))
        assert await bench.act(Ask(context=3))
        assert bench.held() == {4}
        assert await bench.act(Ask(context=2, store=False))
        assert not bench.held() and await bench.act(Ask(context=4, dependent=True))

    drive(body)
