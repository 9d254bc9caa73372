"""The FPGA tools of this Python's environment (YoWASP), and what they say when they fail."""

from __future__ import annotations

import sysconfig
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ..verilator import BuildError, run_tool

__all__ = ["run_fpga_tool", "tool_version"]


def run_fpga_tool(name: str, arguments: Sequence[str], *, folder: Path) -> None:
    """Runs one tool quietly in `folder`. Raises BuildError: it is not installed, or it failed.

    YoWASP tools run in a sandbox that may not see absolute paths: give names in `folder`.
    """
    tool = Path(sysconfig.get_path("scripts")) / name
    if not tool.exists():
        raise BuildError(f"{name} is not installed: expected it in this Python's environment")
    run_tool([str(tool), *arguments], folder=folder)


def tool_version(package: str) -> str:
    """The version of a package, as part of a cache's key. Raises BuildError when it is not installed."""
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        raise BuildError(f"{package} is not installed: expected it in this Python's environment") from None
