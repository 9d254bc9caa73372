"""The command line's part on what near memory is worth to a whole inference: `clew worth`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from .errors import InputError

__all__ = ["worth"]


def worth(
    files: Annotated[list[Path], typer.Argument(help="Trace files of any known kind.")],
    model: Annotated[str, typer.Option(help="A model of data/models.csv: the size of its KV cache.")],
    ms_per_token: Annotated[float, typer.Option(help="Milliseconds that a generated token takes.")],
    prefill_tokens_per_second: Annotated[
        float | None, typer.Option(help="Rate of recomputing lost tokens; else that of generation.")
    ] = None,
    tokens_per_node: Annotated[
        int | None, typer.Option(help="Tokens to assume for a node whose trace has no count.")
    ] = None,
    watts: Annotated[
        float | None, typer.Option(help="Power of the machine while it generates: for tokens a joule.")
    ] = None,
    memory: Annotated[str, typer.Option(help="Memory preset: a name, or a file FILE.toml.")] = "hbm2_2000",
    far: Annotated[
        str, typer.Option(help="Far path: a published latency of data/off_chip_paths.csv.")
    ] = "v100_hbm2",
    json: Annotated[Path | None, typer.Option("--json", help="Write the assessment here, as JSON.")] = None,
) -> None:
    """Say whether near memory matters to a whole inference. Exit status 1: a verdict was wrong."""
    from .compare import compare, read_files
    from .design import design_for
    from .image import CreationOrder
    from .machine import compiled_machine
    from .place import Place
    from .programs import replay_image
    from .progress import Reporter
    from .report.document import require_output, write_document
    from .report.table import console
    from .worth.assess import Inputs, assess
    from .worth.page import print_assessment, worth_document
    from .worth.segments import segments
    from .worth.tables import model_named, restore_paths

    _require_positive("--ms-per-token", ms_per_token)
    _require_positive("--prefill-tokens-per-second", prefill_tokens_per_second)
    _require_positive("--tokens-per-node", tokens_per_node)
    _require_positive("--watts", watts)
    inputs = Inputs(
        model=model_named(model),
        ms_per_token=ms_per_token,
        prefill_tokens_per_second=prefill_tokens_per_second,
        tokens_per_node=tokens_per_node,
        watts=watts,
    )
    config = design_for(memory)
    Place.near("memory", far, config)
    if json is not None:
        require_output(json, inputs=files)
    traces = read_files(files)
    found = segments([trace for file in traces for trace in file.traces], tokens_per_node=tokens_per_node)
    with Reporter() as reporter:
        comparison = compare(
            traces,
            config=config,
            far=far,
            concurrent=1,
            program=replay_image("climb"),
            layout=CreationOrder(),
            open_machine=compiled_machine,
            announce=reporter.announce,
            progress=reporter.advance,
        )
    assessment = assess(comparison, found, inputs, list(restore_paths().values()))
    if json is not None:
        write_document(json, worth_document(assessment))
    print_assessment(assessment, console())
    if comparison.failures:
        raise typer.Exit(1)


def _require_positive(option: str, value: float | None) -> None:
    if value is not None and not 0 < value < math.inf:
        raise InputError(f"{option} is {value:g}: expected a positive number")
