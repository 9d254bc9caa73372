"""Twenty thousand hostile walks beside known ones in the whole design, and checks that can fail."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from hdl.config import named_config
from hdl.layouts import WalkStatus
from hdl.walker.isa import AKind, BKind, Instruction
from sim.compiled import CompiledModel

from .hostile import Hostile, golden_word

_SEED = int(os.environ.get("CLEW_SEED") or 20261130)
_WALKS = 20_000


@pytest.fixture(scope="module")
def model() -> Iterator[CompiledModel]:
    with CompiledModel(named_config("simulation")) as model:
        yield model


def test_hostile_walks_keep_to_their_windows_permissions_and_budgets(model: CompiledModel) -> None:
    print(f"seed {_SEED} (repeat with CLEW_SEED={_SEED})")
    hostile = Hostile(model)
    hostile.run(_SEED, _WALKS)
    print(hostile)
    assert hostile.walks >= _WALKS
    # They were harmless if they did not come to these. (A memory without ECC or a bus spoils none.)
    assert set(hostile.statuses) == set(WalkStatus) - {WalkStatus.POISONED, WalkStatus.BUS_ERROR}
    assert min(hostile.statuses.values()) > _WALKS // 50
    assert min(hostile.reads, hostile.stores, hostile.yields) > _WALKS // 4


def test_the_same_seed_takes_the_same_cycles(model: CompiledModel) -> None:
    seen = []
    for _ in range(2):
        hostile = Hostile(model)
        hostile.run(_SEED, 400)
        seen.append(str(hostile))
    assert seen[0] == seen[1]


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ({"base": -1}, "a request outside the window"),
        ({"limit": 1}, "a request outside the window"),
        ({"writable": 1}, "without permission"),
        ({"budget": 1}, r"over its budget|BUDGET_SPENT|yield|has read|memory is not"),
    ],
    ids=["base", "limit", "write permission", "budget"],
)
def test_a_context_that_may_do_more_is_found(
    model: CompiledModel, broken: dict[str, int], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: the hardware is told something else than the checks are."""
    hostile = Hostile(model)
    configure = hostile.accelerator.configure_context

    def wrongly(context: int, **window: Any) -> None:
        for name, more in broken.items():
            window[name] = max(0, int(window[name]) + more) if name != "writable" else True
        configure(context, **window)

    monkeypatch.setattr(hostile.accelerator, "configure_context", wrongly)
    with pytest.raises(AssertionError, match=rf"batch of seed \d+.*({reason})"):
        hostile.run(_SEED, 4000)


def test_any_word_means_what_the_datapath_documents() -> None:
    word = Instruction(a_kind=AKind.REGISTER, b_kind=BKind.REGISTER).encode()
    assert golden_word(word) == Instruction.decode(word)
    undefined = golden_word(word | 3 << 35 | 3 << 51 | 7 << 125)
    assert undefined == Instruction(a_kind=AKind.ADDRESS, b_kind=BKind.WORD)
