"""Single register reads over the serial bridge, through a simulated board's pseudo-terminal.

What limits them is the simulation: a checked read is 22 bytes on the line, about 980 cycles at 4 cycles a
bit, and a round trip through the pseudo-terminal and Python. A real line of 1 Mbaud carries 4,500 of them a
second (11 bytes each way, one way after the other), less what its USB adapter takes to answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import serial

from hdl.config import named_config
from hdl.fabric.serial_protocol import Command
from hdl.registers import ID_VALUE, REGISTER_BY_NAME
from sim.board import BoardModel, board_library, served

from ...errors import InternalError
from ...transport.serial import SerialTransport
from ..measures import Measure

__all__ = ["uart_measures"]

_CONFIG = "small"
_READS = 500


def uart_measures(
    *, announce: Callable[[str], None], progress: Callable[[str, int, int], None]
) -> list[Measure]:
    """`uart_reads_per_second` by checked frames, as `clew drive` reads, and by plain UARTBone commands."""
    config = named_config(_CONFIG)
    progress("uart", 0, 2)
    with BoardModel(board_library(config, announce=announce)) as model, served(model) as path:
        with SerialTransport(path) as transport:
            checked = _rate(lambda: transport.read32(REGISTER_BY_NAME["ID"].offset))
        progress("uart", 1, 2)
        with serial.Serial(path, timeout=5) as line:
            plain = _rate(lambda: _plain_read(line))
    progress("uart", 2, 2)
    return [
        Measure(
            name="uart_reads_per_second",
            where={"board": "simulated", "memory": config.memory.timing.name, "frame": frame},
            value=rate,
            unit="reads/s",
        )
        for frame, rate in (("checked", checked), ("plain UARTBone", plain))
    ]


def _plain_read(line: serial.Serial) -> int:
    line.write(bytes([Command.READ, 1, 0, 0, 0, 0]))
    return int.from_bytes(line.read(4), "big")


def _rate(read: Callable[[], int]) -> float:
    """Reads a second of the ID register."""
    began = time.perf_counter()
    for _ in range(_READS):
        if read() != ID_VALUE:
            raise InternalError(f"register ID does not read as {ID_VALUE:#010x} over the pseudo-terminal")
    return _READS / (time.perf_counter() - began)
