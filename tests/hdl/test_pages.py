"""The generated pages in the repository are what their single source generates now."""

from pathlib import Path

import pytest

from hdl import registers
from hdl.memory import timing_page
from hdl.walker import isa_page

_HDL = Path(registers.__file__).parent


@pytest.mark.parametrize(
    "page, generate",
    [
        ("REGISTERS.md", registers.markdown),
        ("walker/INSTRUCTIONS.md", isa_page.markdown),
        ("memory/TIMING.md", timing_page.markdown),
    ],
)
def test_page_is_current(page, generate):
    assert (_HDL / page).read_text(encoding="utf-8") == generate(), f"write hdl/{page} anew"


def test_registers_do_not_overlap_and_stay_below_the_windows():
    offsets = [register.offset for register in registers.REGISTERS]
    assert len(set(offsets)) == len(offsets)
    assert max(offsets) < registers.SCRATCHPAD_WINDOW
    assert registers.SCRATCHPAD_WINDOW + 0x40000 <= registers.MEMORY_WINDOW
    assert registers.MEMORY_WINDOW + registers.MEMORY_WINDOW_BYTES <= 1 << registers.ADDRESS_BITS
