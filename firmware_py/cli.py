"""The entry point of `clew`: every error in one line, and the exit statuses.

Imports that take time are made inside, so that an interrupt while they load ends as quietly as one later.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import warnings
from types import FrameType

from sim.trace.output import remove_temporaries

__all__ = ["main"]

_BAD_INPUT = 2
#: Exit statuses of a program that a signal ended, as a shell shows them.
_INTERRUPTED = 128 + signal.SIGINT
_TERMINATED = 128 + signal.SIGTERM
#: What Click ends with when it meets a closed pipe first.
_READER_GONE = 1


def main() -> None:
    """Runs the command line. Bad input is one line and exit status 2, a run that cannot be trusted 1."""
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        status = _run()
    except KeyboardInterrupt:
        status = _INTERRUPTED
    finally:
        remove_temporaries()
        signal.signal(signal.SIGTERM, before)
    raise SystemExit(status)


def _terminate(number: int, frame: FrameType | None) -> None:
    """Unwinds, so that temporary files are removed."""
    raise SystemExit(_TERMINATED)


def _run() -> int:
    for stream in (sys.stdout, sys.stderr):
        # Names of files and traces may hold what the terminal's encoding has no character for.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")

    from amaranth.hdl import UnusedElaboratable
    from typer.exceptions import TyperException

    from sim.trace.errors import TraceError
    from sim.verilator import BuildError

    from .app import app
    from .driver import BatchError, NotAnAccelerator
    from .errors import InputError, InternalError
    from .transport.base import PortError, TransportError

    # A conversion that was interrupted leaves components unused; that is no fault of the design.
    warnings.simplefilter("ignore", UnusedElaboratable)
    try:
        status = app(standalone_mode=False) or 0
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # Whoever read the output has seen enough.
        _abandon_output()
        return _READER_GONE
    except TyperException as error:
        return _usage(error.format_message(), error.exit_code)
    except (InputError, TraceError, PortError, NotAnAccelerator) as error:
        return _fail(error, _BAD_INPUT)
    except OSError as error:
        if error.filename:
            return _fail(f"{error.filename}: {error.strerror}", _BAD_INPUT)
        # Whatever else is read or written names its file.
        _abandon_output()
        return _fail(f"standard output: {error.strerror or error}", _BAD_INPUT)
    except BuildError as error:
        print(f"clew: {error}", file=sys.stderr)
        return 1
    except (InternalError, BatchError, TransportError) as error:
        return _fail(error, 1)


def _abandon_output() -> None:
    """What is still to be written to standard output goes nowhere, for it would fail again at the exit."""
    with contextlib.suppress(OSError), open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def _usage(message: str, status: int) -> int:
    if message.startswith("Usage:"):
        # A command that needs another word after it answers with its whole help.
        print(message, file=sys.stderr)
        return status
    return _fail(f"{message.rstrip('.')}: see --help", status)


def _fail(error: object, status: int) -> int:
    from sim.trace.errors import printable

    print(f"clew: {printable(str(error))}", file=sys.stderr)
    return status


if __name__ == "__main__":
    main()
