"""The page as text: what it shows, what it leaves out, and that no text of a trace becomes markup."""

import json
import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from firmware_py.report.page import searches
from firmware_py.report.page.searches import search_data
from firmware_py.report.page.write import page_text, write_page
from firmware_py.walk_log import walk_log
from hdl.config import named_config
from sim.trace.events import Backtrack, Expand, Prune

from .fake_accelerator import FakeAccelerator
from .test_compare import comparison
from .test_replay import beam, depth_first, node, trace

#: What ends a script, runs code, or breaks an attribute, if it is not escaped.
HOSTILE = "</script ></script><!--<script><img src=x onerror=\"document.title='broken'\">&lt;'\u2028$title"


class _Tags(HTMLParser):
    """Every tag of a page with its attributes, and the text of each script."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.scripts, self._script = [], [], False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self._script = tag == "script"
        if self._script:
            self.scripts.append("")

    def handle_endtag(self, tag):
        self._script = False

    def handle_data(self, data):
        if self._script:
            self.scripts[-1] += data


def hostile():
    """A search of which every text is hostile."""
    found = trace(
        node(0, text=HOSTILE),
        Expand(id=0, untried=1, untried_source="declared"),
        node(1, 0, depth=1, text=HOSTILE),
        Prune(id=1, reason=HOSTILE),
        Backtrack(from_=1, to=0, check="none", reason=HOSTILE),
        name=HOSTILE,
        file=f"{HOSTILE}.jsonl",
    )
    return found


def data_of(text):
    return json.loads(_Tags(text).scripts[0])


def test_text_of_a_trace_is_never_markup():
    text = page_text(comparison(hostile()))
    page = _Tags(text)
    assert [tag for tag, _ in page.tags if tag in ("img", "iframe", "object", "link", "base")] == ["link"]
    assert sum(tag == "script" for tag, _ in page.tags) == 2
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    # A browser ends a script at more than this parser does.
    data = text.split('id="search-data">')[1].split("</script>")[0]
    assert "<" not in data
    (search,) = json.loads(data)
    assert search["name"].startswith("</script ></script>") and len(search["name"]) == 80
    assert search["nodes"]["reason"][1].startswith("</script ></script>")


def test_the_policy_allows_the_page_its_own_script_only():
    page = _Tags(page_text(comparison(depth_first())))
    (policy,) = [attributes["content"] for _, attributes in page.tags if "http-equiv" in attributes]
    assert policy.startswith("default-src 'none'") and "script-src 'sha256-" in policy
    assert "unsafe-inline" not in policy.split("script-src")[1].split(";")[0]


def test_ids_are_unique_and_every_reference_has_its_own():
    page = _Tags(page_text(comparison(depth_first(), beam())))
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in page.tags:
        for name in ("aria-labelledby", "aria-describedby", "for"):
            assert set(attributes.get(name, "").split()) <= set(ids)
        if attributes.get("href", "").startswith("#"):
            assert attributes["href"][1:] in ids


def test_figures_have_a_text_alternative_and_their_numbers():
    text = page_text(comparison(depth_first(), beam()))
    page = _Tags(text)
    pictures = [
        attributes for tag, attributes in page.tags if tag == "svg" and attributes.get("role") == "img"
    ]
    assert len(pictures) == 4 and all(len(attributes["aria-label"]) > 40 for attributes in pictures)
    assert text.count("<summary>Numbers of this figure</summary>") == 4


def test_steps_are_those_of_the_hop_log():
    found = comparison(depth_first("down"), beam())
    (down,) = [search for search in search_data(found).searches if search["name"] == "down"]
    for place, figures in (("near", found.near), ("far", found.far)):
        logged = {walk.number: walk for walk in walk_log(figures.plan, figures.run, found.config.memory)}
        for search in search_data(found).searches:
            for walk in search["walks"]:
                steps, log = walk["places"][place], logged[walk["number"]]
                times = [*steps["times"], steps["decided"]]
                cycles = [*log.requested.tolist(), log.verdict]
                assert [b - a for a, b in pairwise(times)] == pytest.approx(
                    [b - a for a, b in pairwise(cycles)]
                )
                assert (
                    times[0] >= 0 and times[-1] <= steps["total"] == figures.run.walk_cycles[walk["number"]]
                )
                assert None not in steps["nodes"]
    climb = down["walks"][0]["places"]["near"]
    assert [down["nodes"]["id"][place] for place in climb["nodes"]] == [1, 0]


def test_what_a_launch_waits_for_its_context_is_before_the_first_read():
    found = comparison(depth_first())
    (before,) = search_data(found).searches
    for figures in (found.near, found.far):
        figures.run.walk_cycles += 500
    (after,) = search_data(found).searches
    for place in ("near", "far"):
        (one, *_), (other, *_) = (
            [walk["places"][place] for walk in search["walks"]] for search in (before, after)
        )
        assert other["total"] == one["total"] + 500
        assert other["total"] - other["decided"] == pytest.approx(one["total"] - one["decided"], abs=40)


def test_the_verdict_of_a_walk_and_its_badge():
    fake = FakeAccelerator(named_config("simulation"))
    text = page_text(comparison(depth_first(), beam(), fake=fake))
    for words in (
        "derived: declared",
        "look-ahead",
        "unscored",
        "nobody knows",
        "v100_hbm2",
        "gpu-benches",
        "tRCDRD",
    ):
        assert words in text, words
    walks = [walk for search in data_of(text) for walk in search["walks"]]
    assert {walk["source"] for walk in walks if walk["check"] == "climb"} == {"declared", "lookahead"}
    assert all(walk["right"] for walk in walks)


def test_a_wrong_verdict_is_said_first():
    *events, last = depth_first().events
    lying = trace(*events, Backtrack(from_=last.from_, to=0))
    text = page_text(comparison(lying))
    assert 'class="failures" role="alert"' in text and "verdicts are wrong" in text
    assert [walk["right"] for walk in data_of(text)[0]["walks"]] == [True, False]


def test_what_is_left_out_is_counted_and_said(monkeypatch):
    monkeypatch.setattr(searches, "_OTHERS", 1)
    monkeypatch.setattr(searches, "_NODES", 5)
    monkeypatch.setattr(searches, "_WALKS", 1)
    found = comparison(depth_first("a"), depth_first("b"), beam(), depth_first("c"))
    data = search_data(found)
    assert (len(data.searches), data.of, data.walks) == (2, 4, 2)
    longest = data.searches[0]
    assert len(longest["nodes"]["id"]) <= 5
    assert longest["left_out"]["nodes"] == 8 - len(longest["nodes"]["id"])
    text = re.sub(r"\s+", " ", page_text(found))
    assert "Here are 2 of 4 searches, with 2 of " in text and "are left out" in text


def test_searches_end_where_the_page_would_grow_too_long(monkeypatch):
    monkeypatch.setattr(searches, "_BYTES", 10)
    data = search_data(comparison(depth_first("a"), beam()))
    assert (len(data.searches), data.of) == (1, 2)


def test_traces_without_a_walk_have_a_page_too():
    text = page_text(comparison(trace(node(0))))
    assert data_of(text) == [] and "nothing to compare" in text


def test_a_page_that_cannot_be_written_leaves_nothing(tmp_path):
    with pytest.raises(OSError, match="expected its folder to exist"):
        write_page(tmp_path / "no" / "x.html", comparison(depth_first()))
    assert list(tmp_path.iterdir()) == []
