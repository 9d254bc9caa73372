"""What a large replay takes, on a small one; `clew bench simulation` runs the large one."""

from __future__ import annotations

from pathlib import Path

from firmware_py.bench.large_replay import large_replay, write_large_trace
from sim.trace.importers import import_file


def test_a_replay_in_a_process_of_its_own_says_what_it_took() -> None:
    done = large_replay(500)
    assert done.nodes == 500 and done.problems > 1
    assert done.failures == []
    assert 150 < done.walks < 500
    assert done.seconds > 0
    # Importing numpy takes some ten megabytes; a machine has less than a terabyte.
    assert 1 << 24 < done.peak_bytes < 1 << 40


def test_the_trace_has_so_many_nodes_and_climbs_with_declared_counts(tmp_path: Path) -> None:
    write_large_trace(tmp_path / "t", nodes=1500, shape="one")
    traces = import_file(tmp_path / "t")
    assert len(list(traces)) == 1
    assert traces.summary.nodes == 1500 and traces.summary.max_depth > 20
    assert set(traces.summary.climbs_by_source) == {"declared"}
