"""The HostPort over AXI4-Lite, with scratchpad, memory and Sequencer mocked."""

import dataclasses
import random
import zlib

import pytest
from amaranth.sim import Simulator

from hdl.config import CacheConfig, ControllerConfig, DesignConfig, HistogramConfig
from hdl.hostport import HostPort
from hdl.layouts import MemoryStatus
from hdl.registers import ID_VALUE, MEMORY_WINDOW, REGISTER_BY_NAME, REGISTERS, SCRATCHPAD_WINDOW

CONFIG = DesignConfig()
ECC = DesignConfig(controller=ControllerConfig(ecc=True))
CACHE = DesignConfig(cache=CacheConfig(body="dpi"))
HISTOGRAM = DesignConfig(histogram=HistogramConfig(bins=256, walk_bin_cycles=32))
EVERYTHING = dataclasses.replace(ECC, cache=CACHE.cache, histogram=HISTOGRAM.histogram)
OKAY, SLVERR = 0, 2


class Host:
    """AXI4-Lite reads and writes, one at a time, and the neighbours of the port."""

    def __init__(self, body, config=CONFIG):
        self.dut = HostPort(config)
        self.scratchpad = {}
        self.memory = {}
        self.memory_status = MemoryStatus.OK
        self.pulses = []
        simulator = Simulator(self.dut)
        simulator.add_clock(1e-9)
        simulator.add_testbench(self._scratchpad, background=True)
        simulator.add_testbench(self._memory, background=True)
        simulator.add_testbench(self._settings, background=True)
        if config.controller.ecc:
            simulator.add_testbench(self._faults, background=True)

        async def main(ctx):
            self.ctx = ctx
            await body(self)

        simulator.add_testbench(main)
        simulator.run()

    async def read(self, address):
        axi, ctx = self.dut.axi, self.ctx
        ctx.set(axi.araddr, address)
        ctx.set(axi.arvalid, 1)
        await ctx.tick().until(axi.arready)
        ctx.set(axi.arvalid, 0)
        ctx.set(axi.rready, 1)
        data, response = (await ctx.tick().sample(axi.rdata, axi.rresp).until(axi.rvalid))[-2:]
        ctx.set(axi.rready, 0)
        return data, response.value

    async def write(self, address, data, strobe=0xF):
        axi, ctx = self.dut.axi, self.ctx
        ctx.set(axi.awaddr, address)
        ctx.set(axi.awvalid, 1)
        ctx.set(axi.wdata, data)
        ctx.set(axi.wstrb, strobe)
        ctx.set(axi.wvalid, 1)
        await ctx.tick().until(axi.awready & axi.wready)
        ctx.set(axi.awvalid, 0)
        ctx.set(axi.wvalid, 0)
        ctx.set(axi.bready, 1)
        (response,) = (await ctx.tick().sample(axi.bresp).until(axi.bvalid))[-1:]
        ctx.set(axi.bready, 0)
        return response.value

    async def _scratchpad(self, ctx):
        port = self.dut.scratchpad
        ctx.set(port.request.ready, 1)
        while True:
            *_, valid, request = await ctx.tick().sample(port.request.valid, port.request.payload)
            ctx.set(port.read_valid, 0)
            ctx.set(port.read_data, 0xDEAD)
            if valid and request.write:
                _masked(self.scratchpad, request)
            elif valid:
                ctx.set(port.read_valid, 1)
                ctx.set(port.read_data, self.scratchpad.get(request.address, 0))

    async def _memory(self, ctx):
        # Loops of plain ticks: an `until` that is still waiting when the simulation ends warns.
        port = self.dut.memory
        answer_at, now, request = None, 0, None
        while True:
            due = answer_at is not None and answer_at <= now
            ctx.set(port.request.ready, answer_at is None)
            ctx.set(port.response.valid, due)
            *_, valid, offered, taken = await ctx.tick().sample(
                port.request.valid, port.request.payload, port.response.ready
            )
            now += 1
            if answer_at is None and valid:
                request, answer_at = offered, now + 30
                if request.write:
                    _masked(self.memory, request)
                answer = {"data": self.memory.get(request.address, 0), "status": self.memory_status,
                          "write": request.write}  # fmt: skip
                ctx.set(port.response.payload, answer)
            elif due and taken:
                answer_at = None

    async def _settings(self, ctx):
        settings, batch = self.dut.settings, self.dut.batch
        while True:
            *_, program, context, start, clear = await ctx.tick().sample(
                settings.program_write.enable, settings.context_write.enable, batch.start,
                settings.clear_counters,
            )  # fmt: skip
            if program:
                words = settings.program_write
                self.pulses.append(("program", ctx.get(words.index), ctx.get(words.word)))
            if context:
                w = settings.context_write
                channel = ctx.get(settings.context_channel)
                self.pulses.append(("context", channel, *(ctx.get(getattr(w, f)) for f in
                                    ("index", "base", "limit", "writable", "tenant"))))  # fmt: skip
            if start:
                self.pulses.append(("start",))
            if clear:
                self.pulses.append(("clear",))

    async def _faults(self, ctx):
        fault = self.dut.settings.fault
        while True:
            *_, flips, lane, mask, arm, address, armed, sticky = await ctx.tick().sample(
                fault.set_flips, fault.lane, fault.flips, fault.set_armed, fault.address, fault.arm,
                fault.sticky,
            )  # fmt: skip
            if flips:
                self.pulses.append(("flips", lane, mask))
            if arm:
                self.pulses.append(("arm", address, armed, sticky))


