"""The boards that a bitstream can be made for."""

from .board import Board
from .ulx3s import ULX3S_12F, ULX3S_25F, ULX3S_45F, ULX3S_85F

__all__ = ["BOARDS", "Board", "named_board"]

#: Every board, by name.
BOARDS: dict[str, Board] = {
    board.name: board
    for board in (
        ULX3S_85F,
        ULX3S_45F,
        ULX3S_25F,
        ULX3S_12F,
    )
}


def named_board(name: str) -> Board:
    """The board called `name`. Raises ValueError that lists the known names."""
    try:
        return BOARDS[name]
    except KeyError:
        raise ValueError(f"unknown board {name!r}: expected one of {', '.join(BOARDS)}") from None
