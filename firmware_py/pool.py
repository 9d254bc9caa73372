"""A pool of state blocks in memory: the ring of records that `pool_take` and `pool_give` work on."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .commands import Atoms
from .records import STATE_BLOCK

__all__ = ["chain_blocks", "pool_records"]


def pool_records(*, base: int, count: int, block_bytes: int, place: int = 0) -> Atoms:
    """The records of a pool of `count` free blocks, for the atoms from `base` on, which link to a ring.

    Block n holds `block_bytes` at `place` + n * `block_bytes` of the bulk store. Raises ValueError for an
    empty pool or one that would hold the null record.
    """
    if base < 1 or count < 1:
        raise ValueError(f"pool of {count} blocks at {base:#x}: expected at least 1 block, from atom 1 on")
    records = np.zeros((count, 8), dtype=np.uint32)
    number = np.arange(count, dtype=np.int64)
    records[:, STATE_BLOCK["size"]] = block_bytes
    records[:, STATE_BLOCK["place"]] = place + number * block_bytes
    records[:, STATE_BLOCK["ring"]] = base + (number + 1) % count
    return records


def chain_blocks(records: Atoms, *, base: int, blocks: Iterable[int], owner: int) -> int:
    """Lease the blocks at these addresses to `owner` on the host's side, chained in this order.

    `records` are those of `pool_records`. Returns the chain's first, 0 if there is none. Raises ValueError
    for a block that is leased.
    """
    following = 0
    for block in reversed(list(blocks)):
        record = records[block - base]
        if lessee := record[STATE_BLOCK["owner"]]:
            raise ValueError(f"block {block:#x} is leased to {lessee}: expected a free one")
        record[STATE_BLOCK["owner"]] = owner
        record[STATE_BLOCK["next"]] = following
        following = block
    return following
