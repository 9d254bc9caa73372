"""Every kind in every dress: gzip, byte order marks, Windows line ends; and what is told when it is torn."""

from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from sim.trace.errors import TraceError
from sim.trace.events import Event
from sim.trace.importers import detect, import_file, importers

from .synthetic import KINDS, SEVERAL, WITH_TEXT, several

DRESSES: dict[str, Callable[[str], bytes]] = {
    "gzip": lambda text: gzip.compress(text.encode()),
    "gzip of two members": lambda text: gzip.compress(text[:9].encode()) + gzip.compress(text[9:].encode()),
    "UTF-8 with a mark": lambda text: text.encode("utf-8-sig"),
    "UTF-16": lambda text: text.encode("utf-16"),
    "UTF-16, big end first": lambda text: b"\xfe\xff" + text.encode("utf-16-be"),
    "UTF-32": lambda text: text.encode("utf-32"),
    "Windows line ends": lambda text: text.replace("\n", "\r\n").encode(),
    "gzip of UTF-16 with Windows line ends": lambda text: gzip.compress(
        text.replace("\n", "\r\n").encode("utf-16")
    ),
}


def _events(path: Path) -> list[list[Event]]:
    return [list(trace) for trace in import_file(path)]


def test_every_kind_has_a_sample() -> None:
    assert set(KINDS) == {importer.name for importer in importers()}


@pytest.mark.parametrize("kind", KINDS)
def test_kind_comes_from_the_content_alone(kind: str, tmp_path: Path) -> None:
    path = several(tmp_path / "x", kind, 2)
    assert detect(path).name == kind
    head = path.read_text(encoding="utf-8")
    assert [importer.name for importer in importers() if importer.recognises(head)] == [kind]


@pytest.mark.parametrize("dress", DRESSES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_dress_changes_nothing(kind: str, dress: str, tmp_path: Path) -> None:
    plain = several(tmp_path / "plain", kind, 3)
    dressed = tmp_path / "dressed"
    dressed.write_bytes(DRESSES[dress](KINDS[kind](3)))
    events = _events(plain)
    assert len(events) == (3 if kind in SEVERAL else 1)
    assert _events(dressed) == events


@pytest.mark.parametrize("kind", KINDS)
def test_a_cut_gzip_file_is_named(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "cut"
    path.write_bytes(gzip.compress(KINDS[kind](3).encode())[:-9])
    with pytest.raises(TraceError) as caught:
        _events(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: gzip: expected a whole gzip file, found ") and "\n" not in text


def test_a_damaged_gzip_file_is_named(tmp_path: Path) -> None:
    whole = gzip.compress(KINDS["sos_llm"](3).encode())
    path = tmp_path / "damaged"
    for place in (30, len(whole) - 6):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        with pytest.raises(TraceError) as caught:
            _events(path)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_is_cut_anywhere_is_refused_or_shorter(kind: str, tmp_path: Path) -> None:
    whole = KINDS[kind](2).encode()
    path = tmp_path / "cut"
    faults = 0
    for length in range(1, len(whole) - 2, max(len(whole) // 50, 1)):
        path.write_bytes(whole[:length])
        try:
            traces = _events(path)
        except TraceError as error:
            faults += 1
            text = str(error)
            assert text.startswith(f"{path}: ") and "\n" not in text and len(text) < len(str(path)) + 400
        else:
            assert len(traces) < 2 or kind == "edge_list"
    assert faults > 10


@pytest.mark.parametrize("kind", WITH_TEXT)
def test_a_byte_that_is_no_utf_8_is_located(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "bytes"
    path.write_bytes(KINDS[kind](1).encode().replace("≈".encode(), b"\xff", 1))
    with pytest.raises(TraceError) as caught:
        _events(path)
    assert caught.value.location is not None
    assert str(caught.value).endswith("encoding: expected UTF-8, found byte 0xff")


def test_utf_16_with_half_a_character(tmp_path: Path) -> None:
    path = tmp_path / "half"
    path.write_bytes(KINDS["tree"](2).encode("utf-16")[:-1])
    with pytest.raises(TraceError, match=r": encoding: expected UTF-16-?LE, found byte 0x"):
        _events(path)


def test_utf_16_without_a_mark_is_of_no_kind(tmp_path: Path) -> None:
    path = tmp_path / "unmarked"
    path.write_bytes(KINDS["tree"](2).encode("utf-16-le"))
    with pytest.raises(TraceError, match="content: expected one of the known kinds"):
        _events(path)


# Named, for a gzip file holds the time: two test processes would name its test differently.
@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\xef\xbb\xbf", id="UTF-8 mark"),
        pytest.param(b"\xff\xfe", id="UTF-16 mark"),
        pytest.param(gzip.compress(b""), id="gzip of nothing"),
        pytest.param(gzip.compress(b" \n"), id="gzip of blanks"),
    ],
)
def test_nothing_in_any_dress(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "nothing"
    path.write_bytes(content)
    with pytest.raises(TraceError, match="content: expected a trace, found an empty file"):
        _events(path)


@pytest.mark.parametrize(
    ("kind", "dress"), [*((kind, None) for kind in SEVERAL if kind in WITH_TEXT), ("sos_llm", "gzip")]
)
def test_memory_does_not_grow_with_the_number_of_problems(
    kind: str, dress: str | None, tmp_path: Path
) -> None:
    sizes: list[int] = []

    def peak(problems: int) -> int:
        path = several(tmp_path / f"{problems}", kind, problems, padding=2000)
        sizes.append(path.stat().st_size)
        if dress is not None:
            path.write_bytes(DRESSES[dress](path.read_text(encoding="utf-8")))
        tracemalloc.start()
        count = sum(1 for _ in import_file(path))
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert count == problems
        return most

    peak(2)  # caches fill
    # Both files are larger than the chunks they are read in. A name's hash is all that stays of a problem.
    grown = peak(500) - peak(50)
    assert grown < (sizes[1] - sizes[2]) / 3
