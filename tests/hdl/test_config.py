"""The clock ratio in a design's configuration: its values, its identity, its side-car."""

import dataclasses

import pytest

from hdl.config import DesignConfig, named_config


@pytest.mark.parametrize("ratio", [0, 3, 8])
def test_a_clock_ratio_that_is_not_built_is_refused(ratio):
    with pytest.raises(ValueError, match=f"clock_ratio is {ratio}: expected 1, 2 or 4"):
        DesignConfig(clock_ratio=ratio)


def test_the_clock_ratio_is_a_parameter_of_the_design():
    usual = named_config("default")
    slower = dataclasses.replace(usual, clock_ratio=4)
    assert (usual.clock_ratio, slower.as_dict()["clock_ratio"]) == (1, 4)
    assert usual.hash != slower.hash
