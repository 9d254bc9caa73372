"""The comparison on the compiled design: pinned loops, the demonstration, the public files, bad options."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from firmware_py import cli
from firmware_py.bench.design import isolated_loops
from firmware_py.design import design_for
from firmware_py.driver import Accelerator
from firmware_py.loop_parts import loop_parts
from firmware_py.paths import far_path, path_presets
from firmware_py.training import train, trained_model
from firmware_py.transport.inprocess import InProcessTransport
from hdl.layouts import RowClass
from sim.compiled import CompiledModel
from sim.model.bounds import isolated_bound
from tests.compare_schema import require_schema
from tests.sim.trace.importers.synthetic import KINDS, several
from tests.sim.trace.samples import shared

CONFIG = design_for("hbm2_2000")
ROW_STATES = {RowClass.HIT: "hit", RowClass.CLOSED: "closed", RowClass.CONFLICT: "conflict"}
USABLE = [
    preset.name
    for preset in path_presets().values()
    if preset.place == "far" and preset.memory in ("any", "hbm2_2000")
]
PUBLIC = (
    "tot_crosswords/infoss_dfs_prune.json",
    "tot_crosswords/infoss_dfs_no_prune.json",
    "tot_game24/game24_bfs_b5.json",
    "sos/sos_search_paths.jsonl",
    "toolbench_dfsdt",
)
#: One file of each kind of tree and search that is not among them.
MORE_PUBLIC = (
    "tot_text/text_vote5.json",
    "sos_llm/qwen25_sft_countdown.jsonl",
    "got/eif_judge__r1-7b_got_2025-12-18_12-44-38_got_5.json",
    "got/eif_selection__qwen3-30b_tot_2025-12-03_16-35-29_tot_1.json",
    "mcts_llm/gpu_final.json",
    "omegaprm_tree/math_aps_tree.jsonl",
)


@pytest.fixture(scope="module")
def machine() -> Iterator[tuple[CompiledModel, Accelerator]]:
    with CompiledModel(CONFIG) as model:
        yield model, Accelerator(InProcessTransport(model))


def test_the_isolated_near_loop_is_the_bound_and_three_cycles(
    machine: tuple[CompiledModel, Accelerator],
) -> None:
    model, accelerator = machine
    far = far_path("v100_hbm2", CONFIG)
    measured = isolated_loops(model, accelerator, CONFIG, place=0, far=far)
    for row_class, state in ROW_STATES.items():
        assert measured[row_class] == sum(loop_parts(CONFIG, state).values())
        assert measured[row_class] == isolated_bound(row_class, CONFIG.memory.timing) + 3


def test_a_trained_model_takes_the_cycles_of_an_untrained_one(
    machine: tuple[CompiledModel, Accelerator],
) -> None:
    def logs(model: CompiledModel) -> list[list[tuple[int, ...]]]:
        model.reset()
        model.clear_logs()
        begin = model.cycle
        train(model)
        found = []
        for log in (model.hops(), model.accesses(), model.commands()):
            log["cycle"] -= begin
            found.append(log.tolist())
        return found

    with trained_model(CONFIG, announce=print) as trained:
        assert logs(trained) == logs(machine[0])


@pytest.mark.parametrize("preset", USABLE)
def test_the_isolated_far_loop_is_what_the_floor_and_the_link_say(
    machine: tuple[CompiledModel, Accelerator], preset: str
) -> None:
    model, accelerator = machine
    far = far_path(preset, CONFIG)
    measured = isolated_loops(model, accelerator, CONFIG, place=1, far=far)
    found = {state: measured[row_class] for row_class, state in ROW_STATES.items()}[far.path.row_state]
    assert found == far.isolated_cycles
    assert abs(found * far.clock_ns - far.path.published_ns) <= 2


def _clew(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["clew", *map(str, arguments)])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    return int(caught.value.code or 0)


def _require_consistent(document: dict[str, Any]) -> None:
    """What must hold of the counts of any good comparison; times are left alone."""
    require_schema(document)
    traces, paths = document["traces"], document["paths"]
    walks = sum(entry["walks"] for entry in traces)
    for entry in traces:
        assert entry["verdicts_wrong"] == 0
        assert (
            entry["verdicts_checked"]
            <= entry["walks"]
            <= entry["verdicts_checked"] + entry["verdicts_unchecked"]
        )
        assert sum(tally["checked"] for tally in entry["by_source"].values()) <= entry["verdicts_checked"]
        assert all(tally["wrong"] == 0 for tally in entry["by_source"].values())
    assert document["violations"] == 0 and document["details"]["failures"] == []
    for place in paths.values():
        assert place["walk_ns"]["count"] == place["reads_per_walk"]["count"] == walks
        reads = place["reads_per_walk"]["mean"] * walks
        assert place["loop_cycles"]["count"] == place["loop_ns"]["count"] == pytest.approx(reads)
        assert sum(place["row"].values()) == pytest.approx(1)
        assert place["ratio_to_bound"] >= 1
        for name in ("walk_ns", "reads_per_walk", "loop_cycles", "loop_ns"):
            ordered = [place[name][key] for key in ("min", "p50", "p99", "p999", "max")]
            assert ordered == sorted(ordered)
    assert paths["near"]["reads_per_walk"] == paths["far"]["reads_per_walk"]
    assert paths["near"]["loop_cycles"]["min"] < paths["far"]["loop_cycles"]["min"]


@pytest.mark.parametrize(("concurrent", "refresh"), [(1, "all_bank"), (4, "per_bank")])
def test_the_demonstration_is_right_near_and_far(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, concurrent: int, refresh: str
) -> None:
    out = tmp_path / "demo.json"
    arguments = ("--out", tmp_path / "traces", "--json", out, "--concurrent", concurrent)
    assert _clew(monkeypatch, "demo", *arguments, "--refresh", refresh) == 0
    document = json.loads(out.read_text())
    _require_consistent(document)
    assert document["concurrent"] == concurrent
    assert document["details"]["refresh"] == refresh
    assert document["details"]["negative_control"] == {
        check: "wrong" for check in ("climb", "select", "ancestor")
    }
    sources = {source for entry in document["traces"] for source in entry["by_source"]}
    assert sources == {"declared"}
    assert sum(entry["walks"] for entry in document["traces"]) > 500


def test_a_stack_gives_the_verdicts_of_one_channel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    documents = {}
    for channels in (1, 2):
        out = tmp_path / f"{channels}.json"
        options = ("--channels", channels, "--placement", "fewest_searches", "--concurrent", 6)
        assert _clew(monkeypatch, "demo", "--out", tmp_path / "traces", "--json", out, *options) == 0
        documents[channels] = json.loads(out.read_text())
        _require_consistent(documents[channels])
    one, two = documents[1], documents[2]
    assert two["traces"] == one["traces"]
    assert two["details"]["placement"] == "fewest_searches"
    by_channel = two["details"]["channels"]
    assert len(by_channel) == 2 and len(one["details"]["channels"]) == 1
    for place in ("near", "far"):
        reads = [channel[place]["reads"] for channel in by_channel]
        assert all(reads) and sum(reads) == two["paths"][place]["loop_cycles"]["count"]
        assert two["paths"][place]["reads_per_walk"] == one["paths"][place]["reads_per_walk"]


@pytest.mark.parametrize("concurrent", [1, 7])
@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_file_is_right_near_and_far(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, concurrent: int
) -> None:
    path, out = shared(name), tmp_path / "out.json"
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    assert _clew(monkeypatch, "compare", *files, "--json", out, "--concurrent", concurrent) == 0
    document = json.loads(out.read_text())
    _require_consistent(document)
    expected = {"tot_crosswords/infoss_dfs_prune.json": 703, "toolbench_dfsdt": 42}
    if name in expected:
        assert sum(entry["verdicts_checked"] for entry in document["traces"]) == expected[name]


def test_a_file_of_every_kind_is_right_near_and_far(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    files = [several(tmp_path / kind, kind, 2) for kind in KINDS]
    out = tmp_path / "out.json"
    assert _clew(monkeypatch, "compare", *files, "--json", out) == 0
    document = json.loads(out.read_text())
    _require_consistent(document)
    asked = {Path(entry["file"]).name for entry in document["traces"] if entry["walks"]}
    # A root alone asks nothing, nor does a path that only goes down, or a cache.
    silent = {"clew", "sos", "toolbench_dfsdt", "processbench", "math_shepherd", "qwq", "marco_o1"}
    assert asked == set(KINDS) - silent - {"mooncake", "azure_llm", "vllm_kv_events"}


def test_more_public_files_are_right_near_and_far(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    assert _clew(monkeypatch, "compare", *map(shared, MORE_PUBLIC), "--json", out) == 0
    document = json.loads(out.read_text())
    _require_consistent(document)
    assert sum(entry["verdicts_checked"] for entry in document["traces"]) > 500
