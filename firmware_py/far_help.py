"""The help that a far place may have: a cache, a path stack, streamed lists; what each is, and its sources.

Cache presets are the rows of `data/far_caches.csv`: published hit latencies and sizes. What is charged on the
compute side for stack and stream is an input of the comparison, stated here once.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources

from hdl.config import CacheConfig, DesignConfig
from hdl.fabric.cache import Cache

from .errors import InputError

__all__ = [
    "OFF",
    "STACK_LEVEL_CYCLES",
    "STREAM_RESULT_CYCLES",
    "CacheSetting",
    "FarCache",
    "FarHelp",
    "cache_presets",
    "cache_setting",
    "geometry",
    "parse_caches",
    "parse_help",
    "parse_size",
    "size_text",
]

#: On-chip cycles for each level that a path stack looks at: one to read it (the scratchpad answers a cycle
#: later), one to judge it (a walker's instruction).
STACK_LEVEL_CYCLES = 2
#: On-chip cycles for each result of a streamed selection; comparing costs none, it keeps up with the stream.
STREAM_RESULT_CYCLES = 1

_COLUMNS = ("name", "beside", "hit_ns", "size_mib", "what", "source")
_FILE = "far_caches.csv"
#: The largest cache, in bytes.
_LARGEST = 64 << 20
_LINE = 32
_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}
#: Fewest ways that a cache of 32 sets or more has.
_WAYS = 16


@dataclass(frozen=True, kw_only=True)
class FarCache:
    """A published cache: how long a hit takes in ns, and how many bytes it has."""

    name: str
    beside: str
    """The off-chip path preset that was measured on the same device."""
    hit_ns: float
    size: int
    what: str
    source: str
    own_size: bool = False
    """The size was asked for, and is not the published one."""

    @property
    def label(self) -> str:
        """Name, and the size where it is not the published one."""
        return f"{self.name}:{size_text(self.size)}" if self.own_size else self.name


@dataclass(frozen=True, kw_only=True)
class FarHelp:
    """What the far place has; by default nothing."""

    cache: FarCache | None = None
    stack: bool = False
    stream: bool = False

    @property
    def names(self) -> list[str]:
        """As `--far-help` takes them."""
        return [
            *([f"cache={self.cache.label}"] if self.cache else []),
            *(name for name in ("stack", "stream") if getattr(self, name)),
        ]

    @property
    def plans(self) -> bool:
        """Some walks are not asked of the walker."""
        return self.stack or self.stream

    def built_into(self, config: DesignConfig) -> DesignConfig:
        """The design with what this help needs of the hardware."""
        if self.cache is None:
            return config
        return dataclasses.replace(config, cache=CacheConfig(body="dpi"))


@dataclass(frozen=True, kw_only=True)
class CacheSetting:
    """A cache as the registers of a design take it."""

    sets_log2: int
    ways: int
    hit_latency: int
    """Cycles added to the cache's least."""
    hit_cycles: int
    """An iteration of the far loop whose read hits: the published time."""


#: No cache.
OFF = CacheSetting(sets_log2=0, ways=0, hit_latency=0, hit_cycles=0)


def size_text(size: int) -> str:
    """A number of bytes in the largest unit that leaves a whole number."""
    unit = next(name for name, factor in reversed(_UNITS.items()) if size % factor == 0 and size >= factor)
    return f"{size // _UNITS[unit]}{unit}"


def parse_caches(text: str, *, file: str) -> dict[str, FarCache]:
    """The presets in `text`, a CSV table with the header of `data/far_caches.csv`, by name.

    Raises InputError naming file, line and field for a wrong header, a wrong number of fields, an empty
    field, a name that repeats, or a time or size that is not a positive number.
    """
    rows = csv.reader(io.StringIO(text))
    header = next(rows, [])
    if tuple(header) != _COLUMNS:
        raise InputError(f"{file}: line 1: header is {','.join(header)!r}: expected {','.join(_COLUMNS)}")
    presets: dict[str, FarCache] = {}
    for row in rows:
        where = f"{file}: line {rows.line_num}"
        if len(row) != len(_COLUMNS):
            raise InputError(f"{where}: {len(row)} fields: expected {len(_COLUMNS)}")
        cells = dict(zip(_COLUMNS, row, strict=True))
        for field, value in cells.items():
            if not value.strip():
                raise InputError(f"{where}: field {field} is empty: expected a value")
        if cells["name"] in presets:
            raise InputError(f"{where}: field name is {cells['name']!r}: expected a name not used before")
        numbers = {field: _positive(cells[field], where, field) for field in ("hit_ns", "size_mib")}
        presets[cells["name"]] = FarCache(
            name=cells["name"],
            beside=cells["beside"],
            hit_ns=numbers["hit_ns"],
            size=round(numbers["size_mib"] * (1 << 20)),
            what=cells["what"],
            source=cells["source"],
        )
    return presets


