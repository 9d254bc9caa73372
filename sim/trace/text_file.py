"""Text files as people have them: opened as their first bytes say, gzip unpacked, any Unicode encoding."""

from __future__ import annotations

import codecs
import contextlib
import gzip
import io
import os
import re
import zlib
from collections.abc import Iterator
from typing import BinaryIO, TextIO, cast

from .errors import FieldError, TraceError

__all__ = ["check_encoding", "open_text"]

#: First bytes of a gzip member (RFC 1952, section 2.3.1).
_GZIP = b"\x1f\x8b"
#: Encoding by byte order mark; that of UTF-32 begins with one of UTF-16. Without any it is UTF-8.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF8, "utf-8-sig"),
)
#: What a byte that is no UTF-8 is decoded to (PEP 383).
_ESCAPED = re.compile("[\udc80-\udcff]")


def _begins(stream: BinaryIO, count: int) -> bytes:
    """The first bytes; the stream stands at its beginning again."""
    first = stream.read(count)
    stream.seek(0)
    return first


@contextlib.contextmanager
def open_text(path: str | os.PathLike[str]) -> Iterator[TextIO]:
    """The text of a file: unpacked if it is gzip, decoded as its byte order mark says, UTF-8 without one.

    Line ends, also those of Windows, are `\\n`. A byte that is no UTF-8 raises nothing here, so that whoever
    reads can say where it is: `check_encoding`. Raises OSError; within the block TraceError for a damaged
    gzip file and for bytes that are not of the encoding that the mark names.
    """
    with contextlib.ExitStack() as stack:
        stream: BinaryIO = stack.enter_context(open(path, "rb"))
        try:
            if _begins(stream, len(_GZIP)) == _GZIP:
                stream = cast(BinaryIO, stack.enter_context(gzip.GzipFile(fileobj=stream)))
            first = _begins(stream, 4)
            encoding = next((name for mark, name in _MARKS if first.startswith(mark)), "utf-8")
            yield stack.enter_context(io.TextIOWrapper(stream, encoding=encoding, errors="surrogateescape"))
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise TraceError(path, None, "gzip", "a whole gzip file", str(error)) from None
        except UnicodeDecodeError as error:
            shown = f"byte 0x{error.object[error.start]:02x} ({error.reason})"
            raise TraceError(path, None, "encoding", error.encoding.upper(), shown) from None


def check_encoding(text: str) -> str:
    """`text` as `open_text` gives it, if all its bytes were of its encoding. Raises FieldError."""
    if not text.isascii():
        escaped = _ESCAPED.search(text)
        if escaped is not None:
            raise FieldError("encoding", "UTF-8", f"byte 0x{ord(escaped[0]) & 0xFF:02x}")
    return text
