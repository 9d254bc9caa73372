"""The memory end of a channel: what of it a channel, the memory side and the top hand on outwards."""

from typing import Any

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..config import DesignConfig
from ..fabric.axi4 import Axi4
from ..layouts import AccessMonitor, ColumnBus, ErrorMonitor, FaultInjection, RowBus
from .checker import RULE_WIDTH, ColumnMonitor

__all__ = ["end_members"]


def end_members(config: DesignConfig) -> dict[str, Any]:
    """The members by which a channel's memory end is seen from outside, by name.

    Members
    -------
    row : Out(RowBus()), column : Out(ColumnMonitor()), access : Out(AccessMonitor())
        Of a controller: its command buses, and the column access of this cycle. With the end `bus` the column
        bus is a whole `ColumnBus`, with its data, and the device is outside.
    violation : Out(1), violation_rule : Out(RULE_WIDTH)
        Of a controller: the RTL checker's report of this cycle; 0 without `config.checker`.
    errors : Out(ErrorMonitor())
        What ECC found, with addresses of the stack; only with `config.controller.ecc`.
    fault : In(FaultInjection())
        Control of the device's fault injector; only with ECC and a device.
    m_axi : Out(Axi4())
        Of the end `axi4`, and nothing else; in the clock domain `axi`.
    """
    if not config.memory.controlled:
        return {"m_axi": Out(Axi4(id_bits=config.axi.id_bits, address_bits=config.axi.address_bits))}
    ecc, bus = config.controller.ecc, config.memory.end == "bus"
    column: wiring.Signature = ColumnBus(ecc=ecc) if bus else ColumnMonitor()
    members: dict[str, Any] = {
        "row": Out(RowBus()),
        "column": Out(column),
        "access": Out(AccessMonitor()),
        "violation": Out(1),
        "violation_rule": Out(RULE_WIDTH),
    }
    if ecc:
        members["errors"] = Out(ErrorMonitor())
        if not bus:
            members["fault"] = In(FaultInjection())
    return members
