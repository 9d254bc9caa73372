"""`clew worth`: KV sizes, restored segments, shares and the one sentence, and every bad input in one line."""

import json
from contextlib import contextmanager

import numpy as np
import pytest

from firmware_py.errors import InputError
from firmware_py.machine import Machine
from firmware_py.worth.assess import Inputs, assess, percent
from firmware_py.worth.segments import Segments, segments
from firmware_py.worth.tables import (
    RestorePath,
    model_named,
    models,
    parse_models,
    parse_restore_paths,
    restore_paths,
)
from hdl.config import named_config
from sim.trace.events import Append, Backtrack, Jump, Node
from sim.trace.schema import write_traces

from .fake_accelerator import FakeAccelerator
from .test_cli import clew
from .test_compare import comparison
from .test_replay import beam, depth_first, node, trace

PATH = RestorePath(name="p", gb_per_s=10, latency_ns=1000, what="w", source="s")


def inputs(**changes):
    values = {
        "model": model_named("llama-3-70b"),
        "ms_per_token": 30.0,
        "prefill_tokens_per_second": None,
        "tokens_per_node": 10,
        "watts": None,
    }
    return Inputs(**(values | changes))


@pytest.mark.parametrize(
    ("name", "size"),
    [("llama-3-70b", 327_680), ("llama-3-8b", 131_072), ("llama-3.1-405b", 516_096), ("deepseek-v3", 70_272)],
)
def test_kv_bytes_of_a_token_follow_from_the_shape_of_the_model(name, size):
    assert models()[name].token_bytes == size


def test_an_unknown_model_lists_the_known():
    with pytest.raises(InputError, match=r"unknown model 'gpt': expected one of llama-3-8b, .*deepseek-v3"):
        model_named("gpt")


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (
            parse_models,
            "name,layers,kv_heads,head_dim,tensors,element_bytes,source\nm,8.5,1,1,2,2,s\n",
            "line 2: field layers is '8.5': expected a positive whole number",
        ),
        (
            parse_restore_paths,
            "name,gb_per_s,latency_ns,what,source\np,0,1,w,s\n",
            "line 2: field gb_per_s is '0': expected a positive number",
        ),
    ],
)
def test_a_fault_in_a_table_is_named(parse, text, message):
    with pytest.raises(InputError, match=message):
        parse(text, file="f.csv")


def test_a_path_takes_its_latency_and_its_bytes():
    assert PATH.seconds(10_000) == pytest.approx(2e-6) and PATH.seconds(0) == 0
    assert set(restore_paths()) == {"hbm2", "cxl_x8", "pcie5_x16", "pcie3_x16"}


def _tree():
    """0 - 1 - 2 and 0 - 3, with 5, 10, 20 and 40 tokens; 7 more are appended to 1."""
    nodes = [
        Node(id=0, parents=(), depth=0, tokens=5),
        Node(id=1, parents=(0,), depth=1, tokens=10),
        Node(id=2, parents=(1,), depth=2, tokens=20),
        Append(id=1, tokens=7),
        Backtrack(from_=2, to=1, check="none", reason="test"),
        Node(id=3, parents=(0,), depth=1, tokens=40),
        Jump(from_=3, to=2, check="none", reason="test"),
        Backtrack(from_=2, to=None, check="none", reason="test"),
    ]
    return trace("a", *nodes)


def test_a_segment_is_what_the_new_path_does_not_share_or_all_of_it():
    found = segments([_tree()], tokens_per_node=None)
    assert found.generated == 5 + 10 + 20 + 7 + 40
    assert found.evicted.tolist() == [5 + 17, 5 + 17 + 20]
    assert found.kept.tolist() == [0, 17 + 20]
    assert (found.searches, found.assumed) == (1, 0)


def test_tokens_are_assumed_only_where_that_is_said():
    plain = trace("b", node(0), node(1, 0), node(2, 1), Backtrack(from_=2, to=0, check="none", reason="t"))
    with pytest.raises(InputError, match="trace t: node 1 has no token count: expected one, or --tokens-per"):
        segments([plain], tokens_per_node=None)
    found = segments([plain], tokens_per_node=3)
    # The root stands for the prompt: nothing is assumed of it.
    assert (found.generated, found.assumed) == (6, 2)


def test_a_trace_without_a_backtrack_has_nothing_to_weigh():
    with pytest.raises(InputError, match="no backtrack and no jump"):
        segments([trace("c", node(0), node(1, 0))], tokens_per_node=1)


def _segments(kept, evicted, generated=1000):
    return Segments(
        generated=generated, kept=np.array(kept), evicted=np.array(evicted), searches=1, assumed=0
    )


