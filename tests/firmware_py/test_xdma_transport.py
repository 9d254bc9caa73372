"""The PCIe transport on an ordinary file in place of the driver's device."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from firmware_py.board import open_accelerator
from firmware_py.driver import NotAnAccelerator
from firmware_py.transport.base import PortError
from firmware_py.transport.xdma import XdmaTransport
from hdl.registers import REGISTER_BY_NAME, REGISTERS, SCRATCHPAD_WINDOW


@pytest.fixture
def device(tmp_path: Path) -> Path:
    """A user BAR with every register at its reset value, and a scratchpad of 4 KiB."""
    bar = np.zeros((SCRATCHPAD_WINDOW + 4096) // 4, dtype="<u4")
    for register in REGISTERS:
        bar[register.offset // 4] = register.reset
    bar[REGISTER_BY_NAME["CLOCK_PS"].offset // 4] = 2000
    (tmp_path / "xdma0_user").write_bytes(bar.tobytes())
    return tmp_path / "xdma0"


def test_words_are_little_endian_at_their_byte_address(device: Path) -> None:
    words = np.array([0x11223344, 5, 0xFFFFFFFF], dtype=np.uint32)
    with XdmaTransport(str(device)) as transport:
        transport.write_block(SCRATCHPAD_WINDOW + 8, words)
        assert np.array_equal(transport.read_block(SCRATCHPAD_WINDOW + 8, 3), words)
        transport.write32(SCRATCHPAD_WINDOW, 0xA5)
    bar = device.with_name("xdma0_user").read_bytes()
    assert bar[SCRATCHPAD_WINDOW : SCRATCHPAD_WINDOW + 12] == b"\xa5\0\0\0\0\0\0\0\x44\x33\x22\x11"


def test_the_driver_finds_the_design_and_waits_by_polling(device: Path) -> None:
    with XdmaTransport(str(device)) as transport:
        assert open_accelerator(transport, where=str(device)).clock_ns == 2
        transport.write32(REGISTER_BY_NAME["INTERRUPT_PENDING"].offset, 1)
        assert transport.wait_interrupt(1000)


def test_a_device_that_went_away_reads_as_ones(device: Path) -> None:
    device.with_name("xdma0_user").write_bytes(b"\xff" * 4096)
    with XdmaTransport(str(device)) as transport, pytest.raises(NotAnAccelerator, match="ID is 0xffffffff"):
        open_accelerator(transport, where=str(device))


def test_an_address_beyond_the_bar(device: Path) -> None:
    with XdmaTransport(str(device)) as transport, pytest.raises(PortError, match="0 bytes: expected 4"):
        transport.read32(SCRATCHPAD_WINDOW + 4096)


def test_a_device_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PortError, match=r"xdma1_user: No such file"):
        XdmaTransport(str(tmp_path / "xdma1"))
