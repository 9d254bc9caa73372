"""Progress of long work on a terminal; nothing at all in a pipe."""

from __future__ import annotations

from types import TracebackType

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from .report.table import console

__all__ = ["Reporter"]


class Reporter:
    """A context manager that shows bars on standard error while it is open, if that is a terminal."""

    def __init__(self) -> None:
        target = console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:,.0f} of {task.total:,.0f}"),
            TimeElapsedColumn(),
            console=target,
            transient=True,
            disable=not target.is_terminal,
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Reporter:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def announce(self, what: str) -> None:
        """Say what is being done now."""
        if not self._progress.disable:
            self._progress.console.print(what)

    def advance(self, name: str, done: int, total: int) -> None:
        """`done` of `total` steps of the work called `name` are over."""
        if name not in self._tasks:
            self._tasks[name] = self._progress.add_task(name, total=total)
        self._progress.update(self._tasks[name], completed=done)
