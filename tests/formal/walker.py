"""A walker between a free host and a free memory: what the proofs about walks begin from."""

from __future__ import annotations

from amaranth.hdl import Assume, Module
from amaranth.lib.wiring import In

from hdl.config import DesignConfig, WalkerConfig
from hdl.layouts import MemoryResponse, Source, Walk
from hdl.walker.isa import INSTRUCTION_WIDTH
from hdl.walker.walker import Walker
from tests.formal.harness import Internals, Property

__all__ = ["WalkerProperty"]


class WalkerProperty(Property):
    """A walker whose inputs are all free, but that windows are set while nothing walks and nothing is
    launched. Its program may change at any time, so every instruction may be any word."""

    def __init__(self, walker: WalkerConfig, *, false: bool) -> None:
        self._walker = walker
        super().__init__(
            {
                "launches": In(1),
                "launch": In(Walk),
                "verdict_ready": In(1),
                "request_ready": In(1),
                "crowded": In(1),
                "answers": In(1),
                "answer": In(MemoryResponse),
                "program_write": In(1),
                "program_index": In(6),
                "program_word": In(INSTRUCTION_WIDTH),
                "configures": In(1),
                "index": In(6),
                "base": In(32),
                "limit": In(32),
                "writable": In(1),
                "tenant": In(1),
                "budget": In(24),
            },
            false=false,
        )

    def walker(self, m: Module) -> tuple[Walker, Internals]:
        """The walker in `m`, and a look into it."""
        block = Walker(DesignConfig(walker=self._walker), source=Source.NEAR_WALKER)
        inner = Internals(block)
        m.submodules.block = inner.fragment
        m.d.comb += [
            block.launch.valid.eq(self.launches),
            block.launch.payload.eq(self.launch),
            block.verdict.ready.eq(self.verdict_ready),
            block.crowded.eq(self.crowded),
            block.memory.request.ready.eq(self.request_ready),
            block.memory.response.valid.eq(self.answers),
            block.memory.response.payload.eq(self.answer),
            block.program_write.enable.eq(self.program_write),
            block.program_write.index.eq(self.program_index),
            block.program_write.word.eq(self.program_word),
            block.context_write.enable.eq(self.configures),
            block.context_write.index.eq(self.index),
            block.context_write.base.eq(self.base),
            block.context_write.limit.eq(self.limit),
            block.context_write.writable.eq(self.writable),
            block.context_write.tenant.eq(self.tenant),
            block.context_write.budget.eq(self.budget),
            Assume(~self.configures | (block.idle & ~self.launches)),
        ]
        return block, inner
