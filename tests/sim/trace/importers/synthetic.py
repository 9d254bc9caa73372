"""Small files of every kind, made here: what the kind looks like, without anybody's text."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sim.trace.events import Event
from sim.trace.importers import import_file
from sim.trace.schema import Trace

__all__ = [
    "KINDS",
    "SEVERAL",
    "WITH_TEXT",
    "edge_list",
    "got",
    "got_thought",
    "mcts_node",
    "mcts_search",
    "of",
    "omegaprm_node",
    "one",
    "several",
    "sos_llm_record",
    "tot_problem",
    "tot_step",
]


def one(path: Path) -> Trace:
    """The one trace of a file."""
    (trace,) = import_file(path)
    return trace


def of(trace: Trace, kind: type[Event]) -> list[Any]:
    """The events of one kind."""
    return [event for event in trace.events if isinstance(event, kind)]


# -- Tree of Thoughts --------------------------------------------------------------------------------


def tot_step(
    question: str, ys: list[str], proposals: list[tuple[str, float]], kept: list[str]
) -> dict[str, Any]:
    """One step of a Tree-of-Thoughts log."""
    return {
        "step": 0,
        "x": question,
        "ys": ys,
        "new_ys": [text for text, _ in proposals],
        "values": [value for _, value in proposals],
        "select_new_ys": kept,
    }


def tot_problem(question: str, *, accs: list[int] | None = None) -> dict[str, Any]:
    """Two steps of three votes each."""
    steps = [
        tot_step(question, [""], [("plan a\n", 1), ("plan ≈\n", 3), ("plan c\n", 1)], ["plan ≈\n"]),
        tot_step(
            question, ["plan ≈\n"], [("plan ≈\nx", 2), ("plan ≈\ny", 2), ("plan ≈\nz", 1)], ["plan ≈\nx"]
        ),
    ]
    problem: dict[str, Any] = {"steps": steps, "idx": 7, "ys": ["plan ≈\nx"], "usage_so_far": {"cost": 0.5}}
    if accs is not None:
        problem["accs"] = accs
    return problem


# -- Stream of Search by a language model ------------------------------------------------------------

SOS_LLM_TEXT = """\
Current State: 92:[3, 8, 5], Operations: []
Exploring Operation: 8-5=3, Resulting Numbers: [3, 3]
Generated Node #0,0: 92:[3, 3] Operation: 8-5=3
Exploring Operation: 3*3=9, Resulting Numbers: [9]
9,92 unequal: No Solution

