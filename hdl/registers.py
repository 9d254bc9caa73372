"""The register map: the single declaration that RTL, driver and documentation use.

All registers are 32 bits, on AXI4-Lite, little endian. Addresses are bytes from the port's base.
"""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = [
    "ADDRESS_BITS",
    "DESIGN_CONSTANTS",
    "ID_VALUE",
    "INTEGRITY_OFFSET",
    "MEMORY_WINDOW",
    "MEMORY_WINDOW_BYTES",
    "REGISTERS",
    "REGISTER_BY_NAME",
    "SCRATCHPAD_WINDOW",
    "VERSION_VALUE",
    "CommandOp",
    "Field",
    "Register",
    "markdown",
]

#: Bits of the byte address of the AXI4-Lite port.
ADDRESS_BITS = 20
#: The scratchpad is mapped here, byte by byte.
SCRATCHPAD_WINDOW = 0x40000
#: 256 KiB of memory, chosen by MEMORY_PAGE, are mapped here.
MEMORY_WINDOW = 0x80000
MEMORY_WINDOW_BYTES = 0x40000
#: "CLEW" in ASCII, first letter in the highest byte.
ID_VALUE = 0x434C4557
#: Interface version: major 16, minor 16.
VERSION_VALUE = 0x00020003


class CommandOp:
    """Operation codes of a command atom (bits 3:0 of its word 0)."""

    NOP = 0
    WALK = 1
    """w0: op 4, place 1 (bit 4: 0 near, 1 far), reserved 1, entry 6 (bits 11:6), context 6 (bits 17:12;
    the low bits are the context), count - 1 in bits 20:18 (count 1 to 7), bits 31:21 reserved. The tag is
    the low 16 bits of the command's index in the ring. w1: start address; a near walk runs beside the channel
    that it lies in. Count 1: one walk; w2..w7: r0..r5. Above: w1 to w<count> are start addresses of so many
    walks, all in one channel, of the same entry, in as many consecutive contexts from `context`; their
    registers start as 0. One message launches them all; each has a completion record of its own, with the
    command's tag. Waits while one of those contexts has its most outstanding walks, in that channel's near
    walker or in the far one; the walks of a context run in order. A context that is not there, count 8, or
    start addresses of near walks in several channels end the batch."""
    WRITE = 2
    """w0: op 4, count - 1 in bits 15:4. w1: first atom address. w2: byte mask of every atom. `count`
    data atoms follow in the ring and are written to consecutive addresses over the bulk channel."""
    COPY = 3
    """w0: op 4, to_memory in bit 4, count - 1 in bits 31:16. w1: memory atom address. w2: scratchpad atom
    address. The DataMover does it; the ring goes on meanwhile, a second copy waits for the first."""
    FENCE = 4
    """Waits until every earlier walk has ended, every earlier write and copy is answered."""


@dataclass(frozen=True, kw_only=True)
class Field:
    """A bit field of a register."""

    name: str
    width: int
    doc: str
    reset: int = 0


@dataclass(frozen=True, kw_only=True)
class Register:
    """A 32-bit register. `access`: "ro" read only, "rw" read and write, "wo" write acts, reads 0."""

    name: str
    offset: int
    access: str
    doc: str
    fields: tuple[Field, ...] = field(default=())
    reset: int = 0


def _registers(*rows: tuple[str, str, str, int]) -> tuple[Register, ...]:
    return tuple(
        Register(name=name, offset=4 * index, access=access, doc=doc, reset=reset)
        for index, (name, access, doc, reset) in enumerate(rows)
    )


