"""Every struct and signature that crosses a block boundary, each field documented once."""

# No `from __future__ import annotations` in a file that declares a data.Struct or annotates a Component's
# ports: Amaranth would see strings, and the struct would silently be 0 bits wide.

from amaranth.hdl import Value
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = [
    "ADDRESS_WIDTH",
    "ATOM_BYTES",
    "ATOM_CHECK_WIDTH",
    "ATOM_WIDTH",
    "CHANNEL_WIDTH",
    "CONTEXT_WIDTH",
    "LAUNCH_WALKS_MAX",
    "AccessMonitor",
    "ColumnBus",
    "ColumnOp",
    "ContextWrite",
    "CopyCommand",
    "ErrorMonitor",
    "FaultInjection",
    "HistogramSelect",
    "HopEvent",
    "HopMonitor",
    "Launch",
    "MemoryPort",
    "MemoryRequest",
    "MemoryResponse",
    "MemoryStatus",
    "PortMonitor",
    "ProgramWrite",
    "RefreshMode",
    "RowBus",
    "RowClass",
    "RowOp",
    "ScratchpadPort",
    "ScratchpadRequest",
    "Source",
    "Tag",
    "Verdict",
    "VerdictKind",
    "Walk",
    "WalkMonitor",
    "WalkStatus",
    "access_failed",
]

#: Bits of one atom: one HBM access (64-bit pseudo channel, burst length 4).
ATOM_WIDTH = 256
#: Bytes of one atom.
ATOM_BYTES = ATOM_WIDTH // 8
#: Check bits of an atom where memory has ECC: 8 for each 64-bit word, those of word w from bit 8w.
ATOM_CHECK_WIDTH = ATOM_WIDTH // 8
#: Bits of an atom address everywhere outside a channel: a record word holds one.
ADDRESS_WIDTH = 32
#: Bits of a context number: a walker has at most 64 contexts.
CONTEXT_WIDTH = 6
#: Walks that one launch carries at most: a command atom has so many words behind its first.
LAUNCH_WALKS_MAX = 7
#: Bits of a channel number: a stack has at most 16 channels.
CHANNEL_WIDTH = 4


class Source(enum.Enum, shape=3):
    """Who asked the memory; responses are routed by it."""

    NEAR_WALKER = 0
    FAR_WALKER = 1
    SEQUENCER = 2
    MOVER = 3
    HOST = 4
    CONTROLLER = 7
    """The controller's own accesses (read-modify-write); never leaves it."""


class Tag(data.Struct):
    """Identity of an access, returned with its response unchanged."""

    source: Source
    context: CONTEXT_WIDTH
    """Walker: the context. Others: a number of their own."""


class MemoryStatus(enum.Enum, shape=3):
    """Outcome of an access."""

    OK = 0
    CORRECTED = 1
    """A read whose data ECC corrected; the data is good."""
    POISONED = 2
    """A read that ECC could not correct: the data is zero and must not be used. A write that had to read
    first and could not: nothing was written."""
    OUT_OF_RANGE = 3
    """The address is beyond the memory; nothing was accessed."""
    MISMATCH = 4
    """A conditional write whose word had changed; nothing was written."""
    BUS_ERROR = 5
    """The AXI port answered SLVERR or DECERR: read data is zero and must not be used, and whether a write
    took place is not known."""


def access_failed(status: Value) -> Value:
    """Neither read nor written as asked; a conditional write that found another word has not failed."""
    failures = (MemoryStatus.POISONED, MemoryStatus.OUT_OF_RANGE, MemoryStatus.BUS_ERROR)
    return Value.cast(status).matches(*(failure.value for failure in failures))


class MemoryRequest(data.Struct):
    """One access to one atom."""

    address: ADDRESS_WIDTH
    """Atom address."""
    write: 1
    conditional: 1
    """Write only if the word that `mask` selects still equals `expected`; the mask selects one word."""
    expected: 32
    data: ATOM_WIDTH
    mask: ATOM_BYTES
    """Byte enables of a write."""
    tag: Tag
    priority: 1
    """A walk that blocks somebody: served before bulk requests."""