Moving to Node #0
Current State: 92:[3, 8, 5], Operations: []
Exploring Operation: 3+8=11, Resulting Numbers: [5, 11]
Generated Node #0,1: 92:[5, 11] Operation: 3+8=11
Moving to Node #0,1
Current State: 92:[5, 11], Operations: ['3+8=11']
Exploring Operation: 5+11=92, Resulting Numbers: [92]
92,92 equal: Goal Reached
"""


def sos_llm_record(text: str = SOS_LLM_TEXT, **changes: object) -> dict[str, Any]:
    """A record with this completion."""
    return {
        "nums": [3, 8, 5],
        "target": 92,
        "prompt": "Reach the target.",
        "completion": text,
        "parsed_results": {"solved": False},
    } | changes


# -- Graph of Thoughts -------------------------------------------------------------------------------


def got_thought(text: str, branch: str, **more: object) -> dict[str, Any]:
    """The state of a thought of one branch."""
    return {
        "problem": "p",
        "current": text,
        "method": "got",
        "branch": branch,
        f"{branch}_notes": text,
    } | more


def got() -> list[dict[str, Any]]:
    """Two branches of one thought each, merged into two thoughts, of which one is kept."""
    left, right = got_thought("≈", "l"), got_thought("right", "r")
    merged = [got_thought("one", "l", merge=True), got_thought("two", "r", merge=True)]

    def step(operation: str, thoughts: list[dict[str, Any]], scores: list[float] | None) -> dict[str, Any]:
        record: dict[str, Any] = {"operation": operation, "thoughts": thoughts}
        if scores is not None:
            record |= {"scored": [True] * len(thoughts), "scores": scores}
        return record

    return [
        step("generate", [dict(left, evaluation_metrics={"f1": 1.0})], None),
        step("score", [left], [0.5]),
        step("keep_best_n", [left], [0.5]),
        step("generate", [right], None),
        step("score", [right], [0.25]),
        step("keep_best_n", [right], [0.25]),
        step("generate", merged, None),
        step("score", merged, [0.75, 1.0]),
        step("keep_best_n", [merged[1]], [1.0]),
        step("ground_truth_evaluator", [merged[1]], [1.0])
        | {"compared_to_ground_truth": [True], "problem_solved": [True]},
        {"prompt_tokens": 10, "completion_tokens": 20, "cost": 0.5},
    ]


# -- Monte-Carlo searches and trees ------------------------------------------------------------------


def mcts_node(
    state: str, visits: int, value: float, *children: dict[str, Any], **more: object
) -> dict[str, Any]:
    """A node of a search tree; its text is the whole text so far."""
    return {
        "state": state,
        "visits": visits,
        "value": value,
        "is_terminal": False,
        "answer": None,
        "children": list(children),
    } | more


def mcts_search(root: dict[str, Any] | None = None) -> dict[str, Any]:
    """A search of three simulations; without a root, one in which each value is a mean."""
    if root is None:
        end = mcts_node("q a b", 1, 1.0, is_terminal=True, answer="b")
        root = mcts_node("q", 3, 0.5, mcts_node("q a", 2, 0.5, end), mcts_node("q ≈", 1, 0.5))
    return {
        "question": "q",
        "simulations_run": 3,
        "exploration_constant": 1.4,
        "terminal_states": [],
        "root": root,
    }


def omegaprm_node(text: str, value: float | None, *children: dict[str, Any]) -> dict[str, Any]:
    """A node of an OmegaPRM tree."""
    return {"text": text, "mc_value": value, "children": list(children)}


def omegaprm() -> dict[str, Any]:
    tree = omegaprm_node("q", 0.5, omegaprm_node("a", 0.0), omegaprm_node("≈", 0.75, omegaprm_node("c", 1.0)))
    return {"question": "q", "final_answer": "4", "reasoning_steps": tree, "question_id": 3}


def tree() -> dict[str, Any]:
    leaves = [
        {"id": "b", "score": 0.5, "dead": True, "children": []},
        {"id": "≈", "text": "c", "children": []},
    ]
    return {"id": 1, "order": "preorder", "children": leaves}


def edge_list(*rows: tuple[str, ...]) -> str:
    """Lines of comma-separated values, the first of them the header."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


# -- Every kind, one problem or several --------------------------------------------------------------


def _array(problem: Callable[[int], Any]) -> Callable[[int], str]:
    return lambda count: json.dumps([problem(number) for number in range(count)], ensure_ascii=False)


def _lines(problem: Callable[[int], Any]) -> Callable[[int], str]:
    def text(count: int) -> str:
        return "".join(json.dumps(problem(number), ensure_ascii=False) + "\n" for number in range(count))

    return text


def _edge_list(count: int) -> str:
    rows = [("id", "parent", "score", "dead", "text", "trace")]
    for number in range(count):
        name = f"problem {number}"
        rows += [
            ("a", "", "", "", "", name),
            ("b", "a", "0.5", "true", "≈", name),
            ("c", "a", "", "", "c", name),
        ]
    return edge_list(*rows)


def _game24(number: int) -> dict[str, Any]:
    steps = [tot_step("1 2 3 4", [""], [("a\n", 3.0), ("≈\n", 60.0)], ["≈\n"])]
    return {"steps": steps, "idx": number, "infos": [{"r": 0}]}


def _crosswords(number: int) -> list[dict[str, Any]]:
    actions = [["h1. a"], ["h1. a", "v1. ≈"], ["h2. b"]]
    record = {"env_step": 1, "info": {"r_word": 0.0}, "count": {"impossible": 0}}
    return [{"actions": path} | record for path in actions]


def _sos(number: int) -> dict[str, Any]:
    text = "Current State: 92:[3, 8, 5], Operations: []\n"
    text += "Exploring Operation: 8-5=3, Resulting Numbers: [3, 3]\n"
    text += "Generated Node #0,0: 92:[3, 3] Operation: 8-5=3\n"
    return {"nums": [3, 8, 5], "target": 92, "search_path": text, "search_type": "dfs", "heuristic": "≈"}


def _toolbench(count: int) -> str:
    leaf = {"node_type": "Thought", "description": "≈", "children": []}
    root = {"node_type": "Action Input", "description": "", "children": [leaf]}
    return json.dumps({"win": False, "tree": {"tree": root}}, ensure_ascii=False)