REGISTERS: tuple[Register, ...] = _registers(
    ("ID", "ro", "0x434C4557, 'CLEW'.", ID_VALUE),
    ("VERSION", "ro", "Interface version: major in bits 31:16, minor in bits 15:0.", VERSION_VALUE),
    ("CONFIG_HASH", "ro", "First 32 bits of the SHA-256 of the design's parameters.", 0),
    ("CLOCK_PS", "ro", "tCK in picoseconds, from the memory preset.", 0),
    ("CONTEXTS", "ro", "Contexts of each walker.", 0),
    ("SCRATCHPAD_ATOMS", "ro", "Size of the scratchpad in 32-byte atoms.", 0),
    ("MEMORY_ATOMS", "ro", "Size of the memory in 32-byte atoms, all channels together.", 0),
    ("CHANNELS", "ro", "Channels of the memory; the top bits of an atom address choose one.", 0),
    (
        "START",
        "wo",
        "Write 1: wait for idle, close every row, restart refresh, execute COMMAND_COUNT atoms.",
        0,
    ),
    (
        "STATUS",
        "ro",
        "Bit 0 busy: a batch is being started or executed. Bit 1 done: the last batch ended. "
        "Bit 2 error: the batch held an undefined command or overran a ring and was ended, or a write or "
        "copy of it failed.",
        0,
    ),
    ("INTERRUPT_ENABLE", "rw", "Bit 0: raise `interrupt` when a batch is done.", 0),
    ("INTERRUPT_PENDING", "rw", "Bit 0: a batch is done. Write 1 to clear.", 0),
    ("COMMAND_BASE", "rw", "First scratchpad atom of the batch's commands.", 0),
    ("COMMAND_COUNT", "rw", "Atoms of the batch, data atoms of WRITE included.", 0),
    ("COMPLETION_BASE", "rw", "First scratchpad atom of the completion records.", 0),
    ("COMPLETION_SIZE", "rw", "Room for completion records, in atoms.", 0),
    ("COMPLETION_COUNT", "ro", "Completion records written by the last batch.", 0),
    ("BATCH_CYCLES", "ro", "Cycles of the last batch: its first command's start to its last completion.", 0),
    ("CYCLES_LOW", "ro", "Cycles inside batches since RESET_COUNTERS, low half.", 0),
    ("CYCLES_HIGH", "ro", "The same, high half.", 0),
    ("LINK_LATENCY_UP", "rw", "Cycles added to a message from the compute to the memory side.", 0),
    ("LINK_LATENCY_DOWN", "rw", "Cycles added to a message from the memory to the compute side.", 0),
    ("LINK_BYTES_PER_CYCLE", "rw", "Width of each link channel; 0: a message a cycle.", 0),
    ("REFRESH", "rw", "Refresh of the memory: 0 none, 1 all-bank, 2 per-bank. Taken at the next batch.", 1),
    ("PROGRAM_INDEX", "rw", "Instruction that PROGRAM_WORD3 writes.", 0),
    ("PROGRAM_WORD0", "rw", "Bits 31:0 of the instruction.", 0),
    ("PROGRAM_WORD1", "rw", "Bits 63:32.", 0),
    ("PROGRAM_WORD2", "rw", "Bits 95:64.", 0),
    ("PROGRAM_WORD3", "wo", "Bits 127:96; writes the instruction to all walkers.", 0),
    (
        "CONTEXT_INDEX",
        "rw",
        "Context that CONTEXT_BUDGET configures (bits 5:0), in the far walker and in the near walker of a "
        "channel (bits 9:6).",
        0,
    ),
    ("CONTEXT_BASE", "rw", "First atom of the context's window.", 0),
    ("CONTEXT_LIMIT", "rw", "First atom beyond the context's window.", 0),
    ("CONTEXT_WRITE", "rw", "Bit 0: the context may store. Bit 1: its tenant, 0 or 1.", 0),
    ("CONTEXT_BUDGET", "wo", "Step budget, 24 bits; writes base, limit, permission and budget.", 0),
    ("MEMORY_PAGE", "rw", "Number of the 256 KiB page that the memory window shows.", 0),
    (
        "RESET_COUNTERS",
        "wo",
        "Write 1: zero CYCLES, the counters below and the histograms. These take as many cycles as they have "
        "bins; so long they read as 0, and a batch that is started waits.",
        0,
    ),
    (
        "COUNTED_CHANNELS",
        "rw",
        "Bit c: events of channel c count below. Violations count in every channel.",
        0xFFFF,
    ),
    ("COUNT_READS", "ro", "Column reads inside batches; behind an AXI port, read requests.", 0),
    ("COUNT_WRITES", "ro", "Column writes inside batches; behind an AXI port, write requests.", 0),
    ("COUNT_ROW_HITS", "ro", "Accesses that found their row open.", 0),
    ("COUNT_ROW_CLOSED", "ro", "Accesses that found their bank closed.", 0),
    ("COUNT_ROW_CONFLICTS", "ro", "Accesses that found another row open.", 0),
    ("COUNT_REFRESHES", "ro", "Refresh commands: REFab of a pseudo channel, or REFpb of a bank.", 0),
    ("COUNT_VIOLATIONS", "ro", "Violations the RTL checker saw; 0 without a checker.", 0),
    ("COUNT_CORRECTED", "ro", "Reads that ECC corrected, outside batches too; 0 without ECC.", 0),
    ("CORRECTED_ADDRESS", "ro", "Atom of the last of them.", 0),
    ("COUNT_UNCORRECTABLE", "ro", "Reads that ECC could not correct, outside batches too.", 0),
    ("UNCORRECTABLE_ADDRESS", "ro", "Atom of the last of them.", 0),
    (
        "INJECT_ADDRESS",
        "rw",
        "Atom whose reads return flipped bits while INJECT_CONTROL is armed. The fault injector exists with "
        "ECC only; what is stored stays as it is.",
        0,
    ),
    ("INJECT_LANE", "rw", "32 bits that INJECT_FLIPS sets: 0 to 7 data, lowest first, 8 check bits.", 0),
    ("INJECT_FLIPS", "wo", "Bits of the lane to flip; they stay until they are set anew.", 0),
    (
        "INJECT_CONTROL",
        "rw",
        "Bit 0 armed: 1 disturbs the next read of the atom, and reads as 1 until then. Bit 1, with bit 0: "
        "disturb every read, until 0 is written. Bit 1 reads as 0.",
        0,
    ),
    (
        "CACHE_LINES",
        "ro",
        "Lines of 32 bytes that the compute side's cache has at most; 0: there is no cache, and the other "
        "CACHE_ registers do nothing.",
        0,
    ),
    (
        "CACHE_SETS_LOG2",
        "rw",
        "log2 of the sets in use. Change this and CACHE_WAYS only while idle, and write CACHE_CLEAR then.",
        0,
    ),
    ("CACHE_WAYS", "rw", "Lines of a set in use; 0: every read misses and nothing is kept.", 0),
    (
        "CACHE_HIT_LATENCY",
        "rw",
        "Cycles added to a hit, which takes 2 cycles from request to response without them.",
        0,
    ),
    ("CACHE_CLEAR", "wo", "Write 1: forget every line. RESET_COUNTERS does not.", 0),
    ("COUNT_CACHE_HITS", "ro", "Reads inside batches that the cache answered; 0 without one.", 0),
    ("COUNT_CACHE_MISSES", "ro", "Reads inside batches that went on to the memory; 0 without a cache.", 0),
    ("HISTOGRAM_BINS", "ro", "Bins of each histogram; 0: there are none.", 0),
    ("WALK_BIN_CYCLES", "ro", "Cycles of a bin of walks; loops have a bin for each cycle. 0 without.", 0),
    (
        "HISTOGRAM_SELECT",
        "rw",
        "The histogram that HISTOGRAM_DATA reads. Bit 5: 0 loops (a walker's request for a record to the "
        "context's next one or its verdict), 1 walks (launch to verdict, both at the compute side). Bit 4: 0 "
        "near, 1 far. Bits 3:0: channel of a near walker's loops; walks are those of all channels.",
        0,
    ),
    ("HISTOGRAM_INDEX", "rw", "The bin that HISTOGRAM_DATA reads.", 0),
    (
        "HISTOGRAM_DATA",
        "ro",
        "Loops or walks that ended in that bin, inside batches; the last bin holds all longer ones. Read it "
        "while no batch runs.",
        0,
    ),
    (
        "HOST_WRITES",
        "ro",
        "Writes of the host that were accepted since reset. Accesses of this register and the three after it "
        "are not counted.",
        0,
    ),
    (
        "HOST_WRITE_CRC",
        "ro",
        "CRC-32 (zlib) of them: of each the byte address and the data, 4 bytes little endian each.",
        0,
    ),
    ("HOST_READS", "ro", "Reads of the host that were accepted since reset.", 0),
    ("HOST_READ_CRC", "ro", "CRC-32 of their addresses and data, likewise.", 0),
)

