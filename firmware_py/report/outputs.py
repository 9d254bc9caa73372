"""The files that a comparison can be written into, checked before anything takes long."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sim.trace.output import output_target

from ..compare import Comparison
from ..errors import InputError
from ..machine import OpenMachine
from .command_list import write_commands
from .document import document, require_output, write_document
from .perfetto import write_perfetto

__all__ = ["Outputs"]


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """What the options of `clew compare` and `clew demo` name; None: that file is not written."""

    json: Path | None = None
    html: Path | None = None
    plot: Path | None = None
    perfetto: Path | None = None
    commands: Path | None = None
    waves: Path | None = None
    waves_cycles: int = 1
    """Cycles of batches that a waveform holds."""

    def require(self, *, inputs: Sequence[Path] = ()) -> None:
        """Check that every file can be written, is none of the `inputs`, and is named once.

        Raises InputError and OSError naming the file.
        """
        given = {
            f"--{name}": path
            for name in ("json", "html", "plot", "perfetto", "commands")
            if (path := getattr(self, name)) is not None
        }
        if self.plot is not None:
            from .figures.picture import require_plot

            require_plot(self.plot)
        if self.waves is not None:
            from ..waves import require_waves, wave_files

            require_waves(self.waves, self.waves_cycles)
            given |= {f"--waves ({place})": path for place, path in wave_files(self.waves).items()}
        options: dict[Path, str] = {}
        for option, path in given.items():
            require_output(path, inputs=inputs)
            other = options.setdefault(output_target(path), option)
            if other != option:
                raise InputError(f"{path}: expected another file for {option} than for {other}")

    @property
    def open_machine(self) -> OpenMachine:
        """Opens the machine to compare on: one that records where waveforms are asked for."""
        if self.waves is None:
            from ..machine import compiled_machine

            return compiled_machine
        from ..waves import recording_machine

        return recording_machine(self.waves, self.waves_cycles)

    def write(self, comparison: Comparison, *, announce: Callable[[str], None]) -> None:
        """Write every file that was asked for but the waveforms, each whole or not at all.

        `announce` is told which. Raises OSError naming the file.
        """
        if self.json is not None:
            write_document(self.json, document(comparison))
        if self.commands is not None:
            announce(f"writing {self.commands}")
            write_commands(self.commands, comparison)
        if self.perfetto is not None:
            announce(f"writing {self.perfetto}")
            write_perfetto(self.perfetto, comparison)
        if self.plot is not None:
            announce(f"drawing {self.plot}")
            from .figures.comparison import comparison_pictures
            from .figures.picture import measured_title, write_pictures

            title = measured_title(comparison.config, comparison.far_path)
            write_pictures(self.plot, comparison_pictures(comparison), title=title)
        if self.html is not None:
            announce(f"writing {self.html}")
            from .page.write import write_page

            write_page(self.html, comparison)
