"""The list of help, the cache presets and the geometry of a cache."""

import pytest

from firmware_py import far_help
from firmware_py.design import design_for
from firmware_py.errors import InputError
from hdl.fabric.cache import Cache

HEADER = "name,beside,hit_ns,size_mib,what,source\n"
GOOD = "mine,v100_hbm2,100,4,what,who\n"


def test_the_list_is_read_and_written_alike() -> None:
    for text in ("", "stack", "stream", "cache=v100_l2", "cache=a100_l2:64KiB,stack,stream"):
        assert ",".join(far_help.parse_help(text).names) == text
    assert far_help.parse_help("cache=v100_l2:0").cache is None
    assert not far_help.parse_help("cache=v100_l2").plans


@pytest.mark.parametrize("name", far_help.cache_presets())
def test_every_published_cache_fits_or_is_said_to_be_too_large(name: str) -> None:
    preset = far_help.cache_presets()[name]
    if preset.size > 64 << 20:
        with pytest.raises(InputError, match="expected at most 64MiB"):
            far_help.parse_help(f"cache={name}")
        assert far_help.parse_help(f"cache={name}:64MiB").cache
        return
    sets_log2, ways = far_help.geometry(preset.size)
    assert (ways << sets_log2) * 32 == preset.size and 16 <= ways < 32


@pytest.mark.parametrize(
    ("text", "geometry"),
    [
        ("32B", (0, 1)),
        ("480B", (0, 15)),
        ("1KiB", (1, 16)),
        ("64KiB", (7, 16)),
        ("6MiB", (13, 24)),
        ("64MiB", (17, 16)),
    ],
)
def test_a_size_is_ways_times_sets(text: str, geometry: tuple[int, int]) -> None:
    assert far_help.geometry(far_help.parse_size(text)) == geometry
    assert far_help.size_text(far_help.parse_size(text)) == text


@pytest.mark.parametrize("text", ["", "x", "1", "1KB", "-1KiB", "1.5MiB"])
def test_a_size_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="expected a number with B, KiB or MiB"):
        far_help.parse_size(text)


@pytest.mark.parametrize("size", [16, 33, 33 * 1024, 1023 * 32])
def test_a_size_that_no_cache_has_is_refused(size: int) -> None:
    with pytest.raises(InputError, match="expected a number of 32-byte lines"):
        far_help.geometry(size)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER.replace("hit_ns", "hit") + GOOD, "line 1: header is"),
        (HEADER + "a,b,c\n", "line 2: 3 fields: expected 6"),
        (HEADER + GOOD.replace("who", " "), "line 2: field source is empty"),
        (HEADER + GOOD + GOOD, "line 3: field name is 'mine': expected a name not used before"),
        (HEADER + GOOD.replace("100", "0"), "field hit_ns is '0': expected a positive number"),
        (HEADER + GOOD.replace("4", "x"), "field size_mib is 'x': expected a positive number"),
    ],
)
def test_a_bad_table_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        far_help.parse_caches(text, file="f.csv")
    assert str(caught.value).startswith("f.csv: ") and message in str(caught.value)


def test_a_hit_takes_the_published_time() -> None:
    config = design_for("hbm2_2000")
    chosen = far_help.parse_help("cache=v100_l2").cache
    setting = far_help.cache_setting(chosen, config)
    assert setting.hit_cycles == 154
    assert setting.hit_latency + Cache.hit_cycles + config.walker.execute_stages == 154
    assert far_help.cache_setting(None, config) == far_help.OFF


def test_a_hit_that_is_shorter_than_the_cache_is_refused() -> None:
    fast = far_help.parse_caches(HEADER + GOOD.replace("100", "2"), file="f")["mine"]
    with pytest.raises(InputError, match=r"a hit takes 2.0 ns: expected at least 3"):
        far_help.cache_setting(fast, design_for("hbm2_2000"))


def test_only_a_cache_changes_the_design() -> None:
    config = design_for("hbm2_2000")
    assert far_help.parse_help("stack,stream").built_into(config) is config
    built = far_help.parse_help("cache=v100_l2").built_into(config)
    assert built.cache.body == "dpi" and built.cache.lines >= (64 << 20) // 32
