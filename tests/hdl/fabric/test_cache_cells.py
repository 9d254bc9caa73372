"""The cells of the cache, in both bodies, against the golden model: hits, and the data of every hit."""

import ctypes
import random

import pytest

from hdl.config import CacheConfig
from hdl.fabric.cache_cells import CacheCells, CacheOp
from sim.model.cache import CacheModel
from sim.verilator import CACHE_SOURCES, build_once, content_key, run_tool, tool_environment
from tests.hdl.streams import run

FULL = 0xFFFFFFFF


class Reference:
    """The golden model with the data beside it: what every operation must answer."""

    def __init__(self, sets_log2: int, ways: int) -> None:
        self.model = CacheModel(sets_log2=sets_log2, ways=ways)
        self.lines: dict[int, int] = {}

    def operate(self, op: CacheOp, address: int, owner: int, data: int, mask: int) -> tuple[bool, int]:
        match op:
            case CacheOp.READ:
                hit = self.model.read(address)
                return hit, self.lines[address] if hit else 0
            case CacheOp.READ_ALLOCATE:
                hit = self.model.read(address, owner=owner)
                return hit, self.lines[address] if hit else 0
            case CacheOp.WRITE:
                self.model.write(address, whole=mask == FULL)
                bits = sum(0xFF << 8 * byte for byte in range(32) if mask >> byte & 1)
                self.lines[address] = self.lines.get(address, 0) & ~bits | data & bits
            case CacheOp.DROP:
                self.model.drop(address)
            case CacheOp.FILL:
                awaited = self.model._set(address).get(address)
                self.model.fill(address, owner=owner)
                if awaited == owner:
                    self.lines[address] = data
            case CacheOp.CLEAR:
                self.model.clear()
        return False, 0


def operations(seed: int, count: int, *, addresses: int):
    """Random operations on few addresses, so that lines are met again and sets overflow.

    Three of four fills are for one of the last reads that left an awaited line.
    """
    rng = random.Random(seed)
    kinds = [CacheOp.READ, CacheOp.READ_ALLOCATE, CacheOp.READ_ALLOCATE, CacheOp.WRITE]
    asked = [(0, 0)]
    for _ in range(count):
        op, address, owner = rng.choice(kinds), rng.randrange(addresses), rng.randrange(3)
        chance = rng.random()
        if chance < 0.05:
            op = CacheOp.DROP
        elif chance < 0.35:
            op = CacheOp.FILL
            address, owner = rng.choice(asked) if rng.random() < 0.75 else (address, owner)
        elif chance > 1 - 0.2 / addresses:
            op = CacheOp.CLEAR
        if op is CacheOp.READ_ALLOCATE:
            asked = [*asked[-5:], (address, owner)]
        mask = FULL if rng.random() < 0.5 else rng.getrandbits(32)
        yield op, address, owner, rng.getrandbits(256), mask


@pytest.mark.parametrize(("sets_log2", "ways"), [(0, 1), (2, 2), (1, 4), (3, 3)])
@pytest.mark.parametrize("in_use", ["all", "part"])
def test_the_array_is_the_golden_model(sets_log2: int, ways: int, in_use: str) -> None:
    dut = CacheCells(CacheConfig(body="array", sets_log2=sets_log2, ways=ways))
    used_sets, used_ways = (sets_log2, ways) if in_use == "all" else (max(sets_log2 - 1, 0), max(ways - 1, 1))
    reference = Reference(used_sets, used_ways)
    lines = used_ways << used_sets

    async def bench(ctx):
        ctx.set(dut.sets_log2, used_sets)
        ctx.set(dut.ways, used_ways)
        for op, address, owner, data, mask in operations(7, 1500, addresses=2 * lines):
            expected, line = reference.operate(op, address, owner, data, mask)
            ctx.set(dut.enable, 1)
            for name, value in (("op", op), ("address", address), ("owner", owner)):
                ctx.set(getattr(dut, name), value)
            ctx.set(dut.data, data)
            ctx.set(dut.mask, mask)
            await ctx.tick()
            ctx.set(dut.enable, 0)
            if op in (CacheOp.READ, CacheOp.READ_ALLOCATE):
                assert ctx.get(dut.hit) == expected, (op, address)
                assert not expected or ctx.get(dut.read_data) == line

    run(dut, bench)
    assert reference.model.hits > 50 and reference.model.misses > 50


def _library() -> ctypes.CDLL:
    """The C side of the cache alone."""
    source = next(path for path in CACHE_SOURCES if path.suffix == ".cpp")
    include = f"{tool_environment()['VERILATOR_ROOT']}/include/vltstd"

    def build(folder):
        run_tool(
            ["g++", "-O1", "-shared", "-fPIC", f"-I{include}", str(source), "-o", "cache.so"], folder=folder
        )

    library = ctypes.CDLL(str(build_once("library-cache", content_key(source), build) / "cache.so"))
    library.clew_cache_create.restype = ctypes.c_void_p
    library.clew_cache_destroy.argtypes = [ctypes.c_void_p]
    words = ctypes.POINTER(ctypes.c_uint32)
    found = ctypes.POINTER(ctypes.c_ubyte)
    library.clew_cache_operate.argtypes = [
        ctypes.c_void_p,
        *[ctypes.c_uint32] * 5,
        words,
        words,
        found,
        words,
    ]
    library.clew_cache_operate.restype = None
    return library


@pytest.mark.parametrize(("sets_log2", "ways"), [(0, 1), (2, 2), (4, 25), (9, 16), (3, 0)])
def test_the_c_side_is_the_golden_model(sets_log2: int, ways: int) -> None:
    library = _library()
    cache = library.clew_cache_create()
    reference = Reference(sets_log2, ways)
    atom = ctypes.c_uint32 * 8
    line, found = atom(), ctypes.c_ubyte()
    for op, address, owner, data, mask in operations(11, 60_000, addresses=2 * (ways << sets_log2) + 1):
        expected, content = reference.operate(op, address, owner, data, mask)
        given = atom(*(data >> 32 * word & FULL for word in range(8)))
        enables = ctypes.c_uint32(mask)
        library.clew_cache_operate(
            cache, sets_log2, ways, op.value, address, owner, given, enables, found, line
        )
        assert found.value == expected, (op, address)
        assert not expected or sum(word << 32 * index for index, word in enumerate(line)) == content
    library.clew_cache_destroy(cache)
    print(f"{reference.model.hits} hits, {reference.model.misses} misses")
    assert ways == 0 or reference.model.hits > 1000
