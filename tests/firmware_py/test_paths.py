"""Off-chip path presets: the data file, its parser's errors, and the link cycles."""

import dataclasses

import pytest

from firmware_py import paths
from firmware_py.errors import InputError
from hdl.config import DesignConfig, WalkerConfig, named_config

SIMULATION = named_config("simulation")
HEADER = "name,place,memory,row_state,published_ns,low_ns,high_ns,what,source\n"
GOOD = "x,far,any,closed,100,90,110,a path,a paper\n"


def test_every_preset_has_a_source_and_what_it_measured():
    presets = paths.path_presets()
    assert {"v100_hbm2", "seed_conventional", "u280_hbm_axi_closed", "rdma_read"} <= set(presets)
    assert all(preset.source and preset.what for preset in presets.values())
    assert presets["v100_hbm2"].published_ns == 314.6
    assert presets["seed_conventional"].published_ns == 250


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "t.csv: line 1: header is ''"),
        ("name,what\n", "t.csv: line 1: header is 'name,what'"),
        (HEADER + "x,far\n", "t.csv: line 2: 2 fields: expected 9"),
        (HEADER + GOOD + GOOD, "t.csv: line 3: field name is 'x': expected a name not used before"),
        (HEADER + GOOD.replace("far", "middle"), "field place is 'middle': expected one of near, far"),
        (HEADER + GOOD.replace("closed", "open"), "field row_state is 'open': expected one of hit, closed, "),
        (HEADER + GOOD.replace("100", "fast"), "line 2: field published_ns is 'fast': expected a positive"),
        (HEADER + GOOD.replace("100", "nan"), "field published_ns is 'nan': expected a positive number"),
        (HEADER + GOOD.replace("90", "0"), "field low_ns is '0': expected a positive number of ns"),
        (HEADER + GOOD.replace("90", "101"), "published_ns is '100': expected 101 (low_ns) to 110 (high_ns)"),
        (HEADER + GOOD.replace("a paper", " "), "line 2: field source is empty: expected a value"),
    ],
)
def test_a_bad_table_is_refused_by_line_and_field(text, message):
    with pytest.raises(InputError) as caught:
        paths.parse_paths(text, file="t.csv")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "name", [preset.name for preset in paths.path_presets().values() if preset.place == "far"]
)
@pytest.mark.parametrize("stages", [1, 2, 3])
def test_the_isolated_far_loop_takes_the_published_time_within_two_ns(name, stages):
    preset = paths.path_presets()[name]
    config = dataclasses.replace(SIMULATION, walker=WalkerConfig(execute_stages=stages))
    far = paths.link_cycles(preset, config)
    assert abs(far.isolated_cycles * far.clock_ns - preset.published_ns) <= 2
    assert 0 <= far.latency_down - far.latency_up <= 1


@pytest.mark.parametrize("ratio", [2, 4])
@pytest.mark.parametrize("name", ["v100_hbm2", "seed_conventional"])
def test_a_slower_memory_side_makes_the_isolated_far_loop_a_multiple_of_its_clock(name, ratio):
    preset = paths.path_presets()[name]
    far = paths.link_cycles(preset, dataclasses.replace(SIMULATION, clock_ratio=ratio))
    assert far.isolated_cycles % ratio == 0
    assert abs(far.isolated_cycles * far.clock_ns - preset.published_ns) <= ratio / 2


def test_the_floor_follows_the_row_state():
    hit, closed, conflict = (paths.loop_floor(SIMULATION, state) for state in ("hit", "closed", "conflict"))
    assert (closed - hit, conflict - hit) == (15, 28)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere", "unknown far preset 'nowhere': expected one of seed_conventional, v100_hbm2, "),
        ("seed_near_memory", "'seed_near_memory' was measured beside the memory: expected one of seed_conv"),
        ("gh200_hbm3", "'gh200_hbm3' was measured on hbm3_6400: expected one that fits hbm2_2000"),
    ],
)
def test_a_preset_that_cannot_be_used_is_refused(name, message):
    with pytest.raises(InputError) as caught:
        paths.far_path(name, DesignConfig())
    assert message in str(caught.value)


def test_the_list_of_far_presets_ends_with_the_ports_and_leaves_the_claim_of_the_near_place_out():
    with pytest.raises(InputError) as caught:
        paths.far_path("nowhere", DesignConfig())
    listed = str(caught.value).split("expected one of ")[1].split(", ")
    assert listed[-3:] == ["u280_hbm_axi_hit", "u280_hbm_axi_closed", "u280_hbm_axi_miss"]
    assert "seed_near_memory" not in listed


@pytest.mark.parametrize("name", ["v100_hbm2", "seed_near_memory", "nowhere"])
def test_only_a_host_controllers_port_may_be_behind_near_walkers(name):
    assert paths.port_path("u280_hbm_axi_closed", SIMULATION).isolated_cycles == 122
    with pytest.raises(InputError, match="expected one of u280_hbm_axi_hit, u280_hbm_axi_closed, u280"):
        paths.port_path(name, SIMULATION)


def test_a_published_time_below_the_floor_is_refused():
    near = paths.path_presets()["seed_near_memory"]
    fast = dataclasses.replace(near, published_ns=10.0, low_ns=10.0)
    with pytest.raises(InputError, match=r"takes 10\.0 ns: expected at least"):
        paths.link_cycles(fast, SIMULATION)


def test_a_preset_bound_to_any_memory_fits_every_memory():
    assert paths.far_path("rdma_read", SIMULATION).isolated_cycles == 2500
