"""The HostPort: registers, scratchpad window and memory window behind one AXI4-Lite port."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from .config import DesignConfig
from .fabric.axi import AxiLite, AxiLiteSubordinate
from .fabric.cache_cells import SETS_BITS, WAYS_BITS
from .fabric.crc import CRC32_INIT, crc32_final, crc32_next
from .layouts import (
    ADDRESS_WIDTH,
    CHANNEL_WIDTH,
    CONTEXT_WIDTH,
    ContextWrite,
    FaultInjection,
    HistogramSelect,
    MemoryPort,
    MemoryStatus,
    ProgramWrite,
    RefreshMode,
    ScratchpadPort,
    Source,
)
from .registers import (
    INTEGRITY_OFFSET,
    MEMORY_WINDOW,
    REGISTER_BY_NAME,
    REGISTERS,
    SCRATCHPAD_WINDOW,
)
from .sequencer import BatchControl

__all__ = ["HostPort", "HostSettings"]

#: Bits of a byte address inside either window: 256 KiB.
_WINDOW_BITS = 18
#: Bits of the number of a page of memory: all that an atom address holds.
_PAGE_BITS = ADDRESS_WIDTH - (_WINDOW_BITS - 5)


class HostSettings(wiring.Signature):
    """What the host sets once and the rest of the design reads. Change it only while idle.

    Members
    -------
    latency_up, latency_down, bytes_per_cycle : Out(16)
        For the link.
    refresh : Out(RefreshMode)
    program_write : Out(ProgramWrite), context_write : Out(ContextWrite)
        To all walkers.
    context_channel : Out(4)
        The channel whose near walker takes `context_write`.
    clear_counters : Out(1)
    counted_channels : Out(16)
        The channels whose events count.
    fault : Out(FaultInjection())
        To the memory devices; only with `ecc`.
    cache_sets_log2 : Out(5), cache_ways : Out(6), cache_hit_latency : Out(16), cache_clear : Out(1)
        To the cache; only with `cache`.
    histogram_select : Out(HistogramSelect), histogram_index : Out
        The bin to read; only with histograms, which have `histogram_bins` bins.
    """

    def __init__(self, *, ecc: bool = False, cache: bool = False, histogram_bins: int = 0) -> None:
        members = {
            "latency_up": Out(16),
            "latency_down": Out(16),
            "bytes_per_cycle": Out(16),
            "refresh": Out(RefreshMode, init=RefreshMode.ALL_BANK),
            "program_write": Out(ProgramWrite()),
            "context_write": Out(ContextWrite()),
            "context_channel": Out(CHANNEL_WIDTH),
            "clear_counters": Out(1),
            "counted_channels": Out(1 << CHANNEL_WIDTH, init=REGISTER_BY_NAME["COUNTED_CHANNELS"].reset),
        }
        if ecc:
            members["fault"] = Out(FaultInjection())
        if cache:
            members |= {
                "cache_sets_log2": Out(SETS_BITS),
                "cache_ways": Out(WAYS_BITS),
                "cache_hit_latency": Out(16),
                "cache_clear": Out(1),
            }
        if histogram_bins:
            members |= {
                "histogram_select": Out(HistogramSelect),
                "histogram_index": Out(exact_log2(histogram_bins)),
            }
        super().__init__(members)


class HostPort(wiring.Component):
    """The host's view of the design: the register map of `hdl/registers.py` on AXI4-Lite.

    One transaction at a time. While a batch runs, both windows answer SLVERR, because an access would
    take cycles away from the batch; registers can always be read. An unmapped address, a memory access
    that fails, and a partial write of a register answer SLVERR too.

    Members
    -------
    axi : In(AxiLite)
    scratchpad : Out(ScratchpadPort)
    memory : Out(MemoryPort)
        Over the bulk channel of the link.
    batch : Out(BatchControl)
    settings : Out(HostSettings)
    counts : In(32), one for each COUNT_ register, and cycles : In(64)
    corrected_address, uncorrectable_address : In(32)
        Only with `config.controller.ecc`.
    histogram_data : In(32)
        Only with `config.histogram`.
    interrupt : Out(1)
        Level: a batch is done and the host has enabled and not cleared it.
    wake : Out(1)
        The host begins an access in this cycle.
    sleeps : Out(1)
        See `ClockGate`.
    """

    _COUNTS = tuple(register.name for register in REGISTERS if register.name.startswith("COUNT_"))

    def __init__(self, config: DesignConfig) -> None:
        self._config = config
        members = {
            "axi": In(AxiLite()),
            "scratchpad": Out(ScratchpadPort()),
            "memory": Out(MemoryPort()),
            "batch": Out(BatchControl()),
            "settings": Out(
                HostSettings(
                    ecc=config.controller.ecc,
                    cache=config.cache.built,
                    histogram_bins=config.histogram.bins,
                )
            ),
            "cycles": In(64),
            "interrupt": Out(1),
            "wake": Out(1),
            "sleeps": Out(1),
        }
        members |= {name.lower(): In(32) for name in self._COUNTS}
        if config.controller.ecc:
            members |= {"corrected_address": In(32), "uncorrectable_address": In(32)}
        if config.histogram.built:
            members["histogram_data"] = In(32)
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        m.submodules.axi = axi = AxiLiteSubordinate()
        wiring.connect(m, wiring.flipped(self.axi), axi.axi)
        request, response = axi.request, axi.response
        m.d.comb += self.wake.eq(self.axi.awvalid | self.axi.wvalid | self.axi.arvalid)

        batch, settings = self.batch, self.settings
        done = Signal()
        interrupt_enable = Signal()
        program_index = Signal(6)
        program_low = Signal(96)
        context_index = Signal(CONTEXT_WIDTH + CHANNEL_WIDTH)
        context_base = Signal(32)
        context_limit = Signal(32)
        context_writable = Signal()
        context_tenant = Signal()
        memory_page = Signal(_PAGE_BITS)
        writes, reads = Signal(32), Signal(32)
        write_crc, read_crc = Signal(32, init=CRC32_INIT), Signal(32, init=CRC32_INIT)

        values = {
            "CONFIG_HASH": config.hash,
            "CLOCK_PS": round(config.memory.timing.clock_ns * 1000),
            "CONTEXTS": config.walker.contexts,
            "SCRATCHPAD_ATOMS": config.scratchpad.atoms,
            "MEMORY_ATOMS": config.memory.atoms,
            "CHANNELS": config.memory.channels,
            "CACHE_LINES": config.cache.lines,
            "STATUS": Cat(batch.busy, done, batch.error),
            "INTERRUPT_ENABLE": interrupt_enable,
            "INTERRUPT_PENDING": done,
            "COMMAND_BASE": batch.command_base,
            "COMMAND_COUNT": batch.command_count,
            "COMPLETION_BASE": batch.completion_base,
            "COMPLETION_SIZE": batch.completion_size,
            "COMPLETION_COUNT": batch.completion_count,
            "BATCH_CYCLES": batch.batch_cycles,
            "CYCLES_LOW": self.cycles[:32],
            "CYCLES_HIGH": self.cycles[32:],
            "LINK_LATENCY_UP": settings.latency_up,
            "LINK_LATENCY_DOWN": settings.latency_down,
            "LINK_BYTES_PER_CYCLE": settings.bytes_per_cycle,
            "REFRESH": settings.refresh,
            "PROGRAM_INDEX": program_index,
            "PROGRAM_WORD0": program_low[0:32],
            "PROGRAM_WORD1": program_low[32:64],
            "PROGRAM_WORD2": program_low[64:96],
            "CONTEXT_INDEX": context_index,
            "CONTEXT_BASE": context_base,
            "CONTEXT_LIMIT": context_limit,
            "CONTEXT_WRITE": Cat(context_writable, context_tenant),
            "MEMORY_PAGE": memory_page,
            "COUNTED_CHANNELS": settings.counted_channels,
            "HOST_WRITES": writes,
            "HOST_WRITE_CRC": crc32_final(write_crc),
            "HOST_READS": reads,
            "HOST_READ_CRC": crc32_final(read_crc),
        } | {name: getattr(self, name.lower()) for name in self._COUNTS}
        if config.controller.ecc:
            values |= {
                "CORRECTED_ADDRESS": self.corrected_address,
                "UNCORRECTABLE_ADDRESS": self.uncorrectable_address,
                "INJECT_ADDRESS": settings.fault.address,
                "INJECT_LANE": settings.fault.lane,
                "INJECT_CONTROL": settings.fault.armed,
            }
        cache = {
            f"CACHE_{name.upper()}": getattr(settings, f"cache_{name}")
            for name in ("sets_log2", "ways", "hit_latency")
            if config.cache.built
        }
        histogram = {}
        if config.histogram.built:
            histogram = {
                "HISTOGRAM_SELECT": Value.cast(settings.histogram_select),
                "HISTOGRAM_INDEX": settings.histogram_index,
            }
            values |= {
                "HISTOGRAM_BINS": config.histogram.bins,
                "WALK_BIN_CYCLES": config.histogram.walk_bin_cycles,
                "HISTOGRAM_DATA": self.histogram_data,
            }
        values |= cache | histogram

        address = Signal.like(request.payload.address)
        write = Signal()
        data = Signal(32)
        strobe = Signal(4)
        m.d.comb += [
            address.eq(request.payload.address),
            write.eq(request.payload.write),
            data.eq(request.payload.data),
            strobe.eq(request.payload.strobe),
        ]
        in_register = Signal()
        in_scratchpad = Signal()
        in_memory = Signal()
        m.d.comb += [
            in_register.eq(address < 4 * len(REGISTERS)),
            in_scratchpad.eq(
                (address[_WINDOW_BITS:] == SCRATCHPAD_WINDOW >> _WINDOW_BITS)
                & (address[:_WINDOW_BITS] < 32 * config.scratchpad.atoms)
            ),
            in_memory.eq(address[_WINDOW_BITS:] == MEMORY_WINDOW >> _WINDOW_BITS),
        ]

        # -- Registers --
        register_data = Signal(32)
        with m.Switch(address[2:12]):
            for register in REGISTERS:
                with m.Case(register.offset // 4):
                    m.d.comb += register_data.eq(values.get(register.name, register.reset))
        register_write = Signal()

        def written(name: str) -> Signal:
            strobed = Signal(name=f"write_{name.lower()}")
            m.d.comb += strobed.eq(register_write & (address[2:12] == REGISTER_BY_NAME[name].offset // 4))
            return strobed

        for name, target in (
            ("INTERRUPT_ENABLE", interrupt_enable),
            ("COMMAND_BASE", batch.command_base),
            ("COMMAND_COUNT", batch.command_count),
            ("COMPLETION_BASE", batch.completion_base),
            ("COMPLETION_SIZE", batch.completion_size),
            ("LINK_LATENCY_UP", settings.latency_up),
            ("LINK_LATENCY_DOWN", settings.latency_down),
            ("LINK_BYTES_PER_CYCLE", settings.bytes_per_cycle),
            ("REFRESH", settings.refresh),
            ("PROGRAM_INDEX", program_index),
            ("PROGRAM_WORD0", program_low[0:32]),
            ("PROGRAM_WORD1", program_low[32:64]),
            ("PROGRAM_WORD2", program_low[64:96]),
            ("CONTEXT_INDEX", context_index),
            ("CONTEXT_BASE", context_base),
            ("CONTEXT_LIMIT", context_limit),
            ("CONTEXT_WRITE", Cat(context_writable, context_tenant)),
            ("MEMORY_PAGE", memory_page),
            ("COUNTED_CHANNELS", settings.counted_channels),
            *cache.items(),
            *histogram.items(),
        ):
            with m.If(written(name)):
                m.d.sync += target.eq(data)
        if config.controller.ecc:
            fault = settings.fault
            for name, target in (("INJECT_ADDRESS", fault.address), ("INJECT_LANE", fault.lane)):
                with m.If(written(name)):
                    m.d.sync += target.eq(data)
            m.d.comb += [
                fault.flips.eq(data),
                fault.set_flips.eq(written("INJECT_FLIPS")),
                Cat(fault.arm, fault.sticky).eq(data),
                fault.set_armed.eq(written("INJECT_CONTROL")),
            ]
        if config.cache.built:
            m.d.comb += settings.cache_clear.eq(written("CACHE_CLEAR") & data[0])
        m.d.comb += [
            batch.start.eq(written("START") & data[0]),
            settings.clear_counters.eq(written("RESET_COUNTERS") & data[0]),
            settings.program_write.enable.eq(written("PROGRAM_WORD3")),
            settings.program_write.index.eq(program_index),
            settings.program_write.word.eq(Cat(program_low, data)),
            settings.context_write.enable.eq(written("CONTEXT_BUDGET")),
            settings.context_write.index.eq(context_index[:CONTEXT_WIDTH]),
            settings.context_channel.eq(context_index[CONTEXT_WIDTH:]),
            settings.context_write.base.eq(context_base),
            settings.context_write.limit.eq(context_limit),
            settings.context_write.writable.eq(context_writable),
            settings.context_write.tenant.eq(context_tenant),
            settings.context_write.budget.eq(data),
        ]
        with m.If(written("INTERRUPT_PENDING") & data[0]):
            m.d.sync += done.eq(0)
        with m.If(batch.start & ~batch.busy):
            m.d.sync += done.eq(0)
        with m.If(batch.done):
            m.d.sync += done.eq(1)
        m.d.comb += self.interrupt.eq(done & interrupt_enable)

        # -- Windows: one atom access for each 32-bit transaction --
        word = address[2:5]
        lane_data = data.replicate(8)
        lane_mask = Signal(32)
        with m.Switch(word):
            for index in range(8):
                with m.Case(index):
                    m.d.comb += lane_mask[4 * index : 4 * index + 4].eq(strobe)
        scratchpad, memory = self.scratchpad.request, self.memory.request
        m.d.comb += [
            scratchpad.payload.address.eq(address[5:_WINDOW_BITS]),
            scratchpad.payload.write.eq(write),
            scratchpad.payload.data.eq(lane_data),
            scratchpad.payload.mask.eq(lane_mask),
            memory.payload.address.eq(Cat(address[5:_WINDOW_BITS], memory_page)),
            memory.payload.write.eq(write),
            memory.payload.data.eq(lane_data),
            memory.payload.mask.eq(lane_mask),
            memory.payload.tag.source.eq(Source.HOST),
        ]
        answer = self.memory.response
        failed = Signal()
        m.d.comb += failed.eq(
            (answer.payload.status != MemoryStatus.OK) & (answer.payload.status != MemoryStatus.CORRECTED)
        )

        # Read data of a window comes after its request has been let go: `lane` remembers which word.
        lane = Signal(3)
        wrote = Signal()
        with m.If(request.valid & request.ready):
            m.d.sync += [lane.eq(word), wrote.eq(write)]
        due = self._account(m, request, response, (writes, write_crc), (reads, read_crc))
        result = Signal(32)
        result_error = Signal()

        with m.FSM():
            with m.State("REQUEST"):
                m.d.comb += self.sleeps.eq(
                    axi.sleeps & ~(request.valid | batch.done | due | scratchpad.valid | answer.valid)
                )
                with m.If(request.valid):
                    with m.If(in_register):
                        m.d.comb += [request.ready.eq(1), register_write.eq(write & strobe.all())]
                        m.d.sync += [result.eq(register_data), result_error.eq(write & ~strobe.all())]
                        m.next = "ANSWER"
                    with m.Elif(batch.busy | ~(in_scratchpad | in_memory)):
                        m.d.comb += request.ready.eq(1)
                        m.d.sync += [result.eq(0), result_error.eq(1)]
                        m.next = "ANSWER"
                    with m.Elif(in_scratchpad):
                        m.d.comb += [scratchpad.valid.eq(1), request.ready.eq(scratchpad.ready)]
                        with m.If(scratchpad.ready):
                            m.next = "SCRATCHPAD"
                    with m.Else():
                        m.d.comb += [memory.valid.eq(1), request.ready.eq(memory.ready)]
                        with m.If(memory.ready):
                            m.next = "MEMORY"
            with m.State("ANSWER"):
                m.d.comb += [
                    response.valid.eq(1),
                    response.payload.data.eq(result),
                    response.payload.error.eq(result_error),
                ]
                with m.If(response.ready):
                    m.next = "REQUEST"
            with m.State("SCRATCHPAD"):
                # Read data is there for this one cycle, and the subordinate takes an answer in every
                # cycle after it handed the request on.
                m.d.comb += [
                    response.valid.eq(wrote | self.scratchpad.read_valid),
                    response.payload.data.eq(self.scratchpad.read_data.word_select(lane, 32)),
                ]
                with m.If(response.valid):
                    m.next = "REQUEST"
            with m.State("MEMORY"):
                m.d.comb += [
                    response.valid.eq(answer.valid),
                    response.payload.data.eq(answer.payload.data.word_select(lane, 32)),
                    response.payload.error.eq(failed),
                    answer.ready.eq(response.ready),
                ]
                with m.If(answer.valid & response.ready):
                    m.next = "REQUEST"
        return m

    @staticmethod
    def _account(
        m: Module,
        request: wiring.PureInterface,
        response: wiring.PureInterface,
        writes: tuple[Signal, Signal],
        reads: tuple[Signal, Signal],
    ) -> Signal:
        """Counts the accesses that are accepted, and keeps the CRC of what they carried.

        Returns whether one was answered in the cycle before, and is counted in this one.
        """
        address = Signal.like(request.payload.address)
        write, counted = Signal(), Signal()
        data = Signal(32)
        with m.If(request.valid & request.ready):
            m.d.sync += [
                address.eq(request.payload.address),
                write.eq(request.payload.write),
                data.eq(request.payload.data),
                counted.eq(
                    (request.payload.address < INTEGRITY_OFFSET) | (request.payload.address[12:] != 0)
                ),
            ]
        # A cycle later, for what a read found comes late in its own; accesses are further apart.
        due, due_write = Signal(), Signal()
        due_data = Signal(64)
        answered = response.valid & response.ready & ~response.payload.error & counted
        m.d.sync += due.eq(answered)
        with m.If(answered):
            m.d.sync += [
                due_write.eq(write),
                due_data.eq(
                    Cat(address, Const(0, 32 - len(address)), Mux(write, data, response.payload.data))
                ),
            ]
        after = crc32_next(Mux(due_write, writes[1], reads[1]), due_data)
        for (count, crc), mine in ((writes, due_write), (reads, ~due_write)):
            with m.If(due & mine):
                m.d.sync += [count.eq(count + 1), crc.eq(after)]
        return due
