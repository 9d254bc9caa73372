"""The commands of every bank over a window of cycles, refresh among them; near above far."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hdl.memory.timing import Command
from sim.model.command_checker import COMMANDS

from ...compare import Comparison
from ...place import PlaceFigures
from ...walk_log import LoggedWalk, replay_span, walk_log
from ..command_list import ALL_BANKS
from .picture import COLOURS, MUTED, WHOLE, Numbers, Picture, tidy

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

__all__ = ["BankWindow", "bank_picture", "bank_window"]

#: Cycles of the window: a refresh of HBM2 (tRFC, 260) and what is before and after it.
WINDOW_CYCLES = 1500
#: The part of the window before the refresh.
_BEFORE = 0.4
#: How each command is marked, and in which colour.
_MARKS = {
    Command.ACT: ("^", "controller"),
    Command.PRE: ("v", "queue"),
    Command.RD: ("o", "near"),
    Command.RDA: ("o", "near"),
    Command.WR: ("s", "far"),
    Command.WRA: ("s", "far"),
}
_REFRESHES = {Command.REFAB: "tRFC", Command.REFPB: "tRFCpb"}


@dataclass(frozen=True, kw_only=True)
class BankWindow:
    """The commands of one channel in a window of a place's replay."""

    channel: int
    begin: int
    """First cycle, counted from the first one of the replay."""
    commands: list[tuple[int, Command, int, int, int]]
    """Cycle in the window, command, pseudo channel, bank, row or column."""
    open_rows: list[tuple[int, int, int, int]]
    """Cycles [begin, end) in the window, pseudo channel and bank of every row that is open there."""


def bank_window(comparison: Comparison, figures: PlaceFigures) -> BankWindow | None:
    """The window about a refresh in the walk with the most reads, else in the replay.

    None without a walk, and where no controller is seen.
    """
    walks = walk_log(figures.plan, figures.run, comparison.config.memory)
    if not walks or not figures.controlled:
        return None
    longest = max(walks, key=lambda walk: len(walk.requested))
    channel = _channel(comparison, figures, longest)
    log = figures.run.logs.commands[channel]
    first, last = replay_span(figures.plan, figures.run)
    centre = _refresh_in(log, longest, first, last)
    begin = max(first, centre - round(_BEFORE * WINDOW_CYCLES))
    inside = log[log["cycle"] < begin + WINDOW_CYCLES]
    commands: list[tuple[int, Command, int, int, int]] = []
    open_rows: list[tuple[int, int, int, int]] = []
    opened: dict[tuple[int, int], int] = {}
    for cycle, bus, op, pseudo_channel, bank, detail in inside.tolist():
        command, at = COMMANDS[bus, op], cycle - begin
        every = command in ALL_BANKS
        if command is Command.ACT:
            opened[pseudo_channel, bank] = at
        elif every or command in (Command.PRE, Command.RDA, Command.WRA):
            for place in list(opened) if every else [(pseudo_channel, bank)]:
                if place[0] == pseudo_channel and place in opened:
                    open_rows.append((opened.pop(place), at, place[0], place[1]))
        if at >= 0:
            commands.append((at, command, pseudo_channel, bank, detail))
    open_rows += [(since, WINDOW_CYCLES, pc, bank) for (pc, bank), since in opened.items()]
    shown = [(max(since, 0), until, pc, bank) for since, until, pc, bank in open_rows if until > 0]
    return BankWindow(
        channel=channel,
        begin=begin - first,
        commands=commands,
        open_rows=shown,
    )


