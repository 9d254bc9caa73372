"""The four foreign formats on the public samples: exact agreement, and nothing lost."""

from __future__ import annotations

import ast
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from sim.trace.errors import TraceError
from sim.trace.events import Backtrack, End, Eval, Event, Expand, Jump, Node, Prune, Restore, Save, Select
from sim.trace.importers import ImportSummary, detect, import_file, importers
from sim.trace.oracle import Oracle, Tally, tally
from sim.trace.schema import Trace, write_traces

from .samples import shared, short_trace

PRUNE = "tot_crosswords/infoss_dfs_prune.json"
NO_PRUNE = "tot_crosswords/infoss_dfs_no_prune.json"
GAME24 = "tot_game24/game24_bfs_b5.json"
SOS = "sos/sos_search_paths.jsonl"
TOOLBENCH = "toolbench_dfsdt"


def _import(name: str) -> tuple[list[Trace], ImportSummary]:
    traces = import_file(shared(name))
    return list(traces), traces.summary


def _toolbench_files() -> list[Path]:
    return sorted(shared(TOOLBENCH).glob("*.json"))


def _full_agreement(result: Tally) -> None:
    assert result.agreed == result.checked


# -- Agreement with what the sources recorded --------------------------------------------------------


@pytest.mark.parametrize(("name", "climbs"), [(PRUNE, 703), (NO_PRUNE, 171)])
def test_crosswords_climbs(name: str, climbs: int) -> None:
    traces, _ = _import(name)
    result = tally(traces)
    assert result.checked == {"climb": climbs}
    assert result.by_source == {"lookahead": climbs}
    assert not result.unchecked
    _full_agreement(result)


def test_sos_depth_first_climbs() -> None:
    traces, _ = _import(SOS)
    result = tally(trace for trace in traces if trace.begin.algorithm == "dfs")
    assert result.checked == {"climb": 280}
    # The search's own rule gives every count of these traces, so none comes from looking ahead.
    assert result.by_source == {"recomputed": 280}
    assert not result.unchecked
    _full_agreement(result)


def test_sos_beam_moves() -> None:
    traces, _ = _import(SOS)
    beams = [trace for trace in traces if trace.begin.algorithm == "beam"]
    jumps = [event for trace in beams for event in trace.events if isinstance(event, Jump)]
    assert len(jumps) == 379
    assert sum(jump.to is None for jump in jumps) == 229
    result = tally(beams)
    assert result.checked == {"ancestor": 150, "select": 113}
    assert result.unchecked == {"the source moves to a terminal that no single id names": 229}
    _full_agreement(result)
    assert not any(isinstance(event, Backtrack) for trace in beams for event in trace.events)


def test_sos_beam_takes_the_best_of_the_open_set() -> None:
    """The choice is not by chance: taking the oldest of the open set agrees far less often."""
    traces, _ = _import(SOS)
    oldest = total = 0
    for trace in traces:
        oracle = Oracle()
        for event in trace:
            if isinstance(event, Select):
                first = event.candidates[: len(event.chosen)]
                scores = [oracle.scores[node] for node in first]
                oldest += scores == [oracle.scores[node] for node in event.chosen]
                total += 1
            oracle.feed(event)
    assert total == 113
    assert oldest < 30


def test_toolbench_climbs() -> None:
    result = tally(trace for path in _toolbench_files() for trace in import_file(path))
    assert result.checked == {"climb": 42}
    assert result.by_source == {"lookahead": 42}
    _full_agreement(result)


def test_game24_selections() -> None:
    traces, _ = _import(GAME24)
    result = tally(traces)
    assert result.checked["select"] == 120
    _full_agreement(result)
    kept = 0
    for trace in traces:
        scores: dict[int, float | None] = {}
        for event in trace.events:
            if isinstance(event, Eval):
                scores[event.id] = event.score
            if isinstance(event, Select):
                # Three times "impossible" is 0.003, nothing readable is 0: a dead end, kept all the same.
                kept += any((scores[node] or 0) <= 0.003 for node in event.chosen)
                assert event.order == "exact" and not event.live_only
    assert kept == 46


