"""The stack map: a bijection, whose RTL says the same; peak and capacity of a stack of every preset."""

import dataclasses

import numpy as np
import pytest
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator

from hdl.config import MemoryConfig
from hdl.layouts import ADDRESS_WIDTH
from hdl.memory.stack import StackMap
from hdl.memory.timing import PRESETS

CHANNELS = (1, 2, 4, 8, 16)


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("name", PRESETS)
def test_a_stack_of_every_preset_is_that_many_channels(name: str, channels: int) -> None:
    memory = MemoryConfig(preset=name, channels=channels)
    stack, timing = StackMap(memory), PRESETS[name]
    assert memory.peak_bandwidth == pytest.approx(channels * timing.peak_bandwidth)
    assert memory.atoms == stack.atoms == channels * timing.organisation.atoms
    assert stack.atoms <= 1 << ADDRESS_WIDTH
    assert [stack.first(channel) for channel in range(channels)] == [
        channel * timing.organisation.atoms for channel in range(channels)
    ]


@pytest.mark.parametrize("channels", CHANNELS)
def test_channel_and_local_address_give_the_address_back(channels: int) -> None:
    stack = StackMap(MemoryConfig(rows=4, columns=4, channels=channels))
    addresses = np.arange(stack.atoms)
    channel, local = stack.channel(addresses), stack.local(addresses)
    assert np.array_equal(channel * stack.channel_atoms + local, addresses)
    assert np.array_equal(np.bincount(channel), np.full(channels, stack.channel_atoms))
    # Every atom of the storage once, those of a channel together and as its own map has them.
    index = stack.storage_index(addresses)
    assert np.array_equal(np.sort(index), addresses)
    assert np.array_equal(index // stack.channel_atoms, channel)
    assert np.array_equal(index % stack.channel_atoms, stack.channel_map.storage_index(local))


def test_what_is_beyond_is_refused() -> None:
    stack = StackMap(MemoryConfig(rows=4, columns=4, channels=2))
    for address in (-1, stack.atoms):
        for method in (stack.channel, stack.local, stack.storage_index):
            with pytest.raises(ValueError, match=f"address is {address}: expected 0 to {stack.atoms - 1}"):
                method(address)
    with pytest.raises(ValueError, match="address is"):
        stack.channel(np.array([0, stack.atoms]))
    with pytest.raises(ValueError, match="channel is 2: expected 0 to 1"):
        stack.first(2)


@pytest.mark.parametrize("channels", CHANNELS[1:])
def test_the_wires_say_the_same_and_fold_what_is_beyond(channels: int) -> None:
    stack = StackMap(MemoryConfig(rows=4, columns=4, channels=channels))
    address, channel = Signal(ADDRESS_WIDTH), Signal(range(channels))
    m = Module()
    m.d.comb += channel.eq(stack.channel_wires(address))
    rng = np.random.default_rng(20261130)

    async def bench(ctx) -> None:
        for value in rng.integers(0, 1 << ADDRESS_WIDTH, 200).tolist():
            ctx.set(address, value)
            assert ctx.get(channel) == stack.channel(value % stack.atoms)

    simulator = Simulator(m)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize("channels", [0, 3, 32])
def test_a_number_of_channels_that_no_stack_has_is_refused(channels: int) -> None:
    with pytest.raises(ValueError, match=rf"memory.channels is {channels}: expected a power of two up to 16"):
        dataclasses.replace(MemoryConfig(), channels=channels)
