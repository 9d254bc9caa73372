"""The assessment as tables for people and as a JSON document, schema `clew.worth/1`."""

from __future__ import annotations

import math
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sim.trace.errors import printable

from ..report.numbers import number
from .assess import Assessment, Restore, Share, percent

__all__ = ["SCHEMA", "print_assessment", "worth_document"]

#: The `schema` of the document.
SCHEMA = "clew.worth/1"


def worth_document(found: Assessment) -> dict[str, Any]:
    """The assessment as plain JSON types; what is under `inputs` was given or cited, all else follows."""
    inputs, model, segments = found.inputs, found.inputs.model, found.segments
    path = found.comparison.far_path.path
    return {
        "schema": SCHEMA,
        "files": [verdicts.file for verdicts in found.comparison.files],
        "memory": found.comparison.config.memory.timing.name,
        "inputs": {
            "model": model.name,
            "kv_bytes_per_token": model.token_bytes,
            "model_source": model.source,
            "ms_per_token": inputs.ms_per_token,
            "prefill_tokens_per_second": inputs.prefill_tokens_per_second,
            "tokens_per_node": inputs.tokens_per_node,
            "watts": inputs.watts,
            "far": {"preset": path.name, "source": path.source},
            "restore_paths": {
                restore.path.name: {
                    "gb_per_s": restore.path.gb_per_s,
                    "latency_ns": restore.path.latency_ns,
                    "source": restore.path.source,
                }
                for restore in found.restores
            },
        },
        "searches": segments.searches,
        "tokens": segments.generated,
        "nodes_with_assumed_tokens": segments.assumed,
        "backtracks_and_jumps": len(segments.kept),
        "generation_seconds": found.generation_seconds,
        "walks": {"near": _share(found.near), "far": _share(found.far)},
        "restores": [_restore(restore) for restore in found.restores],
        "saved_share": found.saved_share,
        "matters": found.matters,
        "sentence": found.sentence,
        "failures": list(found.comparison.failures),
    }


def _share(share: Share) -> dict[str, float | None]:
    return {
        "seconds": share.seconds,
        "share": share.share,
        "joules": share.joules,
        "tokens_per_joule": share.tokens_per_joule,
    }


def _restore(restore: Restore) -> dict[str, Any]:
    return {
        "path": restore.path.name,
        "case": restore.case,
        "microseconds": restore.microseconds.as_dict(),
        "share": restore.share,
        "break_even_tokens": restore.break_even_tokens,
        "reload_wins": restore.reload_wins,
        "saturating_searches": restore.saturating_searches,
    }


def print_assessment(found: Assessment, target: Console) -> None:
    """The tables, the assumptions, the answer in one sentence, and a line for each fault."""
    path, inputs = found.comparison.far_path.path, found.inputs
    for line in (
        f"{found.segments.searches:,} searches, {found.segments.generated:,} tokens, "
        f"{inputs.ms_per_token:g} ms each with {inputs.model.name}: {found.generation_seconds:,.3g} s",
        f"far: {path.name}, {path.published_ns:g} ns a dependent read ({path.source})",
    ):
        target.print(Text(line), soft_wrap=True)
    target.print(_walks(found))
    target.print(_restores(found))
    for line in _assumptions(found):
        target.print(Text(line), soft_wrap=True)
    target.print(Text(found.sentence), soft_wrap=True)
    for failure in found.comparison.failures:
        target.print(Text(printable(failure), style="bold red"), soft_wrap=True)


def _walks(found: Assessment) -> Table:
    inputs = found.inputs
    table = Table(title="walks, measured", title_justify="left")
    for name in ("walks", "near", "far"):
        table.add_column(name, justify="left" if name == "walks" else "right", no_wrap=True)
    both = (found.near, found.far)
    table.add_row("all of them, µs", *(number(share.seconds * 1e6) for share in both))
    table.add_row("share of an inference step", *(percent(share.share) for share in both))
    table.add_row(
        "energy of all of them, µJ",
        *("-" if share.joules is None else number(share.joules * 1e6) for share in both),
    )
    if inputs.watts is not None:
        table.add_row(
            f"tokens a joule at {inputs.watts:g} W",
            *("-" if share.tokens_per_joule is None else f"{share.tokens_per_joule:.6g}" for share in both),
        )
    return table


def _restores(found: Assessment) -> Table:
    count = len(found.segments.kept)
    table = Table(
        title=(
            f"KV that {count:,} backtracks and jumps restore, "
            f"{found.inputs.model.token_bytes:,} bytes a token\n"
            "kept: the last path is still in memory; evicted: nothing is"
        ),
        title_justify="left",
    )
    table.add_column("path", no_wrap=True)
    table.add_column("case", no_wrap=True)
    for name in ("mean µs", "max", "of the step", "break-even", "reload wins", "searches to fill it"):
        table.add_column(name, justify="right")
    for restore in found.restores:
        even, full = restore.break_even_tokens, restore.saturating_searches
        table.add_row(
            restore.path.name if restore.case == "kept" else "",
            restore.case,
            number(restore.microseconds.mean),
            number(restore.microseconds.max),
            percent(restore.share),
            "never" if even is None else _tokens(even),
            f"{restore.reload_wins:,} of {count:,}",
            "-" if full is None else number(full),
        )
    return table


def _tokens(count: float) -> str:
    """The least whole number of tokens from `count` on."""
    whole = max(math.ceil(count), 1)
    return f"{whole:,} token{'' if whole == 1 else 's'}"


def _assumptions(found: Assessment) -> list[str]:
    """What was assumed, one line each."""
    inputs, lines = found.inputs, [f"KV bytes of {found.inputs.model.name}: {found.inputs.model.source}"]
    seen: dict[str, Restore] = {restore.path.name: restore for restore in found.restores}
    lines += [
        f"{name}: {restore.path.gb_per_s:g} GB/s, {restore.path.latency_ns:g} ns; {restore.path.source}"
        for name, restore in seen.items()
    ]
    if found.segments.assumed:
        lines.append(
            f"assumed: {inputs.tokens_per_node:,} tokens for each of {found.segments.assumed:,} nodes "
            "without a count"
        )
    if inputs.prefill_tokens_per_second is None:
        lines.append("recompute: as slow as generation; --prefill-tokens-per-second states a rate")
    else:
        lines.append(f"recompute: {inputs.prefill_tokens_per_second:,g} tokens a second, as stated")
    lines.append("not counted: the prompt, which no trace holds")
    return lines
