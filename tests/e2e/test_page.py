"""The page of a comparison in a real browser: replay by mouse and keys, phone, dark, paper, hostile text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from firmware_py.report.page.write import write_page
from tests.chromium import Watched, chromium
from tests.firmware_py.fake_accelerator import CROSSING_CYCLES, HOP_CYCLES
from tests.firmware_py.test_compare import comparison
from tests.firmware_py.test_page import HOSTILE, hostile
from tests.firmware_py.test_replay import beam, depth_first

#: ns of a walk of two reads in each place; the fake accelerator's cycle is one.
TOTAL = {place: 2 * hop + 2 * CROSSING_CYCLES for place, hop in zip(("near", "far"), HOP_CYCLES, strict=True)}
#: WCAG 2.2 AA, success criterion 1.4.3: contrast of text to what is behind it.
CONTRAST = 4.5

_CONTRAST_SCRIPT = """() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const luminance = ([r, g, b]) => {
    const part = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const low = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || element.closest("script, .future, :disabled") || !element.getClientRects().length) continue;
    const style = getComputedStyle(element);
    const text = parse(element.namespaceURI.endsWith("svg") ? style.fill : style.color);
    const [light, dark] = [luminance(text), luminance(behind(element))].sort((a, b) => b - a);
    const contrast = (light + 0.05) / (dark + 0.05);
    if (contrast < LIMIT) low.push([element.tagName, element.textContent.slice(0, 30), contrast]);
  }
  return low;
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "page.html"
    write_page(path, comparison(depth_first("first"), beam(), depth_first("last")))
    return path


def _lane(page: Any, place: str) -> dict[str, str]:
    return page.evaluate(f"() => ({{...document.getElementById('lane-{place}').dataset}})")


def _clock(page: Any) -> float:
    return float(page.locator("#clock").get_attribute("data-ns"))


def _choose_climb(page: Any) -> None:
    """The first walk of the first depth-first search: two reads."""
    page.select_option("#search", index=[*_names(page, "#search")].index(_climbs(page)))
    page.select_option("#walk", "0")


def _names(page: Any, select: str) -> list[str]:
    return page.locator(f"{select} option").all_text_contents()


def _climbs(page: Any) -> str:
    return next(name for name in _names(page, "#search") if name.startswith("first"))


def test_near_is_over_before_far_at_the_true_ratio(browser: Any, page_file: Path) -> None:
    with Watched(browser, page_file) as watched:
        page = watched.page
        _choose_climb(page)
        speed = float(page.locator("#speed").input_value())
        page.click("#play")
        over: dict[str, float] = {}
        for _ in range(400):
            page.clock.run_for(48)
            for place in ("near", "far"):
                if _lane(page, place)["done"] == "true":
                    over.setdefault(place, _clock(page))
            if len(over) == 2:
                break
        frame = 0.08 * speed
        assert over["near"] == pytest.approx(TOTAL["near"], abs=frame)
        assert over["far"] == pytest.approx(TOTAL["far"], abs=frame)
        assert page.locator("#play").get_attribute("aria-pressed") == "false"
        assert f"verdict after {TOTAL['near']} ns" in page.locator("#lane-near .state").inner_text()
        assert f"near: verdict after {TOTAL['near']} ns" in page.locator("#status").inner_text()


def test_the_keyboard_does_what_the_buttons_do(browser: Any, page_file: Path) -> None:
    with Watched(browser, page_file) as watched:
        page = watched.page
        _choose_climb(page)
        moments = []
        page.click("#restart")
        for _ in range(3):
            page.click("#forward")
            moments.append(_clock(page))
        page.click("#back")
        assert _clock(page) == moments[1]
        page.focus("#replay")
        page.keyboard.press("Home")
        assert _clock(page) == 0 and _lane(page, "near")["reads"] == "0"
        for moment in moments:
            page.keyboard.press("ArrowRight")
            assert _clock(page) == moment
        page.keyboard.press("ArrowLeft")
        assert _clock(page) == moments[1]
        page.keyboard.press("End")
        assert _lane(page, "far")["done"] == "true" and _clock(page) == TOTAL["far"]
        page.keyboard.press("Space")
        assert page.locator("#play").get_attribute("aria-pressed") == "true"
        page.keyboard.press("Space")
        assert page.locator("#play").get_attribute("aria-pressed") == "false"
        # On a button, space is the button's own.
        page.focus("#forward")
        page.keyboard.press("Home")
        page.keyboard.press("Space")
        assert _clock(page) == moments[0] and page.locator("#play").get_attribute("aria-pressed") == "false"


