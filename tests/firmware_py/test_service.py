"""The service of reads on logs written by hand: acceptance, commands, data, and what refresh caused."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from firmware_py.bank_profile import bank_profile
from firmware_py.layers import make_layers
from firmware_py.ledger import Crossings, loop_time, make_ledger, service, walk_time
from firmware_py.link_bytes import link_bytes
from hdl.config import named_config
from hdl.fabric.message import (
    CONDITIONAL_WRITE_BYTES,
    LAUNCH_BYTES,
    READ_REQUEST_BYTES,
    READ_RESPONSE_BYTES,
    VERDICT_BYTES,
    WRITE_REQUEST_BYTES,
    WRITE_RESPONSE_BYTES,
)
from hdl.layouts import ColumnOp, HopEvent, RowClass, RowOp, Source
from hdl.memory.address import AddressMap, Place
from hdl.memory.stack import StackMap
from sim.compiled import ACCESS_RECORD, BATCH_RECORD, COMMAND_RECORD, HOP_RECORD, PORT_RECORD
from sim.model.command_checker import COLUMN_BUS, ROW_BUS

MEMORY = named_config("simulation").memory
TIMING, MAP = MEMORY.timing, AddressMap(MEMORY)
HIT, CLOSED, CONFLICT = RowClass.HIT.value, RowClass.CLOSED.value, RowClass.CONFLICT.value
NEAR, FAR = Source.NEAR_WALKER.value, Source.FAR_WALKER.value
BESIDE = Crossings(up=0, down=0, walk=20)


@dataclass
class Run:
    """Logs of one walker; what is added must come in order of cycles."""

    place: int = 0
    hops: list = field(default_factory=list)
    accesses: list = field(default_factory=list)
    ports: list = field(default_factory=list)
    commands: list = field(default_factory=list)

    def row(self, cycle, op, bank=0, row=0):
        self.commands.append((cycle, ROW_BUS, op.value, 0, bank, row))

    def read(self, *, asked, accepted, column, row, row_class, answered, bank=0, op=ColumnOp.READ, context=0):
        source = (NEAR, FAR)[self.place]
        address = MAP.encode(Place(0, bank, row, 0))
        self.hops.append((asked, address, HopEvent.REQUEST.value, context, self.place, 0))
        self.ports.append((accepted, source, context, 0, 0, 0))
        self.commands.append((column, COLUMN_BUS, op.value, 0, bank, 0))
        self.accesses.append((column, source, context, row_class, 0, 0))
        self.ports.append((answered, source, context, 0, 1, 0))

    def end(self, cycle, context=0):
        self.hops.append((cycle, 0, HopEvent.VERDICT.value, context, self.place, 0))

    def served(self):
        hops, accesses, ports, commands = (
            np.array(rows, dtype=record)
            for rows, record in (
                (self.hops, HOP_RECORD),
                (self.accesses, ACCESS_RECORD),
                (self.ports, PORT_RECORD),
                (sorted(self.commands), COMMAND_RECORD),
            )
        )
        batch = np.zeros(len(accesses), dtype=np.int64)
        ledger = make_ledger(
            place=self.place,
            hops=hops,
            hop_batch=np.zeros(len(hops), dtype=np.int64),
            accesses=accesses,
            access_batch=batch,
            commands=[commands],
            timing=TIMING,
            stack=StackMap(MEMORY),
        )
        return ledger, service(
            ledger,
            place=self.place,
            accesses=accesses,
            access_batch=batch,
            ports=ports,
            commands=[commands],
            timing=TIMING,
        )


def three_reads():
    """Closed, hit, conflict; the second waits for the port, the third's response for its turn."""
    run = Run()
    run.row(12, RowOp.ACTIVATE, row=3)
    run.read(asked=10, accepted=10, column=27, row=3, row_class=CLOSED, answered=43)
    run.read(asked=44, accepted=47, column=49, row=3, row_class=HIT, answered=65)
    run.row(68, RowOp.PRECHARGE)
    run.row(82, RowOp.ACTIVATE, row=4)
    run.read(asked=66, accepted=66, column=97, row=4, row_class=CONFLICT, answered=118)
    run.end(120)
    return run


