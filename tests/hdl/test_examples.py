"""The worked examples of docs/axi4.md: the LiteDRAM top elaborates, the Tcl names ports that there are."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
from amaranth.hdl import Fragment

from hdl.config import DesignConfig, MemoryConfig
from hdl.generate import port_values
from hdl.top import Clew

_EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


@pytest.fixture(scope="module")
def litedram() -> ModuleType:
    spec = importlib.util.spec_from_file_location("litedram_example", _EXAMPLES / "litedram.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_litedram_top_elaborates_with_its_user_port(litedram: ModuleType) -> None:
    top = litedram.LiteDramClew()
    Fragment.get(top, None).prepare(ports=[])
    widths = {name: len(value) for name, (_, value, _) in port_values(top).items()}
    # 128 MiB, and what `litedram_gen` was asked for.
    assert (widths["m_axi_awaddr"], widths["m_axi_arid"], widths["m_axi_rdata"]) == (27, 6, 128)
    assert litedram.CONFIG.memory.atoms * 32 == 128 << 20


def test_the_block_design_connects_every_port_of_the_manager() -> None:
    script = (_EXAMPLES / "u55c_hbm.tcl").read_text(encoding="utf-8")
    design = Clew(DesignConfig(memory=MemoryConfig(end="axi4")))
    # Only its ports are asked for.
    Fragment.get(design, None)
    names = set(port_values(design))
    buses = re.findall(r"foreach signal \{([^}]*)\}", script)
    connected = {f"m_axi_{signal}" for bus in buses for signal in bus.split()}
    connected |= set(re.findall(r"clew_0/(\w+)", script)) - {"m_axi", "s_axil"}
    assert connected <= names | {"clk", "rst"}
    left_open = {f"m_axi_{channel}{what}" for channel in ("aw", "ar") for what in ("cache", "prot")}
    assert {name for name in names if name.startswith("m_axi")} - connected == left_open
