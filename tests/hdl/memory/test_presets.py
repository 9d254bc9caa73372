"""The memory presets: their files and what is refused in one, their figures, and the design on each."""

from __future__ import annotations

import dataclasses
import random
import tomllib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from hdl.config import DesignConfig, MemoryConfig
from hdl.layouts import MemoryStatus, RowClass, RowOp
from hdl.memory import timing
from hdl.memory.address import AddressMap, Place
from hdl.memory.preset_file import SECTIONS, PresetError, parse
from hdl.memory.timing import PRESETS, Command, Scope, TimingPreset, Value, preset
from sim.bench.memory import MemorySubsystem
from sim.bench.memory_port import Request, Response

from ..streams import run

FOLDER = Path(timing.__file__).parent / "presets"
TEXT = (FOLDER / "hbm3_6400.toml").read_text(encoding="utf-8")

#: Peak bandwidth in GB/s, capacity in MiB, and ns of an isolated hit, closed and conflict read: the last
#: table of the reference (HBM3E: the same closed forms).
FIGURES = {
    "hbm2_2000": (32.0, 512, 16.0, 31.0, 44.0),
    "hbm3_6400": (51.2, 1024, 13.8, 33.1, 49.4),
    "hbm3e_9600": (76.7, 1024, 13.3, 32.9, 49.2),
    "hbm4_8000": (64.0, 512, 11.0, 30.5, 47.0),
}
EACH = pytest.mark.parametrize("name", PRESETS)


# -- The presets --


def test_there_is_a_figure_for_every_preset() -> None:
    assert set(FIGURES) == set(PRESETS) == {file.stem for file in FOLDER.glob("*.toml")}


@EACH
def test_peak_bandwidth_capacity_and_isolated_latencies(name: str) -> None:
    memory = PRESETS[name]
    bandwidth, capacity, hit, closed, conflict = FIGURES[name]
    assert memory.peak_bandwidth == pytest.approx(bandwidth, abs=0.05)
    # The peak can be reached: column commands to alternate bank groups keep the data bus full.
    assert memory["tCCDS"] == memory.burst_cycles
    assert memory["tCCDL"] <= memory["tCCDS"] * memory.organisation.bank_groups
    assert memory.organisation.pseudo_channels <= memory.burst_cycles
    assert memory.organisation.atoms * 32 == capacity << 20
    for cycles, ns in ((memory.row_hit, hit), (memory.row_closed, closed), (memory.row_conflict, conflict)):
        assert cycles * memory.clock_ns == pytest.approx(ns, abs=0.051)


@EACH
def test_the_address_map_is_a_bijection_over_the_whole_memory(name: str) -> None:
    address_map = AddressMap(MemoryConfig(preset=name))
    organisation = PRESETS[name].organisation
    assert address_map.atoms == organisation.atoms
    # Every address bit moves one bit of one field, and all together give the address back.
    bits = 1 << np.arange(address_map.width)
    places = address_map.decode(bits)
    assert (sum((np.asarray(part) != 0).astype(int) for part in places) == 1).all()
    rng = np.random.default_rng(20261130)
    addresses = np.concatenate((bits, [0, address_map.atoms - 1], rng.integers(0, address_map.atoms, 10_000)))
    assert np.array_equal(address_map.encode(address_map.decode(addresses)), addresses)
    assert address_map.storage_index(np.array([address_map.atoms - 1])).item() == address_map.atoms - 1
    # Consecutive atoms: the pseudo channel changes first, then the bank group.
    run_of = address_map.decode(np.arange(organisation.pseudo_channels * organisation.bank_groups))
    assert np.array_equal(run_of.pseudo_channel, np.arange(len(run_of.pseudo_channel)) % 2)
    assert len(set(zip(run_of.pseudo_channel.tolist(), run_of.bank.tolist(), strict=True))) == len(
        run_of.bank
    )


@EACH
def test_every_value_says_where_it_comes_from(name: str) -> None:
    memory = PRESETS[name]
    keys = {key for limits in SECTIONS.values() for key in limits}
    assert keys == set(memory.values) | set(memory.sources)
    assert all(value.source.startswith("derived: ") == value.derived for value in memory.values.values())
    assert all(value.source for value in memory.values.values()) and all(memory.sources.values())


def test_hbm2_has_no_tppd_and_later_ones_have_it_in_the_pseudo_channel() -> None:
    for memory in PRESETS.values():
        found = {
            (rule.before, rule.after, rule.scope, rule.cycles)
            for rule in memory.rules()
            if rule.name == "tPPD"
        }
        closing = (Command.PRE, Command.PREA)
        expected = {(a, b, Scope.PSEUDO_CHANNEL, 2) for a in closing for b in closing}
        assert found == (set() if memory.name == "hbm2_2000" else expected)


# -- The files --


