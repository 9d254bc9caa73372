"""The netlist of the board's configuration with one look-up table broken: `make netlist` would see it."""

from __future__ import annotations

import os
import random
import re
from pathlib import Path

import pytest

from firmware_py.compare import read_files
from firmware_py.errors import InternalError
from firmware_py.fpga.netlist_replay import replay_on_netlist, replay_on_rtl
from hdl.boards import named_board
from hdl.config import named_config
from sim.fpga.netlist_model import board_netlist, netlist_library

from .replays import write_traces

_CONFIG = named_board("ulx3s_85f").configuration
#: Blocks that a replay uses, by the beginning of their cells' names; one cell of each is broken, in its turn.
_BLOCKS = (
    "clew.memory_side.channel_0.near_walker.",
    "clew.memory_side.channel_0.memory.controller.",
    "clew.link.",
    "clew.sequencer.",
    "bridge.",
)
#: How many of them must be seen: a cell of something that this trace never does may be broken for long.
_SEEN = len(_BLOCKS) // 2
_CELL = re.compile(r"^  LUT4 #\(\n    \.INIT\((?P<init>\S+)\)\n  \) \\?(?P<name>\S+) +\(", re.MULTILINE)
_FOLDER = Path(__file__).parent


def _breakable(netlist: str, rng: random.Random) -> tuple[str, list[str]]:
    """The netlist with a cell of each block that can be broken while it is simulated, and their names."""
    cells = list(_CELL.finditer(netlist))
    chosen = [rng.choice([cell for cell in cells if cell["name"].startswith(block)]) for block in _BLOCKS]
    for number, cell in sorted(enumerate(chosen, 1), key=lambda pair: -pair[1].start()):
        breakable = cell[0].replace("LUT4 #(", f"BROKEN_LUT4 #(\n    .NUMBER({number}),", 1)
        netlist = netlist[: cell.start()] + breakable + netlist[cell.end() :]
    return netlist, [cell["name"] for cell in chosen]


@pytest.mark.long
def test_a_broken_cell_of_the_whole_netlist_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seed = int(os.environ.get("CLEW_SEED") or random.SystemRandom().getrandbits(31))
    print(f"seed {seed} (repeat with CLEW_SEED={seed})")
    sound = board_netlist(named_config(_CONFIG)).verilog.read_text(encoding="utf-8")
    text, names = _breakable(sound, random.Random(seed))
    netlist = tmp_path / "netlist.v"
    netlist.write_text(text, encoding="utf-8")
    library = netlist_library(netlist, modules=[_FOLDER / "broken_cell.v", _FOLDER / "broken_cell.cpp"])
    trace = tmp_path / "random.jsonl"
    write_traces(trace, seed=3, nodes=8)
    quiet = {"announce": lambda text: None, "progress": lambda name, done, total: None}
    rtl = replay_on_rtl(read_files([trace]), _CONFIG, **quiet)

    def fault(number: int) -> str | None:
        """Why the netlist whose broken cell has that number is not the RTL; None: it is."""
        monkeypatch.setenv("CLEW_BROKEN_CELL", str(number))
        try:
            replay_on_netlist(rtl, library, **quiet)
        except InternalError as error:
            return str(error)
        return None

    assert fault(0) is None
    found = {name: fault(number) for number, name in enumerate(names, 1)}
    for name, why in found.items():
        print(f"{name}: {why or 'not seen'}")
    seen = [why for why in found.values() if why is not None]
    assert all(why.startswith("the netlist is not the RTL") for why in seen)
    assert len(seen) >= _SEEN
