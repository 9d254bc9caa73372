"""A far place with help on the compiled design: right as without, its cache as the golden model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from firmware_py.batches import ring_size
from firmware_py.design import design_for
from firmware_py.far_help import geometry, parse_help
from firmware_py.image import CreationOrder
from firmware_py.machine import compiled_machine
from firmware_py.place import Place, faults
from firmware_py.plan import Plan, make_plan
from firmware_py.programs import default_image
from firmware_py.replay import Run
from hdl.layouts import HopEvent, RefreshMode
from hdl.registers import CommandOp
from sim.model.cache import CacheModel
from sim.trace.importers import import_file
from sim.trace.searches import demonstration_traces
from tests.compare_schema import require_schema

from .test_compare import _clew

FULL = 0xFFFFFFFF


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A depth-first search, a beam search, a crossword and an MCTS of the project's own."""
    return list(demonstration_traces(tmp_path_factory.mktemp("demo")))


@pytest.fixture(scope="module")
def documents(traces: list[Path], tmp_path_factory: pytest.TempPathFactory) -> dict[Any, dict[str, Any]]:
    """Documents of comparisons that were made, by their options."""
    return {}


def _compared(
    monkeypatch: pytest.MonkeyPatch,
    documents: dict[Any, dict[str, Any]],
    traces: list[Path],
    *options: object,
) -> dict[str, Any]:
    if options not in documents:
        out = traces[0].parent / "out.json"
        assert _clew(monkeypatch, "compare", *traces, "--json", out, *options) == 0
        documents[options] = json.loads(out.read_text())
        require_schema(documents[options])
    return documents[options]


@pytest.mark.parametrize(
    ("text", "concurrent"),
    [
        ("cache=v100_l2", 1),
        ("cache=v100_l2:1KiB", 1),
        ("stack", 1),
        ("stream", 1),
        # Searches at the same time: they evict one another's lines, and have all kinds of help together.
        ("cache=v100_l2:1KiB", 4),
        ("cache=a100_l2:64KiB,stack,stream", 4),
        *(
            pytest.param(*case, marks=pytest.mark.long)
            for case in (
                ("cache=v100_l2", 4),
                ("stack", 4),
                ("stream", 4),
                ("cache=a100_l2:64KiB,stack,stream", 1),
            )
        ),
    ],
)
def test_with_help_every_answer_is_the_same(
    monkeypatch: pytest.MonkeyPatch,
    documents: dict[Any, dict[str, Any]],
    traces: list[Path],
    text: str,
    concurrent: int,
) -> None:
    plain = _compared(monkeypatch, documents, traces, "--concurrent", concurrent)
    helped = _compared(monkeypatch, documents, traces, "--concurrent", concurrent, "--far-help", text)
    # Verdicts, unchecked events and counts by file; `clew compare` ends with 1 for anything that is wrong.
    assert helped["traces"] == plain["traces"]
    assert helped["paths"]["near"] == plain["paths"]["near"]
    assert helped["details"]["failures"] == [] and helped["violations"] == 0
    assert helped["details"]["negative_control"] == plain["details"]["negative_control"]
    found = helped["details"]["far_help"]
    assert sorted(found) == sorted(token.split("=")[0] for token in text.split(","))
    walk = {name: document["paths"]["far"]["walk_ns"] for name, document in (("no", plain), ("yes", helped))}
    assert walk["yes"]["count"] == walk["no"]["count"] and walk["yes"]["mean"] < walk["no"]["mean"]
    if "stack" in text:
        assert found["stack"]["answered"] > 100
    if "stream" in text:
        assert found["stream"]["answered"] > 100
    if text == "cache=v100_l2":
        assert found["cache"]["hit_rate"] > 0.99
        assert helped["paths"]["far"]["loop_cycles"]["min"] == found["cache"]["hit_loop_cycles_input"] == 154


def test_behind_a_host_controllers_port_the_loop_is_the_published_one(
    monkeypatch: pytest.MonkeyPatch, documents: dict[Any, dict[str, Any]], traces: list[Path]
) -> None:
    for options, place in (
        (("--near", "u280_hbm_axi_closed"), "near"),
        (("--far", "u280_hbm_axi_closed"), "far"),
    ):
        found = _compared(monkeypatch, documents, traces, "--refresh", "none", *options)
        # 122 closed; a row hit is 15 cycles faster.
        assert found["paths"][place]["loop_cycles"]["min"] == 122 - 15
        assert found["details"]["failures"] == []


def _predicted(plan: Plan, run: Run, model: CacheModel) -> None:
    """The model after the commands of a plan in order, the reads and stores of each walk from the hop log."""
    hops = run.logs.hops[run.logs.hops["place"] == run.place]
    events = iter(zip(hops["event"].tolist(), hops["address"].tolist(), strict=True))
    for batch in plan.batches:
        atoms = batch.atoms.tolist()
        index = 0
        while index < len(atoms):
            words = atoms[index]
            if words[0] & 15 == CommandOp.WRITE:
                count = (words[0] >> 4) + 1
                for offset in range(count):
                    model.write(words[1] + offset, whole=words[2] == FULL)
                index += count
            elif words[0] & 15 == CommandOp.WALK:
                for event, address in events:
                    if event == HopEvent.VERDICT.value:
                        break
                    if event == HopEvent.STORE.value:
                        model.write(address, whole=False)
                    else:
                        model.read_through(address)
            index += 1


@pytest.mark.parametrize("size", ["1KiB", "32KiB", "6MiB"])
def test_the_counters_are_those_of_the_golden_model(traces: list[Path], size: str) -> None:
    """One search at a time, so that nothing depends on the time that a read takes."""
    helped = parse_help(f"cache=v100_l2:{size}")
    assert helped.cache is not None
    config = helped.built_into(design_for("hbm2_2000"))
    plan = make_plan(
        [trace for path in traces for trace in import_file(path)],
        program=default_image(),
        layout=CreationOrder(),
        ring=ring_size(config),
        memory_atoms=config.memory.atoms,
        contexts=config.walker.contexts,
    )
    with compiled_machine(config, lambda text: None) as machine:
        place = Place.far("v100_hbm2", config, far_help=helped)
        # Twice: what the first replay left behind must not be seen by the second.
        figures = [
            machine.measure(
                plan,
                place,
                name="far",
                program=default_image(),
                refresh=RefreshMode.ALL_BANK,
                progress=lambda name, done, total: None,
            )
            for _ in range(2)
        ]
    sets_log2, ways = geometry(helped.cache.size)
    for found in figures:
        model = CacheModel(sets_log2=sets_log2, ways=ways)
        _predicted(plan, found.run, model)
        assert found.cache is not None
        assert (found.cache.hits, found.cache.misses) == (model.hits, model.misses)
        assert model.misses == len(found.ledger.read)
        assert faults(plan, found, name="far") == []
    one, two = figures
    assert one.run.walk_cycles.tolist() == two.run.walk_cycles.tolist()
    assert one.replay_cycles == two.replay_cycles
    if size == "1KiB":
        assert figures[0].cache is not None and figures[0].cache.misses > 100