def _masked(store, request):
    mask = sum(0xFF << 8 * i for i in range(32) if request.mask >> i & 1)
    store[request.address] = store.get(request.address, 0) & ~mask | request.data & mask


def offset(name):
    return REGISTER_BY_NAME[name].offset


def test_constants_say_what_the_design_is():
    async def body(host):
        assert await host.read(offset("ID")) == (ID_VALUE, OKAY)
        assert await host.read(offset("CONFIG_HASH")) == (CONFIG.hash, OKAY)
        assert await host.read(offset("CONTEXTS")) == (16, OKAY)
        assert await host.read(offset("CLOCK_PS")) == (1000, OKAY)
        assert await host.read(offset("MEMORY_ATOMS")) == (1 << 24, OKAY)
        assert await host.read(offset("CHANNELS")) == (1, OKAY)

    Host(body)


def test_every_register_resets_to_what_the_map_says_and_keeps_what_is_written():
    widths = {"INTERRUPT_ENABLE": 1, "REFRESH": 2, "CONTEXT_WRITE": 2, "PROGRAM_INDEX": 6,
              "CONTEXT_INDEX": 10, "MEMORY_PAGE": 19, "COUNTED_CHANNELS": 16, "INJECT_LANE": 4,
              "CACHE_SETS_LOG2": 5, "CACHE_WAYS": 6, "CACHE_HIT_LATENCY": 16,
              "HISTOGRAM_SELECT": 6, "HISTOGRAM_INDEX": 8} | {
        name: 16 for name in ("COMMAND_BASE", "COMMAND_COUNT", "COMPLETION_BASE", "COMPLETION_SIZE",
                              "LINK_LATENCY_UP", "LINK_LATENCY_DOWN", "LINK_BYTES_PER_CYCLE")
    }  # fmt: skip

    async def body(host):
        for register in REGISTERS:
            if register.access == "rw":
                assert await host.read(register.offset) == (register.reset, OKAY), register.name
        for number, register in enumerate(REGISTERS):
            if register.access == "rw" and register.name not in ("INTERRUPT_PENDING", "INJECT_CONTROL"):
                value = 0x9E3779B9 * (number + 1) & 0xFFFFFFFF
                assert await host.write(register.offset, value) == OKAY
                kept = value & (1 << widths.get(register.name, 32)) - 1
                assert await host.read(register.offset) == (kept, OKAY), register.name

    Host(body, EVERYTHING)


def test_a_fault_is_handed_to_the_injector_and_errors_are_read_from_the_log():
    async def body(host):
        ctx, dut = host.ctx, host.dut
        for name, value in (("INJECT_LANE", 8), ("INJECT_FLIPS", 0x80000001), ("INJECT_ADDRESS", 77),
                            ("INJECT_CONTROL", 1), ("INJECT_CONTROL", 3), ("INJECT_CONTROL", 0)):  # fmt: skip
            assert await host.write(offset(name), value) == OKAY
        assert host.pulses == [
            ("flips", 8, 0x80000001), ("arm", 77, 1, 0), ("arm", 77, 1, 1), ("arm", 77, 0, 0)
        ]  # fmt: skip
        ctx.set(dut.settings.fault.armed, 1)
        assert await host.read(offset("INJECT_CONTROL")) == (1, OKAY)
        log = ("count_corrected", "corrected_address", "count_uncorrectable", "uncorrectable_address")
        for number, name in enumerate(log):
            ctx.set(getattr(dut, name), 100 + number)
            assert await host.read(offset(name.upper())) == (100 + number, OKAY)

    Host(body, ECC)