class MemoryResponse(data.Struct):
    """The answer to one request; every request gets exactly one, writes too.

    A write is answered when its place in the order of its atom is fixed.
    """

    tag: Tag
    write: 1
    """This answers a write; `data` means nothing."""
    data: ATOM_WIDTH
    status: MemoryStatus


class MemoryPort(wiring.Signature):
    """A requester's view of the memory: out of order between banks, in order for one atom.

    Members
    -------
    request : Out(stream of MemoryRequest)
    response : In(stream of MemoryResponse)
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "request": Out(stream.Signature(MemoryRequest)),
                "response": In(stream.Signature(MemoryResponse)),
            }
        )


class ScratchpadRequest(data.Struct):
    """One access to one atom of the scratchpad."""

    address: 16
    """Atom address within the scratchpad; the low bits pick the bank."""
    write: 1
    data: ATOM_WIDTH
    mask: ATOM_BYTES
    """Byte enables of a write."""


class ScratchpadPort(wiring.Signature):
    """A requester's view of the scratchpad.

    Accepted reads are answered in order and cannot be stalled: exactly one cycle later at the scratchpad,
    some cycles later behind registers. A write has no answer and is seen by every read accepted later.

    Members
    -------
    request : Out(stream of ScratchpadRequest)
    read_valid : In(1)
    read_data : In(256)
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "request": Out(stream.Signature(ScratchpadRequest)),
                "read_valid": In(1),
                "read_data": In(ATOM_WIDTH),
            }
        )


class CopyCommand(data.Struct):
    """One copy for the DataMover: `count_minus_1` + 1 atoms, both addresses ascending."""

    to_memory: 1
    """1: scratchpad to memory. 0: memory to scratchpad."""
    memory_address: ADDRESS_WIDTH
    scratchpad_address: 16
    count_minus_1: 16


class RowOp(enum.Enum, shape=3):
    """A command of the row bus."""

    NOP = 0
    ACTIVATE = 1
    PRECHARGE = 2
    PRECHARGE_ALL = 3
    REFRESH_ALL = 4
    REFRESH_BANK = 5


class RefreshMode(enum.Enum, shape=2):
    """How a controller refreshes; it may change only while the controller is held in restart."""

    NONE = 0
    ALL_BANK = 1
    """REFab to every pseudo channel once in tREFI."""
    PER_BANK = 2
    """REFpb to every bank once in tREFI, where the preset has tRFCpb; else as ALL_BANK."""


class ColumnOp(enum.Enum, shape=3):
    """A command of the column bus."""

    NOP = 0
    READ = 1
    READ_AUTO = 2
    """Read with auto-precharge."""
    WRITE = 3
    WRITE_AUTO = 4
    """Write with auto-precharge."""


class RowBus(wiring.Signature):
    """The row command bus of a channel. ACTIVATE is put on it in its first slot; its second is NOP.

    Members
    -------
    op : Out(RowOp)
    pseudo_channel : Out(1)
    bank : Out(6)
        Bank within the pseudo channel: bank group in the low bits, as `Organisation` counts them.
    row : Out(16)
    """

    def __init__(self) -> None:
        super().__init__({"op": Out(RowOp), "pseudo_channel": Out(1), "bank": Out(6), "row": Out(16)})


class ColumnBus(wiring.Signature):
    """The column command bus of a channel with both data buses.

    Write data comes with its command; the device or the PHY applies the write latency. Read data comes
    back CL + burst cycles after its command, in order, and cannot be stalled.

    Members
    -------
    op : Out(ColumnOp)
    pseudo_channel : Out(1)
    bank : Out(6)
    column : Out(6)
    write_data : Out(256)
    write_mask : Out(32)
        Byte enables. With `ecc` those of a 64-bit word are all alike.
    read_valid : In(1)
    read_data : In(256)
    write_check : Out(32), read_check : In(32)
        Check bits, written and read with their words; only with `ecc`.
    """

    def __init__(self, *, ecc: bool = False) -> None:
        members = {
            "op": Out(ColumnOp),
            "pseudo_channel": Out(1),
            "bank": Out(6),
            "column": Out(6),
            "write_data": Out(ATOM_WIDTH),
            "write_mask": Out(ATOM_BYTES),
            "read_valid": In(1),
            "read_data": In(ATOM_WIDTH),
        }
        if ecc:
            members |= {"write_check": Out(ATOM_CHECK_WIDTH), "read_check": In(ATOM_CHECK_WIDTH)}
        super().__init__(members)