#: Offset of the first of the registers that tell the host what arrived; the map ends with them.
INTEGRITY_OFFSET = next(register.offset for register in REGISTERS if register.name == "HOST_WRITES")

#: Registers whose constant value follows from the configuration.
DESIGN_CONSTANTS = frozenset(
    {
        "CONFIG_HASH",
        "CLOCK_PS",
        "CONTEXTS",
        "SCRATCHPAD_ATOMS",
        "MEMORY_ATOMS",
        "CHANNELS",
        "CACHE_LINES",
        "HISTOGRAM_BINS",
        "WALK_BIN_CYCLES",
    }
)

REGISTER_BY_NAME: dict[str, Register] = {register.name: register for register in REGISTERS}


def markdown() -> str:
    """The register map as a Markdown page."""
    lines = [
        "# Register map",
        "",
        "Generated from `hdl/registers.py` by `clew registers`. AXI4-Lite, 32-bit data, byte addresses.",
        "",
        "| range | what |",
        "| --- | --- |",
        f"| 0x00000 - 0x{4 * len(REGISTERS) - 1:05x} | registers |",
        f"| 0x{SCRATCHPAD_WINDOW:05x} - 0x{MEMORY_WINDOW - 1:05x} | scratchpad |",
        f"| 0x{MEMORY_WINDOW:05x} - 0x{MEMORY_WINDOW + MEMORY_WINDOW_BYTES - 1:05x} "
        "| memory, page MEMORY_PAGE |",
        "",
        "| offset | name | access | reset | what |",
        "| --- | --- | --- | --- | --- |",
    ]
    for r in REGISTERS:
        reset = "by design" if r.name in DESIGN_CONSTANTS else f"{r.reset:#x}"
        lines.append(f"| 0x{r.offset:03x} | {r.name} | {r.access} | {reset} | {r.doc} |")
    return "\n".join(lines) + "\n"
