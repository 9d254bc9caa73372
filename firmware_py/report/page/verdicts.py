"""The verdicts of a comparison as a section of the page, with what each kind rests on."""

from __future__ import annotations

from html import escape

from ...compare import Comparison
from ..document import by_check, by_source, unchecked
from ..figures.picture import Numbers
from .tables import card

__all__ = ["verdicts"]

#: What each badge of a verdict says of the search.
_BADGES = {
    "declared": (
        "derived",
        "derived: declared",
        "The search itself said how many children were left to try.",
    ),
    "recomputed": (
        "derived",
        "derived: recomputed",
        "The search's own rule, applied again, gives the count.",
    ),
    "lookahead": (
        "lookahead",
        "look-ahead",
        "Children that the trace records later were counted: a right climb tests the hardware, not the "
        "search.",
    ),
}


def verdicts(comparison: Comparison) -> str:
    """Verdicts by kind and by what they rest on, what nothing checks, the negative controls, the files."""
    files = comparison.files
    kinds = Numbers(
        header=("kind", "checked", "wrong"),
        rows=[(check, f"{tally.checked:,}", f"{tally.wrong:,}") for check, tally in by_check(files).items()],
    )
    parts = [card("Verdicts by kind of walk", kinds)]
    sources_found = by_source(files)
    if sources_found:
        rows = "".join(
            f'<tr><td><span class="badge {_BADGES[source][0]}">{_BADGES[source][1]}</span></td>'
            f'<td class="number">{tally.checked:,}</td><td class="number">{tally.wrong:,}</td>'
            f'<td class="quoted">{_BADGES[source][2]}</td></tr>'
            for source, tally in sources_found.items()
        )
        parts.append(
            "<h3>What the counts that decide a climb rest on</h3>"
            '<div class="card"><div class="wide" tabindex="0" role="group" aria-label="Climbs by source">'
            "<table>"
            '<thead><tr><th scope="col">badge</th><th scope="col" class="number">checked</th>'
            '<th scope="col" class="number">wrong</th><th scope="col">meaning</th></tr></thead>'
            f"<tbody>{rows}</tbody></table></div></div>"
        )
    reasons = unchecked(files)
    if reasons:
        rows_of = [(reason, f"{count:,}") for reason, count in reasons.most_common()]
        parts.append(
            card(
                "Events that nothing in the trace can check",
                Numbers(header=("reason", "events"), rows=rows_of),
            )
        )
    controlled = ", ".join(control.check for control in comparison.controls)
    parts.append(
        f"<p>Negative control: a flipped bit was found out for {escape(controlled)}, near and far.</p>"
        if controlled
        else "<p>Negative control: no field of these traces decides a verdict.</p>"
    )
    parts.append(
        card(
            "By file",
            Numbers(
                header=("file", "format", "searches", "nodes", "walks", "checked", "wrong"),
                rows=[
                    (
                        file.file,
                        file.format,
                        f"{file.problems:,}",
                        f"{file.nodes:,}",
                        f"{file.walks:,}",
                        f"{file.verdicts.checked:,}",
                        f"{file.verdicts.wrong:,}",
                    )
                    for file in files
                ],
            ),
        )
    )
    return "".join(parts)
