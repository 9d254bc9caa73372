"""Energy: the table of published values, its faults, and the sums over counted events."""

import pytest

from firmware_py.effect import effect
from firmware_py.energy import Range, energies, parse_energies, place_energy
from firmware_py.errors import InputError
from firmware_py.far_help import parse_help
from firmware_py.paths import path_presets
from firmware_py.report.document import document
from hdl.fabric.message import LAUNCH_BYTES, READ_REQUEST_BYTES, READ_RESPONSE_BYTES, VERDICT_BYTES

from .test_compare import comparison
from .test_replay import beam, depth_first

HEADER = "name,kind,paths,low_pj,typical_pj,high_pj,what,source\n"
ACTIVATE = "a,activate,,10,100,1000,w,s\n"
ARRAY = "b,array,,1,2,3,w,s\n"
LINK = "c,link,v100_hbm2 cxl_memory,4,5,6,w,s\n"
TABLE = parse_energies(HEADER + ACTIVATE + ARRAY + LINK, file="e.csv")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name\n", "e.csv: line 1: header is 'name': expected name,kind,paths"),
        (HEADER + "a,activate,,1,2\n", "e.csv: line 2: 5 fields: expected 8"),
        (HEADER + ACTIVATE + ACTIVATE, "line 3: field name is 'a': expected a name not used before"),
        (HEADER + "a,pump,,1,2,3,w,s\n", "field kind is 'pump': expected one of activate, array, link"),
        (HEADER + "a,array,,1,2,3,w,\n", "line 2: field source is empty"),
        (HEADER + "a,array,,1,-2,3,w,s\n", "field typical_pj is '-2': expected a positive number"),
        (HEADER + "a,array,,3,2,4,w,s\n", "field typical_pj is '2': expected 3 .low_pj. to 4 .high_pj."),
        (HEADER + "a,array,x,1,2,3,w,s\n", "field paths has 'x': expected it once, and of a link"),
        (HEADER + LINK + LINK.replace("c,", "d,", 1), "field paths has 'v100_hbm2|field paths has 'cxl"),
        (HEADER + ACTIVATE + LINK, "e.csv: 0 rows of kind array: expected one"),
    ],
)
def test_a_fault_in_the_table_is_named(text, message):
    with pytest.raises(InputError, match=message):
        parse_energies(text, file="e.csv")


def test_every_far_path_and_every_port_has_a_published_link():
    wanted = {path.name for path in path_presets().values() if path.place == "far" or path.port}
    assert set(energies().links) == wanted


def test_ranges_add_and_scale_value_by_value():
    both = Range(low=1, typical=2, high=3) + Range(low=10, typical=20, high=30)
    assert both.scaled(2).as_dict() == {"low": 22, "typical": 44, "high": 66}


def test_walks_are_charged_for_their_own_events_and_the_replay_for_all():
    result = comparison(depth_first())
    near = place_energy(result.near, path="v100_hbm2", solved=2, table=TABLE)
    far = place_energy(result.far, path="v100_hbm2", solved=0, table=TABLE)
    # Two walks of three reads; the fake opens the rows anew in every batch.
    walks, reads = 2, 3
    opened = result.near.ledger.rows.closed + result.near.ledger.rows.conflict
    assert near.walk_parts["array"].typical == reads * 256 * 2 / walks
    assert near.walk_parts["activate"].low == 10 * opened / walks
    assert near.walk_parts["link"].high == 8 * 6 * (LAUNCH_BYTES + VERDICT_BYTES)
    crossed = reads * (READ_REQUEST_BYTES + READ_RESPONSE_BYTES)
    assert far.walk_parts["link"].typical == pytest.approx(8 * 5 * crossed / walks)
    parts = near.walk_parts.values()
    assert near.walk.typical == pytest.approx(sum(part.typical for part in parts))
    every = result.near.banks
    assert near.replay.low == pytest.approx(
        10 * every.activates.sum()
        + 256 * (every.reads.sum() + every.writes.sum())
        + 8 * 4 * result.near.link_bytes.total
    )
    assert near.solved_problem.typical == near.replay.typical / 2 and far.solved_problem is None


def test_a_list_that_is_read_as_a_stream_is_charged_to_its_walk():
    result = comparison(beam(), far_help=parse_help("stream"))
    far = place_energy(result.far, path="v100_hbm2", solved=1, table=TABLE)
    read, walks = result.far.banks.reads.sum(), result.far.walk.count
    assert result.far.helped["stream"] and read > result.far.loop.count
    assert far.walk_parts["array"].typical == pytest.approx(read * 256 * 2 / walks)
    crossed = read * (READ_REQUEST_BYTES + READ_RESPONSE_BYTES)
    assert far.walk_parts["link"].typical == pytest.approx(8 * 5 * crossed / walks)


def test_a_path_without_a_published_energy_has_none():
    assert place_energy(comparison(depth_first()).near, path="rdma_read", solved=1, table=TABLE) is None


def test_the_effect_has_local_and_end_to_end_side_by_side():
    result = comparison(depth_first())
    found = effect("near", result.near, over="far", base=result.far)
    assert found == result.effect
    assert found.loop == result.far.loop.mean / result.near.loop.mean
    assert found.walk == result.far.walk.mean / result.near.walk.mean
    assert found.replay == result.far.replay_cycles / result.near.replay_cycles
    assert 1 < found.replay < found.walk < found.loop
    assert document(result)["details"]["effect"] == found.as_dict()
