"""Documents as table rows: names, types, units."""

import pyarrow
import pytest

from firmware_py.report.columns import arrow_table, flattened, unit_of

DOCUMENT = {
    "schema": "s/1",
    "paths": {"near": {"walk_ns": {"count": 3, "mean": 1.5, "p99": None}}},
    "traces": [{"file": "a", "walks": 1}, {"file": "b", "walks": 2}],
    "details": {"address_map": ["bank", "row"], "failures": [], "far_help": {}, "ecc": None},
}


def test_leaves_are_named_by_their_path() -> None:
    assert flattened(DOCUMENT) == {
        "schema": "s/1",
        "paths.near.walk_ns.count": 3,
        "paths.near.walk_ns.mean": 1.5,
        "paths.near.walk_ns.p99": None,
        "traces.0.file": "a",
        "traces.0.walks": 1,
        "traces.1.file": "b",
        "traces.1.walks": 2,
        "details.address_map": ["bank", "row"],
        "details.failures": [],
        "details.ecc": None,
    }


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("paths.near.walk_ns.mean", "ns"),
        ("paths.near.walk_ns.count", "1"),
        ("paths.near.loop_cycles.p99", "cycles"),
        ("details.walks_per_second.near", "1/s"),
        ("details.far_help.cache.bytes_input", "B"),
        ("details.far_help.stack.cycles_per_level_input", "cycles/level"),
        ("details.link_latency_cycles.up", "cycles"),
        ("paths.near.reads_per_walk.mean", "1/walk"),
        ("details.energy.pj_per_bit", "pJ/bit"),
        ("speedup.walk_mean", "1"),
        ("clock_ns", "ns"),
    ],
)
def test_a_unit_is_what_the_name_says(name: str, unit: str) -> None:
    assert unit_of(name) == unit


def test_columns_are_typed_over_all_rows() -> None:
    rows = [
        {"n_ns": 1, "x": 1, "ok": True, "text": "a", "ecc": None, "empty": None},
        {"n_ns": 2.5, "x": 2, "ok": False, "more": "b", "ecc.near.corrected": 3, "empty": None},
    ]
    table = arrow_table(rows, kinds={"empty": str}, metadata={"schema": "s/1"})
    assert {field.name: str(field.type) for field in table.schema} == {
        "n_ns": "double",
        "x": "int64",
        "ok": "bool",
        "text": "string",
        "empty": "string",
        "more": "string",
        "ecc.near.corrected": "int64",
    }
    assert table.schema.field("n_ns").metadata == {b"unit": b"ns"}
    assert table.schema.field("text").metadata is None
    assert table.schema.metadata == {b"schema": b"s/1"}
    assert table.to_pylist()[0]["ecc.near.corrected"] is None and table.to_pylist()[1]["n_ns"] == 2.5


def test_lists_are_typed_by_their_elements() -> None:
    rows = [{"n_ns": [1, 2], "text": [], "none": []}, {"n_ns": [0.5], "text": ["a"], "none": None}]
    table = arrow_table(rows)
    found = {field.name: field.type for field in table.schema}
    assert found == {
        "n_ns": pyarrow.list_(pyarrow.float64()),
        "text": pyarrow.list_(pyarrow.string()),
        "none": pyarrow.list_(pyarrow.string()),
    }
    assert table.schema.field("n_ns").metadata == {b"unit": b"ns"}
    assert table.to_pylist()[1] == {"n_ns": [0.5], "text": ["a"], "none": None}


def test_a_column_without_a_value_is_a_figure() -> None:
    assert arrow_table([{"a": None}]).schema.field("a").type == pyarrow.float64()


def test_a_column_of_texts_and_numbers_is_refused() -> None:
    with pytest.raises(ValueError, match="column a holds int, str: expected one type"):
        arrow_table([{"a": 1}, {"a": "x"}])
    with pytest.raises(ValueError, match="column a holds int, list: expected one type"):
        arrow_table([{"a": 1}, {"a": [2]}])
