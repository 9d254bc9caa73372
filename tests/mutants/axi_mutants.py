"""Mutants of the memory behind an AXI port."""

from __future__ import annotations

from .mutant import Mutant, Replace

__all__ = ["AXI_MUTANTS"]

_MEMORY = "hdl/memory/axi/axi_memory.py"
_READS = "hdl/memory/axi/reads.py"
_WRITES = "hdl/memory/axi/writes.py"
_BURSTS = "hdl/memory/axi/bursts.py"
_CROSSING = "hdl/memory/axi/crossing.py"
_HOSTILE = ("tests/hdl/memory/test_axi_memory.py::test_axi_memory[hostile_memory]",)

AXI_MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        name="AXI burst waits for nobody",
        defect="an address that is not offered joins a burst, which then never ends",
        edits=(Replace(_BURSTS, "self.joins.eq(self.offered & occupied", "self.joins.eq(occupied"),),
        tests=("tests/hdl/memory/test_bursts.py::test_a_burst_ends_whatever_the_idle_address_shows",),
    ),
    Mutant(
        name="AXI read passes a write",
        defect="a read does not wait for the writes of its atom",
        edits=(Replace(_MEMORY, " & hazards.read_free", "", times=2),),
        tests=_HOSTILE,
    ),
    Mutant(
        name="AXI write passes a read",
        defect="a write does not wait for the reads of its atom",
        edits=(Replace(_MEMORY, " & hazards.write_free", "", times=2),),
        tests=_HOSTILE,
    ),
    Mutant(
        name="AXI ID used twice",
        defect="a single read takes an ID whose read is not answered",
        edits=(Replace(_READS, " & ~busy.bit_select(identifier, 1)", ""),),
        tests=_HOSTILE,
    ),
    Mutant(
        name="AXI burst beyond its block",
        defect="the end of a block of 512 bytes does not end a burst",
        edits=(
            Replace(
                _BURSTS, "closed.eq(self.alone | self.address[:_BEAT_BITS].all())", "closed.eq(self.alone)"
            ),
        ),
        tests=("tests/hdl/memory/test_bursts.py::test_a_burst_ends_with_its_block",),
    ),
    Mutant(
        name="AXI burst answered once",
        defect="the reply to a burst answers its first atom only",
        edits=(Replace(_WRITES, "response.ready & order_read.data.last", "response.ready"),),
        tests=_HOSTILE,
    ),
    Mutant(
        name="AXI data before its address",
        defect="write data is offered before its address",
        edits=(Replace(_CROSSING, "queue.r_rdy & ((ahead + axi.awvalid) > 0)", "queue.r_rdy"),),
        tests=_HOSTILE,
    ),
    Mutant(
        name="AXI DECERR ignored",
        defect="an address that nobody answers for is read as good data",
        edits=(
            Replace(
                _CROSSING,
                "matches(AxiReply.SLVERR.value, AxiReply.DECERR.value)",
                "matches(AxiReply.SLVERR.value)",
            ),
        ),
        tests=_HOSTILE,
    ),
)