def test_without_ecc_its_registers_read_zero():
    async def body(host):
        for register in REGISTERS:
            if register.name.startswith("INJECT_") or register.name in ("CORRECTED_ADDRESS",
                                                                       "UNCORRECTABLE_ADDRESS"):  # fmt: skip
                assert await host.write(register.offset, 0xFFFFFFFF) == OKAY
                assert await host.read(register.offset) == (0, OKAY), register.name

    Host(body)


def test_a_program_word_and_a_context_are_written_whole():
    async def body(host):
        for name, value in (("PROGRAM_INDEX", 9), ("PROGRAM_WORD0", 1), ("PROGRAM_WORD1", 2),
                            ("PROGRAM_WORD2", 3), ("PROGRAM_WORD3", 4), ("CONTEXT_INDEX", 5 | 3 << 6),
                            ("CONTEXT_BASE", 100), ("CONTEXT_LIMIT", 200), ("CONTEXT_WRITE", 1),
                            ("CONTEXT_BUDGET", 77), ("CONTEXT_WRITE", 2),
                            ("CONTEXT_BUDGET", 78)):  # fmt: skip
            await host.write(offset(name), value)
        assert host.pulses == [
            ("program", 9, 4 << 96 | 3 << 64 | 2 << 32 | 1),
            ("context", 3, 5, 100, 200, 1, 0),
            ("context", 3, 5, 100, 200, 0, 1),
        ]

    Host(body)


def test_the_scratchpad_window_writes_the_strobed_bytes_of_one_word():
    async def body(host):
        for word in range(8):
            assert await host.write(SCRATCHPAD_WINDOW + 32 * 3 + 4 * word, 0x11111111 * (word + 1)) == OKAY
        await host.write(SCRATCHPAD_WINDOW + 32 * 3 + 4, 0xAABBCCDD, strobe=0b0101)
        assert await host.read(SCRATCHPAD_WINDOW + 32 * 3 + 4) == (0x22BB22DD, OKAY)
        assert await host.read(SCRATCHPAD_WINDOW + 32 * 3 + 28) == (0x88888888, OKAY)
        assert list(host.scratchpad) == [3]

    Host(body)


def test_the_memory_window_follows_its_page():
    async def body(host):
        await host.write(offset("MEMORY_PAGE"), 5)
        await host.write(MEMORY_WINDOW + 32 * 2 + 8, 0x12345678)
        assert await host.read(MEMORY_WINDOW + 32 * 2 + 8) == (0x12345678, OKAY)
        assert list(host.memory) == [5 << 13 | 2]

    Host(body)


@pytest.mark.parametrize("status", [MemoryStatus.POISONED, MemoryStatus.OUT_OF_RANGE])
def test_a_failed_memory_access_is_an_error(status):
    async def body(host):
        host.memory_status = status
        assert (await host.read(MEMORY_WINDOW))[1] == SLVERR

    Host(body)


def test_unmapped_addresses_and_partial_register_writes_are_errors_without_effect():
    async def body(host):
        assert (await host.read(4 * len(REGISTERS)))[1] == SLVERR
        assert (await host.read(SCRATCHPAD_WINDOW + 32 * CONFIG.scratchpad.atoms))[1] == SLVERR
        assert await host.write(offset("START"), 1, strobe=0b0111) == SLVERR
        assert host.pulses == []

    Host(body)


def test_while_a_batch_runs_registers_answer_and_windows_do_not():
    async def body(host):
        host.ctx.set(host.dut.batch.busy, 1)
        assert await host.read(offset("STATUS")) == (1, OKAY)
        assert (await host.read(SCRATCHPAD_WINDOW))[1] == SLVERR
        assert await host.write(MEMORY_WINDOW, 1) == SLVERR
        assert host.scratchpad == {} and host.memory == {}

    Host(body)


def test_the_interrupt_is_raised_when_enabled_and_cleared_by_writing_one():
    async def body(host):
        ctx, dut = host.ctx, host.dut
        ctx.set(dut.batch.done, 1)
        await ctx.tick()
        ctx.set(dut.batch.done, 0)
        assert not ctx.get(dut.interrupt)
        await host.write(offset("INTERRUPT_ENABLE"), 1)
        assert ctx.get(dut.interrupt)
        assert await host.read(offset("INTERRUPT_PENDING")) == (1, OKAY)
        await host.write(offset("INTERRUPT_PENDING"), 0)
        assert ctx.get(dut.interrupt)
        await host.write(offset("INTERRUPT_PENDING"), 1)
        assert not ctx.get(dut.interrupt)

    Host(body)


