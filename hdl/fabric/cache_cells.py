"""The cells of the compute side's cache: lines with their tags and data, one operation a cycle."""

from amaranth.hdl import Cat, ClockSignal, Instance, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, enum, memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..config import CacheConfig
from ..layouts import ADDRESS_WIDTH, ATOM_BYTES, ATOM_WIDTH, CONTEXT_WIDTH

__all__ = ["CACHE_MODULE", "SETS_BITS", "WAYS_BITS", "CacheCells", "CacheOp"]

#: The Verilog module of `cache.body = "dpi"`; its source is simulation only.
CACHE_MODULE = "clew_cache_cells"
#: Bits of the setting that holds log2 of the number of sets.
SETS_BITS = 5
#: Bits of the setting that holds the number of ways.
WAYS_BITS = 6


class CacheOp(enum.Enum, shape=3):
    """One operation of the cells on the line of an address. "Used" makes it the set's most recent line."""

    READ = 0
    """Hit: the line is valid, and used. Nothing else changes."""
    READ_ALLOCATE = 1
    """As READ; on a miss the line is kept a place: from now on it awaits the FILL of this owner."""
    WRITE = 2
    """A valid line takes the masked bytes and is used; an awaited one is dropped, unless all bytes are
    written. With all bytes the line becomes valid wherever it was."""
    DROP = 3
    """The line is forgotten, an awaited one too."""
    FILL = 4
    """The line becomes valid with this data if it still awaits the FILL of this owner."""
    CLEAR = 5
    """Every line is forgotten."""


