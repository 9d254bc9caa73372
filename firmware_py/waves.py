"""The waveforms of a comparison: one file for each place, VCD or FST by the suffix of the name given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import get_args

from hdl.config import DesignConfig
from sim.compiled import CompiledModel, WaveFormat
from sim.trace.output import whole_file
from sim.verilator import missing_headers

from .driver import Accelerator
from .errors import InputError
from .machine import Machine, OpenMachine, prepare_memory
from .transport.inprocess import InProcessTransport

__all__ = ["FST_HEADERS", "recording_machine", "require_waves", "wave_files"]

#: What Verilator's FST writer is compiled with, and the Debian packages that bring it.
FST_HEADERS = {"lz4.h": "liblz4-dev", "zlib.h": "zlib1g-dev"}


def wave_files(path: Path) -> dict[str, Path]:
    """The file of each place: `run.near.vcd` and `run.far.vcd` for `run.vcd`."""
    return {place: path.with_suffix(f".{place}{path.suffix}") for place in ("near", "far")}


def require_waves(path: Path, cycles: int) -> None:
    """Check, before anything takes long, that waveforms of `cycles` cycles can be recorded for `path`.

    Raises InputError for another suffix, for FST where the system lacks what its writer needs, and for no
    cycle.
    """
    formats: Sequence[str] = get_args(WaveFormat)
    if path.suffix[1:] not in formats:
        expected = " or ".join(f".{name}" for name in formats)
        raise InputError(f"{path}: expected a name that ends in {expected}")
    if cycles < 1:
        raise InputError(f"--waves-cycles is {cycles}: expected 1 or more")
    if path.suffix == ".fst" and (missing := missing_headers(FST_HEADERS)):
        packages = " and ".join(FST_HEADERS[name] for name in missing)
        raise InputError(
            f"{path}: FST needs {' and '.join(missing)}: expected the system's {packages}, or a name that "
            "ends in .vcd"
        )


def recording_machine(path: Path, cycles: int) -> OpenMachine:
    """Opens compiled models that record near and far into `wave_files(path)`, `cycles` of batches in each."""
    files = wave_files(path)
    kind: WaveFormat = "fst" if path.suffix == ".fst" else "vcd"

    @contextmanager
    def open_machine(config: DesignConfig, announce: Callable[[str], None]) -> Iterator[Machine]:
        with CompiledModel(config, waves=kind, announce=announce) as model:

            @contextmanager
            def record(place: str) -> Iterator[None]:
                with whole_file(files[place]) as temporary:
                    model.open_waves(temporary, cycles=cycles)
                    try:
                        yield
                    finally:
                        model.close_waves()

            yield Machine(
                driver=Accelerator(InProcessTransport(model)),
                monitor=model,
                prepare=partial(prepare_memory, model),
                recording=lambda place: record(place) if place in files else nullcontext(),
            )

    return open_machine