def test_start_and_clear_are_pulses():
    async def body(host):
        await host.write(offset("START"), 1)
        await host.write(offset("START"), 0)
        await host.write(offset("RESET_COUNTERS"), 1)
        assert host.pulses == [("start",), ("clear",)]
        assert (await host.read(offset("START")))[0] == 0

    Host(body)


def test_the_cache_is_set_cleared_and_counted():
    async def body(host):
        ctx, dut = host.ctx, host.dut
        assert await host.read(offset("CACHE_LINES")) == (CACHE.cache.lines, OKAY)
        for name, value in (("SETS_LOG2", 9), ("WAYS", 24), ("HIT_LATENCY", 151)):
            assert await host.write(offset(f"CACHE_{name}"), value) == OKAY
            assert ctx.get(getattr(dut.settings, f"cache_{name.lower()}")) == value
        ctx.set(dut.count_cache_hits, 7)
        ctx.set(dut.count_cache_misses, 8)
        assert await host.read(offset("COUNT_CACHE_HITS")) == (7, OKAY)
        assert await host.read(offset("COUNT_CACHE_MISSES")) == (8, OKAY)

    Host(body, CACHE)


def test_without_a_cache_its_registers_read_zero():
    async def body(host):
        for register in REGISTERS:
            if register.name.startswith(("CACHE_", "COUNT_CACHE_")):
                if register.access == "rw":
                    assert await host.write(register.offset, 0xFFFFFFFF) == OKAY
                assert await host.read(register.offset) == (0, OKAY), register.name

    Host(body)


def test_a_bin_of_a_histogram_is_chosen_and_read():
    async def body(host):
        ctx, dut = host.ctx, host.dut
        assert await host.read(offset("HISTOGRAM_BINS")) == (256, OKAY)
        assert await host.read(offset("WALK_BIN_CYCLES")) == (32, OKAY)
        await host.write(offset("HISTOGRAM_SELECT"), 5 | 1 << 4)
        await host.write(offset("HISTOGRAM_INDEX"), 201)
        select = dut.settings.histogram_select
        assert [ctx.get(part) for part in (select.channel, select.far, select.walks)] == [5, 1, 0]
        assert ctx.get(dut.settings.histogram_index) == 201
        ctx.set(dut.histogram_data, 0xFEDCBA98)
        assert await host.read(offset("HISTOGRAM_DATA")) == (0xFEDCBA98, OKAY)

    Host(body, HISTOGRAM)


def test_without_histograms_their_registers_read_zero():
    async def body(host):
        for register in REGISTERS:
            if "HISTOGRAM" in register.name or register.name == "WALK_BIN_CYCLES":
                if register.access == "rw":
                    assert await host.write(register.offset, 0xFFFFFFFF) == OKAY
                assert await host.read(register.offset) == (0, OKAY), register.name

    Host(body)


def test_accepted_accesses_are_counted_with_their_crc_and_refused_ones_are_not():
    counts, crcs = {"WRITE": 0, "READ": 0}, {"WRITE": 0, "READ": 0}

    def accepted(kind, address, data):
        counts[kind] += 1
        crcs[kind] = zlib.crc32(address.to_bytes(4, "little") + data.to_bytes(4, "little"), crcs[kind])

    async def body(host):
        rng = random.Random(7)
        for _ in range(3):
            for address in (offset("COMMAND_BASE"), SCRATCHPAD_WINDOW + 36, MEMORY_WINDOW + 8):
                data = rng.getrandbits(32)
                assert await host.write(address, data) == OKAY
                accepted("WRITE", address, data)
                found, response = await host.read(address)
                assert response == OKAY
                accepted("READ", address, found)
            assert await host.write(0x3F000, 1) == SLVERR
            assert (await host.read(0x3F000))[1] == SLVERR
            assert await host.write(offset("COMMAND_BASE"), 1, strobe=3) == SLVERR
            for kind in counts:
                assert await host.read(offset(f"HOST_{kind}S")) == (counts[kind], OKAY)
                assert await host.read(offset(f"HOST_{kind}_CRC")) == (crcs[kind], OKAY)

    Host(body)