def test_every_control_is_reached_by_tab_in_the_order_of_sight(browser: Any, page_file: Path) -> None:
    with Watched(browser, page_file) as watched:
        page = watched.page
        page.select_option("#walk", "1")
        wanted = [
            "search", "walk", "previous-walk", "next-walk", "restart", "back", "play", "forward", "speed",
            "tree-near", "tree-far",
        ]  # fmt: skip
        page.focus("#replay")
        reached = []
        while len(reached) < len(wanted):
            page.keyboard.press("Tab")
            reached.append(page.evaluate("document.activeElement.id"))
            outline = page.evaluate(
                "(({outlineStyle, outlineWidth}) => [outlineStyle, parseFloat(outlineWidth)])"
                "(getComputedStyle(document.activeElement))"
            )
            assert outline[0] != "none" and outline[1] >= 2
        assert reached == wanted
        assert all(page.locator("button").nth(at).inner_text().strip() for at in range(6))


def test_the_tree_shows_the_search_as_it_was(browser: Any, page_file: Path) -> None:
    with Watched(browser, page_file) as watched:
        page = watched.page
        _choose_climb(page)
        states = page.evaluate(
            "[...document.querySelectorAll('#tree-near .node')].map((node) => [...node.classList].slice(1))"
        )
        # The root has a child left to try, its first child has none, the leaf is dead, the last is to come.
        assert states == [["open"], [], ["dead"], ["future"]]
        page.focus("#replay")
        page.keyboard.press("End")
        read = page.evaluate(
            "[...document.querySelectorAll('#tree-near .visited title')].map((t) => t.textContent)"
        )
        assert [text.split(":")[0] for text in read] == ["node 0", "node 1"]
        assert page.locator("#question .badge").all_text_contents() == ["✓ right", "derived: declared"]


def test_less_motion_moves_from_read_to_read(browser: Any, page_file: Path) -> None:
    with Watched(browser, page_file, reduced_motion="reduce") as watched:
        page = watched.page
        _choose_climb(page)
        seen: set[float] = set()
        page.click("#play")
        for _ in range(100):
            page.clock.run_for(200)
            seen.add(_clock(page))
            if _lane(page, "far")["done"] == "true":
                break
        data = json.loads(page.locator("#search-data").text_content())
        walk = next(search for search in data if search["name"] == "first")["walks"][0]
        moments = {0.0} | {
            time for place in walk["places"].values() for time in (*place["times"], place["total"])
        }
        assert seen <= moments and len(seen) > 3


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1280])
def test_it_is_readable_in_any_light_and_fits_a_phone(
    browser: Any, page_file: Path, scheme: str, width: int
) -> None:
    context = {"viewport": {"width": width, "height": 700}, "color_scheme": scheme}
    with Watched(browser, page_file, **context) as watched:
        page = watched.page
        page.evaluate("document.querySelectorAll('details').forEach((details) => (details.open = true))")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        paper = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        assert (sum(map(int, paper[4:-1].split(","))) < 200) == (scheme == "dark")
        assert page.evaluate(_CONTRAST_SCRIPT.replace("LIMIT", str(CONTRAST))) == []


def test_on_paper_every_table_is_open_and_no_control_is_left(browser: Any, page_file: Path) -> None:
    with Watched(browser, page_file) as watched:
        page = watched.page
        page.emulate_media(media="print")
        assert not page.locator("#play").is_visible() and not page.locator("nav").is_visible()
        assert page.locator("#figure-latency svg").is_visible()
        page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        assert page.locator("details:not([open])").count() == 0
        page.evaluate("window.dispatchEvent(new Event('afterprint'))")
        assert page.locator("details[open]").count() == 0
        assert page.pdf().startswith(b"%PDF")


def test_hostile_text_stays_text(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "hostile.html"
    write_page(path, comparison(hostile()))
    with Watched(browser, path) as watched:
        page = watched.page
        page.clock.run_for(500)
        assert page.locator("img").count() == 0 and page.title().startswith("Clew")
        shown = " ".join(HOSTILE.split())
        assert shown[:20] in page.locator("#tree-near .node title").first.text_content()
        assert "</script>" in page.locator("#search option").first.text_content()
        assert "</script>" in page.locator("#question").inner_text()
