"""The figures of a comparison: their numbers are the run's, and they become files and parts of a page."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from firmware_py.far_help import parse_help
from firmware_py.report.figures.banks import WINDOW_CYCLES, bank_window
from firmware_py.report.figures.comparison import comparison_pictures
from firmware_py.report.figures.latency import walk_latency_picture
from firmware_py.report.figures.picture import inline_svg, measured_title, write_pictures
from firmware_py.report.figures.time_parts import time_picture
from hdl.memory.timing import Command

from .test_compare import comparison
from .test_replay import beam, depth_first, node, trace


@pytest.fixture(scope="module")
def found():
    return comparison(depth_first(), beam())


def test_every_picture_has_words_and_numbers(found):
    pictures = comparison_pictures(found)
    assert [picture.name for picture in pictures] == ["latency", "reads", "time", "banks"]
    for picture in pictures:
        assert picture.text.endswith(".") and picture.numbers.rows
        assert {len(row) for row in picture.numbers.rows} == {len(picture.numbers.header)}


def test_latency_numbers_are_the_statistics_of_each_place(found):
    numbers = walk_latency_picture(found).numbers
    rows = {row[0]: row[1:] for row in numbers.rows}
    assert rows["walks"] == tuple(f"{place.walk.count:,}" for place in found.places.values())
    assert rows["max"] == tuple(f"{place.walk.max:,.0f}" for place in found.places.values())


def test_help_brings_the_bare_far_place_onto_the_same_axis():
    found = comparison(depth_first(), beam(), far_help=parse_help("stack,stream"), bare_far=True)
    assert walk_latency_picture(found).numbers.header[1:] == (
        "near",
        "far with help",
        "far without help",
    )
    assert found.bare_far.reads_per_walk.mean > found.far.reads_per_walk.mean
    assert comparison(depth_first(), bare_far=True).bare_far is None


def test_parts_of_a_loop_and_of_a_walk_sum_up_to_it(found):
    numbers = time_picture(found).numbers
    columns = dict(zip(numbers.header, zip(*numbers.rows, strict=True), strict=True))
    names = columns["mean ns"]
    for place, figures in found.places.items():
        for what, whole in (("loop", figures.loop), ("walk", figures.walk)):
            values = dict(zip(names, columns[f"{what}, {place}"], strict=True))
            whole_ns, *parts = (float(values[name].replace(",", "")) for name in ("sum", *names[:-2]))
            # Numbers from 1,000 on are shown without their fraction.
            assert sum(parts) == pytest.approx(whole_ns, abs=1)
            assert whole_ns == pytest.approx(whole.mean, abs=1)


def test_the_window_holds_the_commands_of_the_log(found):
    window = bank_window(found, found.near)
    log = found.near.run.logs.commands[window.channel]
    inside = log[(log["cycle"] >= window.begin) & (log["cycle"] < window.begin + WINDOW_CYCLES)]
    assert [at for at, *_ in window.commands] == (inside["cycle"].astype(np.int64) - window.begin).tolist()
    assert any(command is Command.RD for _, command, *_ in window.commands)
    for since, until, *_ in window.open_rows:
        assert 0 <= since < until <= WINDOW_CYCLES


@pytest.mark.parametrize(("suffix", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_pictures_become_one_file(found, tmp_path, suffix, start):
    path = tmp_path / f"plot.{suffix}"
    title = measured_title(found.config, found.far_path)
    write_pictures(path, comparison_pictures(found), title=title)
    assert path.read_bytes().startswith(start)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_the_same_figures_are_the_same_file(found, tmp_path):
    for name in ("a.svg", "b.svg"):
        write_pictures(tmp_path / name, [walk_latency_picture(found)], title="t")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_inline_svg_keeps_text_and_ids_apart_and_leaves_colours_to_the_page(found):
    ids = []
    for picture in comparison_pictures(found)[:2]:
        svg = inline_svg(picture)
        ElementTree.fromstring(svg)
        assert "var(--near)" in svg and "var(--ink)" in svg and "<text" in svg
        ids += re.findall(r'\bid="([^"]+)"', svg)
        assert all(f'id="{target}"' in svg for target in re.findall(r'href="#([^"]+)"', svg))
    assert len(ids) == len(set(ids))


def test_without_a_walk_there_is_still_a_picture(tmp_path):
    empty = comparison(trace(node(0)))
    pictures = comparison_pictures(empty)
    write_pictures(tmp_path / "empty.png", pictures, title="t")
    assert pictures[0].numbers.rows[0] == ("walks", "0", "0")
