"""What the Trace Event Format asks of a file of events: fields by phase, nesting, order, pairs."""

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
        assert event["ts"] >= 0 and event.get("dur", 0) >= 0, event
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
        begin, end = (round(1e6 * time) for time in (event["ts"], event["ts"] + event["dur"]))
        assert begin >= last, event
        last = begin
        while open_until and open_until[-1] <= begin:
            open_until.pop()
        assert not open_until or end <= open_until[-1], event
        open_until.append(end)