def _replaced(old: str, new: str) -> str:
    assert TEXT.count(old) == 1, old
    return TEXT.replace(old, new)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name = ", "expected TOML: "),
        (_replaced("tCL = {", "tCLX = {"), "unknown key parameters.tCLX: expected one of tCL, tCWL, "),
        (
            _replaced('tCL = { value = 20, source = "ramulator" }\n', ""),
            "missing key parameters.tCL: expected an integer from 1 to 1023 (RD to its first data beat)",
        ),
        (_replaced("[bus]", "[buses]"), "unknown key buses: expected one of name, sources, clock, "),
        (_replaced('name = "hbm3_6400"\n', ""), "missing key name: expected a text"),
        (_replaced('"hbm3_6400"', '"a b"'), "name is 'a b': expected letters, digits and _"),
        (
            _replaced("tCL = { value = 20", "tCL = { value = 20.5"),
            "tCL.value is 20.5: expected an integer from",
        ),
        (_replaced("tCL = { value = 20", "tCL = { value = true"), "tCL.value is True: expected an integer"),
        (_replaced("tCL = { value = 20", "tCL = { value = 0"), "tCL.value is 0: expected an integer from 1"),
        (_replaced("tCL = { value = 20", 'tCL = { value = "20"'), "tCL.value is '20': expected an integer"),
        (
            _replaced("tCL = { value = 20, ", "tCL = { "),
            "missing key parameters.tCL.value: expected an integer",
        ),
        (_replaced('tCL = { value = 20, source = "ramulator" }', "tCL = 20"), "tCL is 20: expected a table"),
        (
            _replaced('tCL = { value = 20, source = "ramulator" }', "tCL = { value = 20 }"),
            "parameters.tCL has neither of source and derived: expected one of them",
        ),
        (
            _replaced("tCL = { value = 20", 'tCL = { value = 20, derived = "so"'),
            "parameters.tCL has both of source and derived",
        ),
        (
            _replaced('tCL = { value = 20, source = "ramulator"', 'tCL = { value = 20, source = "rumour"'),
            "parameters.tCL.source is 'rumour': expected one of ramulator, refresh",
        ),
        (
            _replaced("tCL = { value = 20", "tCL = { cycles = 20"),
            "unknown key parameters.tCL.cycles: expected one of derived, note, source, value",
        ),
        (
            _replaced("tCL = { value = 20", "tCL = { absent = true"),
            "unknown key parameters.tCL.absent: expected one of derived, note, source, value",
        ),
        (
            _replaced("tPPD = { value = 2", "tPPD = { absent = false"),
            "parameters.tPPD.absent is False: expected true",
        ),
        (
            _replaced("rows = { value = 32768", "rows = { value = 30000"),
            "expected a power of two from 2 to 65536",
        ),
        (_replaced("pseudo_channels = { value = 2", "pseudo_channels = { value = 4"), "is 4: expected 2"),
        (
            _replaced("activate_lag = { value = 0", "activate_lag = { value = 2"),
            "bus.activate_lag is 2: expected at most activate_slots - 1 = 1",
        ),
        (_replaced("tCCDS = { value = 2", "tCCDS = { value = 1"), "is 1: expected at least burst_cycles = 2"),
        (_replaced("tRC = { value = 72", "tRC = { value = 70"), "is 70: expected at least tRAS + tRP = 71"),
        (
            _replaced("tRFCpb = { value = 320", "tRFCpb = { absent = true"),
            "only one of parameters.tRFCpb and parameters.tRREFD is absent: expected both or neither",
        ),
        (
            TEXT.replace("bank_groups = { value = 4", "bank_groups = { value = 32"),
            "organisation.bank_groups x banks_per_group is 128: expected at most 64",
        ),
    ],
)
def test_a_bad_file_is_one_line_that_names_file_key_and_what_was_expected(text: str, message: str) -> None:
    with pytest.raises(PresetError) as caught:
        parse(text, file="own.toml")
    error = str(caught.value)
    assert error.startswith("own.toml: ") and message in error and "\n" not in error


