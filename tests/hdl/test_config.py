"""The clock ratio in a design's configuration: its values, its identity, its side-car."""

import dataclasses

import pytest

from hdl.config import AxiConfig, ControllerConfig, DesignConfig, MemoryConfig, named_config


@pytest.mark.parametrize("ratio", [0, 3, 8])
def test_a_clock_ratio_that_is_not_built_is_refused(ratio):
    with pytest.raises(ValueError, match=f"clock_ratio is {ratio}: expected 1, 2 or 4"):
        DesignConfig(clock_ratio=ratio)


def test_the_clock_ratio_is_a_parameter_of_the_design():
    usual = named_config("default")
    slower = dataclasses.replace(usual, clock_ratio=4)
    assert (usual.clock_ratio, slower.as_dict()["clock_ratio"]) == (1, 4)
    assert usual.hash != slower.hash


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"memory": MemoryConfig(end="axi4"), "checker": True},
            "checker is True: expected False with",
        ),
        (
            {"memory": MemoryConfig(end="axi4"), "controller": ControllerConfig(ecc=True)},
            "controller.ecc is True: expected False with memory.end 'axi4'",
        ),
        (
            {
                "memory": MemoryConfig(
                    end="axi4", address_map=("column", "bank_group", "bank", "row", "pseudo_channel")
                )
            },
            "memory.address_map is .*: expected the usual one, .* with memory.end 'axi4'",
        ),
        (
            {"memory": MemoryConfig(end="axi4", channels=16), "axi": AxiConfig(address_bits=32)},
            "axi.address_bits is 32: expected at least the 33 that",
        ),
    ],
)
def test_a_memory_behind_an_axi_port_has_a_controller_of_its_own(options, message):
    with pytest.raises(ValueError, match=message):
        DesignConfig(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"id_bits": 9}, "axi.id_bits is 9: expected 1 to 8"),
        ({"address_bits": 65}, "axi.address_bits is 65: expected 12 to 64"),
        ({"outstanding": 8}, "axi.outstanding is 8: expected a power of two from 16"),
        ({"hazard_buckets": 100}, "axi.hazard_buckets is 100: expected a power of two"),
    ],
)
def test_an_axi_manager_that_is_not_built_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        AxiConfig(**options)


def test_an_unknown_memory_end_is_refused():
    with pytest.raises(ValueError, match=r"memory\.end is 'ddr': expected model, bus, axi4"):
        MemoryConfig(end="ddr")
