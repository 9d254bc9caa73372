"""Requests, responses and the scoreboard of a memory port, for any testbench that drives one."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from amaranth.hdl import Shape
from amaranth.lib import data

from hdl.layouts import ATOM_BYTES, ATOM_WIDTH, MemoryRequest, MemoryResponse, MemoryStatus, Source

__all__ = ["Request", "Response", "Scoreboard", "TrafficShape", "random_request", "tag_of"]

#: Sources that a testbench may use: CONTROLLER is the controller's own.
SOURCES = tuple(source for source in Source if source is not Source.CONTROLLER)


def _offsets(layout: type[data.Struct], prefix: str = "") -> dict[str, tuple[int, int]]:
    """(low bit, width) of every field of a packed struct; nested fields as `outer.inner`."""
    found: dict[str, tuple[int, int]] = {}
    for name, member in data.Layout.cast(layout):
        found[f"{prefix}{name}"] = (member.offset, Shape.cast(member.shape).width)
    return found


_REQUEST = _offsets(MemoryRequest)
_RESPONSE = _offsets(MemoryResponse)


def tag_of(source: Source, context: int) -> int:
    """A packed `Tag`."""
    return source.value | context << 3


@dataclass(frozen=True, kw_only=True)
class Request:
    """One `MemoryRequest`; `tag` is packed, `data` and `mask` count for writes."""

    address: int
    tag: int
    write: bool = False
    conditional: bool = False
    expected: int = 0
    data: int = 0
    mask: int = (1 << ATOM_BYTES) - 1
    priority: bool = False

    def pack(self) -> int:
        """The request as the bits of its struct."""
        return sum(int(getattr(self, name)) << low for name, (low, _) in _REQUEST.items())


@dataclass(frozen=True, kw_only=True)
class Response:
    """One `MemoryResponse`; `tag` is packed."""

    tag: int
    write: bool
    data: int
    status: MemoryStatus

    @classmethod
    def unpack(cls, bits: int) -> Response:
        """The response in the bits of its struct."""
        fields = {name: bits >> low & (1 << width) - 1 for name, (low, width) in _RESPONSE.items()}
        return cls(
            tag=fields["tag"],
            write=bool(fields["write"]),
            data=fields["data"],
            status=MemoryStatus(fields["status"]),
        )


@dataclass(kw_only=True)
class _Expected:
    request: Request
    status: MemoryStatus
    data: int | None
    cycle: int


@dataclass(kw_only=True)
class Scoreboard:
    """What a memory port must answer: requests take effect in the order in which they are accepted.

    That order is observable only for one atom; the memory keeps it there whatever it reorders elsewhere.
    """

    atoms: int
    memory: dict[int, int] = field(default_factory=dict)
    failing: Callable[[int], bool] = lambda address: False
    """Addresses that a bus behind the port answers with an error."""
    latencies: list[tuple[Request, int]] = field(default_factory=list)
    """Every answered request with the cycles from its acceptance to its response."""
    statuses: Counter[MemoryStatus] = field(default_factory=Counter)
    """Of the answers."""
    _waiting: dict[int, _Expected] = field(default_factory=dict)

    @property
    def outstanding(self) -> int:
        """Requests accepted and not answered."""
        return len(self._waiting)

    def uses(self, tag: int) -> bool:
        """A request with this tag is not answered yet."""
        return tag in self._waiting

    def accept(self, request: Request, cycle: int) -> None:
        """The port accepted `request` in `cycle`."""
        assert request.tag not in self._waiting, f"tag {request.tag:#x} is in use"
        status, data = MemoryStatus.OK, None
        old = self.memory.get(request.address, 0)
        bits = sum(0xFF << 8 * byte for byte in range(ATOM_BYTES) if request.mask >> byte & 1)
        if request.address >= self.atoms:
            status = MemoryStatus.OUT_OF_RANGE
        elif self.failing(request.address):
            status = MemoryStatus.BUS_ERROR
        elif not request.write:
            data = old
        elif request.conditional and (old & bits) != (_spread(request.expected) & bits):
            status = MemoryStatus.MISMATCH
        else:
            self.memory[request.address] = old & ~bits | request.data & bits
        self._waiting[request.tag] = _Expected(request=request, status=status, data=data, cycle=cycle)

    def respond(self, response: Response, cycle: int) -> int:
        """The port answered in `cycle`; the latency of that request. AssertionError if it is wrong."""
        waiting = self._waiting.pop(response.tag, None)
        assert waiting is not None, f"cycle {cycle}: response to nothing: {response}"
        request = waiting.request
        assert response.write == request.write, f"cycle {cycle}: {response} answers {request}"
        assert response.status == waiting.status, f"cycle {cycle}: {response}, expected {waiting}"
        if waiting.data is not None:
            assert response.data == waiting.data, (
                f"cycle {cycle}: atom {request.address:#x} read as {response.data:#x}, "
                f"expected {waiting.data:#x}"
            )
        self.latencies.append((request, cycle - waiting.cycle))
        self.statuses[response.status] += 1
        return cycle - waiting.cycle


def _spread(word: int) -> int:
    return sum(word << low for low in range(0, ATOM_WIDTH, 32))


@dataclass(frozen=True, kw_only=True)
class TrafficShape:
    """Shares of what random traffic does; every share is a probability."""

    write: float = 0.3
    conditional: float = 0.05
    """Of all requests: conditional writes, of which half expect what is there."""
    out_of_range: float = 0.01
    partial_mask: float = 0.5
    """Of the writes: those with a random byte mask."""
    priority: float = 0.3
    idle: float = 0.3
    """Of the cycles: no request is offered."""
    stall: float = 0.2
    """Of the cycles: no response is taken."""


def random_request(
    rng: random.Random, shape: TrafficShape, scoreboard: Scoreboard, addresses: list[int], tag: int
) -> Request:
    """A request of the given shape to one of `addresses`."""
    address = rng.choice(addresses)
    if rng.random() < shape.out_of_range:
        address = rng.randrange(scoreboard.atoms, 1 << 32)
    priority = rng.random() < shape.priority
    kind = rng.random()
    if kind < shape.conditional:
        word = rng.randrange(ATOM_WIDTH // 32)
        there = scoreboard.memory.get(address, 0) >> 32 * word & 0xFFFFFFFF
        return Request(
            address=address,
            tag=tag,
            write=True,
            conditional=True,
            expected=there if rng.random() < 0.5 else rng.getrandbits(32),
            data=rng.getrandbits(ATOM_WIDTH),
            mask=0xF << 4 * word,
            priority=priority,
        )
    if kind < shape.conditional + shape.write:
        full = (1 << ATOM_BYTES) - 1
        return Request(
            address=address,
            tag=tag,
            write=True,
            data=rng.getrandbits(ATOM_WIDTH),
            mask=rng.getrandbits(ATOM_BYTES) if rng.random() < shape.partial_mask else full,
            priority=priority,
        )
    return Request(address=address, tag=tag, priority=priority)
