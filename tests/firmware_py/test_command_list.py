"""The command list: read back it is the log, and the independent checker finds what it finds there."""

import csv

import numpy as np
import pytest

from firmware_py.report.command_list import COLUMNS, write_commands
from hdl.config import named_config
from sim.compiled import COMMAND_RECORD
from sim.model.command_checker import COLUMN_BUS, COMMANDS, check

from .fake_accelerator import FakeAccelerator
from .test_compare import comparison
from .test_replay import beam, depth_first

MEMORY = named_config("simulation").memory


def read_commands(path):
    """The logs of a command list as COMMAND_RECORD, by place and channel."""
    codes = {command.value: code for code, command in COMMANDS.items()}
    logs = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            bus, op = codes[row["command"]]
            detail = row["column"] if bus == COLUMN_BUS else row["row"]
            logs.setdefault((row["place"], int(row["channel"])), []).append(
                (
                    int(row["cycle"]),
                    bus,
                    op,
                    int(row["pseudo_channel"]),
                    int(row["bank"] or 0),
                    int(detail or 0),
                )
            )
    return {key: np.array(rows, dtype=COMMAND_RECORD) for key, rows in logs.items()}


@pytest.mark.parametrize("bad", [False, True])
def test_read_back_it_is_what_the_checker_saw(tmp_path, bad):
    fake = FakeAccelerator(named_config("simulation"))
    fake.bad_command = bad
    found = comparison(depth_first(), beam(), fake=fake)
    path = tmp_path / "commands.csv"
    write_commands(path, found)
    assert path.read_text().splitlines()[0] == ",".join(COLUMNS)
    logs = read_commands(path)
    assert set(logs) == {("near", 0), ("far", 0)}
    for (place, channel), log in logs.items():
        figures = found.places[place]
        assert np.array_equal(log, figures.run.logs.commands[channel])
        report = check(log, MEMORY.timing, MEMORY.organisation, refresh_windows=[])
        assert report.by_rule() == dict(figures.violations)
        assert bool(len(report)) == bad


def test_a_command_has_the_fields_of_its_kind_only(tmp_path):
    path = tmp_path / "commands.csv"
    write_commands(path, comparison(depth_first()))
    filled = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            filled.setdefault(row["command"], set()).add(
                tuple(name for name in ("bank", "row", "column") if row[name])
            )
    assert filled["ACT"] == {("bank", "row")}
    assert filled["RD"] == filled["WR"] == {("bank", "column")}
    assert filled["PREA"] == {()}


def test_nothing_is_left_where_it_cannot_be_written(tmp_path):
    with pytest.raises(OSError, match="expected its folder to exist"):
        write_commands(tmp_path / "no" / "commands.csv", comparison(depth_first()))
    assert list(tmp_path.iterdir()) == []
