"""The run of a sweep: what is kept is taken, the rest is computed on a cluster, and no failure stops it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sim.trace.importers import detect

from .carried import CarriedFile, unpacked_traces
from .definition import SweepDefinition
from .points import Point, Points, Skipped, sweep_points
from .store import Store
from .task import Outcome, Task, code_digest, run_task, task_key

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = ["Measured", "Prepared", "Sweep", "prepare", "run_sweep"]

Status = Literal["good", "wrong", "failed"]


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One point with what came of it."""

    point: Point
    key: str
    """Names all that decides its figures, by content."""
    document: dict[str, Any] | None
    """The comparison, schema `clew.compare/1`; None when there is none."""
    error: str | None
    """Why there is no comparison."""

    @property
    def status(self) -> Status:
        """`good`; `wrong`: a verdict was wrong or a rule broken; `failed`: there are no figures."""
        if self.document is None:
            return "failed"
        return "wrong" if self.document["details"]["failures"] else "good"

    @property
    def reason(self) -> str | None:
        """Why it is not good, one line; None when it is."""
        if self.document is not None:
            return next(iter(self.document["details"]["failures"]), None)
        return (self.error or "").partition("\n")[0]


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """All points of a sweep, measured, in the order of the cross product."""

    definition: SweepDefinition
    code: str
    """Digest of the sources that measured."""
    varying: tuple[str, ...]
    """The axes with more than one value."""
    measured: tuple[Measured, ...]
    skipped: tuple[Skipped, ...]

    @property
    def good(self) -> bool:
        """Every point is."""
        return all(point.status == "good" for point in self.measured)


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A sweep of which everything is known but the figures."""

    definition: SweepDefinition
    points: Points
    files: dict[str, tuple[CarriedFile, ...]]
    """The trace files by set."""
    tasks: tuple[Task, ...]
    """By point."""
    keys: tuple[str, ...]
    """By point; equal where the figures must be."""

    @property
    def sources(self) -> list[Path]:
        """Every file that was read."""
        presets = {task.preset.name for task in self.tasks if task.preset is not None}
        traces = [path for paths in self.definition.traces.values() for path in paths]
        return [self.definition.file, *traces, *map(Path, sorted(presets))]


def prepare(definition: SweepDefinition) -> Prepared:
    """Reads and checks everything that a sweep needs.

    Raises InputError, TraceError, or OSError for a file that cannot be read.
    """
    points = sweep_points(definition)
    files: dict[str, tuple[CarriedFile, ...]] = {}
    for name, paths in definition.traces.items():
        for path in paths:
            detect(path)
        files[name] = tuple(CarriedFile.read(path) for path in paths)
        with tempfile.TemporaryDirectory(prefix="clew-") as folder:
            unpacked_traces(files[name], Path(folder))
    presets = {
        memory: CarriedFile.read(Path(memory))
        for memory in {point.design.memory for point in points.points}
        if memory.endswith(".toml")
    }
    tasks = tuple(
        Task(
            design=point.design,
            replay=point.replay,
            preset=presets.get(point.design.memory),
            code=code_digest(),
        )
        for point in points.points
    )
    keys = tuple(
        task_key(task, files[point.traces]) for task, point in zip(tasks, points.points, strict=True)
    )
    return Prepared(definition=definition, points=points, files=files, tasks=tasks, keys=keys)


def run_sweep(
    prepared: Prepared,
    *,
    store: Store,
    open_cluster: Callable[[], AbstractContextManager[Client]],
    announce: Callable[[str], None],
    progress: Callable[[str, int, int], None],
) -> Sweep:
    """Measures every point: what `store` keeps is taken from there, the rest is computed and kept.

    `open_cluster` is called only when there is something to compute. A point that fails is not kept, so that
    it is tried again. `progress` is told the points done and their number.
    """
    wanted: dict[str, int] = {}
    for number, key in enumerate(prepared.keys):
        wanted.setdefault(key, number)
    outcomes: dict[str, Outcome] = {}
    for key in wanted:
        kept = store.get(key)
        if kept is not None:
            outcomes[key] = Outcome(document=kept)
    missing = [key for key in wanted if key not in outcomes]

    def done() -> None:
        progress("points", sum(key in outcomes for key in prepared.keys), len(prepared.keys))

    done()
    if missing:
        announce(f"{len(missing)} of {len(wanted)} points to measure")
        with open_cluster() as client:
            futures = _submit(client, prepared, [(key, wanted[key]) for key in missing])
            try:
                for key, outcome in _completed(client, futures):
                    outcomes[key] = outcome
                    if outcome.document is not None:
                        store.put(key, outcome.document)
                    done()
            finally:
                # A scheduler of others must not go on with what nobody waits for.
                client.cancel(list(futures), force=True)
    return Sweep(
        definition=prepared.definition,
        code=code_digest(),
        varying=prepared.points.varying,
        measured=tuple(
            _measured(prepared, point, key, outcomes[key])
            for point, key in zip(prepared.points.points, prepared.keys, strict=True)
        ),
        skipped=prepared.points.skipped,
    )


def _submit(client: Client, prepared: Prepared, missing: Sequence[tuple[str, int]]) -> dict[Future, str]:
    """The key of each task by its future."""
    # A file is a task of its own: the scheduler keeps its bytes once, and gives them to another worker when
    # one that had them dies.
    carried = {
        file.digest: client.submit(_carry, file, key=f"clew-file-{file.digest}-{file.name}")
        for _, number in missing
        for file in prepared.files[prepared.points.points[number].traces]
    }
    return {
        client.submit(
            _run_on_worker,
            prepared.tasks[number],
            [carried[file.digest] for file in prepared.files[prepared.points.points[number].traces]],
            key=f"clew-point-{key}",
        ): key
        for key, number in missing
    }


def _carry(file: CarriedFile) -> CarriedFile:
    return file


def _run_on_worker(task: Task, files: Sequence[CarriedFile]) -> Outcome:
    from distributed import get_worker

    return run_task(task, files, folder=Path(get_worker().local_directory))


def _completed(client: Client, futures: dict[Future, str]) -> Iterator[tuple[str, Outcome]]:
    """Key and outcome of each task as it ends."""
    from distributed import as_completed

    for future in as_completed(futures, loop=client.loop):
        key = futures[future]
        error = future.exception()
        if error is None:
            yield key, future.result()
        else:
            yield key, Outcome(document=None, error=_lost(error))
        future.release()


def _lost(error: BaseException) -> str:
    """Why the cluster has no outcome."""
    from distributed import KilledWorker

    if isinstance(error, KilledWorker):
        return "every worker that ran it died: expected enough memory, or see the workers' logs"
    return f"the cluster gave it up: {error or type(error).__name__}"


def _measured(prepared: Prepared, point: Point, key: str, outcome: Outcome) -> Measured:
    content = outcome.document
    if content is not None:
        # What is kept may have been measured on the same bytes under other names.
        files = prepared.files[point.traces]
        traces = [entry | {"file": file.name} for entry, file in zip(content["traces"], files, strict=True)]
        content = content | {"traces": traces}
    return Measured(point=point, key=key, document=content, error=outcome.error)
