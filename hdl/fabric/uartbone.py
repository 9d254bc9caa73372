"""The bridge from a serial line to AXI4-Lite: LiteX's UARTBone, and checked frames beside it."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from .axi import AxiLite, AxiResponse
from .crc import CRC32_INIT, crc32_final, crc32_next
from .serial_protocol import LENGTH_MAX, Command, Status
from .uart import ReceivedByte

__all__ = ["UartBone"]

_PLAIN = (Command.WRITE, Command.READ, Command.WRITE_FIXED, Command.READ_FIXED)
_CHECKED = (Command.CHECKED_WRITE, Command.CHECKED_READ, Command.LOCK, Command.RELEASE)


class UartBone(wiring.Component):
    """Executes the commands that arrive as bytes; the protocol is described in `serial_protocol.py`.

    One command at a time; a byte that arrives meanwhile waits at `received`. Plain commands have no way to
    say that an access was refused: a read then returns what the bus did.

    Parameters
    ----------
    timeout
        Cycles of silence after which a command that has begun is forgotten. Raises ValueError below 2.

    Members
    -------
    received : In(stream of ReceivedByte)
    send : Out(stream of 8 bits)
    axi : Out(AxiLite())
    locked : Out(1)
        Plain commands are ignored.
    """

    received: In(stream.Signature(ReceivedByte))
    send: Out(stream.Signature(8))
    axi: Out(AxiLite())
    locked: Out(1)

    def __init__(self, *, timeout: int) -> None:
        if timeout < 2:
            raise ValueError(f"timeout is {timeout!r}: expected at least 2 cycles")
        self._timeout = timeout
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        axi, received, send = self.axi, self.received, self.send
        byte = received.p.data

        command = Signal(8)
        sequence = Signal(8)
        frame_crc = Signal(32)
        length = Signal(8)
        address = Signal(32)
        word = Signal(32)
        # Bytes of the field that is being received or sent; words of the command that are done.
        field_bytes = Signal(2)
        words = Signal(8)
        status = Signal(8)

        # The checked frame that was executed last: how it was answered, and what tells it from another.
        last_sequence = Signal(8)
        last_crc = Signal(32)
        last_status = Signal(8)
        executed = Signal()

        checked = Signal()
        write = Signal()
        fixed = Signal()
        m.d.comb += [
            checked.eq((command == Command.CHECKED_WRITE) | (command == Command.CHECKED_READ)),
            write.eq(
                (command == Command.WRITE)
                | (command == Command.WRITE_FIXED)
                | (command == Command.CHECKED_WRITE)
            ),
            fixed.eq((command == Command.WRITE_FIXED) | (command == Command.READ_FIXED)),
        ]
        # A length of 0 is 256 words.
        last_word = Signal()
        m.d.comb += last_word.eq(words == (length - 1)[:8])
        last_byte = field_bytes == 3

        # What a checked write brings waits for its CRC; what a checked read found waits for its repetition.
        m.submodules.payload = payload = memory.Memory(shape=32, depth=LENGTH_MAX, init=[])
        m.submodules.found = found = memory.Memory(shape=32, depth=LENGTH_MAX, init=[])
        payload_write, payload_read = payload.write_port(), payload.read_port()
        found_write, found_read = found.write_port(), found.read_port()
        m.d.comb += [
            payload_write.addr.eq(words),
            payload_write.data.eq(Cat(byte, word)),
            payload_read.addr.eq(words),
            found_write.addr.eq(words),
            found_write.data.eq(axi.rdata),
            found_read.addr.eq(words),
        ]

        # -- The bytes --
        receiving, take = Signal(), Signal()
        m.d.comb += [received.ready.eq(receiving), take.eq(receiving & received.valid)]
        sending, sent = Signal(), Signal()
        m.d.comb += [send.valid.eq(sending), sent.eq(sending & send.ready)]

        # Over the bytes of the frame that is received, then over those of its answer.
        crc, crc_next = Signal(32), Signal(32)
        begins = Signal()
        m.d.comb += crc_next.eq(crc32_next(Mux(begins, CRC32_INIT, crc), Mux(sending, send.payload, byte)))
        with m.If(take | sent):
            m.d.sync += crc.eq(crc_next)

        silence = Signal(range(self._timeout))
        m.d.sync += silence.eq(Mux(receiving & ~received.valid, silence + 1, 0))
        good = take & ~received.p.broken

        # -- The bus --
        address_offered, data_offered = Signal(), Signal()
        m.d.comb += [
            axi.awaddr.eq(address << 2),
            axi.araddr.eq(address << 2),
            axi.wdata.eq(Mux(checked, payload_read.data, word)),
            axi.wstrb.eq(0xF),
            axi.awvalid.eq(address_offered & write),
            axi.arvalid.eq(address_offered & ~write),
            axi.wvalid.eq(data_offered),
            axi.bready.eq(1),
            axi.rready.eq(1),
        ]
        with m.If(Mux(write, axi.awready, axi.arready)):
            m.d.sync += address_offered.eq(0)
        with m.If(axi.wready):
            m.d.sync += data_offered.eq(0)

        def field_taken(then: str | None = None) -> None:
            """Counts the bytes of a field of four; after the last one the state `then` follows."""
            m.d.sync += field_bytes.eq(field_bytes + 1)
            if then is not None:
                with m.If(last_byte):
                    m.next = then

        def receive() -> None:
            """Awaits a byte. A broken one, or silence, ends the command."""
            m.d.comb += receiving.eq(1)
            with m.If(~received.valid & (silence == self._timeout - 1)):
                m.next = "COMMAND"
            with m.If(take & received.p.broken):
                m.next = "DROP"

        def next_word() -> None:
            m.d.sync += [words.eq(words + 1), address.eq(address + ~fixed)]

        with m.FSM():
            with m.State("COMMAND"):
                m.d.comb += begins.eq(1)
                receive()
                with m.If(good):
                    m.d.sync += [command.eq(byte), field_bytes.eq(0), words.eq(0)]
                    with m.Switch(byte):
                        with m.Case(*_CHECKED):
                            m.next = "SEQUENCE"
                        with m.Default():
                            # UARTBone takes an unknown command for one of six bytes that does nothing.
                            m.next = "LENGTH"
                    with m.If(self.locked & ~_one_of(byte, _CHECKED)):
                        m.next = "DROP"

            with m.State("DROP"):
                receive()

            with m.State("SEQUENCE"):
                receive()
                with m.If(good):
                    m.d.sync += sequence.eq(byte)
                    m.next = "CRC"
                    with m.If(checked):
                        m.next = "LENGTH"

            with m.State("LENGTH"):
                receive()
                with m.If(good):
                    m.d.sync += length.eq(byte)
                    m.next = "ADDRESS"

            with m.State("ADDRESS"):
                receive()
                with m.If(good):
                    m.d.sync += address.eq(Cat(byte, address))
                    field_taken()
                    with m.If(last_byte):
                        with m.If(write):
                            m.next = "DATA"
                        with m.Elif(checked):
                            m.next = "CRC"
                        with m.Elif(_one_of(command, _PLAIN)):
                            m.next = "ACCESS"
                        with m.Else():
                            m.next = "COMMAND"

            with m.State("DATA"):
                receive()
                with m.If(good):
                    m.d.sync += word.eq(Cat(byte, word))
                    field_taken()
                    with m.If(last_byte):
                        with m.If(checked):
                            m.d.comb += payload_write.en.eq(1)
                            m.d.sync += words.eq(words + 1)
                            with m.If(last_word):
                                m.next = "CRC"
                        with m.Else():
                            m.next = "ACCESS"

            with m.State("CRC"):
                # The state that it is compared with is the one before its own bytes.
                with m.If(field_bytes == 0):
                    m.d.sync += frame_crc.eq(crc32_final(crc))
                receive()
                with m.If(good):
                    m.d.sync += word.eq(Cat(byte, word))
                    field_taken("DECIDE")

            with m.State("DECIDE"):
                m.d.sync += words.eq(0)
                with m.If(word != frame_crc):
                    m.next = "DROP"
                with m.Else():
                    m.next = "ANSWER"
                    with m.If((sequence == last_sequence) & (frame_crc == last_crc) & executed):
                        m.d.sync += status.eq(last_status)
                    with m.Elif(checked & (sequence != (last_sequence + 1)[:8])):
                        m.d.sync += status.eq(Status.OUT_OF_SEQUENCE)
                    with m.Else():
                        m.d.sync += [
                            executed.eq(1),
                            last_sequence.eq(sequence),
                            last_crc.eq(frame_crc),
                            last_status.eq(Status.DONE),
                            status.eq(Status.DONE),
                        ]
                        with m.If(checked):
                            m.next = "ACCESS"
                        with m.Else():
                            m.d.sync += self.locked.eq(command == Command.LOCK)

            with m.State("ACCESS"):
                # The word of a checked write comes out of its memory meanwhile.
                m.d.sync += [address_offered.eq(1), data_offered.eq(write)]
                m.next = "RESPONSE"

            with m.State("RESPONSE"):
                refused = Mux(write, axi.bresp, axi.rresp) != AxiResponse.OKAY
                m.d.comb += found_write.en.eq(checked & ~write & axi.rvalid)
                with m.If(axi.bvalid | axi.rvalid):
                    next_word()
                    with m.If(~write):
                        m.d.sync += word.eq(axi.rdata)
                    with m.If(~checked):
                        with m.If(~write):
                            m.next = "SEND"
                        with m.Elif(last_word):
                            m.next = "COMMAND"
                        with m.Else():
                            m.next = "DATA"
                    with m.Elif(last_word | refused):
                        m.d.sync += words.eq(0)
                        with m.If(refused):
                            m.d.sync += [status.eq(Status.REFUSED), last_status.eq(Status.REFUSED)]
                        m.next = "ANSWER"
                    with m.Else():
                        m.next = "ACCESS"

            with m.State("SEND"):
                m.d.comb += [sending.eq(1), send.payload.eq(word[24:])]
                with m.If(sent):
                    m.d.sync += word.eq(word << 8)
                    field_taken()
                    with m.If(last_byte):
                        with m.If(words == length):
                            m.next = "COMMAND"
                        with m.Else():
                            m.next = "ACCESS"

            with m.State("ANSWER"):
                m.d.comb += [sending.eq(1), begins.eq(field_bytes == 0)]
                with m.Switch(field_bytes):
                    with m.Case(0):
                        m.d.comb += send.payload.eq(command)
                    with m.Case(1):
                        m.d.comb += send.payload.eq(sequence)
                    with m.Default():
                        m.d.comb += send.payload.eq(status)
                with m.If(sent):
                    m.d.sync += field_bytes.eq(field_bytes + 1)
                    with m.If(field_bytes == 2):
                        m.d.sync += field_bytes.eq(0)
                        m.next = "ANSWER CRC"
                        with m.If((command == Command.CHECKED_READ) & (status == Status.DONE)):
                            m.next = "ANSWER WORD"

            with m.State("ANSWER WORD"):
                # A cycle of its own: the memory is slow, and so is the CRC of the bytes that follow.
                m.d.sync += word.eq(found_read.data)
                m.next = "ANSWER DATA"

            with m.State("ANSWER DATA"):
                m.d.comb += [
                    sending.eq(1),
                    send.payload.eq(word[24:]),
                    found_read.addr.eq(words + (sent & last_byte)),
                ]
                with m.If(sent):
                    m.d.sync += word.eq(word << 8)
                    field_taken()
                    with m.If(last_byte):
                        m.d.sync += words.eq(words + 1)
                        m.next = "ANSWER WORD"
                        with m.If(last_word):
                            m.next = "ANSWER CRC"

            with m.State("ANSWER CRC"):
                with m.If(field_bytes == 0):
                    m.d.sync += word.eq(crc32_final(crc) << 8)
                m.d.comb += [
                    sending.eq(1),
                    send.payload.eq(Mux(field_bytes == 0, crc32_final(crc)[24:], word[24:])),
                ]
                with m.If(sent):
                    with m.If(field_bytes != 0):
                        m.d.sync += word.eq(word << 8)
                    field_taken("COMMAND")
        return m


def _one_of(value: Value, values: tuple[Command, ...]) -> Value:
    return Cat(value == one for one in values).any()
