"""The events of a trace, as typed records: what a search did, one event a line of a JSON lines file.

Ids are local to a trace, dense from 0 in order of their `node` event; the source's own ids are kept in
`ext_id`. An event may name a node only after its `node` event. One file may hold many traces (problems),
each from `begin` to `end`.

Memory that a replay keeps, and which event changes it:

* `node` allocates a record: parent (the first of `parents`), depth, no score, not dead, untried 0;
* `expand` sets the untried count of a node to the absolute number given. Every change of it, a child
  being tried included, is an `expand` event of its own; nothing changes it implicitly but `prune`;
* `eval` sets the score (null: none);
* `prune` sets the dead flag; with `abandoned` it sets untried to 0 instead and leaves the flag alone;
* `backtrack`, `jump`, `select` and `backup` ask the accelerator; they change no record, but `backup` adds
  `value` to the value sum and 1 to the visits of every node of `path`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

__all__ = [
    "EVENT_TYPES",
    "SCHEMA_VERSION",
    "Append",
    "Backtrack",
    "Backup",
    "Begin",
    "CacheOperation",
    "End",
    "Eval",
    "Event",
    "Expand",
    "Free",
    "Join",
    "Jump",
    "Kv",
    "Node",
    "Prune",
    "Restore",
    "Save",
    "Select",
    "Spawn",
]

#: The `version` of `begin` that is written. Version 1 is read as well: it had neither the text and bytes of
#: an `append` nor what a block cache does by itself (`kv`), and no trace without a node.
SCHEMA_VERSION = 2

UntriedSource = Literal["declared", "recomputed", "lookahead"]
CacheOperation = Literal["request", "store", "remove", "clear"]
Status = Literal["solved", "unsolved", "budget", "exhausted", "error", "empty", "unknown"]


@dataclass(frozen=True, kw_only=True)
class Begin:
    """Start of one trace (one problem)."""

    name: ClassVar[str] = "begin"
    version: int
    trace: str
    """Name of the trace, unique in its file."""
    algorithm: str
    """dfs, beam, dfsdt, mcts, linear, ..."""
    order_known: bool = True
    """False: the source lost the order of visits; the events follow an order that `meta` names."""
    source: str = ""
    """Format that an importer read, or the search program that recorded it."""
    meta: dict[str, object] = field(default_factory=dict)
    """What else the source says. Two keys have a meaning: `order` names the order that the events follow if
    `order_known` is false; `remarks` counts, by what it is, what an importer found amiss."""


@dataclass(frozen=True, kw_only=True)
class Node:
    """A node comes to exist."""

    name: ClassVar[str] = "node"
    id: int
    parents: tuple[int, ...]
    """Existing nodes; the first is the one `climb` follows. Empty: a root."""
    depth: int
    kind: str = "thought"
    state_bytes: int = 0
    tokens: int | None = None
    ext_id: str | None = None
    text: str | None = None
    """What the node adds to its parent, in the source's words; a replay does not need it."""


@dataclass(frozen=True, kw_only=True)
class Expand:
    """The node has exactly `untried` children left to try from now on."""

    name: ClassVar[str] = "expand"
    id: int
    untried: int
    untried_source: UntriedSource


@dataclass(frozen=True, kw_only=True)
class Eval:
    """The node's score."""

    name: ClassVar[str] = "eval"
    id: int
    score: float | None


@dataclass(frozen=True, kw_only=True)
class Select:
    """A choice of `chosen` (best first) out of `candidates` (order of creation; ids may repeat)."""

    name: ClassVar[str] = "select"
    candidates: tuple[int, ...]
    chosen: tuple[int, ...]
    order: Literal["exact", "score"] = "exact"
    """exact: by (score descending, sequence ascending). score: the source leaves equals unordered."""
    live_only: bool = False
    check: Literal["select", "none"] = "select"
    reason: str | None = None
    """Why `check` is none."""


