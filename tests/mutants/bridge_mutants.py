"""Mutants of the serial line: UART, bridge, and what the HostPort keeps of the host's accesses."""

from __future__ import annotations

from .mutant import Mutant, Replace

__all__ = ["BRIDGE_MUTANTS"]

_UART, _BRIDGE = "hdl/fabric/uart.py", "hdl/fabric/uartbone.py"
_UART_TESTS = ("tests/hdl/fabric/test_uart.py",)
_BRIDGE_TESTS = ("tests/hdl/fabric/test_uartbone.py",)

BRIDGE_MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        name="receiver without majority",
        defect="one bad sample makes a wrong bit",
        edits=(
            Replace(
                _UART,
                "majority.eq((rx & before[0]) | (rx & before[1]) | (before[0] & before[1]))",
                "majority.eq(before[0])",
            ),
        ),
        tests=_UART_TESTS,
    ),
    Mutant(
        name="a break is many bytes",
        defect="after a missing stop bit the receiver does not wait until the line is high",
        edits=(Replace(_UART, 'm.next = "BREAK"', 'm.next = "IDLE"'),),
        tests=_UART_TESTS,
    ),
    Mutant(
        name="frame executed whatever its CRC",
        defect="a checked frame is executed although a byte of it was changed",
        edits=(Replace(_BRIDGE, "m.If(word != frame_crc)", "m.If(0)"),),
        tests=_BRIDGE_TESTS,
    ),
    Mutant(
        name="repetition executed again",
        defect="a frame whose answer was lost is executed once more",
        edits=(
            Replace(
                _BRIDGE,
                "m.If((sequence == last_sequence) & (frame_crc == last_crc) & executed)",
                "m.If(0)",
            ),
            Replace(_BRIDGE, "m.Elif(checked & (sequence != (last_sequence + 1)[:8]))", "m.Elif(0)"),
        ),
        tests=_BRIDGE_TESTS,
    ),
    Mutant(
        name="any sequence number will do",
        defect="a frame of an earlier time is executed",
        edits=(Replace(_BRIDGE, "m.Elif(checked & (sequence != (last_sequence + 1)[:8]))", "m.Elif(0)"),),
        tests=_BRIDGE_TESTS,
    ),
    Mutant(
        name="plain commands under the lock",
        defect="a frame that lost its first byte can become a plain command",
        edits=(Replace(_BRIDGE, "m.If(self.locked & ~_one_of(byte, _CHECKED))", "m.If(0)"),),
        tests=_BRIDGE_TESTS,
    ),
    Mutant(
        name="a command waits for ever",
        defect="a command that stops in the middle takes the bytes of the next one",
        edits=(Replace(_BRIDGE, "~received.valid & (silence == self._timeout - 1)", "0"),),
        tests=_BRIDGE_TESTS,
    ),
    Mutant(
        name="a refused access is no error",
        defect="a checked frame whose access was refused is answered as done",
        edits=(
            Replace(
                _BRIDGE,
                "m.d.sync += [status.eq(Status.REFUSED), last_status.eq(Status.REFUSED)]",
                "m.d.sync += last_status.eq(Status.REFUSED)",
            ),
        ),
        tests=_BRIDGE_TESTS,
    ),
    Mutant(
        name="a repetition answers otherwise",
        defect="a refused frame that comes again is answered as done",
        edits=(Replace(_BRIDGE, "m.d.sync += status.eq(last_status)", "m.d.sync += status.eq(Status.DONE)"),),
        tests=_BRIDGE_TESTS,
    ),
    Mutant(
        name="refused accesses are counted",
        defect="the count and the CRC that a host compares hold accesses that were not made",
        edits=(Replace("hdl/hostport.py", "& ~response.payload.error & counted", "& counted"),),
        tests=("tests/hdl/test_hostport.py",),
    ),
)
