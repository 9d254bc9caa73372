"""The scratchpad: banked SRAM of the compute side, shared by Sequencer, DataMover and host."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from .config import DesignConfig
from .fabric.stream_buffer import StreamBuffer
from .layouts import ATOM_BYTES, ATOM_WIDTH, ScratchpadPort, ScratchpadRequest

__all__ = ["Scratchpad", "ScratchpadRegisters"]


def _first(requests: Value) -> Value:
    """The lowest bit that is set, alone."""
    return requests & (~requests + 1)


class ScratchpadRegisters(wiring.Component):
    """Registers between a requester and a port of the scratchpad, both ways: a read takes two cycles more.

    Members
    -------
    requester : In(ScratchpadPort())
    scratchpad : Out(ScratchpadPort())
    empty : Out(1)
        No request is on its way.
    """

    requester: In(ScratchpadPort())
    scratchpad: Out(ScratchpadPort())
    empty: Out(1)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.requests = requests = StreamBuffer(ScratchpadRequest)
        connect(m, flipped(self.requester.request), requests.input)
        connect(m, requests.output, flipped(self.scratchpad.request))
        m.d.comb += self.empty.eq(requests.empty)
        m.d.sync += [
            self.requester.read_valid.eq(self.scratchpad.read_valid),
            self.requester.read_data.eq(self.scratchpad.read_data),
        ]
        return m


class Scratchpad(wiring.Component):
    """A banked SRAM of 32-byte atoms with three ports; the bank is the low bits of the atom address.

    Each bank serves one access a cycle; different banks serve different ports in the same cycle. Read data
    comes exactly one cycle after acceptance. An address beyond the scratchpad wraps.

    A write of a whole atom takes its bank for one cycle. One with a byte mask takes it for two: the atom is
    read, then written with the masked bytes replaced, and nobody comes between. Byte enables on the SRAM
    would save that cycle, but only the host writes less than an atom, and simulating 128 of them costs a
    fifth of a microsecond in every cycle.

    In a conflict the sequencer goes before the mover and the mover before the host; but a port that was
    refused `PATIENCE` cycles in a row goes before every port that was not. `LONGEST_WAIT` has the bounds
    that follow from it.

    Members
    -------
    sequencer, mover, host : In(ScratchpadPort())
    sleeps : Out(1)
        See `ClockGate`.
    """

    #: Cycles of refusal after which a port goes first.
    PATIENCE = 8
    #: Cycles for which each port can be refused at most, when the others write with masks all the time.
    LONGEST_WAIT = {"sequencer": 4, "mover": PATIENCE + 1, "host": PATIENCE + 3}

    sequencer: In(ScratchpadPort())
    mover: In(ScratchpadPort())
    host: In(ScratchpadPort())
    sleeps: Out(1)

    def __init__(self, config: DesignConfig) -> None:
        self.config = config.scratchpad
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bank_count = self.config.banks
        bank_bits = (bank_count - 1).bit_length()
        bank_atoms = self.config.atoms // bank_count
        names = ("sequencer", "mover", "host")
        ports = [getattr(self, name) for name in names]

        # One bit a port: its request is the second cycle of a masked write; it has waited long enough, which
        # is a register, for all accesses wait for the choice.
        merging = Signal(len(ports))
        overdue = Signal(len(ports))
        writes = Signal(len(ports))
        write_data = [Signal(ATOM_WIDTH, name=f"{name}_write_data") for name in names]
        serves = [Signal(len(ports), name=f"bank{bank}_serves") for bank in range(bank_count)]
        read_data = []

        m.d.comb += self.sleeps.eq(
            ~Cat(merging, *(port.request.valid | port.read_valid for port in ports)).any()
        )

        for bank in range(bank_count):
            m.submodules[f"bank{bank}"] = sram = memory.Memory(shape=ATOM_WIDTH, depth=bank_atoms, init=[])
            write, read = sram.write_port(), sram.read_port()
            read_data.append(read.data)
            address = Signal(range(bank_atoms), name=f"bank{bank}_address")
            wants = Signal(len(ports), name=f"bank{bank}_wants")
            pressing = Signal(len(ports), name=f"bank{bank}_pressing")
            for index, port in enumerate(ports):
                m.d.comb += wants[index].eq(port.request.valid & (port.request.p.address[:bank_bits] == bank))
                with m.If(serves[bank][index]):
                    m.d.comb += address.eq(port.request.p.address[bank_bits:])
                    with m.If(writes[index]):
                        m.d.comb += write.data.eq(write_data[index])
            m.d.comb += [
                pressing.eq(Mux((wants & merging).any(), wants & merging, wants & overdue)),
                serves[bank].eq(_first(Mux(pressing.any(), pressing, wants))),
                read.addr.eq(address),
                read.en.eq((serves[bank] & ~writes).any()),
                write.addr.eq(address),
                write.en.eq((serves[bank] & writes).any()),
            ]

        for index, port in enumerate(ports):
            request = port.request.p
            served = Signal(name=f"{names[index]}_served")
            masked = Signal(name=f"{names[index]}_masked")
            # The bank that the last access went to, whose data comes now.
            bank = Signal(range(bank_count), name=f"{names[index]}_bank")
            refused = Signal(range(self.PATIENCE + 1), name=f"{names[index]}_refused")
            for number, data in enumerate(read_data):
                with m.If(bank == number):
                    m.d.comb += port.read_data.eq(data)
            # Nested conditions, not multiplexers: the simulator then skips them while nobody merges.
            m.d.comb += write_data[index].eq(request.data)
            with m.If(merging[index]):
                m.d.comb += write_data[index].eq(port.read_data)
                for byte in range(ATOM_BYTES):
                    part = slice(8 * byte, 8 * byte + 8)
                    with m.If(request.mask[byte]):
                        m.d.comb += write_data[index][part].eq(request.data[part])

            m.d.comb += [
                masked.eq(request.write & ~request.mask.all()),
                writes[index].eq(request.write & (~masked | merging[index])),
                served.eq(Cat(serve[index] for serve in serves).any()),
                port.request.ready.eq(served & (~masked | merging[index])),
            ]
            m.d.sync += [
                merging[index].eq(served & masked & (merging[index] == 0)),
                port.read_valid.eq(served & ~request.write),
            ]
            with m.If(served):
                m.d.sync += [bank.eq(request.address[:bank_bits]), refused.eq(0), overdue[index].eq(0)]
            with m.Elif(port.request.valid & (refused != self.PATIENCE)):
                m.d.sync += refused.eq(refused + 1)
                if index:
                    # The sequencer goes first anyway.
                    m.d.sync += overdue[index].eq(refused == self.PATIENCE - 1)
        return m