@dataclass(frozen=True, kw_only=True)
class Prune:
    """The search gave the node up: dead, or (`abandoned`) left with nothing to try."""

    name: ClassVar[str] = "prune"
    id: int
    reason: str
    abandoned: bool = False


@dataclass(frozen=True, kw_only=True)
class Backtrack:
    """The search went back from `from_` up to `to`, a proper ancestor; null: nothing was left to try.

    `climb` starts at the first parent of `from_`.
    """

    name: ClassVar[str] = "backtrack"
    from_: int
    to: int | None
    check: Literal["climb", "none"] = "climb"
    reason: str | None = None
    untried_source: UntriedSource | None = None
    """Source of the counts that decide it, for the verdicts by source."""


@dataclass(frozen=True, kw_only=True)
class Jump:
    """The search went on at `to`, which is no ancestor of `from_` (null: a node that no id names)."""

    name: ClassVar[str] = "jump"
    from_: int
    to: int | None
    check: Literal["ancestor", "none"] = "ancestor"
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class Save:
    """The node's state was written."""

    name: ClassVar[str] = "save"
    id: int
    bytes: int


@dataclass(frozen=True, kw_only=True)
class Restore:
    """The node's state was read back."""

    name: ClassVar[str] = "restore"
    id: int
    bytes: int


@dataclass(frozen=True, kw_only=True)
class Spawn:
    """Parallel branches start."""

    name: ClassVar[str] = "spawn"
    id: int
    ids: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Join:
    """Parallel branches merge into `to`."""

    name: ClassVar[str] = "join"
    ids: tuple[int, ...]
    to: int


@dataclass(frozen=True, kw_only=True)
class Append:
    """Linear self-reflection: the open node grows."""

    name: ClassVar[str] = "append"
    id: int
    tokens: int | None = None
    mark: str | None = None
    """The words that begin it, if they say that the model reflects on what it wrote."""
    bytes: int = 0
    text: str | None = None
    """What the node grows by, in the source's words."""


@dataclass(frozen=True, kw_only=True)
class Backup:
    """`value` and a visit are added to every node of `path`, leaf first, each the parent of the last."""

    name: ClassVar[str] = "backup"
    path: tuple[int, ...]
    value: float


@dataclass(frozen=True, kw_only=True)
class Free:
    """The node's state was released."""

    name: ClassVar[str] = "free"
    id: int


@dataclass(frozen=True, kw_only=True)
class Kv:
    """One thing that happened at a block cache of keys and values: `request`, a serving request that needs
    `blocks`; `store`, `remove`, `clear`, what the cache itself did.

    The ids of blocks are the source's own and hold in all traces of a file. They are no nodes.
    """

    name: ClassVar[str] = "kv"
    operation: CacheOperation
    blocks: tuple[int, ...] = ()
    block_tokens: int | None = None
    """Tokens that a block holds."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    parent: int | None = None
    """Of `store`: the block that the first of `blocks` follows; null: they begin a sequence."""
    time_ns: int | None = None
    """When, by the source's clock, in nanoseconds from that clock's zero."""


@dataclass(frozen=True, kw_only=True)
class End:
    """End of the trace."""

    name: ClassVar[str] = "end"
    status: Status


Event = (
    Begin
    | Node
    | Expand
    | Eval
    | Select
    | Prune
    | Backtrack
    | Jump
    | Save
    | Restore
    | Spawn
    | Join
    | Append
    | Backup
    | Free
    | Kv
    | End
)

#: Event class by the `event` key of its JSON line. A field named `from_` is spelled `from` there.
EVENT_TYPES: dict[str, type[Event]] = {
    kind.name: kind
    for kind in (
        Begin,
        Node,
        Expand,
        Eval,
        Select,
        Prune,
        Backtrack,
        Jump,
        Save,
        Restore,
        Spawn,
        Join,
        Append,
        Backup,
        Free,
        Kv,
        End,
    )
}