class CacheCells(wiring.Component):
    """Set-associative lines of 32 bytes, least recently used replacement; one operation a cycle.

    The set is the low bits of the atom address. A new line takes the lowest free way of its set, else that
    of the line used longest ago. With `body="array"` the cells are Amaranth memories of the configured
    geometry, with `body="dpi"` an instance of the Verilog module `clew_cache_cells`, whose lines live in C
    and may be of any size up to the configured one.

    Members
    -------
    sets_log2 : In(5), ways : In(6)
        The part of the configured geometry in use; they change only together with a CLEAR.
    enable : In(1), op : In(CacheOp), address : In(32), owner : In(6), data : In(256), mask : In(32)
        The operation of this cycle.
    hit : Out(1), read_data : Out(256)
        One cycle after a READ or READ_ALLOCATE, until the next operation.
    """

    def __init__(self, config: CacheConfig) -> None:
        self._config = config
        super().__init__(
            {
                "sets_log2": In(SETS_BITS),
                "ways": In(WAYS_BITS),
                "enable": In(1),
                "op": In(CacheOp),
                "address": In(ADDRESS_WIDTH),
                "owner": In(CONTEXT_WIDTH),
                "data": In(ATOM_WIDTH),
                "mask": In(ATOM_BYTES),
                "hit": Out(1),
                "read_data": Out(ATOM_WIDTH),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        if self._config.body == "dpi":
            m.submodules.cells = Instance(
                CACHE_MODULE,
                i_clk=ClockSignal(),
                o_hit=self.hit,
                o_read_data=self.read_data,
                **{
                    f"i_{name}": Value.cast(getattr(self, name))
                    for name in ("sets_log2", "ways", "enable", "op", "address", "owner", "data", "mask")
                },
            )
            return m
        self._array(m)
        return m

    def _array(self, m: Module) -> None:
        sets, ways = 1 << self._config.sets_log2, self._config.ways
        way_bits = max(1, ceil_log2(ways))
        way_shape = data.StructLayout(
            {
                "address": unsigned(ADDRESS_WIDTH),
                "owner": unsigned(CONTEXT_WIDTH),
                "awaited": unsigned(1),
                # How many ways of the set were used later: a permutation of the ways, whatever is free.
                "age": unsigned(way_bits),
            }
        )
        row_shape = data.ArrayLayout(way_shape, ways)
        fresh = [{"address": 0, "owner": 0, "awaited": 0, "age": way} for way in range(ways)]
        m.submodules.rows = rows = memory.Memory(shape=row_shape, depth=sets, init=[fresh] * sets)
        m.submodules.lines = lines = memory.Memory(shape=unsigned(ATOM_WIDTH), depth=sets * ways, init=[])
        row_read, row_write = rows.read_port(domain="comb"), rows.write_port()
        line_read, line_write = lines.read_port(), lines.write_port(granularity=8)
        # Apart from the rows, so that all of them are forgotten at once.
        used = Signal(sets * ways)

        index = Signal(max(1, self._config.sets_log2))
        in_use = Signal(ways)
        present = Signal(ways)
        same = Signal(ways)
        free = Signal(ways)
        oldest = Signal(ways)
        m.d.comb += [
            index.eq(self.address & ((1 << self.sets_log2) - 1)),
            in_use.eq((1 << self.ways) - 1),
            present.eq(used.word_select(index, ways)),
            row_read.addr.eq(index),
            free.eq(in_use & ~present),
        ]
        row = [row_read.data[way] for way in range(ways)]
        ages = [Signal(way_bits, name=f"age_{way}") for way in range(ways)]
        for way, cell in enumerate(row):
            m.d.comb += [ages[way].eq(cell.age), same[way].eq(present[way] & (cell.address == self.address))]
        for way in range(ways):
            # Ways beyond those in use are never used, so they may be older.
            older = Cat(in_use[other] & (ages[other] > ages[way]) for other in range(ways) if other != way)
            m.d.comb += oldest[way].eq(in_use[way] & ~older.any())

        found, awaited, mine = Signal(), Signal(), Signal()
        victim, chosen = Signal(ways), Signal(ways)
        m.d.comb += [
            found.eq(same.any()),
            awaited.eq(Cat(same[way] & cell.awaited for way, cell in enumerate(row)).any()),
            mine.eq(Cat(same[way] & (cell.owner == self.owner) for way, cell in enumerate(row)).any()),
            victim.eq(Mux(free.any(), free & (~free + 1), oldest)),
            chosen.eq(Mux(found, same, victim)),
        ]
        way = Signal(way_bits)
        for bit in range(way_bits):
            m.d.comb += way[bit].eq(Cat(chosen[n] for n in range(ways) if n >> bit & 1).any())

        hits, takes, awaits, drops = Signal(), Signal(), Signal(), Signal()
        with m.If(self.enable):
            with m.Switch(self.op):
                with m.Case(CacheOp.READ, CacheOp.READ_ALLOCATE):
                    m.d.comb += [
                        hits.eq(found & ~awaited),
                        awaits.eq(~hits & (self.op == CacheOp.READ_ALLOCATE)),
                    ]
                    m.d.sync += self.hit.eq(hits)
                with m.Case(CacheOp.WRITE):
                    m.d.comb += [
                        takes.eq(self.mask.all() | (found & ~awaited)),
                        drops.eq(~takes),
                        line_write.en.eq(Mux(takes, self.mask, 0)),
                    ]
                with m.Case(CacheOp.DROP):
                    m.d.comb += drops.eq(1)
                with m.Case(CacheOp.FILL):
                    m.d.comb += [
                        takes.eq(awaited & mine),
                        line_write.en.eq(takes.replicate(ATOM_BYTES)),
                    ]
                with m.Case(CacheOp.CLEAR):
                    m.d.sync += used.eq(0)
        # FILL does not use the line: the READ_ALLOCATE that awaits it did.
        touches = hits | awaits | (takes & (self.op != CacheOp.FILL))
        age = Signal(way_bits)
        m.d.comb += [
            line_read.addr.eq(index * ways + way),
            line_read.en.eq(hits),
            self.read_data.eq(line_read.data),
            line_write.addr.eq(index * ways + way),
            line_write.data.eq(self.data),
            row_write.addr.eq(index),
            row_write.en.eq(touches | takes),
            age.eq(Cat(ages).word_select(way, way_bits)),
        ]
        for number, cell in enumerate(row):
            new = row_write.data[number]
            m.d.comb += new.eq(cell)
            with m.If(touches & (ages[number] < age)):
                m.d.comb += new.age.eq(ages[number] + 1)
            with m.If(chosen[number]):
                m.d.comb += [
                    new.address.eq(self.address),
                    new.awaited.eq(awaits | (cell.awaited & ~takes)),
                ]
                with m.If(touches):
                    m.d.comb += new.age.eq(0)
                with m.If(awaits):
                    m.d.comb += new.owner.eq(self.owner)
        with m.If(takes | awaits):
            m.d.sync += used.word_select(index, ways).eq(present | chosen)
        with m.If(drops & found):
            m.d.sync += used.word_select(index, ways).eq(present & ~same)
