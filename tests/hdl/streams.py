"""Stream helpers of the Amaranth testbenches: put, get, stalls, the stream rule, and a watchdog."""

from __future__ import annotations

import contextlib
import itertools
import random
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from amaranth.hdl import Elaboratable, Value
from amaranth.sim import Simulator

__all__ = [
    "Stall",
    "bits",
    "check_stream_rule",
    "collect",
    "drive",
    "get",
    "monitor",
    "never",
    "put",
    "randomly",
    "run",
    "until",
]

#: Cycles to wait before a transfer, drawn anew for each.
Stall = Callable[[], int]

#: A testbench or a process of Amaranth's simulator. Its context is not typed by Amaranth.
Bench = Callable[[Any], Awaitable[None]]


def never() -> int:
    """The stall of a neighbour that is always there: 0 cycles."""
    return 0


def randomly(rng: random.Random, *, share: float = 0.5, longest: int = 6) -> Stall:
    """A stall of 1 to `longest` cycles before that share of the transfers, else of 0."""
    return lambda: rng.randint(1, longest) if rng.random() < share else 0


def bits(value: Any) -> int:
    """A payload as a plain integer, whatever its shape, so that payloads compare and hash."""
    return value.as_bits() if hasattr(value, "as_bits") else int(getattr(value, "value", value))


async def until(ctx: Any, condition: Any, *values: Any) -> list[Any]:
    """Waits for the first cycle in which `condition` holds, and returns the values of that cycle.

    Unlike Amaranth's `tick().until`, it may be left waiting in a background process: that one warns
    when it is destroyed.
    """
    while True:
        _, _, holds, *now = await ctx.tick().sample(condition, *values)
        if holds:
            return now


async def put(ctx: Any, stream: Any, payload: Any) -> None:
    """Offers one payload (a value, or a dict for a struct) until it is taken."""
    ctx.set(stream.payload, payload)
    ctx.set(stream.valid, 1)
    await until(ctx, stream.ready)
    ctx.set(stream.valid, 0)


async def get(ctx: Any, stream: Any) -> Any:
    """Takes one payload."""
    ctx.set(stream.ready, 1)
    (payload,) = await until(ctx, stream.valid, stream.payload)
    ctx.set(stream.ready, 0)
    return payload


async def drive(ctx: Any, stream: Any, payloads: Iterable[Any], stall: Stall = never) -> None:
    """Puts every payload, with an idle stretch before each."""
    for payload in payloads:
        for _ in range(stall()):
            await ctx.tick()
        await put(ctx, stream, payload)


async def collect(ctx: Any, stream: Any, count: int, into: list[Any], stall: Stall = never) -> None:
    """Takes `count` payloads, with back-pressure before each, and appends them to `into`."""
    for _ in range(count):
        for _ in range(stall()):
            await ctx.tick()
        into.append(await get(ctx, stream))


def check_stream_rule(stream: Any, name: str) -> Bench:
    """A background process that fails when `stream` takes an offer back or changes it before `ready`."""

    async def watch(ctx: Any) -> None:
        offered: int | None = None
        payload = Value.cast(stream.payload)
        while True:
            _, reset, valid, ready, now = await ctx.tick().sample(stream.valid, stream.ready, payload)
            if offered is not None and not reset:
                assert valid, f"{name}: valid fell before ready"
                assert now == offered, f"{name}: payload changed before ready: {offered:#x}, then {now:#x}"
            offered = now if valid and not ready else None

    return watch


def monitor(stream: Any, into: list[tuple[int, int]]) -> Bench:
    """A background process that appends (cycle, payload as an integer) of every transfer to `into`.

    Cycles count from the start of the simulation, the same for every monitor of it.
    """

    async def watch(ctx: Any) -> None:
        payload = Value.cast(stream.payload)
        for cycle in itertools.count():
            _, _, valid, ready, now = await ctx.tick().sample(stream.valid, stream.ready, payload)
            if valid and ready:
                into.append((cycle, now))

    return watch


def run(
    dut: Elaboratable, *benches: Bench, processes: Iterable[Bench] = (), watchdog: int = 20_000, vcd: str = ""
) -> None:
    """Simulates `dut` until every bench has ended; fails after `watchdog` cycles, naming what still ran.

    `processes` run in the background and end with the benches. `vcd` names a file for waves.
    """
    simulator = Simulator(dut)
    simulator.add_clock(1e-9)
    running = {index: getattr(bench, "__qualname__", repr(bench)) for index, bench in enumerate(benches)}

    def finishing(index: int, bench: Bench) -> Bench:
        async def wrapped(ctx: Any) -> None:
            await bench(ctx)
            del running[index]

        return wrapped

    for index, bench in enumerate(benches):
        simulator.add_testbench(finishing(index, bench))
    for process in processes:
        simulator.add_testbench(process, background=True)
    with simulator.write_vcd(vcd) if vcd else contextlib.nullcontext():
        # One step for each edge of the clock.
        for _ in range(2 * watchdog):
            if not simulator.advance():
                return
    raise AssertionError(f"watchdog: after {watchdog} cycles still running: {', '.join(running.values())}")
