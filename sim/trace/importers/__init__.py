"""Importers for files that people already have. A new one is one file and one line here."""

from __future__ import annotations

from . import (
    edge_list,
    got,
    mcts_llm,
    native,
    omegaprm_tree,
    sos,
    sos_llm,
    toolbench,
    tot_crosswords,
    tot_game24,
    tot_text,
    tree_json,
)
from .registry import ImportedTraces, Importer, ImportSummary, detect, import_file, importers, register

__all__ = [
    "ImportSummary",
    "ImportedTraces",
    "Importer",
    "detect",
    "import_file",
    "importers",
    "register",
]

# Asked in this order; each looks for keys that no other kind has.
register(native.IMPORTER)
register(tot_game24.IMPORTER)
register(tot_text.IMPORTER)
register(tot_crosswords.IMPORTER)
register(sos.IMPORTER)
register(sos_llm.IMPORTER)
register(toolbench.IMPORTER)
register(got.IMPORTER)
register(mcts_llm.IMPORTER)
register(omegaprm_tree.IMPORTER)
register(tree_json.IMPORTER)
register(edge_list.IMPORTER)
