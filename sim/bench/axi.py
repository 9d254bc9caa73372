"""An AXI4 memory that does whatever AXI allows, and the rules of AXI, for testbenches of a manager."""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from cocotb.triggers import FallingEdge, ReadOnly

from hdl.fabric.axi4 import BURST_BEATS, AxiBurstType, AxiReply

__all__ = ["AxiProtocol", "AxiSignals", "HostileAxiMemory", "HostileShape"]

_PAYLOADS = {
    "aw": ("awid", "awaddr", "awlen", "awsize", "awburst", "awcache", "awprot"),
    "w": ("wdata", "wstrb", "wlast"),
    "ar": ("arid", "araddr", "arlen", "arsize", "arburst", "arcache", "arprot"),
    "r": ("rid", "rdata", "rresp", "rlast"),
    "b": ("bid", "bresp"),
}


class AxiSignals:
    """The signals of an AXI port of a design by their AMBA names; `prefix` is what is before each."""

    def __init__(self, dut: Any, prefix: str) -> None:
        self._signals = {
            name: getattr(dut, f"{prefix}{name}")
            for channel, payload in _PAYLOADS.items()
            for name in (*payload, f"{channel}valid", f"{channel}ready")
        }

    def __getitem__(self, name: str) -> int:
        return int(self._signals[name].value)

    def __setitem__(self, name: str, value: int) -> None:
        self._signals[name].value = value


class AxiProtocol:
    """The rules of AXI that a manager keeps, checked in every cycle: call `check` once the cycle is settled.

    VALID stays until READY with the same payload; bursts are INCR, of whole beats, at most `longest` of them,
    within 4 KiB and on a beat's boundary; WLAST comes with the last beat and no other; a write's data is not
    offered before its address. Raises AssertionError.
    """

    def __init__(self, axi: AxiSignals, *, data_bytes: int = 32, longest: int = BURST_BEATS) -> None:
        self._axi = axi
        self._longest = longest
        self._data_bytes = data_bytes
        self._offered: dict[str, tuple[int, ...]] = {}
        self._lengths: list[int] = []
        self._ended = 0
        self._beats = 0
        self.bursts: Counter[tuple[str, int]] = Counter()
        """Transactions by channel, aw or ar, and beats."""

    def check(self) -> None:
        """The rules in this cycle."""
        axi = self._axi
        for channel in ("aw", "w", "ar"):
            valid, ready = axi[f"{channel}valid"], axi[f"{channel}ready"]
            payload = tuple(axi[name] for name in _PAYLOADS[channel]) if valid else ()
            before = self._offered.pop(channel, None)
            assert before in (None, payload), f"{channel}: {before} was not taken, and is {payload or 'gone'}"
            if valid and not ready:
                self._offered[channel] = payload
            if valid and ready and channel != "w":
                self._address(channel)
        if axi["wvalid"]:
            self._data()

    def _address(self, channel: str) -> None:
        axi = self._axi
        address, beats = axi[f"{channel}addr"], axi[f"{channel}len"] + 1
        last = address + beats * self._data_bytes - 1
        assert beats <= self._longest, f"{channel}: {beats} beats"
        assert axi[f"{channel}burst"] == AxiBurstType.INCR.value, f"{channel}: not INCR"
        assert 1 << axi[f"{channel}size"] == self._data_bytes, f"{channel}: not whole beats"
        assert address % self._data_bytes == 0, f"{channel}: {address:#x} is within a beat"
        assert address >> 12 == last >> 12, f"{channel}: {address:#x} to {last:#x} crosses 4 KiB"
        self.bursts[channel, beats] += 1
        if channel == "aw":
            self._lengths.append(axi["awlen"])

    def _data(self) -> None:
        axi = self._axi
        # Its address was taken, or is on offer now.
        lengths = [*self._lengths, *([axi["awlen"]] if axi["awvalid"] and not axi["awready"] else [])]
        assert self._ended < len(lengths), "w: data without an address"
        length = lengths[self._ended]
        assert axi["wlast"] == (self._beats == length), f"w: wlast in beat {self._beats} of 0 to {length}"
        if axi["wready"]:
            self._beats = 0 if axi["wlast"] else self._beats + 1
            self._ended += axi["wlast"]


@dataclass(frozen=True, kw_only=True)
class HostileShape:
    """How an AXI memory misbehaves, within AXI; shares are probabilities of a cycle."""

    address_stall: float = 0.3
    data_stall: float = 0.3
    read_gap: float = 0.3
    reply_gap: float = 0.5
    perform: float = 0.1
    """That the next write takes place, if it has not been answered first."""
    slowest: int = 60
    """Cycles that a transaction may lie before it is served."""


@dataclass(kw_only=True)
class _Transaction:
    identifier: int
    address: int
    beats: int
    due: int
    early: bool
    """A read: its data is that of its acceptance, else that of its beat."""
    data: list[int] = field(default_factory=list)
    strobes: list[int] = field(default_factory=list)
    done: int = 0


