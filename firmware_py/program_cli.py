"""The commands of `clew` about walk programs: text to words and back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .errors import InputError
from .text_file import read_text_file

__all__ = ["assemble", "disassemble"]

Out = Annotated[Path | None, typer.Option("-o", "--out", help="File; else standard output.")]


def assemble(
    file: Annotated[Path, typer.Argument(help="A program as `clew disassemble` writes it.")], out: Out = None
) -> None:
    """Write the 128-bit words of a walk program, one a line."""
    from .assembly_text import AssemblyTextError, read_text

    try:
        instructions = read_text(read_text_file(file), name=str(file))
    except AssemblyTextError as error:
        raise InputError(str(error)) from None
    _put("".join(f"{instruction.encode():032x}\n" for instruction in instructions), out)


def disassemble(
    file: Annotated[
        Path | None, typer.Argument(help="128-bit words, one a line, in hexadecimal.", show_default=False)
    ] = None,
    program: Annotated[str | None, typer.Option(help="A walk program of the project instead.")] = None,
    out: Out = None,
) -> None:
    """Write a walk program as text, which `clew assemble` makes the same words of."""
    from .assembly_text import AssemblyTextError, read_words
    from .disassembly import write_text
    from .programs import decision_image, default_image, pool_image

    if (file is None) == (program is None):
        raise InputError("disassemble: expected either a file of words or --program")
    if program is None:
        assert file is not None
        try:
            _put(write_text(read_words(read_text_file(file), name=str(file))), out)
        except AssemblyTextError as error:
            raise InputError(str(error)) from None
        return
    images = {
        name: image for image in (pool_image(), decision_image(), default_image()) for name in image.hop_costs
    }
    if program not in images:
        raise InputError(f"unknown program {program!r}: expected one of {', '.join(sorted(images))}")
    _put(write_text(*images[program].program(program)), out)


def _put(text: str, out: Path | None) -> None:
    from .report.document import write_text

    if out is None:
        typer.echo(text, nl=False)
    else:
        write_text(out, text)
