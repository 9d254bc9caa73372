"""The page of a comparison: one HTML file that needs nothing else, on a screen, a phone, or paper."""

from __future__ import annotations

import base64
import hashlib
import json
from html import escape
from importlib import resources
from pathlib import Path
from string import Template

from ...compare import Comparison
from ..document import write_text
from ..figures.comparison import comparison_pictures
from . import sections
from .searches import SearchData, search_data
from .sources import sources
from .verdicts import verdicts

__all__ = ["page_text", "write_page"]


def write_page(path: Path, comparison: Comparison) -> None:
    """Write the page so that it appears whole or not at all. Raises OSError naming `path`."""
    write_text(path, page_text(comparison))


def page_text(comparison: Comparison) -> str:
    """The page. It loads nothing: its own policy forbids requests, and every script but its own."""
    shown = search_data(comparison)
    script = f'"use strict";\n{_file("tree.js")}\n{_file("replay.js")}'
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    memory, far = comparison.config.memory.timing.name, comparison.far_path.path.name
    return Template(_file("page.html")).substitute(
        title=escape(f"Clew: near and far, {memory}, {far}"),
        script_hash=f"sha256-{digest}",
        style=_file("page.css"),
        heading=sections.heading(comparison),
        setting=sections.setting(comparison),
        failures=sections.failures(comparison),
        headline=sections.headline(comparison),
        pictures="".join(map(sections.picture, comparison_pictures(comparison))),
        replay=Template(_file("replay.html")).substitute(shown=escape(_shown(shown))),
        verdicts=verdicts(comparison),
        numbers=sections.numbers(comparison),
        sources=sources(comparison),
        data=_inside_script(shown),
        script=script,
    )


def _file(name: str) -> str:
    return resources.files("firmware_py.report.page").joinpath(name).read_text(encoding="utf-8")


def _shown(data: SearchData) -> str:
    """What of the comparison the trees show, and what is left out."""
    if not data.searches:
        return "No search of these traces asks for a walk."
    lines = [
        f"Here are {len(data.searches):,} of {data.of:,} searches, with {data.walks:,} of {data.walks_of:,} "
        "walks: the search of the walk with the most reads, the first one of each file, and then the next."
    ]
    for search in data.searches:
        left = [f"{count:,} {what}" for what, count in search["left_out"].items() if count]
        if left:
            lines.append(f"Of search {search['name']!r}, {' and '.join(left)} are left out.")
    return " ".join(lines)


def _inside_script(data: SearchData) -> str:
    """JSON that no text in it can end early: `<`, `>` and `&` are written as escapes."""
    text = json.dumps(data.searches, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
