"""Importers for files that people already have. A new one is one file and one line here."""

from __future__ import annotations

from . import (
    azure_llm,
    edge_list,
    got,
    marco_o1,
    math_shepherd,
    mcts_llm,
    mooncake,
    native,
    omegaprm_tree,
    prm800k,
    processbench,
    qwq,
    sos,
    sos_llm,
    toolbench,
    tot_crosswords,
    tot_game24,
    tot_text,
    tree_json,
    vllm_kv_events,
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
register(prm800k.IMPORTER)
register(math_shepherd.IMPORTER)
register(processbench.IMPORTER)
register(qwq.IMPORTER)
register(marco_o1.IMPORTER)
register(mooncake.IMPORTER)
register(azure_llm.IMPORTER)
register(vllm_kv_events.IMPORTER)