def _clew(number: int) -> str:
    begin = {"event": "begin", "version": 1, "trace": f"≈ {number}", "algorithm": "dfs"}
    events = [
        begin,
        {"event": "node", "id": 0, "parents": [], "depth": 0},
        {"event": "end", "status": "empty"},
    ]
    return "".join(json.dumps(event, ensure_ascii=False) + "\n" for event in events)


# -- Linear reasoning and serving ----------------------------------------------------------------------


def _prm800k(number: int) -> dict[str, Any]:
    completion = {"text": "one ≈", "rating": 1, "flagged": False}
    step = {"completions": [completion], "human_completion": None, "chosen_completion": 0}
    return {
        "labeler": f"{number}",
        "timestamp": "2023-01-01T00:00:00",
        "generation": None,
        "question": {"problem": "1 + 1?", "ground_truth_answer": "2"},
        "label": {"steps": [step], "total_time": 1, "finish_reason": "solution"},
    }


def _processbench(number: int) -> dict[str, Any]:
    return {
        "id": f"own-{number}",
        "generator": "none",
        "problem": "1 + 1?",
        "steps": ["one", "two ≈ 3"],
        "final_answer_correct": False,
        "label": 1,
    }


def _math_shepherd(number: int) -> dict[str, Any]:
    return {
        "input": "What? ≈ Step 1: a \u043a\u0438\nStep 2: b \u043a\u0438",
        "label": "What? ≈ Step 1: a +\nStep 2: b -",
        "task": "GSM8K",
    }


def _azure(count: int) -> str:
    rows = (f"2023-11-16 18:17:{number % 60:02}.9799600,4808,10\n" for number in range(count))
    return "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(rows)


def _mooncake(number: int) -> dict[str, Any]:
    return {"timestamp": number, "input_length": 513, "output_length": 1, "hash_ids": [0, number]}


def _vllm(number: int) -> dict[str, Any]:
    stored = {
        "type": "BlockStored",
        "block_hashes": [number],
        "parent_block_hash": None,
        "token_ids": list(range(16)),
        "block_size": 16,
        "lora_id": None,
    }
    return {"ts": 1732970000.5 + number, "events": [stored]}


#: The text of a file of each kind with so many problems; some kinds hold only one. Those of `WITH_TEXT` have
#: a character `≈`.
KINDS: dict[str, Callable[[int], str]] = {
    "clew": lambda count: "".join(_clew(number) for number in range(count)),
    "tot_game24": _array(_game24),
    "tot_text": _array(lambda number: tot_problem("write of it ", accs=[0])),
    "tot_crosswords": _array(_crosswords),
    "sos": _lines(_sos),
    "sos_llm": _lines(lambda number: sos_llm_record(SOS_LLM_TEXT + "≈\n")),
    "toolbench_dfsdt": _toolbench,
    "got": lambda count: json.dumps(got(), ensure_ascii=False),
    "mcts_llm": _lines(lambda number: mcts_search()),
    "omegaprm_tree": _lines(lambda number: omegaprm()),
    "tree": _array(lambda number: tree()),
    "edge_list": _edge_list,
    "prm800k": _lines(_prm800k),
    "math_shepherd": _lines(_math_shepherd),
    "processbench": _lines(_processbench),
    "qwq": _lines(
        lambda number: {"original_question": "q", "modified_process": ["Step 1. ≈"], "idx": f"{number}"}
    ),
    "marco_o1": _lines(lambda number: {"instruction": "q", "response": "<Thought>\nHmm ≈\n</Thought>"}),
    "mooncake": _lines(_mooncake),
    "azure_llm": _azure,
    "vllm_kv_events": _lines(_vllm),
}
#: Kinds that hold somebody's text; the others have numbers only.
WITH_TEXT = tuple(kind for kind in KINDS if kind not in ("mooncake", "azure_llm", "vllm_kv_events"))
#: Kinds of which a file can hold several problems.
SEVERAL = tuple(kind for kind in KINDS if kind not in ("toolbench_dfsdt", "got"))


def several(path: Path, kind: str, count: int, *, padding: int = 0) -> Path:
    """A file of a kind with so many problems, each larger by some times `padding` characters."""
    path.write_text(KINDS[kind](count).replace("≈", "≈" + "x" * padding), encoding="utf-8")
    return path