def test_game24_live_candidates_alone_are_not_what_was_kept() -> None:
    """Counter-check: leaving dead ends out would be wrong on exactly the 46 lists that keep one."""
    traces, _ = _import(GAME24)
    differ = 0
    for trace in traces:
        oracle = Oracle()
        for event in trace:
            if isinstance(event, Select):
                live = [node for node in event.candidates if (oracle.scores[node] or 0) > 0.0031]
                differ += tuple(oracle.select(live, len(event.chosen))) != event.chosen
            oracle.feed(event)
    assert differ == 46


def test_nominal_counts_agree_less() -> None:
    """Counter-check: with three children for every node, as the search allows, 679 of 703 climbs agree."""
    traces, _ = _import(PRUNE)
    agreed = 0
    for trace in traces:
        oracle = Oracle()
        children: dict[int, int] = {}
        for event in trace:
            if isinstance(event, Backtrack):
                agreed += oracle.agrees(event)
            if isinstance(event, Expand):
                missing = 3 - children.setdefault(event.id, event.untried)
                event = Expand(
                    id=event.id, untried=event.untried + missing, untried_source=event.untried_source
                )
            oracle.feed(event)
    assert agreed == 679


def test_dead_flags_decide() -> None:
    """Counter-check: with every dead end flagged, those of the search without pruning would mislead it."""
    traces, _ = _import(NO_PRUNE)
    assert not any(isinstance(event, Prune) for trace in traces for event in trace.events)
    document = json.loads(shared(NO_PRUNE).read_text())
    wrong = 0
    for trace, records in zip(traces, document, strict=True):
        oracle = Oracle()
        for event in trace:
            if isinstance(event, Backtrack):
                wrong += not oracle.agrees(event)
            oracle.feed(event)
            if isinstance(event, Node) and event.id and records[event.id - 1]["count"]["impossible"]:
                oracle.feed(Prune(id=event.id, reason="impossible"))
    assert wrong > 50


# -- Nothing lost ------------------------------------------------------------------------------------


def _nodes(events: Iterable[Event]) -> Iterator[Node]:
    return (event for event in events if isinstance(event, Node))


def _full_texts(events: Iterable[Event]) -> list[str]:
    texts: list[str] = []
    for node in _nodes(events):
        texts.append((texts[node.parents[0]] if node.parents else "") + (node.text or ""))
    return texts


def test_game24_steps_can_be_rebuilt() -> None:
    traces, _ = _import(GAME24)
    document = json.loads(shared(GAME24).read_text())
    for trace, record in zip(traces, document, strict=True):
        texts = _full_texts(trace.events)
        scores = {event.id: event.score for event in trace.events if isinstance(event, Eval)}
        steps, ys = [], [""]
        for event in trace.events:
            if isinstance(event, Select):
                kept = [texts[node] for node in event.chosen]
                steps.append(
                    {
                        "step": len(steps),
                        "x": trace.begin.meta["x"],
                        "ys": ys,
                        "new_ys": [texts[node] for node in event.candidates],
                        "values": [scores[node] for node in event.candidates],
                        "select_new_ys": kept,
                    }
                )
                ys = kept
        assert steps == record["steps"]
        assert ys == record["ys"]
        assert trace.begin.meta["idx"] == record["idx"]
        assert trace.begin.meta["usage_so_far"] == record["usage_so_far"]
        assert (trace.end.status == "solved") == any(info["r"] for info in record["infos"])
        sizes = [node.state_bytes for node in _nodes(trace.events)]
        assert sizes == [len(text.encode()) for text in texts]


@pytest.mark.parametrize("name", [PRUNE, NO_PRUNE])
def test_crosswords_actions_can_be_rebuilt(name: str) -> None:
    traces, summary = _import(name)
    document = json.loads(shared(name).read_text())
    assert summary.nodes == sum(len(records) + 1 for records in document)
    for trace, records in zip(traces, document, strict=True):
        paths: list[list[str]] = []
        for node in _nodes(trace.events):
            above = paths[node.parents[0]] if node.parents else []
            paths.append([*above, node.text] if node.text is not None else [])
        assert paths[1:] == [record["actions"] for record in records]
        dead = {event.id - 1 for event in trace.events if isinstance(event, Prune)}
        impossible = {n for n, record in enumerate(records) if record["count"]["impossible"] >= 1}
        assert dead == (impossible if name == PRUNE else set())


