"""Crossword-like constraint search: fill the slots of a grid with words that agree where slots cross."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

__all__ = ["WORDS", "Crossword", "Fill", "Grid", "mesh", "staircase"]

Cell = tuple[int, int]

#: The word list of the demonstration puzzles, in the order in which words are tried.
_WORD_LIST = """
able acid aged also arch area army atom aunt away back bake ball band bark barn base bath bead
beam bean bear beat bell belt bend best bird bite blue boat bold bone book born both bowl burn
cage cake calm camp cape card care cart case cast cave cell chin city clay clip club coal coat
code coin cold cook cool copy cord core corn cost crew crop dark dart data dawn dean dear deep
deer desk dial dice dish dock door dose dove draw drum duck dust each earl earn ease east easy
echo edge edit else even exam exit face fact fair fall farm fast fern film find fire fish flag
flat foal fold foot fork form fort four frog fuel gain game gate gear gift glad glue goal goat
gold golf good gray grid grow gulf hail hair half hall hand harp hawk heal hear heat herb hero
hill hint hole home hope horn host hour idea inch iron isle item jazz join jump keen kelp kind
king kite knee knot lace lake lamb lamp land lane last late lawn leaf lean lens lime line lion
list loaf lock loft long loop loud luck lung mail main mall mare mark mast maze meal menu mild
mile milk mill mine mint mole moon moss moth myth nail name near neck nest news next nine noon
nose note noun oath oats obey oboe odor omen once only open oval oven over pace page pail pale
palm park path peak pear pine pink pipe plan play plot plum poem pole pond pony pool port rail
rain read real reed rest rice ring rise road roar robe rock role roof room root rope rose ruin
rule safe sail salt sand save scar seal seat seed shoe shop silk sing skin snow soap soil song
soup star stem step stew swan tail tale tall tank tape task taxi team tear tent tide tile time
tiny tire toad tone tour town tree trip true tuna tune unit urge used vase vast veal vein verb
vest vine vote wage walk wall warm wave weak wear weed west wide wind wine wing wire wise
wolf wood wool word yard yarn year yoga zero zone zoom
"""
WORDS = tuple(_WORD_LIST.split())


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Slots, each the cells that a word fills in order; slots cross in the cells that they share."""

    slots: tuple[tuple[Cell, ...], ...]
    """In the order in which they are filled."""
    names: tuple[str, ...]
    letters: tuple[tuple[Cell, str], ...] = ()
    """Letters that the puzzle gives."""

    @cached_property
    def crossing(self) -> dict[int, tuple[int, ...]]:
        """By slot: the slots that share a cell with it."""
        cells = [set(slot) for slot in self.slots]
        return {
            slot: tuple(other for other in range(len(cells)) if other != slot and cells[other] & cells[slot])
            for slot in range(len(cells))
        }


def mesh(side: int, word: int, letters: Mapping[Cell, str] | None = None) -> Grid:
    """A net of `side` x `side` meshes whose edges are slots of `word` cells, filled mesh row by mesh row.

    Words that follow one another in a line share their end cell.
    """
    step = word - 1
    slots, names = [], []
    for line in range(side + 1):
        for place in range(side):
            slots.append(tuple((line * step, place * step + cell) for cell in range(word)))
            names.append(f"h{line + 1}.{place + 1}")
        if line < side:
            for place in range(side + 1):
                slots.append(tuple((line * step + cell, place * step) for cell in range(word)))
                names.append(f"v{place + 1}.{line + 1}")
    return Grid(slots=tuple(slots), names=tuple(names), letters=tuple((letters or {}).items()))


def staircase(length: int, word: int, letters: Mapping[Cell, str] | None = None) -> Grid:
    """A stair of `length` slots of `word` cells, across and down in turn, each from where the last ended."""
    slots, names = [], []
    row = column = 0
    for step in range(length):
        if step % 2 == 0:
            slots.append(tuple((row, column + place) for place in range(word)))
            column += word - 1
        else:
            slots.append(tuple((row + place, column) for place in range(word)))
            row += word - 1
        names.append(f"{'hv'[step % 2]}{step // 2 + 1}")
    return Grid(slots=tuple(slots), names=tuple(names), letters=tuple((letters or {}).items()))


@dataclass(frozen=True, kw_only=True)
class Fill:
    """The words of the first slots, in their order."""

    words: tuple[str, ...] = ()


class Crossword:
    """A grid and a word list as a problem for a search. A word is used once."""

    def __init__(self, grid: Grid, words: Sequence[str] = WORDS) -> None:
        self.grid = grid
        self.words = tuple(words)
        self.root = Fill()

    def board(self, fill: Fill) -> dict[Cell, str]:
        """The letters on the board."""
        board = dict(self.grid.letters)
        for slot, word in zip(self.grid.slots, fill.words, strict=False):
            board.update(zip(slot, word, strict=True))
        return board

    def _fitting(self, slot: int, board: Mapping[Cell, str], used: Sequence[str]) -> list[str]:
        cells = self.grid.slots[slot]
        given = [(place, board[cell]) for place, cell in enumerate(cells) if cell in board]
        return [
            word
            for word in self.words
            if len(word) == len(cells)
            and word not in used
            and all(word[place] == letter for place, letter in given)
        ]

    def children(self, state: Fill) -> list[Fill]:
        """The words that fit the next slot, in the word list's order."""
        slot = len(state.words)
        if slot == len(self.grid.slots):
            return []
        fitting = self._fitting(slot, self.board(state), state.words)
        return [Fill(words=(*state.words, word)) for word in fitting]

    def solved(self, state: Fill) -> bool:
        """Whether every slot is filled; the words agree by construction."""
        return len(state.words) == len(self.grid.slots)

    def dead(self, state: Fill) -> str | None:
        """Impossible if an open slot that the last word crosses has no word left that fits."""
        if not state.words:
            return None
        board = self.board(state)
        for slot in self.grid.crossing[len(state.words) - 1]:
            if slot >= len(state.words) and not self._fitting(slot, board, state.words):
                return "impossible"
        return None

    def describe(self, state: Fill) -> str:
        """The last slot and its word."""
        return f"{self.grid.names[len(state.words) - 1]}. {state.words[-1]}"

    def size(self, state: Fill) -> int:
        """One byte for each cell and each slot."""
        return len({cell for slot in self.grid.slots for cell in slot}) + len(self.grid.slots)
