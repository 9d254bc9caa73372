"""A Sphinx extension: pages that the code writes itself, so that they cannot drift from it.

The directive `clew-commands` gives every command of `clew` with its options, `clew-importers` every kind of
file that can be read, `clew-ports` the ports of the Verilog, `clew-serial-protocol` the bytes on a serial
line.
"""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

__all__ = [
    "Commands",
    "Importers",
    "Ports",
    "SerialProtocol",
    "commands_as_markdown",
    "importers_as_markdown",
    "setup",
]


def commands_as_markdown() -> str:
    """Every command with its arguments, options and defaults, from the application itself."""
    import typer
    from typer.cli import get_docs_for_click

    from firmware_py.app import app

    command = typer.main.get_command(app)
    return get_docs_for_click(
        obj=command, ctx=typer.Context(command, info_name="clew"), indent=1, name="clew"
    )


def importers_as_markdown() -> str:
    """A table of every kind of trace file, with what such files do not record."""
    from sim.trace.importers import importers

    rows = [
        f"| `{importer.name}` | {_cell(importer.description)} | {_cell('; '.join(importer.lacks))} |"
        for importer in importers()
    ]
    return "\n".join(["| kind | what | not recorded |", "| --- | --- | --- |", *rows])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


class Commands(SphinxDirective):
    """`clew-commands`, without arguments."""

    def run(self) -> list[nodes.Node]:
        """The parsed page, with a section for each command."""
        return self.parse_text_to_nodes(commands_as_markdown(), allow_section_headings=True)


class Importers(SphinxDirective):
    """`clew-importers`, without arguments."""

    def run(self) -> list[nodes.Node]:
        """The parsed table."""
        return self.parse_text_to_nodes(importers_as_markdown())


class Ports(SphinxDirective):
    """`clew-ports`, without arguments."""

    def run(self) -> list[nodes.Node]:
        """The parsed table, of the configuration `default`."""
        from hdl.config import named_config
        from hdl.port_table import markdown
        from hdl.top import Clew

        return self.parse_text_to_nodes(markdown(Clew(named_config("default"))))


class SerialProtocol(SphinxDirective):
    """`clew-serial-protocol`, without arguments."""

    def run(self) -> list[nodes.Node]:
        """What the module that RTL and driver share says of itself."""
        from hdl.fabric import serial_protocol

        return self.parse_text_to_nodes(serial_protocol.__doc__ or "")


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_directive("clew-commands", Commands)
    app.add_directive("clew-importers", Importers)
    app.add_directive("clew-ports", Ports)
    app.add_directive("clew-serial-protocol", SerialProtocol)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