def bank_picture(comparison: Comparison) -> Picture | None:
    """The windows of near and far, as long, one above the other; None without a walk."""
    windows = {
        name: window
        for name, figures in (("near", comparison.near), ("far", comparison.far))
        if (window := bank_window(comparison, figures)) is not None
    }
    if not windows:
        return None
    banks = comparison.config.memory.organisation.banks
    clock = comparison.clock_ns
    counts = {name: Counter(command for _, command, *_ in w.commands) for name, w in windows.items()}

    def draw(figure: FigureBase) -> None:
        panels = figure.subplots(len(windows), 1, sharex=True, squeeze=False)[:, 0]
        for axes, (name, window) in zip(panels, windows.items(), strict=True):
            _draw_window(axes, window, comparison)
            tidy(axes, ylabel=f"{name}: bank", xlim=(0, WINDOW_CYCLES * clock))
            pseudo_channels = comparison.config.memory.organisation.pseudo_channels
            axes.set(ylim=(pseudo_channels * banks - 0.5, -0.5))
            axes.set_yticks(
                range(0, pseudo_channels * banks, 8),
                [f"{row // banks}.{row % banks}" for row in range(0, pseudo_channels * banks, 8)],
            )
        panels[-1].set_xlabel("time in the window, ns")
        handles: dict[str, Artist] = {}
        for axes in panels:
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
                handles.setdefault(label, handle)
        figure.legend(
            list(handles.values()), list(handles), loc="outside lower center", ncols=6, fontsize="small"
        )

    return Picture(
        name="banks",
        title="Commands by bank",
        text=f"Commands on the banks of one channel over {WINDOW_CYCLES * clock:,.0f} ns of the replay, near "
        "above far, pseudo channel and bank from top to bottom. "
        + " ".join(
            f"{name}, from {window.begin * clock:,.0f} ns on: "
            + (
                ", ".join(f"{count} {command.value}" for command, count in counts[name].items())
                or "no command"
            )
            + "."
            for name, window in windows.items()
        ),
        draw=draw,
        numbers=Numbers(
            header=("place", "channel", "ns in the window", "command", "pseudo channel", "bank"),
            rows=[
                (
                    name,
                    str(window.channel),
                    f"{at * clock:,.0f}",
                    command.value,
                    str(pseudo_channel),
                    "all" if command in ALL_BANKS else str(bank),
                )
                for name, window in windows.items()
                for at, command, pseudo_channel, bank, _ in window.commands
            ],
        ),
        width=WHOLE,
        height=1.2 + 2.5 * len(windows),
    )


def _channel(comparison: Comparison, figures: PlaceFigures, walk: LoggedWalk) -> int:
    """The channel that a walk read."""
    return figures.plan.traces[figures.plan.walks[walk.number].trace].channel


def _refresh_in(log: NDArray[np.void], walk: LoggedWalk, first: int, last: int) -> int:
    """The cycle of the first refresh in the walk, else in the replay, else that of the walk's first read."""
    began = int(walk.requested[0]) if len(walk.requested) else walk.verdict
    refreshed = np.zeros(len(log), dtype=bool)
    for (bus, op), command in COMMANDS.items():
        if command in _REFRESHES:
            refreshed |= (log["bus"] == bus) & (log["op"] == op)
    cycles = log["cycle"][refreshed].astype(np.int64)
    for low, high in ((began, walk.verdict), (first, last)):
        found = cycles[(cycles >= low) & (cycles < high)]
        if len(found):
            return int(found[0])
    return began


def _draw_window(axes: Axes, window: BankWindow, comparison: Comparison) -> None:
    memory, clock = comparison.config.memory, comparison.clock_ns
    banks = memory.organisation.banks
    for since, until, pseudo_channel, bank in window.open_rows:
        axes.barh(
            pseudo_channel * banks + bank,
            (until - since) * clock,
            left=since * clock,
            height=0.8,
            color=MUTED,
            label="row open",
        )
    marks: dict[tuple[str, str], list[tuple[float, int]]] = {}
    labels: dict[tuple[str, str], str] = {}
    for at, command, pseudo_channel, bank, _ in window.commands:
        if command in _REFRESHES:
            every = command in ALL_BANKS
            axes.barh(
                pseudo_channel * banks + ((banks - 1) / 2 if every else bank),
                memory.timing[_REFRESHES[command]] * clock,
                left=at * clock,
                height=banks if every else 1,
                color=COLOURS["refresh"],
                alpha=0.75,
                label=f"refresh ({command.value})",
            )
        elif command in _MARKS:
            mark = _MARKS[command]
            marks.setdefault(mark, []).append((at * clock, pseudo_channel * banks + bank))
            labels[mark] = command.value[:2] if command.value[:2] in ("RD", "WR") else command.value
    for mark, points in marks.items():
        times, rows = zip(*points, strict=True)
        axes.scatter(times, rows, s=14, marker=mark[0], color=COLOURS[mark[1]], label=labels[mark], zorder=3)
