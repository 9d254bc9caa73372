"""What the tests of whole designs share: how these are compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from hdl.config import DesignConfig
from sim.compiled import CompiledModel


def _untrained_model(config: DesignConfig, *, announce: Callable[[str], None]) -> CompiledModel:
    return CompiledModel(config, announce=announce)


@pytest.fixture(autouse=True, scope="session")
def untrained_models() -> Iterator[None]:
    """No training run when a comparison compiles a design in this process.

    It costs more than it saves in a test, and makes a second build of designs that are used otherwise too;
    `test_compare.py` shows that both builds take the same cycles.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("firmware_py.training.trained_model", _untrained_model)
        yield
