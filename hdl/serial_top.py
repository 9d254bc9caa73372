"""The whole design behind a serial line: `Clew` with the UART bridge in front of its host port."""

from amaranth.hdl import Module
from amaranth.lib import fifo, wiring
from amaranth.lib.wiring import In, Out, connect

from .config import DesignConfig
from .fabric.uart import ReceivedByte, UartReceiver, UartTransmitter
from .fabric.uartbone import UartBone
from .top import Clew

__all__ = ["SerialClew"]


class SerialClew(wiring.Component):
    """The accelerator with a UART (8N1) in place of its AXI4-Lite port; see `fabric/serial_protocol.py`.

    Parameters
    ----------
    divisor
        Cycles of a bit: clock over baud rate, from 4.
    timeout
        Cycles of silence after which a command that has begun is forgotten; by default the time of 1,024
        bytes. LiteX's bridge takes 100 ms.

    Members
    -------
    rx : In(1), tx : Out(1)
        The line, high while nothing is sent; `rx` may be asynchronous.
    and every output of `Clew`.
    """

    #: Bytes that wait for the bridge while it executes a plain command: more than one word.
    BUFFER = 8

    def __init__(self, config: DesignConfig, *, divisor: int, timeout: int | None = None) -> None:
        self._clew = Clew(config)
        self._divisor = divisor
        self._timeout = 1024 * 10 * divisor if timeout is None else timeout
        monitors = {name: member for name, member in self._clew.signature.members.items() if name != "s_axil"}
        super().__init__({"rx": In(1), "tx": Out(1), **monitors})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.clew = clew = self._clew
        m.submodules.receiver = receiver = UartReceiver(divisor=self._divisor)
        m.submodules.transmitter = transmitter = UartTransmitter(divisor=self._divisor)
        m.submodules.bridge = bridge = UartBone(timeout=self._timeout)
        m.submodules.buffer = buffer = fifo.SyncFIFO(width=ReceivedByte.as_shape().size, depth=self.BUFFER)

        m.d.comb += [
            receiver.rx.eq(self.rx),
            self.tx.eq(transmitter.tx),
            buffer.w_data.eq(receiver.received),
            buffer.w_en.eq(receiver.valid),
            bridge.received.p.eq(buffer.r_data),
            bridge.received.valid.eq(buffer.r_rdy),
            buffer.r_en.eq(bridge.received.ready),
        ]
        connect(m, bridge.send, transmitter.data)
        connect(m, bridge.axi, clew.s_axil)

        ours = {path: value for path, _, value in self.signature.flatten(self)}
        for path, _, value in clew.signature.flatten(clew):
            if path in ours:
                m.d.comb += ours[path].eq(value)
        return m