class Walk(data.Struct):
    """Launch of a walk in a context, where it waits until that is free."""

    context: CONTEXT_WIDTH
    entry: 6
    """First instruction, executed on the record at `address`."""
    tag: 16
    """Returned in the verdict."""
    address: ADDRESS_WIDTH
    """Start address: the first record read."""
    registers: data.ArrayLayout(32, 6)
    """Initial r0..r5; r6 and r7 start as 0."""


class Launch(data.Struct):
    """The message that launches walks of one program beside the memory or in the far walker: one to seven."""

    context: CONTEXT_WIDTH
    """Of the first walk; the others run in the contexts that follow."""
    entry: 6
    tag: 16
    """Of all of them: their verdicts differ in the context."""
    count_minus_1: 3
    """Walks - 1, at most `LAUNCH_WALKS_MAX` - 1."""
    address: ADDRESS_WIDTH
    """Start address of the first walk."""
    words: data.ArrayLayout(32, 6)
    """One walk: its initial r0..r5. Several: the start addresses of the others; registers start as 0."""


class WalkStatus(enum.Enum, shape=4):
    """How a walk ended."""

    DONE = 0
    """The program said `done`."""
    NULL_POINTER = 1
    """A load of address 0."""
    OUT_OF_WINDOW = 2
    """A load or store outside the context's window, or beyond the memory."""
    BUDGET_SPENT = 3
    """The step budget ran out."""
    POISONED = 4
    """A record could not be corrected, or a store failed."""
    WRITE_DENIED = 5
    """A store without write permission."""
    BUS_ERROR = 6
    """The AXI port to the memory answered the read of a record with an error."""


class VerdictKind(enum.Enum, shape=1):
    """What a verdict message is."""

    DONE = 0
    """The walk is over."""
    YIELD = 1
    """One result of a walk that goes on."""


class Verdict(data.Struct):
    """A walk's end, or one yielded result."""

    context: CONTEXT_WIDTH
    channel: CHANNEL_WIDTH
    """The memory channel whose near walker it comes from; 0 from the far walker."""
    tag: 16
    kind: VerdictKind
    status: WalkStatus
    code: 8
    """The number in `done code`."""
    hops: 32
    """Records read so far, the start record included."""
    cycles: 32
    """Cycles from the walker's acceptance of the walk to this verdict."""
    value: 32
    """DONE: the address of the current record (0 after a null pointer). YIELD: the value."""
    registers: data.ArrayLayout(32, 3)
    """r0..r2."""


class ProgramWrite(wiring.Signature):
    """A write of one instruction into a walker's program memory.

    Members
    -------
    enable : Out(1)
    index : Out(6)
    word : Out(128)
    """

    def __init__(self) -> None:
        super().__init__({"enable": Out(1), "index": Out(6), "word": Out(128)})