def test_a_read_is_served_from_its_acceptance_to_its_response():
    _, served = three_reads().served()
    assert served.accepted.tolist() == [10, 47, 66]
    assert served.first_command.tolist() == [12, 49, 68]
    assert served.last_beat.tolist() == [27 + TIMING.row_hit, 49 + TIMING.row_hit, 97 + TIMING.row_hit]
    assert served.device.tolist() == [15 + TIMING.row_hit, TIMING.row_hit, 29 + TIMING.row_hit]
    assert served.port.tolist() == [33, 18, 52]
    assert served.refresh.tolist() == [0, 0, 0]


@pytest.mark.parametrize(("accepted", "first"), [(70, 82), (90, 97)])
def test_a_row_command_before_the_acceptance_of_a_read_was_for_another_request(accepted, first):
    run = Run()
    run.row(68, RowOp.PRECHARGE)
    run.row(82, RowOp.ACTIVATE, row=4)
    run.read(asked=66, accepted=accepted, column=97, row=4, row_class=CONFLICT, answered=118)
    run.end(120)
    _, served = run.served()
    assert served.first_command.tolist() == [first]
    assert (served.device <= served.port).all()


def test_the_parts_of_loops_and_walks_add_up():
    ledger, served = three_reads().served()
    time = loop_time(ledger, served, BESIDE)
    assert time.total.tolist() == ledger.loops.cycles.tolist() == [34, 22, 54]
    assert {name: cycles.tolist() for name, cycles in time.parts.items() if cycles.any()} == {
        "arbitration": [0, 3, 0],
        "controller": [2, 2, 7],
        "device": [31, 16, 45],
        "walker": [1, 1, 2],
    }
    walks = np.array([110 + 20 + 5, 9])
    split = walk_time(
        walks,
        loops=ledger.loops,
        time=time,
        numbers=np.array([0]),
        helped=[False, True],
        crossings=BESIDE,
    )
    assert split.total.tolist() == walks.tolist()
    assert (split.parts["queue"].tolist(), split.parts["help"].tolist()) == ([5, 0], [0, 9])
    assert split.parts["device"].tolist() == [92, 0] and split.parts["link"].tolist() == [20, 0]


def test_a_part_below_zero_is_an_error():
    ledger, served = three_reads().served()
    with pytest.raises(ValueError, match="loop 0: part arbitration has -5 cycles: expected 0 or more"):
        loop_time(ledger, served, Crossings(up=5, down=0, walk=0))
    with pytest.raises(ValueError, match="walk 0: part queue has -30 cycles"):
        walk_time(
            np.array([100]),
            loops=ledger.loops,
            time=loop_time(ledger, served, BESIDE),
            numbers=np.array([0]),
            helped=[False],
            crossings=BESIDE,
        )


def refreshed(*, accepted, again, column, op=ColumnOp.READ, row=3, all_banks=True):
    """A read, a refresh that closes its row (PREA 100, REF 115), and another read there."""
    run = Run()
    run.row(12, RowOp.ACTIVATE, row=3)
    run.read(asked=10, accepted=10, column=27, row=3, row_class=CLOSED, answered=43, op=op)
    if all_banks:
        run.row(100, RowOp.PRECHARGE_ALL)
        run.row(115, RowOp.REFRESH_ALL)
    else:
        run.row(100, RowOp.PRECHARGE)
        run.row(115, RowOp.REFRESH_BANK)
    run.row(again, RowOp.ACTIVATE, row=row)
    run.read(
        asked=accepted, accepted=accepted, column=column, row=row, row_class=CLOSED, answered=column + 16
    )
    run.end(column + 17)
    return run.served()[1]


@pytest.mark.parametrize("all_banks", [True, False])
def test_refresh_holds_a_read_to_the_end_of_trfc_and_its_row_is_opened_again(all_banks):
    over = 115 + TIMING["tRFC" if all_banks else "tRFCpb"]
    served = refreshed(accepted=90, again=over, column=over + 15, all_banks=all_banks)
    assert (served.held_from.tolist()[1], served.held.tolist()) == (90, [0, over - 90])
    assert served.reopened.tolist() == [0, 15]
    assert served.refresh.tolist() == [0, over - 90 + 15]


def test_the_first_slot_of_an_act_ends_the_hold_although_trfc_has_a_cycle_left():
    over = 115 + TIMING["tRFC"]
    served = refreshed(accepted=90, again=over - 1, column=over + 14)
    assert served.held.tolist() == [0, over - 1 - 90] and served.reopened.tolist() == [0, 15]


