"""Two tenants in the whole design: what the deepest walks of one cost the other, and what they would."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from firmware_py.bench.walker.isolation import DEEDS, Tenants
from hdl.config import named_config
from hdl.layouts import RefreshMode
from sim.compiled import CompiledModel

#: Every context but the one of the first tenant.
_OTHERS = named_config("simulation").walker.contexts - 1


@pytest.fixture(scope="module")
def tenants() -> Iterator[Tenants]:
    with CompiledModel(named_config("simulation")) as model:
        yield Tenants(model)


@pytest.mark.parametrize("deed", ["reads", "one_bank", "stores", "conditional_stores", "jumps"])
def test_p99_is_raised_to_at_most_twice(tenants: Tenants, deed: str) -> None:
    for walk in ("climb", "select_k"):
        alone = tenants.p99(walk, deed, 0, RefreshMode.ALL_BANK)
        assert tenants.p99(walk, deed, _OTHERS, RefreshMode.ALL_BANK) <= 2 * alone


@pytest.mark.parametrize(("walk", "deed"), [("climb", "reads"), ("climb", "one_bank"), ("select_k", "jumps")])
def test_contexts_of_one_tenant_are_not_kept_apart(tenants: Tenants, walk: str, deed: str) -> None:
    """The negative control: it is the two tenants that the walker tells apart."""
    assert deed in DEEDS
    alone = tenants.p99(walk, deed, 0, RefreshMode.NONE)
    assert tenants.p99(walk, deed, _OTHERS, RefreshMode.NONE, tenant=0) > 2 * alone
