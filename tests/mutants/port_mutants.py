"""Mutants of responses, write data, conditional writes, and the device."""

from __future__ import annotations

from .mutant import Mutant, Replace

__all__ = ["PORT_MUTANTS"]

_ATOMIC = "hdl/memory/atomic.py"
_DEVICE = "hdl/memory/device.py"
_RESPONSES = "hdl/memory/responses.py"
_WRITE_BUFFER = "hdl/memory/write_buffer.py"

PORT_MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        name="dropped response",
        defect="read data that comes while an acknowledgement is on offer is lost",
        edits=(
            Replace(
                _RESPONSES,
                "waiting.eq(waiting + self.read_valid - read_leaves)",
                "waiting.eq(waiting + (self.read_valid & ~offered) - read_leaves)",
            ),
            Replace(_RESPONSES, "        offered = Signal()\n", ""),
            Replace(
                _RESPONSES,
                "        read_leaves = Signal()\n",
                "        read_leaves, offered = Signal(), Signal()\n",
            ),
        ),
        campaign="hbm2",
    ),
    Mutant(
        name="doubled response",
        defect="the first of two acknowledgements is sent twice",
        edits=(
            Replace(
                _RESPONSES,
                "acknowledged.eq(sent & ~choose_read)",
                "acknowledged.eq(sent & ~choose_read & (queued != 2))",
            ),
        ),
        campaign="hbm2",
    ),
    Mutant(
        name="response slot not reserved",
        defect="a read holds a response slot only from when its data is there",
        edits=(
            Replace(
                _RESPONSES,
                "reserved.eq(reserved + self.issue - read_leaves)",
                "reserved.eq(waiting + self.read_valid - read_leaves)",
            ),
        ),
        campaign="hbm2",
    ),
    Mutant(
        name="offer taken back",
        defect="read data replaces an acknowledgement that is on offer",
        edits=(
            Replace(_RESPONSES, "choose_read.eq(read_is_there & ~offered)", "choose_read.eq(read_is_there)"),
        ),
        campaign="hbm2",
    ),
    Mutant(
        name="write buffer entry freed early",
        defect="the drain of one write frees its neighbour's entry",
        edits=(
            Replace(
                _WRITE_BUFFER,
                "given.eq((self.give << self.read_entry)[:entries])",
                "given.eq((self.give << (self.read_entry ^ 1))[:entries])",
            ),
        ),
        campaign="hbm2",
    ),
    Mutant(
        name="write mask ignored",
        defect="a write replaces the whole atom",
        edits=(
            Replace(
                _DEVICE,
                "storage.write_mask.eq(self.column.write_mask)",
                "storage.write_mask.eq(-1)",
            ),
        ),
        campaign="hbm2",
    ),
    Mutant(
        name="conditional write unconditional",
        defect="a conditional write is done whatever the word holds",
        edits=(
            Replace(
                _ATOMIC,
                "same.eq(~kept.conditional | (word == kept.expected))",
                "same.eq(1)",
            ),
        ),
        campaign="hbm2",
    ),
    Mutant(
        name="request between read and write",
        defect="a request of the atom passes while a conditional write of it is decided",
        edits=(
            Replace(
                _ATOMIC,
                "(dependent | (asked.payload.address == kept.address))",
                "dependent",
            ),
        ),
        campaign="hbm2",
    ),
    Mutant(
        name="second dependent write not kept out",
        defect="a dependent write is accepted while the one before is decided, and is lost",
        edits=(
            Replace(
                _ATOMIC,
                "(dependent | (asked.payload.address == kept.address))",
                "(asked.payload.address == kept.address)",
            ),
        ),
        campaign="hbm2",
    ),
    Mutant(
        name="device one cycle late",
        defect="read data comes a cycle later than the preset says",
        edits=(
            Replace(
                _DEVICE,
                "latency = self._config.memory.timing.row_hit",
                "latency = self._config.memory.timing.row_hit + 1",
            ),
        ),
        campaign="hbm2",
    ),
)
