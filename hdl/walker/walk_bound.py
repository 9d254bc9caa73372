"""The bound on the time of any walk: steps times the worst that one step can wait for, whatever its program.

A walk is a first read and at most `budget` steps, and then a verdict. A step is an instruction that waits for
its turn, at most one store, and then at most one of a read and a yielded value. With C contexts and S execute
stages, and PATIENCE of `selection.py`:

* turn: an executable context waits for at most C - 1 others, and with two tenants each of those for one of
  the other tenant; each turn comes after at most PATIENCE cycles of arriving records. Before an instruction
  can be selected, requests that were put off may take the slot: at most three of each context, because only
  an instruction puts off new ones, and a slot is lost to one that finds the store to its atom under way. A
  launch that was patient goes first and drains the pipeline.
* port: requests of one walker wait round robin, so for at most one of each other context, the store and the
  read of a step one after the other. The memory accepts C requests within `port` cycles.
* memory: an accepted request is answered within `wait` cycles in which answers are taken. The walker holds
  an answer back at most twice in PATIENCE cycles (for a launch, for an executable context), until that one
  has had its turn: S + 1 cycles and the requests that were put off. Of those there are at most two for each
  instruction, and an instruction comes in every other cycle.
* stores: with STORES_LIMIT of them unanswered the next one waits for an answer, as the end of a walk does for
  the answers to all. With two tenants a store waits, in turn, for one of each other context and as many of
  the other tenant: each waits for CROWD_PATIENCE cycles at most, and for its answer if it depends on what is
  there. A read waits for one such store to its atom.
* reads of a tenant that has READS_LIMIT under way wait for one of those to come back, in turn: at most C
  times in READS_LIMIT reads, so for as many answers as there are READS_LIMITs in C.
* verdicts wait round robin: at most C, each taken within `verdict` cycles.
"""

from __future__ import annotations

from ..config import DesignConfig, WalkerConfig
from ..fabric.arbiter import Arbiter
from ..layouts import RefreshMode
from ..memory.wait_bound import dependent_wait_bound, wait_bound
from .fair_share import READS_LIMIT
from .selection import PATIENCE
from .store_share import CROWD_PATIENCE

__all__ = ["near_walk_bound", "walk_bound"]


def walk_bound(
    walker: WalkerConfig, *, steps: int, wait: int, dependent_wait: int, port: int, verdict: int
) -> int:
    """Cycles from a walk's launch that are enough for the first cycle of its verdict, after `steps` steps.

    `wait`: from a request's acceptance to its answer, `dependent_wait`: the same of a store that depends on
    what is there, `port`: for the acceptance of a request of every context, `verdict`: until an offered
    verdict is taken.
    """
    contexts, stages = walker.contexts, walker.execute_stages
    # With six stages a request that was put off takes six cycles: one of an instruction may go before it, and
    # each has to be gone before the next.
    pace = 6 if stages >= 6 else 1
    put_off = 3 * contexts * pace
    turn = (2 * contexts) * (PATIENCE + pace) + put_off + 2 * (stages + 1) * pace

    def answered(wait: int) -> int:
        held = 2 * (wait // PATIENCE + 1)
        return wait + held * (stages + 1) + min(held * put_off, 2 * (wait + held) + put_off)

    answer, dependent = answered(wait), answered(dependent_wait)
    slot = port + put_off + pace
    share = -(-contexts // READS_LIMIT) * (answer + slot)
    read = slot + share + (slot + dependent) + answer
    stored = (2 * contexts + 1) * (CROWD_PATIENCE + slot + dependent)
    value = contexts * (verdict + pace - 1) + 1
    step = turn + stages + stored + max(read, value)
    return read + steps * step + turn + dependent + value


def near_walk_bound(config: DesignConfig, mode: RefreshMode, *, steps: int, verdict: int) -> int:
    """The bound of a walk in a near walker of `config`, beside any traffic of others.

    The memory port refuses requests while the overflow or the write buffer is full: what is in there then is
    answered within `wait_bound`, and so many are accepted meanwhile. It also refuses some while a write that
    depends on what is there is decided, and each request before may be another of those.
    """
    wait = wait_bound(config, mode)
    room = min(config.controller.overflow, config.controller.write_buffer)
    asked = config.walker.contexts * (1 + Arbiter.WALK_WAIT)
    port = (-(-asked // room) + 1) * wait + asked * 2 * wait
    bound = walk_bound(
        config.walker,
        steps=steps,
        wait=wait,
        dependent_wait=dependent_wait_bound(config, mode),
        port=port,
        verdict=verdict,
    )
    # A walker on a slower clock waits for no more of its own cycles than of the memory's.
    return config.clock_ratio * bound
