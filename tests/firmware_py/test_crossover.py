"""The crossover on the fake accelerator: its points, its sentence, its document, its picture, bad options."""

import dataclasses
import json
import sys
from contextlib import contextmanager

import pytest
from rich.console import Console

from firmware_py.compare import TraceFile
from firmware_py.crossover import (
    crossover,
    help_effect,
    near_effect,
    near_rate,
    parse_concurrent,
    variants,
)
from firmware_py.design import CONTEXTS_MAX, design_for
from firmware_py.errors import InputError
from firmware_py.image import CreationOrder
from firmware_py.machine import Machine
from firmware_py.programs import default_image
from firmware_py.report.crossover import crossover_document, print_crossover
from firmware_py.report.figures.crossover import crossover_pictures
from firmware_py.report.figures.picture import require_plot, write_pictures

from .fake_accelerator import CROSSING_CYCLES, HOP_CYCLES, FakeAccelerator
from .test_replay import beam, depth_first

CACHES = "v100_l2:1KiB,v100_l2"
NAMES = [
    "near",
    "far",
    "far cache=v100_l2:1KiB",
    "far cache=v100_l2",
    "far stack stream",
    "far cache=v100_l2 stack stream",
]


@pytest.fixture(scope="module")
def found():
    opened = []

    @contextmanager
    def open_machine(config, announce):
        fake = FakeAccelerator(config)
        opened.append(config)
        yield Machine(driver=fake, monitor=fake)

    result = crossover(
        [
            TraceFile(file="one", format="clew", traces=[depth_first("a"), depth_first("b")]),
            TraceFile(file="dir/two", format="clew", traces=[beam()]),
        ],
        config=design_for("hbm2_2000", concurrent=CONTEXTS_MAX),
        far="v100_hbm2",
        concurrent=[1, 6],
        rows=variants(CACHES),
        program=default_image(),
        layout=CreationOrder(),
        open_machine=open_machine,
        announce=lambda text: None,
        progress=lambda name, done, total: None,
    )
    return result, opened


def test_every_variant_has_a_point_at_every_concurrency(found):
    result, opened = found
    assert [(p.concurrent, p.variant) for p in result.points] == [(n, v) for n in (1, 6) for v in NAMES]
    assert result.failures == []
    # Two designs, with and without the cache, whatever the number of variants.
    assert [config.cache.built for config in opened] == [False, True]
    assert {config.walker.contexts for config in opened} == {64}
    assert result.searches == {1: 3, 6: 6}
    assert [point.walks for point in result.points] == [12] * 6 + [24] * 6
    assert result.record_bytes[6] == 32 * 2 * (4 + 4 + 8)


def test_a_point_says_what_the_machine_did(found):
    result, _ = found
    near, far = result.point(1, "near"), result.point(1, "far")
    assert near.p50_ns is not None and near.reads_per_walk == far.reads_per_walk
    assert near.walks_per_second > far.walks_per_second
    effect, rate = near_effect(result, far), near_rate(result, far)
    assert effect.loop == HOP_CYCLES[1] / HOP_CYCLES[0]
    # The local effect is more than the walk's, and that more than the replay's, which writes too.
    assert 1 < effect.replay < effect.walk < effect.loop and rate > 1
    assert effect.replay == pytest.approx(far.replay_ns / near.replay_ns)
    assert far.p50_ns is not None and far.p50_ns >= HOP_CYCLES[1] + 2 * CROSSING_CYCLES
    assert (near.hit_rate, far.hit_rate) == (None, None)
    # The fake's cache never hits.
    assert result.point(6, "far cache=v100_l2").hit_rate == 0
    by_file = result.point(6, "far cache=v100_l2").by_file
    assert [hits.hits for hits in by_file] == [0, 0] and all(hits.reads > 0 for hits in by_file)
    assert result.point(1, "far stack stream").helped == 2 * 2 + 4
    itself = near_effect(result, near)
    assert (itself.loop, itself.walk, itself.replay, near_rate(result, near)) == (1, 1, 1, 1)


def test_help_has_its_effect_over_the_bare_far_place(found):
    result, _ = found
    helped, far = result.point(1, "far stack stream"), result.point(1, "far")
    effect = help_effect(result, helped)
    assert (effect.variant, effect.over) == ("far stack stream", "far")
    # What has no loop left has no local effect.
    assert effect.walk == pytest.approx(far.mean_ns / helped.mean_ns) and effect.walk > 1
    shown = {row["variant"]: row for row in crossover_document(result)["points"] if row["concurrent"] == 1}
    assert shown["near"]["speedup_of_help"] is None
    assert shown["far"]["speedup_of_help"] == {"loop_mean": 1, "walk_mean": 1, "replay": 1}
    assert set(shown["far"]["speedup_of_near"]) == {"loop_mean", "walk_mean", "replay", "walks_per_second"}


