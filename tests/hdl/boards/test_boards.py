"""Boards: their constraints, clocks and top module."""

from __future__ import annotations

import dataclasses
import re
from fractions import Fraction

import pytest

from hdl.boards import BOARDS, named_board
from hdl.boards.board import Pll
from hdl.boards.top import BoardTop
from hdl.config import named_config
from hdl.generate import verilog


@pytest.mark.parametrize("name", BOARDS)
def test_every_port_of_the_top_has_a_pin(name: str) -> None:
    board = named_board(name)
    assert board.name == name
    top = BoardTop(board, named_config(board.configuration))
    ports = set()
    for path, member, _ in top.signature.flatten(top):
        port = "__".join(map(str, path))
        ports |= {port} if member.shape == 1 else {f"{port}[{bit}]" for bit in range(member.shape)}
    text = board.constraints()
    assert set(re.findall(r'^LOCATE COMP "([^"]+)" SITE "[A-Z]\d+";$', text, re.MULTILINE)) == ports
    assert set(re.findall(r'^IOBUF PORT "([^"]+)" PULLMODE=', text, re.MULTILINE)) == ports
    assert len({pin.site for pin in board.pins.values()}) == len(ports)
    assert 'FREQUENCY PORT "clock" 25 MHZ;' in text
    assert 'FREQUENCY PORT "clock" 25.5 MHZ;' in board.constraints(margin=Fraction(1, 50))


@pytest.mark.parametrize(("clock_in", "clock_out"), [(25, 50), (25, 25), (25, 40), (12, 66), (100, 125)])
def test_the_pll_makes_the_clock(clock_in: int, clock_out: int) -> None:
    pll = Pll.between(Fraction(clock_in), Fraction(clock_out))
    assert Fraction(clock_in) * pll.feedback / pll.reference == clock_out
    low, high = Pll.OSCILLATOR
    assert low <= clock_out * pll.output <= high


def test_a_clock_that_the_pll_cannot_make() -> None:
    with pytest.raises(ValueError, match=r"^clock of 900 MHz: the PLL cannot make it of 25$"):
        Pll.between(Fraction(25), Fraction(900))
    board = dataclasses.replace(BOARDS["ulx3s_85f"], design_clock_mhz=Fraction(2))
    with pytest.raises(ValueError, match="clock of 2 MHz"):
        _ = board.pll


def test_the_baud_rate_is_met_within_two_percent() -> None:
    for board in BOARDS.values():
        actual = float(board.design_clock_mhz * 1_000_000 / board.divisor)
        assert abs(actual - board.baud) <= 0.02 * board.baud


def test_an_unknown_board() -> None:
    with pytest.raises(ValueError, match="unknown board 'de10': expected one of ulx3s_85f"):
        named_board("de10")


def test_the_top_has_the_pll_and_plain_ports() -> None:
    board = named_board("ulx3s_85f")
    text = verilog(BoardTop(board, named_config("small")), name="top")
    header = re.search(r"^module top\(([^)]*)\);", text, re.MULTILINE)
    assert header is not None
    assert {name.strip() for name in header[1].split(",")} == {"clock", "reset", "rx", "tx", "led"}
    pll = text[text.index("EHXPLLL #(") :]
    dividers = {name: int(value) for name, value in re.findall(r"\.(\w+_(?:DIV|CPHASE))\(32'd(\d+)\)", pll)}
    expected = board.pll
    assert dividers == {
        "CLKI_DIV": expected.reference,
        "CLKFB_DIV": expected.feedback,
        "CLKOP_DIV": expected.output,
        "CLKOP_CPHASE": expected.output // 2 - 1,
    }
