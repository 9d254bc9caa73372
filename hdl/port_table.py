"""What each port of the design's Verilog is for: one sentence each, by AMBA's names where there are any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .generate import port_values

if TYPE_CHECKING:
    from amaranth.lib.wiring import Component

__all__ = ["Port", "markdown", "ports"]

#: Ports by name, without the number of a channel.
_PORTS = {
    "clk": "Clock, rising edge; a cycle is one of the memory's command clock. All but `m_axi` belongs to it.",
    "rst": "Synchronous reset, active high; the design is still in reset in the cycle after it.",
    "interrupt": "Level: a batch is done; INTERRUPT_ENABLE lets it out, INTERRUPT_PENDING clears it.",
    "m_axi_aclk": "Clock of every `m_axi` port, not related to `clk`.",
    "m_axi_aresetn": "Synchronous reset of every `m_axi` port, active low.",
}

#: Interfaces that only observe, by their member: what they show, and what each port of them is.
_MONITORS = {
    "row": (
        "Row command bus",
        {
            "op": "the command (`RowOp`): 0 none.",
            "pseudo_channel": "the pseudo channel it is for.",
            "bank": "the bank within the pseudo channel.",
            "row": "the row that an ACTIVATE opens.",
        },
    ),
    "column": (
        "Column command bus",
        {
            "op": "the command (`ColumnOp`): 0 none.",
            "pseudo_channel": "the pseudo channel it is for.",
            "bank": "the bank within the pseudo channel.",
            "column": "the atom within the open row.",
            "write_data": "data of a write, with its command; the device applies the write latency.",
            "write_mask": "byte enables of a write.",
            "read_valid": "data of a read is there, read latency and burst after its command.",
            "read_data": "data of a read, in the order of the commands.",
            "write_check": "check bits of the write data.",
            "read_check": "check bits of the read data.",
        },
    ),
    "access": (
        "Column access of this cycle",
        {
            "row_class": "what it found (`RowClass`): 0 no access, 1 hit, 2 closed, 3 conflict.",
            "tag": "whose it is: source in bits 2:0, context in bits 8:3.",
            "write": "it writes.",
        },
    ),
    "port": (
        "Memory port of the controller",
        {
            "accepted": "a request is taken.",
            "request_tag": "whose request it is: source in bits 2:0, context in bits 8:3.",
            "request_write": "it writes.",
            "request_conditional": "it writes only over an expected word.",
            "answered": "a response leaves.",
            "response_tag": "whose response it is: source in bits 2:0, context in bits 8:3.",
            "response_write": "it answers a write.",
        },
    ),
    "near_hop": (
        "Near walker",
        {
            "event": "what it did (`HopEvent`): 0 nothing, 1 read a record, 2 ended a walk, 3 stored.",
            "context": "in which context.",
            "address": "the record's atom address.",
        },
    ),
    "far_hop": (
        "Far walker",
        {
            "event": "what it did (`HopEvent`): 0 nothing, 1 read a record, 2 ended a walk, 3 stored.",
            "context": "in which context.",
            "address": "the record's atom address.",
        },
    ),
    "batch_active": ("Counters", {"": "a cycle that they count."}),
    "violation": ("Protocol checker", {"": "a command in this cycle breaks a timing rule."}),
    "violation_rule": ("Protocol checker", {"": "the number of that rule."}),
}

#: What follows the letters of a channel in AMBA's names.
_AMBA = {
    "id": "transaction identifier",
    "addr": "byte address",
    "len": "beats of the burst, less one",
    "size": "bytes of a beat, as a power of two",
    "burst": "burst type",
    "cache": "memory type",
    "prot": "protection type",
    "data": "data",
    "strb": "byte enables",
    "last": "last beat of the burst",
    "resp": "response: 0 OKAY, 2 SLVERR, 3 DECERR",
    "valid": "valid",
    "ready": "ready",
}
_AMBA_CHANNELS = {
    "aw": "Write address",
    "ar": "Read address",
    "w": "Write data",
    "b": "Write response",
    "r": "Read data",
}
_AMBA_BUSES = {"s_axil": "AXI4-Lite of the host", "m_axi": "AXI4 to the memory"}


@dataclass(frozen=True, kw_only=True)
class Port:
    """A port of the design's Verilog."""

    name: str
    direction: str
    """`input` or `output`."""
    width: int
    """Bits."""
    description: str
    """One sentence."""
    optional: bool
    """It only observes, and may be left open."""


def _description(path: tuple[str, ...]) -> str:
    """The sentence of a port by its members, without numbers of channels. KeyError: unknown."""
    member, *rest = path
    name = "_".join(rest)
    if member in _AMBA_BUSES:
        channel = next(letters for letters in _AMBA_CHANNELS if name.startswith(letters))
        what = f"{_AMBA_CHANNELS[channel]} channel: {_AMBA[name.removeprefix(channel)]}."
        return f"{_AMBA_BUSES[member]}. {what}"
    if member in _MONITORS:
        whose, fields = _MONITORS[member]
        return f"{whose}: {fields[name]}"
    return _PORTS[member]


def ports(component: Component) -> list[Port]:
    """Every port of the Verilog of `component`, a whole design, in order. KeyError: unknown."""
    found = [
        Port(name=name, direction="input", width=1, description=_PORTS[name], optional=False)
        for name in ("clk", "rst")
    ]
    values = port_values(component)
    # A column bus with data goes to a device, and so does the row bus beside it.
    to_device = any(path[-1] == "read_data" for path, *_ in values.values())
    observing = _MONITORS.keys() - ({"row", "column"} if to_device else set())
    for name, (path, value, direction) in values.items():
        members = tuple(part for part in path if isinstance(part, str))
        try:
            description = _description(members)
        except (KeyError, StopIteration):
            raise KeyError(f"port {name}: hdl/port_table.py does not say what it is") from None
        optional = members[0] in observing and direction.value == "output"
        found.append(
            Port(
                name=name,
                direction=direction.value,
                width=len(value),
                description=description,
                optional=optional,
            )
        )
    return found


def markdown(component: Component) -> str:
    """A table of the ports of `component`'s Verilog."""
    lines = ["| port | | bits | |", "| --- | --- | --- | --- |"]
    for port in ports(component):
        may = " May be left open." if port.optional else ""
        lines.append(f"| `{port.name}` | {port.direction} | {port.width} | {port.description}{may} |")
    return "\n".join(lines)
