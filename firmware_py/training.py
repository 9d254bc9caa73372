"""The training run of compiled models: what replays do most, for compilers to learn which branches matter."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from hdl.config import DesignConfig
from sim.compiled import CompiledModel, build_library
from sim.verilator import Training

from . import commands
from .driver import Accelerator
from .programs import default_image
from .records import PARENT
from .transport.inprocess import InProcessTransport

__all__ = ["train", "trained_model"]

#: Nodes that are climbed, at random among so many atoms, and cycles of the link each way.
_NODES, _ATOMS, _LINK = 2_000, 1 << 16, 140
_SEED = 2026
#: Walks one after another, by their reads.
_LONE_READS = (1, 2, 4, 8, 16) * 8


def trained_model(config: DesignConfig, *, announce: Callable[[str], None]) -> CompiledModel:
    """The compiled model of `config` as long runs want it: optimised by `train`, if its memory is enough."""
    if config.memory.atoms < _ATOMS:
        return CompiledModel(config, announce=announce)
    training = Training(run=partial(_train_library, config), source=Path(__file__))
    library = build_library(config, training=training, announce=announce)
    return CompiledModel(config, library=library)


def train(model: CompiledModel) -> None:
    """Climbs near and far, alone and in every context, with writes of their nodes between them."""
    accelerator = Accelerator(InProcessTransport(model))
    program = default_image()
    accelerator.load_program(program.words)
    accelerator.set_link(latency_up=_LINK, latency_down=_LINK)
    chain = 1 + np.random.default_rng(_SEED).permutation(_ATOMS - 1)[:_NODES]
    atoms = np.zeros((_ATOMS, 8), dtype=np.uint32)
    atoms[chain[:-1], PARENT.word] = chain[1:]
    accelerator.load_image(0, atoms)
    contexts = model.config.walker.contexts
    for context in range(contexts):
        accelerator.configure_context(context, base=1, limit=_ATOMS, writable=False)

    def climb(place: int, context: int, reads: int) -> commands.Atoms:
        return commands.walk(
            place=place, entry=program.entries["climb"], context=context, address=int(chain[-reads])
        )

    for place in (0, 1):
        for reads in _LONE_READS:
            node = int(chain[-reads])
            write = commands.write(address=node, data=atoms[node : node + 1])
            accelerator.run_batch(np.concatenate([write, commands.fence(), climb(place, 0, reads)]))
        accelerator.run_batch(
            np.concatenate([climb(place, context, _NODES // contexts) for context in range(contexts)])
        )


def _train_library(config: DesignConfig, library: Path) -> None:
    with CompiledModel(config, library=library) as model:
        train(model)