def test_reload_is_weighed_against_recompute():
    found = assess(
        comparison(depth_first()),
        _segments([0, 1, 100], [50, 50, 100]),
        inputs(prefill_tokens_per_second=25_000.0),
        [PATH],
    )
    kept, evicted = found.restores
    # 40 us to compute a token, 32.768 us to move it, and 1 us to begin.
    assert kept.break_even_tokens == pytest.approx(1 / (40 - 32.768))
    assert (kept.reload_wins, evicted.reload_wins) == (2, 3)
    assert kept.microseconds.max == pytest.approx(3277.8)
    moved = 200 * 32.768e-6
    assert evicted.share == pytest.approx((moved + 3e-6) / (30 + moved + 3e-6))
    assert evicted.saturating_searches == pytest.approx((30 + moved + 3e-6) / moved)


def test_a_path_slower_than_recompute_never_breaks_even_and_nothing_moved_fills_nothing():
    found = assess(
        comparison(depth_first()),
        _segments([0], [10]),
        inputs(prefill_tokens_per_second=40_000.0),
        [PATH],
    )
    kept, evicted = found.restores
    assert evicted.break_even_tokens is None and evicted.reload_wins == 0
    assert kept.saturating_searches is None and kept.share == 0


def test_the_answer_is_no_where_walks_are_lost_in_generation_and_yes_where_they_are_not():
    result = comparison(depth_first())
    far = result.far.run.walk_cycles.sum() * 1e-9
    saved = far - result.near.run.walk_cycles.sum() * 1e-9
    no = assess(result, _segments([0], [1]), inputs(), [])
    assert no.far.share == pytest.approx(far / (far + 30)) and not no.matters
    assert no.sentence.startswith("No: the far walks are ") and no.sentence.count(".") >= 1
    yes = assess(result, _segments([0], [1], generated=1), inputs(ms_per_token=1e-3), [])
    assert yes.saved_share == pytest.approx(saved / (far + 1e-6)) and yes.sentence.startswith("Yes: ")


@pytest.mark.parametrize(
    ("share", "text"), [(0.5, "50 %"), (2.28e-5, "0.00228 %"), (7.57e-7, "0.757 ppm"), (0, "0 %")]
)
def test_a_tiny_share_is_in_parts_per_million(share, text):
    assert percent(share) == text


def test_tokens_a_joule_need_a_power():
    result = comparison(depth_first())
    bare = assess(result, _segments([0], [1]), inputs(), [])
    assert bare.near.tokens_per_joule is None
    assert bare.near.joules == pytest.approx(1e-12 * result.energy["near"].walk.typical * 2)
    found = assess(result, _segments([0], [1]), inputs(watts=100.0), [])
    assert found.far.tokens_per_joule < found.near.tokens_per_joule < 1000 / (100 * 30)


@pytest.fixture
def fake(monkeypatch):
    accelerator = FakeAccelerator(named_config("simulation"))

    @contextmanager
    def open_machine(config, announce):
        yield Machine(driver=accelerator, monitor=accelerator)

    monkeypatch.setattr("firmware_py.machine.compiled_machine", open_machine)
    return accelerator


@pytest.fixture
def traces(tmp_path):
    path = tmp_path / "t.jsonl"
    write_traces(path, [depth_first("a"), beam()])
    return path


OPTIONS = ("--model", "llama-3-70b", "--ms-per-token", "30")


def test_the_command_prints_and_writes_the_same(monkeypatch, capsys, fake, traces, tmp_path):
    out = tmp_path / "w.json"
    arguments = (*OPTIONS, "--tokens-per-node", "15", "--watts", "400", "--json", out)
    status, text, errors = clew(monkeypatch, capsys, "worth", traces, *arguments)
    assert (status, errors) == (0, "")
    shown = json.loads(out.read_text())
    assert shown["schema"] == "clew.worth/1" and shown["inputs"]["kv_bytes_per_token"] == 327_680
    assert shown["sentence"] in text and "assumed: 15 tokens for each of" in text
    assert [row["case"] for row in shown["restores"]] == ["kept", "evicted"] * 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--model", "x", "--ms-per-token", "1"), "unknown model 'x': expected one of llama-3-8b"),
        (("--model", "llama-3-8b", "--ms-per-token", "0"), "--ms-per-token is 0: expected a positive number"),
        (("--model", "llama-3-8b", "--ms-per-token", "nan"), "--ms-per-token is nan: expected a positive"),
        ((*OPTIONS, "--tokens-per-node", "-1"), "--tokens-per-node is -1: expected a positive number"),
        ((*OPTIONS, "--prefill-tokens-per-second", "0"), "--prefill-tokens-per-second is 0: expected a"),
        ((*OPTIONS, "--watts", "inf"), "--watts is inf: expected a positive number"),
        ((*OPTIONS, "--far", "x"), "unknown far preset 'x'"),
        (OPTIONS, "has no token count: expected one, or --tokens-per-node"),
    ],
)
def test_bad_input_is_one_line(monkeypatch, capsys, fake, traces, tmp_path, arguments, message):
    out = tmp_path / "w.json"
    status, text, errors = clew(monkeypatch, capsys, "worth", traces, *arguments, "--json", out)
    assert (status, text) == (2, "") and errors.count("\n") == 1 and message in errors
    assert not out.exists()
