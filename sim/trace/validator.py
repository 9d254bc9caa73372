"""The rules that the events of a trace obey together, checked one event at a time."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable

from .errors import FieldError, shorten
from .events import (
    SCHEMA_VERSION,
    Append,
    Backtrack,
    Backup,
    Begin,
    End,
    Eval,
    Event,
    Expand,
    Free,
    Join,
    Jump,
    Kv,
    Node,
    Prune,
    Restore,
    Save,
    Select,
    Spawn,
)

__all__ = ["BLOCK_BYTES", "MAX_DEPTH", "MAX_STATE_BYTES", "MAX_VISITS", "Validator"]

# What a record has room for (DESIGN section 6). A trace beyond it is an error; an untried count beyond its
# 12 bits is not: it saturates, because 4095 and more decide nothing else than 4095 would.
MAX_DEPTH = (1 << 12) - 1
BLOCK_BYTES = 32
MAX_STATE_BYTES = ((1 << 16) - 1) * BLOCK_BYTES
MAX_VISITS = (1 << 16) - 1
#: The value sum of a node is a signed Q16.16.
_VALUE_SCALE = 1 << 16
_VALUE_LIMIT = 1 << 31


def _require(condition: bool, field: str, expected: str, value: object) -> None:
    if not condition:
        raise FieldError(field, expected, shorten(value))


class Validator:
    """Checks the events of a file in order; keeps the tree of the current trace only.

    Beside it, the name of each trace is kept as a hash, to see that it is unique in the file.
    """

    def __init__(self) -> None:
        self._names: set[int] = set()
        self._open = False
        self._reset()

    def _reset(self) -> None:
        self._cached = False
        """The trace has a `kv` event."""
        self._parents: list[tuple[int, ...]] = []
        self._depths: list[int] = []
        self._visits: Counter[int] = Counter()
        self._values: Counter[int] = Counter()

    @property
    def inside(self) -> bool:
        """True between `begin` and `end`."""
        return self._open

    @property
    def traces(self) -> int:
        """Traces begun so far."""
        return len(self._names)

    @property
    def nodes(self) -> int:
        """Nodes of the current trace, or of the last one after its end."""
        return len(self._parents)

    def is_ancestor(self, candidate: int, node: int) -> bool:
        """True if following first parents from `node` meets `candidate`; a node is not its own ancestor."""
        while self._parents[node]:
            node = self._parents[node][0]
            if node == candidate:
                return True
        return False

    def finish(self) -> None:
        """Check that the file may end here. Raises FieldError."""
        if self._open:
            raise FieldError("event", "an `end` event", "the end of the file: it is cut off")
        if not self._names:
            raise FieldError("event", "a `begin` event", "an empty file")

    def feed(self, event: Event) -> None:
        """Check the next event. Raises FieldError; the validator is of no use after that."""
        if isinstance(event, Begin):
            self._begin(event)
            return
        if not self._open:
            raise FieldError("event", "a `begin` event", f"`{event.name}` outside a trace")
        match event:
            case Node():
                self._node(event)
            case Expand():
                self._known("expand.id", event.id)
                _require(event.untried >= 0, "expand.untried", "a count from 0", event.untried)
            case Eval():
                self._known("eval.id", event.id)
                self._score(event.score)
            case Select():
                self._select(event)
            case Prune():
                self._known("prune.id", event.id)
                _require(bool(event.reason), "prune.reason", "a reason", event.reason)
            case Backtrack():
                self._backtrack(event)
            case Jump():
                self._jump(event)
            case Save() | Restore():
                self._known(f"{event.name}.id", event.id)
                self._bytes(f"{event.name}.bytes", event.bytes)
            case Spawn():
                self._known("spawn.id", event.id)
                self._all_known("spawn.ids", event.ids)
            case Join():
                self._all_known("join.ids", event.ids)
                self._known("join.to", event.to)
            case Append():
                self._known("append.id", event.id)
                self._count("append.tokens", event.tokens)
                self._bytes("append.bytes", event.bytes)
            case Backup():
                self._backup(event)
            case Free():
                self._known("free.id", event.id)
            case Kv():
                self._kv(event)
            case End():
                held = bool(self._parents) or self._cached or event.status == "empty"
                _require(
                    held,
                    "event",
                    "at least one `node` or `kv` before `end`, or status empty",
                    "an empty trace",
                )
                self._open = False

    def _begin(self, event: Begin) -> None:
        if self._open:
            raise FieldError("event", "the `end` of the trace before", "`begin`")
        _require(
            1 <= event.version <= SCHEMA_VERSION, "begin.version", f"1 to {SCHEMA_VERSION}", event.version
        )
        name = hash(event.trace)
        _require(name not in self._names, "begin.trace", "a name that is unique in the file", event.trace)
        self._names.add(name)
        self._open = True
        self._reset()

    def _known(self, field: str, node: int) -> None:
        if not 0 <= node < len(self._parents):
            count = len(self._parents)
            expected = f"the id of a node before it (0 to {count - 1})" if count else "a `node` before it"
            raise FieldError(field, expected, shorten(node))

    def _all_known(self, field: str, nodes: Iterable[int], *, empty: bool = False) -> None:
        nodes = tuple(nodes)
        _require(empty or bool(nodes), field, "at least one id", list(nodes))
        for position, node in enumerate(nodes):
            self._known(f"{field}[{position}]", node)

    def _kv(self, event: Kv) -> None:
        self._cached = True
        for name in ("block_tokens", "input_tokens", "output_tokens"):
            self._count(f"kv.{name}", getattr(event, name))
        _require(
            event.operation != "clear" or not event.blocks, "kv.blocks", "none to clear", list(event.blocks)
        )
        _require(
            event.operation == "store" or event.parent is None,
            "kv.parent",
            "it with `store` only",
            event.parent,
        )

    def _count(self, field: str, count: int | None) -> None:
        _require(count is None or count >= 0, field, "a count from 0", count)

    def _bytes(self, field: str, count: int) -> None:
        _require(
            0 <= count <= MAX_STATE_BYTES,
            field,
            f"0 to {MAX_STATE_BYTES} bytes (a 16-bit number of {BLOCK_BYTES}-byte blocks)",
            count,
        )

    def _score(self, score: float | None) -> None:
        if score is None:
            return
        try:
            struct.pack("<f", score)
        except OverflowError:
            raise FieldError("eval.score", "a number that a float32 can hold", shorten(score)) from None

    def _node(self, event: Node) -> None:
        following = len(self._parents)
        _require(
            event.id == following, "node.id", f"{following} (ids are dense in order of `node`)", event.id
        )
        for position, parent in enumerate(event.parents):
            field = f"node.parents[{position}]"
            if parent >= following:
                expected = f"an id below {following}: a parent not older than its child closes a cycle"
                raise FieldError(field, expected, shorten(parent))
            self._known(field, parent)
        _require(
            len(set(event.parents)) == len(event.parents), "node.parents", "each parent once", event.parents
        )
        depth = self._depths[event.parents[0]] + 1 if event.parents else 0
        _require(event.depth <= MAX_DEPTH, "node.depth", f"at most {MAX_DEPTH} (a 12-bit field)", event.depth)
        expected = f"{depth} (its first parent's and 1)" if event.parents else "0 (it has no parent)"
        _require(event.depth == depth, "node.depth", expected, event.depth)
        self._bytes("node.state_bytes", event.state_bytes)
        self._count("node.tokens", event.tokens)
        self._parents.append(event.parents)
        self._depths.append(depth)

    def _checked(self, event: Select | Backtrack | Jump) -> bool:
        """True if the event's answer is to be checked; a reason is there exactly if not."""
        if event.check == "none":
            _require(bool(event.reason), f"{event.name}.reason", "why `check` is none", event.reason)
            return False
        _require(
            event.reason is None, f"{event.name}.reason", f"null beside check {event.check}", event.reason
        )
        return True

    def _select(self, event: Select) -> None:
        self._all_known("select.candidates", event.candidates)
        self._all_known("select.chosen", event.chosen, empty=True)
        missing = Counter(event.chosen) - Counter(event.candidates)
        _require(not missing, "select.chosen", "ids out of `candidates`", list(missing))
        if self._checked(event):
            _require(bool(event.chosen), "select.chosen", "at least one id", list(event.chosen))

    def _backtrack(self, event: Backtrack) -> None:
        self._known("backtrack.from", event.from_)
        if event.to is not None:
            self._known("backtrack.to", event.to)
        if self._checked(event) and event.to is not None:
            _require(
                self.is_ancestor(event.to, event.from_),
                "backtrack.to",
                f"a proper ancestor of node {event.from_}, or check none",
                event.to,
            )

    def _jump(self, event: Jump) -> None:
        self._known("jump.from", event.from_)
        if event.to is not None:
            self._known("jump.to", event.to)
        if self._checked(event):
            _require(event.to is not None, "jump.to", "an id, or check none", event.to)
            assert event.to is not None
            _require(
                event.to != event.from_ and not self.is_ancestor(event.to, event.from_),
                "jump.to",
                f"neither node {event.from_} nor an ancestor of it, or check none",
                event.to,
            )

    def _backup(self, event: Backup) -> None:
        self._all_known("backup.path", event.path)
        for position in range(1, len(event.path)):
            parents = self._parents[event.path[position - 1]]
            expected = f"{parents[0]}, the parent of the node before" if parents else "the end at a root"
            _require(
                parents[:1] == (event.path[position],),
                f"backup.path[{position}]",
                expected,
                event.path[position],
            )
        amount = round(event.value * _VALUE_SCALE)
        for node in event.path:
            self._visits[node] += 1
            self._values[node] += amount
            _require(
                self._visits[node] <= MAX_VISITS,
                "backup.path",
                f"at most {MAX_VISITS} visits of a node (a 16-bit field)",
                node,
            )
            _require(
                -_VALUE_LIMIT <= self._values[node] < _VALUE_LIMIT,
                "backup.value",
                f"a sum within -32768 to 32768 at node {node} (a signed Q16.16 field)",
                event.value,
            )