def test_crosswords_statuses() -> None:
    assert _import(PRUNE)[1].statuses == {"budget": 6, "solved": 4, "exhausted": 2}
    assert _import(NO_PRUNE)[1].statuses == {"budget": 2, "solved": 1}


def test_sos_moves_and_states_can_be_rebuilt() -> None:
    traces, _ = _import(SOS)
    for trace, line in zip(traces, shared(SOS).read_text().splitlines(), strict=True):
        record = json.loads(line)
        ids = {node.id: node.ext_id for node in _nodes(trace.events)}
        generated = {node.ext_id for node in _nodes(trace.events)}
        told = re.findall(r"Moving to Node #(\S+)", record["search_path"])
        moves: list[str | None] = []
        for event in trace.events:
            if isinstance(event, Node) and event.kind == "thought" and trace.begin.algorithm == "dfs":
                moves.append(event.ext_id)  # depth first goes at once to what it generates
            elif isinstance(event, Backtrack | Jump):
                moves.append(None if event.to is None else ids[event.to])
        assert moves == [name if name in generated else None for name in told]
        explored = re.findall(r"Exploring Operation: (\S+),", record["search_path"])
        assert [node.text for node in _nodes(trace.events) if node.parents] == explored
        assert (trace.end.status == "solved") == ("Goal Reached" in record["search_path"])
        # A state's size is that of the text that the source shows for it.
        shown = re.findall(r"Current State: (.*)", record["search_path"])
        sizes = Counter(len(text) for text in shown if ast.literal_eval(text.partition(", Operations: ")[2]))
        assert sizes.keys() <= {node.state_bytes for node in _nodes(trace.events)}


def test_toolbench_tree_can_be_rebuilt() -> None:
    for path in _toolbench_files():
        (trace,) = import_file(path)
        root = json.loads(path.read_text())["tree"]["tree"]
        expected: list[tuple[int, str, int, bool]] = []

        def walk(node: dict, depth: int, expected: list = expected) -> None:
            size = len((node["description"] + node.get("observation", "")).encode())
            expected.append((depth, node["node_type"], size, node["pruned"]))
            for child in node["children"]:
                walk(child, depth + 1)

        walk(root, 0)
        dead = {event.id for event in trace.events if isinstance(event, Prune)}
        kinds = {"action": "Action", "action_input": "Action Input", "root": "Action Input"}
        found = [
            (node.depth, kinds.get(node.kind, "Thought"), node.state_bytes, node.id in dead)
            for node in _nodes(trace.events)
        ]
        assert found == expected


def test_order_of_events_at_a_backtrack() -> None:
    """[prune] backtrack, restore, expand of the resumed node, node: as a replay does them."""
    traces, _ = _import(PRUNE)
    for trace in traces:
        events = trace.events
        for place, event in enumerate(events):
            if isinstance(event, Backtrack):
                restored, expanded, node = events[place + 1 : place + 4]
                assert isinstance(restored, Restore) and restored.id == event.to
                assert isinstance(expanded, Expand) and expanded.id == event.to
                assert isinstance(node, Node) and node.parents == (event.to,)


def test_state_is_saved_where_the_search_comes_back_to() -> None:
    traces, _ = _import(PRUNE)
    for trace in traces:
        saved = {event.id for event in trace.events if isinstance(event, Save)}
        resumed = {event.to for event in trace.events if isinstance(event, Backtrack)}
        assert resumed <= saved