def test_a_file_of_the_user_is_a_preset(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text(_replaced('name = "hbm3_6400"', 'name = "own"'), encoding="utf-8")
    own = preset(str(file))
    assert own.name == "own" and own.rules() == PRESETS["hbm3_6400"].rules()
    taken = tmp_path / "taken.toml"
    taken.write_text(TEXT, encoding="utf-8")
    with pytest.raises(PresetError, match=r"taken\.toml: name is 'hbm3_6400': expected one that no preset"):
        preset(str(taken))
    with pytest.raises(FileNotFoundError):
        preset(str(tmp_path / "absent.toml"))
    with pytest.raises(
        ValueError, match=r"unknown memory preset 'own': expected one of hbm2_2000, .*FILE\.toml"
    ):
        preset("own")


def test_the_configuration_hash_follows_the_content_of_a_preset_file(tmp_path: Path) -> None:
    def hash_of(path: str, change: Callable[[str], str]) -> int:
        file = tmp_path / path
        file.write_text(change(TEXT.replace('"hbm3_6400"', '"own"')), encoding="utf-8")
        return DesignConfig(memory=MemoryConfig(preset=str(file))).hash

    first = hash_of("first.toml", lambda text: text)
    assert hash_of("same.toml", lambda text: text.replace("[sources]", "# moved\n[sources]")) == first
    assert (
        hash_of("slower.toml", lambda text: text.replace("tCL = { value = 20", "tCL = { value = 21")) != first
    )
    names = [DesignConfig(memory=MemoryConfig(preset=name)).hash for name in PRESETS]
    assert len({first, *names}) == 1 + len(PRESETS)


def test_preset_files_are_part_of_the_package() -> None:
    project = tomllib.loads((Path(timing.__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    assert "*.toml" in project["tool"]["setuptools"]["package-data"]["*"]


# -- The design --


def _isolated(memory: TimingPreset, row_class: RowClass) -> int:
    return {
        RowClass.HIT: memory.row_hit,
        RowClass.CLOSED: memory.row_closed,
        RowClass.CONFLICT: memory.row_conflict,
    }[row_class]


@EACH
def test_an_isolated_read_takes_its_bound_and_two_cycles(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the port: the walker's loop takes the third. Then reads and writes around a refresh, all checked."""
    own = PRESETS[name]
    # Long enough for what may hold a refresh up, short enough for a simulation in Python.
    interval = own["tRFC"] + 400
    changed = own.values | {"tREFI": Value(cycles=interval, source="test")}
    monkeypatch.setitem(PRESETS, "brief", dataclasses.replace(own, name="brief", values=changed))
    config = DesignConfig(memory=MemoryConfig(preset="brief", rows=4, columns=4))
    memory, address_map = config.memory.timing, AddressMap(config.memory)
    banks = config.memory.organisation.banks
    dut = MemorySubsystem(config)
    rng = random.Random(20261130)
    broken: list[int] = []
    refreshed: list[int] = []
    found: list[RowClass] = []

    async def bench(ctx) -> None:
        cycle = 0

        async def step() -> bool:
            nonlocal cycle
            _, _, violation, rule, row_class, row_op, ready = await ctx.tick().sample(
                dut.violation,
                dut.violation_rule,
                dut.access.row_class,
                dut.row.op,
                dut.memory.request.ready,
            )
            if violation:
                broken.append(rule)
            if RowClass(row_class) is not RowClass.NONE:
                found.append(RowClass(row_class))
            if RowOp(row_op) is RowOp.REFRESH_ALL:
                refreshed.append(cycle)
            cycle += 1
            assert cycle < 20_000, "watchdog"
            return bool(ready)

        async def alone(place: Place, *, write: bool = False, data: int = 0) -> tuple[int, Response]:
            """One request into the silent port; its latency and its response."""
            request = Request(address=int(address_map.encode(place)), tag=1, write=write, data=data)
            ctx.set(dut.memory.request.valid, 1)
            ctx.set(dut.memory.request.payload.as_value(), request.pack())
            while not await step():
                pass
            ctx.set(dut.memory.request.valid, 0)
            start = cycle - 1
            while not ctx.get(dut.memory.response.valid):
                await step()
            latency = cycle - start
            response = Response.unpack(ctx.get(dut.memory.response.payload.as_value()))
            await step()
            return latency, response

        ctx.set(dut.memory.response.ready, 1)
        for pseudo_channel, bank in ((0, 0), (1, banks - 1)):
            for row, column, row_class in (
                (2, 0, RowClass.CLOSED),
                (2, 3, RowClass.HIT),
                (1, 3, RowClass.CONFLICT),
            ):
                latency, response = await alone(Place(pseudo_channel, bank, row, column))
                assert response.status is MemoryStatus.OK
                assert (found[-1], latency) == (row_class, _isolated(memory, row_class) + 2)
        # Writes and reads of few banks up to the refresh and, held up by it, after.
        ctx.set(dut.refresh, 1)
        written: dict[Place, int] = {}
        start = cycle
        for count in (8, 2):
            for _ in range(count):
                place = Place(
                    rng.randrange(2), rng.choice((0, banks - 1)), rng.randrange(2), rng.randrange(4)
                )
                if rng.random() < 0.5:
                    written[place] = rng.getrandbits(256)
                    await alone(place, write=True, data=written[place])
                else:
                    _, response = await alone(place)
                    assert response.data == written.get(place, 0)
            while not refreshed:
                await step()
        assert len(refreshed) == 2 and max(refreshed) <= start + interval

    run(dut, bench)
    assert not broken, broken