def test_the_sentence_says_where_near_wins_and_where_not(found):
    result, _ = found
    first, second, third = result.sentence.split("; ")
    assert first.startswith(
        "On these traces near memory wins in mean walk latency against far, far cache=v100_l2:1KiB and far "
        "cache=v100_l2 at every concurrency"
    )
    # The fake's climbs on the stack take no time, its streams as long as walks.
    assert first.endswith("nowhere against far stack stream and far cache=v100_l2 stack stream")
    assert second.startswith("in median walk latency against far, far cache=v100_l2:1KiB")
    assert third.startswith("in walks per second against far") and third.endswith(".")


def test_the_sentence_names_the_concurrencies_where_near_wins(found):
    result, _ = found
    points = [
        dataclasses.replace(point, walks_per_second=1e12)
        if (point.concurrent, point.variant) == (6, "far")
        else point
        for point in result.points
    ]
    changed = dataclasses.replace(result, points=points)
    assert "in walks per second against far at 1 at a time only, " in changed.sentence


def test_the_document_parts_inputs_from_what_was_measured(found):
    result, _ = found
    shown = crossover_document(result)
    assert json.loads(json.dumps(shown, allow_nan=False)) == shown
    assert shown["schema"] == "clew.crossover/1" and shown["contexts"] == 64
    assert shown["inputs"]["far"]["published_ns"] == 314.6
    assert list(shown["inputs"]["help"]) == NAMES[1:]
    assert shown["inputs"]["help"]["far cache=v100_l2"]["cache"]["hit_ns"] == 153.7
    assert len(shown["points"]) == 12
    rates = [(row["file"], row["concurrent"], row["variant"]) for row in shown["hit_rates"]]
    assert rates[:2] == [("one", 1, "far cache=v100_l2:1KiB"), ("dir/two", 1, "far cache=v100_l2:1KiB")]
    assert len(rates) == 2 * 2 * 3
    assert shown["searches"][1] == {"concurrent": 6, "replayed": 6, "record_bytes": 1024}


def test_the_tables_fit_a_pipe_and_name_everything(found):
    target = Console(width=110, no_color=True)
    with target.capture() as capture:
        print_crossover(found[0], target)
    text = capture.get()
    for words in (
        "314.6 ns",
        "input",
        "measured",
        "stack stream",
        "two",
        "the article claims 85 %",
        "near memory wins",
    ):
        assert words in " ".join(text.replace("\n", " ").split()), words
    assert max(map(len, text.splitlines())) <= 110


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_the_picture_is_drawn(found, tmp_path, suffix):
    pytest.importorskip("matplotlib")
    path = tmp_path / f"x.{suffix}"
    require_plot(path)
    write_pictures(path, crossover_pictures(found[0]), title="t")
    assert path.stat().st_size > 5000


def test_a_picture_of_no_known_kind_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"x\.txt: expected a name that ends in one of \.png, \.svg, \.pdf"):
        require_plot(tmp_path / "x.txt")


def test_numbers_of_searches_are_sorted():
    assert parse_concurrent("64,1,10000") == [1, 64, 10000]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--concurrent", "1,x"], "--concurrent has 'x': expected numbers with commas between them"),
        (["--concurrent", ""], "--concurrent has '': expected numbers"),
        (["--concurrent", "0"], "--concurrent is 0: expected 1 to 10000"),
        (["--concurrent", "10001"], "--concurrent is 10001: expected 1 to 10000"),
        (["--concurrent", "2,2"], "--concurrent has 2 twice"),
        (["--cache", "moon"], "unknown far cache 'moon': expected one of v100_l2"),
        (["--cache", "v100_l2,v100_l2"], "expected each cache once"),
        (["--far", "moon"], "unknown far preset 'moon'"),
        (["--memory", "moon"], "unknown memory preset 'moon'"),
        (["--plot", "x.txt"], "x.txt: expected a name that ends in one of .png"),
        (["--json", "no/x.json"], "no/x.json"),
    ],
)
def test_a_bad_option_is_one_line_and_exit_status_two(monkeypatch, capsys, tmp_path, options, message):
    from firmware_py import cli

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["clew", "crossover", "absent.jsonl", *options])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    errors = capsys.readouterr().err
    assert caught.value.code == 2 and errors.count("\n") == 1 and message in errors
    assert list(tmp_path.iterdir()) == []


def test_without_a_cache_there_are_no_hits_to_show():
    rows = variants("")
    assert [row.name for row in rows] == ["near", "far", "far stack stream"]
