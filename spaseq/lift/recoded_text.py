"""Texts in another encoding as UTF-8."""

from __future__ import annotations

import codecs
import io
from typing import IO, Any, cast

from spaseq.rdf.inputs.csv_dialect import CsvDialect

_PART = 1 << 20
_NONE = "\udcff"
"""What stands for bytes that are no text. It is no UTF-8, so that its row is bad."""

codecs.register_error("spaseq-none", lambda error: (_NONE, cast("UnicodeDecodeError", error).end))


class _Recoded(io.RawIOBase):
    """Bytes of a text in UTF-8."""

    def __init__(self, data: IO[bytes], encoding: str) -> None:
        self._data = data
        self._decoder = codecs.getincrementaldecoder(encoding)("spaseq-none")
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._left:
            given = self._data.read(_PART)
            text = self._decoder.decode(given, final=not given)
            self._left = text.encode("utf-8", "surrogatepass")
            if not given:
                break
        size = min(len(buffer), len(self._left))
        buffer[:size], self._left = self._left[:size], self._left[size:]
        return size


def recoded(data: IO[bytes], dialect: CsvDialect) -> IO[bytes]:
    """The text of a file as UTF-8."""
    if dialect.is_utf8:
        return data
    return cast("IO[bytes]", io.BufferedReader(_Recoded(data, dialect.encoding), _PART))