def _positive(text: str, where: str, field: str) -> float:
    if not re.fullmatch(r"\d+(\.\d+)?", text) or float(text) == 0:
        raise InputError(f"{where}: field {field} is {text!r}: expected a positive number")
    return float(text)


@cache
def cache_presets() -> dict[str, FarCache]:
    """The presets of `data/far_caches.csv` by name."""
    text = resources.files("firmware_py").joinpath("data", _FILE).read_text(encoding="utf-8")
    return parse_caches(text, file=_FILE)


def parse_size(text: str) -> int:
    """A size like `64KiB`, `6MiB` or `0`, in bytes. Raises InputError."""
    found = re.fullmatch(r"(\d+)(B|KiB|MiB)", text)
    if text == "0":
        return 0
    if found is None:
        raise InputError(f"size {text!r}: expected a number with B, KiB or MiB behind it, or 0")
    return int(found[1]) * _UNITS[found[2]]


def parse_help(text: str) -> FarHelp:
    """The help that `text` lists, with commas: `cache=NAME`, `cache=NAME:SIZE`, `stack`, `stream`.

    A cache of size 0 is none. Raises InputError naming the token for one that is not known or repeats, a
    cache that is not known, and a size that no cache has.
    """
    found = FarHelp()
    seen: set[str] = set()
    for token in filter(None, text.split(",")):
        name, equals, value = token.partition("=")
        if name in seen:
            raise InputError(f"--far-help names {name!r} twice: expected it once")
        seen.add(name)
        if name in ("stack", "stream") and not equals:
            found = dataclasses.replace(found, **{name: True})
        elif name == "cache" and value:
            found = dataclasses.replace(found, cache=_cache(value))
        else:
            raise InputError(f"unknown far help {token!r}: expected cache=NAME[:SIZE], stack or stream")
    return found


def _cache(text: str) -> FarCache | None:
    name, _, size = text.partition(":")
    presets = cache_presets()
    if name not in presets:
        raise InputError(f"unknown far cache {name!r}: expected one of {', '.join(presets)}")
    chosen = presets[name]
    if size:
        chosen = dataclasses.replace(chosen, size=parse_size(size), own_size=True)
    if chosen.size > _LARGEST:
        raise InputError(
            f"far cache {name!r} has {size_text(chosen.size)}: expected at most {size_text(_LARGEST)}; "
            f"{name}:64MiB takes its hit latency with that size"
        )
    if chosen.size == 0:
        return None
    geometry(chosen.size)
    return chosen


def geometry(size: int) -> tuple[int, int]:
    """log2 of the sets, and the ways (16 to 31, fewer in one set), of a cache of `size` bytes.

    Raises InputError for a size that is not ways times a power of two of lines of 32 bytes.
    """
    lines = size // _LINE
    sets_log2 = max((lines // _WAYS).bit_length() - 1, 0)
    ways = lines >> sets_log2
    if lines == 0 or (ways << sets_log2) * _LINE != size:
        raise InputError(
            f"a cache of {size_text(size)}: expected a number of 32-byte lines that is 16 to 31 times a "
            "power of two, or less than 16"
        )
    return sets_log2, ways


def cache_setting(chosen: FarCache | None, config: DesignConfig) -> CacheSetting:
    """The cache as registers of the design `config`; None: off.

    The latency is such that one isolated iteration of the far loop that hits takes the published time.
    Raises InputError when that is shorter than what the cache takes at least.
    """
    if chosen is None:
        return OFF
    least = Cache.hit_cycles + config.walker.execute_stages
    clock = config.memory.timing.clock_ns
    cycles = round(chosen.hit_ns / clock)
    if cycles < least:
        raise InputError(
            f"far cache {chosen.name!r}: a hit takes {chosen.hit_ns} ns: expected at least {least * clock} ns"
        )
    sets_log2, ways = geometry(chosen.size)
    return CacheSetting(sets_log2=sets_log2, ways=ways, hit_latency=cycles - least, hit_cycles=cycles)
