"""An accelerator that is simulated in this process: the driver, and what a simulation can see besides."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from hdl.config import DesignConfig
from sim.compiled import CompiledModel

from .compare import read_files
from .driver import Accelerator
from .machine import Machine, compiled_machine
from .result import ComparisonResult
from .settings import ReplaySettings
from .transport.inprocess import InProcessTransport

__all__ = ["SimulatedAccelerator"]


class SimulatedAccelerator(Accelerator):
    """An `Accelerator` whose design runs in this process, compiled: `Accelerator.simulate` makes it.

    Besides driving it like any other, one can compare on it, for a simulation logs every hop of a walk and
    every command on the memory's buses (`model`). Its memory is freed by `close`, at the end of a `with`
    block, or with the object. One thread at a time may use it.
    """

    def __init__(self, config: DesignConfig, *, announce: Callable[[str], None] | None = None) -> None:
        """Builds the design `config`, whose storage must be `dpi`, unless that was done before."""
        self.config = config
        """The design."""
        self.model = CompiledModel(config, announce=announce)
        """The simulation, with its logs."""
        self._free = weakref.finalize(self, self.model.close)
        super().__init__(InProcessTransport(self.model))

    def close(self) -> None:
        """Frees the simulated memory. Using the accelerator afterwards is an error."""
        self._free()

    def __enter__(self) -> SimulatedAccelerator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{super().__repr__().removesuffix('>')}, {self.config.memory.timing.name}, simulated>"

    def compare(
        self,
        files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        far: str = "v100_hbm2",
        near: str = "memory",
        far_help: str = "",
        concurrent: int = 1,
        layout: str = "creation",
        program: str = "climb",
        placement: str = "round_robin",
        refresh: str = "all_bank",
        announce: Callable[[str], None] | None = None,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> ComparisonResult:
        """Replays traces near the memory and across an off-chip path, checks every answer, and compares.

        The settings are those of `clew compare`. `files` are one or more trace files of any known kind; `far`
        is a published path of `firmware_py/data/off_chip_paths.csv`, whose time is in ns; `near` is `memory`,
        `axi4` or a host controller's port of the same table; `far_help` lists what the far place has:
        `cache=NAME`, `cache=NAME:SIZE`, `stack`, `stream`, with commas. `concurrent` searches (1 to 10,000)
        are replayed at a time; beyond the contexts they queue. `layout` is where nodes lie (creation,
        siblings, path), `program` what finds where a search resumes (climb, climb_compressed), `placement`
        which channel a tree lies in (round_robin, fewest_searches), `refresh` how the memory is refreshed
        (none, all_bank, per_bank).

        The accelerator's program, contexts, link and memory are overwritten. A cache needs a design of its
        own for the far place, which is compiled beside this one. `announce` is told what is being done,
        `progress` the place, the batches done and their number.

        Raises InputError for a setting or a trace that cannot be replayed, TraceError for a file that is no
        trace, OSError for one that cannot be read (the first two are ValueErrors), and InternalError when a
        check of the measurement itself fails. A wrong verdict is no exception: see `ComparisonResult.good`.
        """
        paths = [files] if isinstance(files, str | os.PathLike) else files
        settings = ReplaySettings(
            far=far,
            near=near,
            far_help=far_help,
            concurrent=concurrent,
            layout=layout,
            program=program,
            placement=placement,
            refresh=refresh,
        )
        settings.require_usable(self.config)
        comparison = settings.compare(
            read_files([Path(path) for path in paths]),
            config=self.config,
            open_machine=self._open,
            announce=announce or (lambda text: None),
            progress=progress or (lambda name, done, total: None),
        )
        return ComparisonResult(comparison)

    def _open(self, config: DesignConfig, announce: Callable[[str], None]) -> AbstractContextManager[Machine]:
        return self._machine() if config == self.config else compiled_machine(config, announce)

    @contextmanager
    def _machine(self) -> Iterator[Machine]:
        yield Machine(driver=self, monitor=self.model)
