"""The project's own demonstration traces: searches that it really runs, always the same."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from ..events import Status
from ..recorder import Recorder
from . import countdown
from .crossword import WORDS, Crossword, mesh, staircase
from .depth_first import depth_first
from .game24 import Game24, beam

__all__ = ["STAIR_WORDS", "demonstration_traces"]

#: Few words and long forced runs: going wrong early shows late, so the climbs are deep.
_STAIR_LIST = (
    "bath cost east film gear good half hall hear herb keen king lace luck main mark near pace pool rest "
    "rose trip"
)
STAIR_WORDS = tuple(_STAIR_LIST.split())


def _game24_beam(recorder: Recorder) -> None:
    for numbers in ((4, 5, 6, 10), (1, 3, 4, 6)):
        name = " ".join(map(str, numbers))
        recorder.begin(name, algorithm="beam", source="game24", meta={"numbers": list(numbers), "width": 5})
        recorder.end(beam(recorder, Game24(numbers), width=5).status)


def _game24_depth_first(recorder: Recorder) -> None:
    for numbers in ((4, 5, 6, 10), (3, 3, 8, 8), (1, 4, 5, 6)):
        name = " ".join(map(str, numbers))
        recorder.begin(name, algorithm="dfs", source="game24", meta={"numbers": list(numbers)})
        recorder.end(depth_first(recorder, Game24(numbers), budget=400).status)


def _crossword(recorder: Recorder) -> None:
    stair = staircase(14, 4)
    corner = stair.slots[-1][-1]
    puzzles = {
        "mesh k m": (Crossword(mesh(2, 4, {(3, 3): "k", (6, 6): "m"}), WORDS), 3),
        "mesh e r": (Crossword(mesh(2, 4, {(3, 3): "e", (6, 6): "r"}), WORDS), 3),
        "mesh k d": (Crossword(mesh(2, 4, {(3, 3): "k", (6, 6): "d"}), WORDS), 3),
        "stair h e": (Crossword(staircase(14, 4, {(0, 0): "h", corner: "e"}), STAIR_WORDS), None),
    }
    for name, (puzzle, most) in puzzles.items():
        recorder.begin(name, algorithm="dfs", source="crossword", meta={"most_children": most})
        recorder.end(depth_first(recorder, puzzle, budget=400, most_children=most).status)


def _countdown(recorder: Recorder) -> None:
    numbers, target = (1, 4, 7, 10, 75), 287
    meta: dict[str, object] = {"numbers": list(numbers), "target": target}
    recorder.begin(f"{target}", algorithm="mcts", source="countdown", meta=meta)
    game = countdown.Countdown(numbers, target)
    status: Status
    status, _ = countdown.monte_carlo(recorder, game, iterations=250, seed=1)
    recorder.end(status)


_FILES: dict[str, Callable[[Recorder], None]] = {
    "game24_beam.jsonl": _game24_beam,
    "game24_depth_first.jsonl": _game24_depth_first,
    "crossword.jsonl": _crossword,
    "countdown_mcts.jsonl": _countdown,
}


def demonstration_traces(out_dir: str | os.PathLike[str]) -> list[Path]:
    """Run the searches and write their traces into `out_dir`, made if need be; returns the files written.

    Ten problems, about 1,700 nodes; nothing is random, so the files are always the same.
    """
    Path(out_dir).mkdir(parents=True, exist_ok=True)
    paths = []
    for name, search in _FILES.items():
        path = Path(out_dir) / name
        with Recorder(path) as recorder:
            search(recorder)
        paths.append(path)
    return paths
