"""The bound on the wait of any request of a channel, from the configuration and the timing table alone.

Until a request is old it waits for at most `age_cap` cycles and for what was old before. What is old goes
before everything else, no other request becomes old meanwhile, and there is at most a full channel of it. So
the wait is no longer than `age_cap` and two times what it takes to serve a full channel of old requests, plus
the refreshes that fall into that time.

A bank whose oldest request is old serves its requests one after the other. At any moment the next step of
such a bank either runs off a wait of the table, or waits for a bus or for the spacing of a command, which
then carries a command for another old request, or waits for the turn of its direction. Hence no more than

* for each request of the bank, which are at most all slots of one bank and the whole overflow, and a walk's
  read that passes each of them: the longest waits to PRE, ACT and column command, one command in its way
  that was not old, and one turn of the other direction with the changes to it and back;
* for each request of the channel: its commands' places on the buses and the spacing of ACTs and columns;
* for each turn's worth of those columns: one turn of the other direction more.

That holds where an answer is taken in every cycle in which one is offered, and each cycle in which one is
not adds one. With a `clock_ratio` of R only the last cycle of R takes one, and no other cycle undoes what a
bank has done: so outside refresh R cycles are enough for what takes one cycle at ratio 1, a refresh may begin
anywhere between two of those cycles, and the answer leaves at most two slow cycles after it came.

With each decision stage more a bank's step takes a cycle more, and so may each command that others wait for.

A write that depends on what is there (see `AtomicUnit`) is a read, and then a write that waits at the port:
until one is answered that keeps it out, and then for its own command.
"""

from __future__ import annotations

from ..config import DesignConfig
from ..layouts import RefreshMode
from .scheduler import turn_tail, walk_turn
from .timers import waits
from .timing import Command

__all__ = ["dependent_wait_bound", "wait_bound"]

#: Cycles from acceptance to the first decision of one stage, and from a decision to the bus.
_PIPELINE = 2
#: Commands in a bank's step: PRE, ACT, a column command, and one in its way.
_STEP_COMMANDS = 4


def wait_bound(config: DesignConfig, mode: RefreshMode) -> int:
    """Cycles from a request's acceptance that are enough for its answer, and for a write's command as well.

    Not for a write that depends on what is there. Answers must be taken when they are offered; each cycle in
    which one is not adds one.
    """
    ratio = config.clock_ratio
    timing, organisation, controller = config.memory.timing, config.memory.organisation, config.controller
    table = waits(timing, timing.commands)
    channels, banks = organisation.pseudo_channels, organisation.banks
    refresh = (Command.REFAB, Command.REFPB)
    columns = (Command.RD, Command.WR)

    def longest(*after: Command) -> int:
        """The longest wait for one of `after` but that for a refresh."""
        return max(w.cycles for w in table if w.after in after and w.before not in refresh)

    bank_requests = 2 * (controller.bank_queue - 1 + controller.overflow)
    channel_requests = controller.bank_queue * channels * banks + controller.overflow

    write_end = timing["tCWL"] + timing.burst_cycles
    changes = timing["tRTW"] + write_end + max(timing["tWTRS"], timing["tWTRL"])
    other_turn = controller.drain_burst + turn_tail(config.memory) + changes
    activate_spacing = max(timing["tRRDS"], timing["tRRDL"], -(-timing["tFAW"] // 4))
    bus = timing.activate_slots + max(1, timing.values["tPPD"].cycles if "tPPD" in timing.values else 1)

    later = controller.decision_stages - 1
    step = longest(Command.PRE) + 2 * longest(Command.ACT) + longest(*columns) + other_turn
    step += _STEP_COMMANDS * later
    work = channel_requests * (bus + activate_spacing + timing["tCCDL"] + 3 * later)
    # A turn that walks wait for is the shortest.
    in_turn = max(1, (walk_turn(config.memory) - timing["tRTW"]) // timing["tCCDL"])
    turns = -(-channel_requests // in_turn) + 1
    batch = bank_requests * step + work + turns * other_turn
    undisturbed = ratio * (
        controller.age_cap + 2 * batch + _PIPELINE + later + timing.row_hit + controller.ecc
    )
    if config.boundary_registers:
        # Two may be in the register before the queues; each waits for a place that another request leaves.
        undisturbed *= 3
    if ratio > 1:
        undisturbed += 2 * ratio

    if mode is RefreshMode.NONE:
        return undisturbed
    if mode is RefreshMode.PER_BANK and Command.REFPB in timing.commands:
        # The bank's own refresh, and those of the pseudo channel's others, which hold its ACT back.
        cost = longest(Command.PRE) + longest(Command.REFPB) + timing["tRFCpb"]
        cost += banks * (timing["tRREFD"] + activate_spacing + 2 * channels)
    else:
        cost = longest(Command.PREA) + longest(Command.REFAB) + timing["tRFC"] + 2 * channels
    cost += ratio - 1
    bound, longer = 0, undisturbed
    while longer != bound:
        bound = longer
        longer = undisturbed + cost * (bound // timing["tREFI"] + 1 + controller.refresh_postpone)
    return bound


def dependent_wait_bound(config: DesignConfig, mode: RefreshMode) -> int:
    """The same for a write that depends on what is there: a conditional one, and with ECC a partial one."""
    return 3 * wait_bound(config, mode)