@pytest.mark.parametrize("name", [PRUNE, GAME24, SOS])
def test_imported_traces_can_be_written_and_read(name: str, tmp_path: Path) -> None:
    traces, summary = _import(name)
    path = tmp_path / "own.jsonl"
    assert write_traces(path, traces) == summary.problems
    again = import_file(path)
    assert [list(trace) for trace in again] == [list(trace) for trace in traces]
    assert again.summary.format == "clew"
    assert again.summary.events == summary.events == sum(len(list(trace)) for trace in traces)
    assert again.summary.checked == summary.checked
    assert again.summary.unchecked == summary.unchecked
    assert (again.summary.nodes, again.summary.max_depth) == (summary.nodes, summary.max_depth)


# -- Detection and damage ----------------------------------------------------------------------------

SAMPLES = {
    "tot_crosswords": PRUNE,
    "tot_game24": GAME24,
    "sos": SOS,
    "toolbench_dfsdt": f"{TOOLBENCH}/G1_answer_69.json",
}


@pytest.mark.parametrize("kind", SAMPLES)
def test_kind_comes_from_the_content(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "misnamed.csv"
    path.write_bytes(shared(SAMPLES[kind]).read_bytes())
    assert detect(path).name == kind
    head = path.read_text(encoding="utf-8")[: 1 << 16]
    assert [importer.name for importer in importers() if importer.recognises(head)] == [kind]


def test_own_kind_is_recognised(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    write_traces(path, [short_trace()])
    assert detect(path).name == "clew"


@pytest.mark.parametrize("kind", SAMPLES)
def test_cut_files_are_named(kind: str, tmp_path: Path) -> None:
    whole = shared(SAMPLES[kind]).read_bytes()
    path = tmp_path / "cut"
    for tenth in range(1, 10):
        cut = whole[: len(whole) * tenth // 10]
        assert not cut.endswith(b"\n")
        path.write_bytes(cut)
        with pytest.raises(TraceError) as caught:
            list(import_file(path))
        text = str(caught.value)
        assert "\n" not in text and len(text) < len(str(path)) + 250
        assert re.match(
            rf"{re.escape(str(path))}: (record|line) \d+: JSON: expected a (complete )?value", text
        )
        assert "the end of the file" in text


@pytest.mark.parametrize("kind", ["tot_game24", "tot_crosswords"])
def test_text_after_the_list_is_named(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "more"
    path.write_bytes(shared(SAMPLES[kind]).read_bytes().rstrip() + b"\n{}")
    with pytest.raises(TraceError) as caught:
        list(import_file(path))
    assert str(caught.value).endswith("JSON: expected the end of the file after the list, found '{'")


@pytest.mark.parametrize("kind", ["tot_game24", "tot_crosswords"])
def test_a_fault_within_a_record_is_shown_where_it_is(kind: str, tmp_path: Path) -> None:
    whole = shared(SAMPLES[kind]).read_bytes()
    path = tmp_path / "spoilt"
    place = whole.index(b", ", len(whole) // 2)
    path.write_bytes(whole[:place] + b"; here" + whole[place + 2 :])
    with pytest.raises(TraceError) as caught:
        list(import_file(path))
    text = str(caught.value)
    assert "; here" in text and "the end of the file" not in text


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(TraceError, match="content: expected a regular file, found a pipe or a device"):
        import_file(path)


def test_a_read_that_fails_names_the_file() -> None:
    path = Path("/proc/self/mem")
    if not path.exists():
        pytest.skip("no file here whose reads fail")
    with pytest.raises(OSError) as caught:
        import_file(path)
    assert caught.value.filename == str(path)


@pytest.mark.parametrize(
    "content", [b"", b"   \n", b"\x00\x01\x02", b"[]", b"{}", b"[1, 2]", b"null", b"id,x\n"]
)
def test_content_of_no_kind(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "nothing"
    path.write_bytes(content)
    with pytest.raises(TraceError, match="content: expected") as caught:
        import_file(path)
    assert "\n" not in str(caught.value)


def test_every_trace_ends(tmp_path: Path) -> None:
    for name in (PRUNE, GAME24, SOS):
        for trace in import_file(shared(name)):
            assert isinstance(trace.end, End)
            assert trace.begin.source == detect(shared(name)).name
