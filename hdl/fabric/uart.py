"""A UART: eight data bits, no parity, one stop bit, lowest bit first."""

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

__all__ = ["DIVISOR_MIN", "ReceivedByte", "UartReceiver", "UartTransmitter"]

#: Least cycles of a bit: the three samples of the receiver lie inside a bit, whatever the edge's phase.
DIVISOR_MIN = 4


def _require_divisor(divisor: int) -> None:
    if divisor < DIVISOR_MIN:
        raise ValueError(f"divisor is {divisor!r}: expected at least {DIVISOR_MIN} cycles a bit")


class ReceivedByte(data.Struct):
    """What was received where a byte was due."""

    data: 8
    broken: 1
    """The stop bit was missing: `data` is worth nothing."""


class UartReceiver(wiring.Component):
    """The receiver: finds the start bit, samples each bit by a majority of three at its middle.

    The sender's clock may differ by 3 % from 8 cycles a bit on. A pulse shorter than half a bit is no start
    bit. After a missing stop bit (a framing error, or a break) it waits until the line is high again.

    Parameters
    ----------
    divisor
        Cycles of a bit, from `DIVISOR_MIN`: clock over baud rate. Raises ValueError for less.

    Members
    -------
    rx : In(1)
        The line, asynchronous to the clock.
    received : Out(ReceivedByte), valid : Out(1)
        A byte, in the one cycle in which `valid` is high.
    """

    rx: In(1)
    received: Out(ReceivedByte)
    valid: Out(1)

    def __init__(self, *, divisor: int) -> None:
        _require_divisor(divisor)
        self._divisor = divisor
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        rx = Signal(init=1)
        m.submodules.synchronise = FFSynchronizer(self.rx, rx, init=1)
        # The line in this cycle and the two before it.
        before = Signal(2, init=3)
        m.d.sync += before.eq(Cat(rx, before))
        majority = Signal()
        m.d.comb += majority.eq((rx & before[0]) | (rx & before[1]) | (before[0] & before[1]))

        timer = Signal(range(self._divisor))
        sample = timer == 0
        with m.If(~sample):
            m.d.sync += timer.eq(timer - 1)
        bits = Signal(8)
        count = Signal(range(8))

        m.d.comb += [self.received.data.eq(bits), self.received.broken.eq(~majority)]
        with m.FSM():
            with m.State("IDLE"):
                # The samples of a bit are those before, at and after its middle; the last one decides.
                m.d.sync += [timer.eq((self._divisor - 1) // 2), count.eq(0)]
                with m.If(~rx):
                    m.next = "START"
            with m.State("START"):
                with m.If(sample):
                    m.d.sync += timer.eq(self._divisor - 1)
                    with m.If(majority):
                        m.next = "IDLE"
                    with m.Else():
                        m.next = "DATA"
            with m.State("DATA"):
                with m.If(sample):
                    m.d.sync += [timer.eq(self._divisor - 1), bits.eq(Cat(bits[1:], majority))]
                    m.d.sync += count.eq(count + 1)
                    with m.If(count == 7):
                        m.next = "STOP"
            with m.State("STOP"):
                with m.If(sample):
                    m.d.comb += self.valid.eq(1)
                    with m.If(majority):
                        m.next = "IDLE"
                    with m.Else():
                        m.next = "BREAK"
            with m.State("BREAK"):
                with m.If(rx):
                    m.next = "IDLE"
        return m


class UartTransmitter(wiring.Component):
    """The transmitter: a byte takes ten bits of `divisor` cycles, and a cycle between two.

    Parameters
    ----------
    divisor
        Cycles of a bit, from `DIVISOR_MIN`. Raises ValueError for less.

    Members
    -------
    data : In(stream of 8 bits)
    tx : Out(1)
        The line, high while nothing is sent.
    """

    data: In(stream.Signature(8))
    tx: Out(1)

    def __init__(self, *, divisor: int) -> None:
        _require_divisor(divisor)
        self._divisor = divisor
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # The bit on the line and those after it: start, data, stop.
        bits = Signal(10, init=0x3FF)
        left = Signal(range(11))
        timer = Signal(range(self._divisor))
        m.d.comb += [self.tx.eq(bits[0]), self.data.ready.eq(left == 0)]
        with m.If(left == 0):
            with m.If(self.data.valid):
                m.d.sync += [
                    bits.eq(Cat(Const(0, 1), self.data.payload, Const(1, 1))),
                    left.eq(10),
                    timer.eq(self._divisor - 1),
                ]
        with m.Elif(timer != 0):
            m.d.sync += timer.eq(timer - 1)
        with m.Else():
            m.d.sync += [bits.eq(Cat(bits[1:], Const(1, 1))), left.eq(left - 1), timer.eq(self._divisor - 1)]
        return m