class ContextWrite(wiring.Signature):
    """A write of what one context of a walker may do.

    Members
    -------
    enable : Out(1)
    index : Out(6)
        The context.
    base, limit : Out(32)
        The window: records at base <= address < limit.
    writable : Out(1)
        The context may store.
    tenant : Out(1)
        Whose walks run in it; the walker gives two tenants a fair share each, see `FairShare`.
    budget : Out(24)
        Steps that a walk may take.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "enable": Out(1),
                "index": Out(CONTEXT_WIDTH),
                "base": Out(ADDRESS_WIDTH),
                "limit": Out(ADDRESS_WIDTH),
                "writable": Out(1),
                "tenant": Out(1),
                "budget": Out(24),
            }
        )


class HopEvent(enum.Enum, shape=2):
    """What a walker just did in a context, for the per-hop log."""

    NONE = 0
    REQUEST = 1
    """It put a record read out (first cycle of `valid`)."""
    VERDICT = 2
    """It finished a walk."""
    STORE = 3
    """It put a store out."""


class HopMonitor(wiring.Signature):
    """A walker's progress, one event a cycle, for the ledger. Observation only.

    Members
    -------
    event : Out(HopEvent)
    context : Out(6)
    address : Out(32)
    """

    def __init__(self) -> None:
        super().__init__(
            {"event": Out(HopEvent), "context": Out(CONTEXT_WIDTH), "address": Out(ADDRESS_WIDTH)}
        )


class WalkMonitor(wiring.Signature):
    """A walk that ended, as the Sequencer sees it. Observation only.

    Members
    -------
    ended : Out(1)
    far : Out(1)
        It ran in the far walker.
    cycles : Out(32)
        From its launch to its verdict, both at the compute side.
    """

    def __init__(self) -> None:
        super().__init__({"ended": Out(1), "far": Out(1), "cycles": Out(32)})


class HistogramSelect(data.Struct):
    """One of the design's histograms."""

    channel: CHANNEL_WIDTH
    """Of the loops of a near walker."""
    far: 1
    """Of the far place."""
    walks: 1
    """0: of loops. 1: of walks, all channels together."""


class RowClass(enum.Enum, shape=2):
    """What a column access found: the row open, the bank closed, or another row open."""

    NONE = 0
    HIT = 1
    CLOSED = 2
    CONFLICT = 3


class AccessMonitor(wiring.Signature):
    """The column access that the controller puts on the bus in this cycle. Observation only.

    Members
    -------
    row_class : Out(RowClass)
        NONE in a cycle without an access.
    tag : Out(Tag)
    write : Out(1)
    """

    def __init__(self) -> None:
        super().__init__({"row_class": Out(RowClass), "tag": Out(Tag), "write": Out(1)})


class PortMonitor(wiring.Signature):
    """What passes a controller's memory port in this cycle. Observation only.

    Members
    -------
    accepted : Out(1)
        The controller takes a request.
    request_tag : Out(Tag), request_write : Out(1), request_conditional : Out(1)
        Of that request.
    answered : Out(1)
        A response leaves the controller.
    response_tag : Out(Tag), response_write : Out(1)
        Of that response.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "accepted": Out(1),
                "request_tag": Out(Tag),
                "request_write": Out(1),
                "request_conditional": Out(1),
                "answered": Out(1),
                "response_tag": Out(Tag),
                "response_write": Out(1),
            }
        )


class ErrorMonitor(wiring.Signature):
    """What ECC found in the read whose data came in the cycle before. Observation only.

    Members
    -------
    corrected : Out(1)
        Bits were corrected; the read is answered CORRECTED.
    uncorrectable : Out(1)
        The read is answered POISONED.
    address : Out(32)
        The atom; counts with either of the two.
    """

    def __init__(self) -> None:
        super().__init__({"corrected": Out(1), "uncorrectable": Out(1), "address": Out(ADDRESS_WIDTH)})


class FaultInjection(wiring.Signature):
    """Control of a device's bit-flip injector: which bits the storage returns wrong, of which atom.

    The faults are transient: what is stored stays as it is.

    Members
    -------
    address : Out(32)
        The atom whose reads are disturbed while the injector is armed.
    lane : Out(4)
        32 bits of the atom: 0 to 7 are its data from the lowest bit up, 8 its check bits.
    flips : Out(32)
        Bits of `lane` to flip, taken at `set_flips`; they stay until they are set anew.
    set_flips : Out(1)
    set_armed : Out(1)
        Take `arm` and `sticky`.
    arm : Out(1)
        1: disturb reads of the atom. 0: leave them alone.
    sticky : Out(1)
        1: every read, until it is disarmed. 0: the next read only.
    armed : In(1)
        Reads of the atom are disturbed.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "address": Out(ADDRESS_WIDTH),
                "lane": Out(4),
                "flips": Out(32),
                "set_flips": Out(1),
                "set_armed": Out(1),
                "arm": Out(1),
                "sticky": Out(1),
                "armed": In(1),
            }
        )
