"""Completion records: the host's layout against the hardware's declaration."""

from __future__ import annotations

import numpy as np
import pytest
from amaranth.hdl import Const
from hypothesis import given
from hypothesis import strategies as st

from firmware_py.completion import parse
from hdl.layouts import VerdictKind
from hdl.sequencer import Completion


def _bits(width: int) -> st.SearchStrategy[int]:
    return st.integers(0, (1 << width) - 1)


@given(
    tag=_bits(16),
    context=_bits(6),
    kind=_bits(1),
    status=_bits(4),
    far=_bits(1),
    hops=_bits(24),
    code=_bits(8),
    words=st.lists(_bits(32), min_size=6, max_size=6),
)
def test_parse_inverts_the_hardware_layout(
    tag: int, context: int, kind: int, status: int, far: int, hops: int, code: int, words: list[int]
) -> None:
    constant = Completion.const(
        {
            "tag": tag,
            "context": context,
            "kind": VerdictKind(kind),
            "status": status,
            "far": far,
            "hops": hops,
            "code": code,
            "walk_cycles": words[0],
            "walker_cycles": words[1],
            "value": words[2],
            "registers": words[3:],
        }
    )
    packed = Const.cast(constant).value
    atom = np.frombuffer(packed.to_bytes(32, "little"), dtype="<u4").reshape(1, 8)
    record = parse(atom)[0]
    assert (record["tag"], record["context"], record["kind"]) == (tag, context, kind)
    assert (record["status"], record["place"], record["hops"], record["code"]) == (status, far, hops, code)
    assert (record["walk_cycles"], record["walker_cycles"], record["value"]) == tuple(words[:3])
    assert list(record["registers"]) == words[3:]


def test_other_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\(2, 7\): expected \[n, 8\]"):
        parse(np.zeros((2, 7), dtype=np.uint32))