def test_a_precharge_for_a_refresh_is_no_command_of_the_read_behind_it():
    over = 115 + TIMING["tRFCpb"]
    run = Run()
    run.row(100, RowOp.PRECHARGE)
    run.row(115, RowOp.REFRESH_BANK)
    run.row(over + 2, RowOp.ACTIVATE, row=3)
    # The controller calls it a conflict: it saw a PRE.
    run.read(asked=over, accepted=over, column=over + 17, row=3, row_class=CONFLICT, answered=over + 33)
    run.end(over + 34)
    _, served = run.served()
    assert served.first_command.tolist() == [over + 2] and served.held.tolist() == [0]


def test_a_read_that_comes_during_a_refresh_is_held_by_the_rest_of_it():
    over = 115 + TIMING["tRFC"]
    served = refreshed(accepted=over - 7, again=over + 2, column=over + 17)
    assert served.held.tolist() == [0, 7]


def test_a_read_that_comes_after_a_refresh_only_opens_its_row_again():
    over = 115 + TIMING["tRFC"]
    served = refreshed(accepted=over + 50, again=over + 52, column=over + 67)
    assert served.held.tolist() == [0, 0] and served.reopened.tolist() == [0, 15]


@pytest.mark.parametrize("changes", [{"op": ColumnOp.READ_AUTO}, {"row": 4}])
def test_a_row_that_was_closed_or_another_in_any_case_is_not_opened_again_for_refresh(changes):
    over = 115 + TIMING["tRFC"]
    served = refreshed(accepted=over + 50, again=over + 52, column=over + 67, **changes)
    assert served.refresh.tolist() == [0, 0]


def test_the_layers_tell_refresh_apart():
    run = Run()
    over = 115 + TIMING["tRFC"]
    run.row(12, RowOp.ACTIVATE, row=3)
    run.read(asked=10, accepted=10, column=27, row=3, row_class=CLOSED, answered=43)
    run.row(100, RowOp.PRECHARGE_ALL)
    run.row(115, RowOp.REFRESH_ALL)
    run.row(over, RowOp.ACTIVATE, row=3)
    run.read(asked=90, accepted=90, column=over + 15, row=3, row_class=CLOSED, answered=over + 31)
    run.end(over + 32)
    ledger, served = run.served()
    walk = over + 32 - 10 + 20
    layers = make_layers(
        ledger, served, walk_cycles=np.array([walk]), numbers=np.array([0]), replay_cycles=1000
    )
    assert [layer.name for layer in layers] == ["device", "port", "loop", "walk", "replay"]
    held = over - 90
    assert [layer.refresh.max for layer in layers] == [15, held + 15, held + 15, held + 15, held + 15]
    assert [layer.cycles.max for layer in layers][2:] == [over + 32 - 90, walk, 1000]
    assert [layer.cycles.count for layer in layers] == [2, 2, 2, 1, 1]


def test_a_refresh_holds_a_read_only_from_the_last_command_before_it_and_counts_once_in_the_replay():
    """Two contexts: one waits for the other's read of its bank first, both for the refresh then."""
    over = 115 + TIMING["tRFC"]
    run = Run()
    run.row(12, RowOp.ACTIVATE, row=3)
    run.read(asked=10, accepted=10, column=27, row=3, row_class=CLOSED, answered=43)
    run.row(100, RowOp.PRECHARGE_ALL)
    run.row(115, RowOp.REFRESH_ALL)
    run.row(over, RowOp.ACTIVATE, row=4)
    run.read(asked=20, accepted=20, column=over + 15, row=4, row_class=CLOSED, answered=over + 31, context=1)
    run.row(over + 2, RowOp.ACTIVATE, bank=1, row=5)
    run.read(
        asked=60,
        accepted=60,
        column=over + 17,
        row=5,
        row_class=CLOSED,
        answered=over + 33,
        bank=1,
        context=2,
    )
    for context, cycle in enumerate((44, over + 32, over + 34)):
        run.end(cycle, context=context)
    run.hops.sort()
    ledger, served = run.served()
    assert served.held.tolist() == [0, over - 27, over - 60]
    layers = make_layers(ledger, served, walk_cycles=np.arange(3), numbers=np.arange(3), replay_cycles=1000)
    assert layers[-1].refresh.max == over - 27


