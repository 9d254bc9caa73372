"""Bytes that a replay sent over the link, by the sizes of its messages (`hdl/fabric/message.py`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hdl.fabric.message import (
    CONDITIONAL_WRITE_BYTES,
    LAUNCH_BYTES,
    READ_REQUEST_BYTES,
    READ_RESPONSE_BYTES,
    VERDICT_BYTES,
    WRITE_REQUEST_BYTES,
    WRITE_RESPONSE_BYTES,
)
from hdl.layouts import Source

from .ledger import Log

__all__ = ["LinkBytes", "link_bytes"]

#: Bytes of a request by the `write` of the port log: a read, a write, a conditional write.
_REQUEST = np.array([READ_REQUEST_BYTES, WRITE_REQUEST_BYTES, CONDITIONAL_WRITE_BYTES])
_RESPONSE = np.array([READ_RESPONSE_BYTES, WRITE_RESPONSE_BYTES])


@dataclass(frozen=True, kw_only=True)
class LinkBytes:
    """Bytes over the link: of walks and of everything else, up to the memory side and down from it."""

    walk_up: int
    """Launches of near walks; requests of far ones."""
    walk_down: int
    """Verdicts and yielded results of near walks; responses to far ones."""
    bulk_up: int
    """The host's writes, and the requests of copies."""
    bulk_down: int
    """What was copied, and the answers to writes."""

    @property
    def walks(self) -> int:
        """Both ways."""
        return self.walk_up + self.walk_down

    @property
    def total(self) -> int:
        """Everything."""
        return self.walks + self.bulk_up + self.bulk_down


def link_bytes(ports: Log, *, launches: int, verdicts: int) -> LinkBytes:
    """The bytes of the messages that a port log shows, and of `launches` and `verdicts` that crossed besides.

    The near walkers' accesses do not cross the link; what a cache answers is not in the log.
    """
    far = ports["source"] == Source.FAR_WALKER.value
    bulk = ~far & (ports["source"] != Source.NEAR_WALKER.value)

    def sent(kept: np.ndarray, response: int, sizes: np.ndarray) -> int:
        return int(sizes[ports["write"][kept & (ports["response"] == response)]].sum())

    return LinkBytes(
        walk_up=sent(far, 0, _REQUEST) + launches * LAUNCH_BYTES,
        walk_down=sent(far, 1, _RESPONSE) + verdicts * VERDICT_BYTES,
        bulk_up=sent(bulk, 0, _REQUEST),
        bulk_down=sent(bulk, 1, _RESPONSE),
    )