class HostileAxiMemory:
    """An AXI4 memory that answers late, out of order between IDs, beat by beat mixed, and takes write data
    apart from its address; `fails` says which byte addresses are answered with SLVERR or DECERR.

    A write takes place at any time before its answer, a read at any time before its beat: a manager that
    needs an order has to wait. `run` is the coroutine that drives it; `protocol` checks the manager.
    """

    def __init__(
        self,
        dut: Any,
        axi: AxiSignals,
        *,
        clock: Any,
        rng: random.Random,
        shape: HostileShape,
        fails: Callable[[int], bool] = lambda address: False,
        data_bytes: int = 32,
    ) -> None:
        self._axi = axi
        self._clock = clock
        self._rng = rng
        self._shape = shape
        self._fails = fails
        self._bytes = data_bytes
        self.memory: dict[int, int] = {}
        """Data words by byte address."""
        self.protocol = AxiProtocol(axi, data_bytes=data_bytes)
        self._cycle = 0
        self._addresses: deque[_Transaction] = deque()
        self._beats: deque[tuple[int, int, int]] = deque()
        self._writes: deque[_Transaction] = deque()
        self._reads: list[_Transaction] = []
        self._read_offer: _Transaction | None = None
        self._reply_offer: _Transaction | None = None
        self._performed = 0  # of `_writes`, from the first on

    async def run(self) -> None:
        """Drives the memory for ever."""
        while True:
            self._drive()
            await ReadOnly()
            self.protocol.check()
            self._sample()
            await FallingEdge(self._clock)
            self._cycle += 1

    def _chance(self, share: float) -> bool:
        return self._rng.random() < share

    def _drive(self) -> None:
        axi, shape = self._axi, self._shape
        for channel in ("aw", "ar"):
            axi[f"{channel}ready"] = not self._chance(shape.address_stall)
        axi["wready"] = not self._chance(shape.data_stall)
        if self._read_offer is None and not self._chance(shape.read_gap):
            self._read_offer = self._next_read()
        if self._performed < len(self._writes) and self._chance(shape.perform):
            self._perform()
        if self._reply_offer is None and self._writes and not self._chance(shape.reply_gap):
            write = self._writes[0]
            if write.due <= self._cycle:
                if not self._performed:
                    self._perform()
                self._performed -= 1
                self._reply_offer = self._writes.popleft()
        axi["rvalid"] = self._read_offer is not None
        if self._read_offer is not None:
            read = self._read_offer
            failed = self._fails(read.address + read.done * self._bytes)
            axi["rid"], axi["rlast"] = read.identifier, read.done + 1 == read.beats
            axi["rdata"] = self._beat(read)
            axi["rresp"] = self._reply(read) if failed else AxiReply.OKAY.value
        axi["bvalid"] = self._reply_offer is not None
        if self._reply_offer is not None:
            write = self._reply_offer
            axi["bid"] = write.identifier
            axi["bresp"] = self._reply(write) if self._fails(write.address) else AxiReply.OKAY.value

    def _reply(self, transaction: _Transaction) -> int:
        """The error of a transaction, the same in every cycle of its offer."""
        return (AxiReply.SLVERR if transaction.due & 1 else AxiReply.DECERR).value

    def _next_read(self) -> _Transaction | None:
        """Any that is due and has none of its ID before it."""
        first: dict[int, _Transaction] = {}
        for read in self._reads:
            first.setdefault(read.identifier, read)
        ready = [read for read in first.values() if read.due <= self._cycle]
        return self._rng.choice(ready) if ready else None

    def _beat(self, read: _Transaction) -> int:
        """The data of its next beat: of the read's acceptance, or of now, and then kept."""
        if len(read.data) <= read.done:
            read.data.append(self.memory.get(read.address + read.done * self._bytes, 0))
        return read.data[read.done]

    def _perform(self) -> None:
        """The first write that did not take place does."""
        write = self._writes[self._performed]
        self._performed += 1
        for number, (data, strobe) in enumerate(zip(write.data, write.strobes, strict=True)):
            address = write.address + number * self._bytes
            if self._fails(address):
                continue
            bits = sum(0xFF << 8 * byte for byte in range(self._bytes) if strobe >> byte & 1)
            self.memory[address] = self.memory.get(address, 0) & ~bits | data & bits

    def _transaction(self, channel: str) -> _Transaction:
        axi = self._axi
        return _Transaction(
            identifier=axi[f"{channel}id"],
            address=axi[f"{channel}addr"],
            beats=axi[f"{channel}len"] + 1,
            due=self._cycle + self._rng.randrange(self._shape.slowest),
            early=self._chance(0.5),
        )

    def _sample(self) -> None:
        axi = self._axi
        if axi["awvalid"] and axi["awready"]:
            self._addresses.append(self._transaction("aw"))
        if axi["wvalid"] and axi["wready"]:
            self._beats.append((axi["wdata"], axi["wstrb"], axi["wlast"]))
        if axi["arvalid"] and axi["arready"]:
            read = self._transaction("ar")
            self._reads.append(read)
            if read.early:
                read.data = [
                    self.memory.get(read.address + number * self._bytes, 0) for number in range(read.beats)
                ]
        while self._addresses and self._beats:
            write = self._addresses[0]
            data, strobe, last = self._beats.popleft()
            write.data.append(data)
            write.strobes.append(strobe)
            if last:
                self._writes.append(self._addresses.popleft())
        if axi["rvalid"] and axi["rready"]:
            read = self._read_offer
            assert read is not None
            read.done += 1
            self._read_offer = None
            if read.done == read.beats:
                self._reads.remove(read)
        if axi["bvalid"] and axi["bready"]:
            self._reply_offer = None