def test_reads_of_a_far_walker_have_the_link_in_their_loop():
    run = Run(place=1)
    run.row(112, RowOp.ACTIVATE, row=3)
    run.read(asked=10, accepted=110, column=127, row=3, row_class=CLOSED, answered=143)
    run.end(203)
    ledger, served = run.served()
    time = loop_time(ledger, served, Crossings(up=100, down=58, walk=0))
    assert {name: cycles.tolist() for name, cycles in time.parts.items() if cycles.any()} == {
        "link": [158],
        "controller": [2],
        "device": [31],
        "walker": [2],
    }


def test_a_read_without_its_response_is_an_error():
    run = three_reads()
    run.ports.pop()
    with pytest.raises(ValueError, match="the read in cycle 97: expected its request and its response"):
        run.served()


def test_the_profile_counts_by_bank():
    accesses = np.array(
        [(20, NEAR, 0, CLOSED, 0, 0), (30, 2, 0, HIT, 1, 0), (60, FAR, 0, CONFLICT, 0, 0)], ACCESS_RECORD
    )
    commands = np.array(
        [
            (5, ROW_BUS, RowOp.ACTIVATE.value, 1, 2, 3),
            (20, COLUMN_BUS, ColumnOp.READ.value, 1, 2, 0),
            (30, COLUMN_BUS, ColumnOp.WRITE.value, 1, 2, 0),
            (35, ROW_BUS, RowOp.PRECHARGE.value, 1, 2, 0),
            (45, ROW_BUS, RowOp.ACTIVATE.value, 1, 2, 4),
            (60, COLUMN_BUS, ColumnOp.READ.value, 1, 2, 0),
            (70, ROW_BUS, RowOp.REFRESH_ALL.value, 0, 0, 0),
            (80, ROW_BUS, RowOp.REFRESH_BANK.value, 1, 2, 0),
            (200, ROW_BUS, RowOp.REFRESH_ALL.value, 1, 0, 0),
        ],
        COMMAND_RECORD,
    )
    profile = bank_profile(
        accesses=accesses,
        commands=[commands, commands[:0]],
        windows=np.array([(0, 100), (300, 400)], BATCH_RECORD),
        organisation=MEMORY.organisation,
    )
    assert profile.reads.shape == (2, MEMORY.organisation.pseudo_channels, MEMORY.organisation.banks)
    counts = {name: int(getattr(profile, name)[0, 1, 2]) for name in profile.__dataclass_fields__}
    assert counts == {"reads": 2, "writes": 1, "hits": 1, "closed": 1, "conflicts": 1, "refreshes": 1}
    assert int(profile.activates.sum()) == 2 and profile.refreshes[0, 0].tolist() == [1] * 16
    assert not profile.reads[1].any() and int(profile.refreshes.sum()) == 17


def test_bytes_over_the_link_are_those_of_its_messages():
    mover = Source.MOVER.value
    ports = np.array(
        [
            (1, FAR, 0, 0, 0, 0),
            (2, FAR, 0, 1, 0, 0),
            (3, FAR, 0, 2, 0, 0),
            (4, FAR, 0, 0, 1, 0),
            (5, FAR, 0, 1, 1, 0),
            (6, NEAR, 0, 0, 0, 0),
            (7, NEAR, 0, 0, 1, 0),
            (8, mover, 0, 0, 0, 0),
            (9, mover, 0, 0, 1, 0),
            (10, Source.SEQUENCER.value, 0, 1, 0, 0),
        ],
        PORT_RECORD,
    )
    found = link_bytes(ports, launches=2, verdicts=3)
    requests = READ_REQUEST_BYTES + WRITE_REQUEST_BYTES + CONDITIONAL_WRITE_BYTES
    assert found.walk_up == requests + 2 * LAUNCH_BYTES
    assert found.walk_down == READ_RESPONSE_BYTES + WRITE_RESPONSE_BYTES + 3 * VERDICT_BYTES
    assert (found.bulk_up, found.bulk_down) == (READ_REQUEST_BYTES + WRITE_REQUEST_BYTES, READ_RESPONSE_BYTES)
    assert found.total == found.walks + found.bulk_up + found.bulk_down
