"""What the Trace Event Format asks of a file of events: fields by phase, nesting, order, pairs.

Perfetto keeps whole nanoseconds, cuts off the rest of `ts` and of `dur`, each alone, and drops a slice that
then reaches beyond the one around it. So times have to be whole nanoseconds to begin with.
"""

from collections import defaultdict

FIELDS = {
    "M": {"ph", "pid", "tid", "name", "args"},
    "X": {"ph", "pid", "tid", "name", "ts", "dur", "args"},
    "b": {"ph", "pid", "tid", "cat", "name", "id", "ts"},
    "e": {"ph", "pid", "tid", "cat", "name", "id", "ts"},
}


def require_trace_events(document):
    """Check a whole document; the fault is in the assertion's message."""
    assert set(document) == {"displayTimeUnit", "traceEvents"}
    assert document["displayTimeUnit"] == "ns"
    named, began, tracks = set(), {}, defaultdict(list)
    for event in document["traceEvents"]:
        assert set(event) == FIELDS[event["ph"]], event
        assert isinstance(event["pid"], int) and isinstance(event["tid"], int), event
        if event["ph"] == "M":
            named.add((event["pid"], event["tid"]))
            continue
        assert _nanoseconds(event["ts"]) >= 0 and _nanoseconds(event.get("dur", 0)) >= 0, event
        if event["ph"] == "X":
            assert (event["pid"], event["tid"]) in named, event
            tracks[event["pid"], event["tid"]].append(event)
        elif event["ph"] == "b":
            assert began.setdefault((event["cat"], event["id"]), event) is event, event
        else:
            start = began.pop((event["cat"], event["id"]))
            assert start["ts"] <= event["ts"] and start["name"] == event["name"], event
    assert not began
    for events in tracks.values():
        _require_nested(events)


def _require_nested(events):
    """Slices of a track come in order of time, and each ends within those that it begins in."""
    open_until, last = [], 0
    for event in events:
        begin, dur = _nanoseconds(event["ts"]), _nanoseconds(event["dur"])
        end = begin + dur
        assert begin >= last, event
        last = begin
        while open_until and open_until[-1] <= begin:
            open_until.pop()
        assert not open_until or end <= open_until[-1], event
        open_until.append(end)


def _nanoseconds(microseconds):
    whole = round(1_000 * microseconds)
    assert abs(1_000 * microseconds - whole) < 1e-6, f"{microseconds} us: expected whole nanoseconds"
    return whole
