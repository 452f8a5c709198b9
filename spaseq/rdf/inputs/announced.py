"""Standard input that announces RDF Messages in its first line."""

from __future__ import annotations

import io
from codecs import BOM_UTF8
from typing import IO, Any, cast

from spaseq.rdf.inputs.files import HEAD_BYTES, STDIN, InputFile
from spaseq.rdf.inputs.formats import AS_MESSAGES, announces_messages

_BEGINS = b"VERSION", b"@version"


def announced(data: IO[bytes], file: InputFile) -> tuple[IO[bytes], InputFile]:
    """The data and the file, with the format that standard input announces.

    As long as the first bytes could be an announcement, it is waited for its line.
    """
    if file.path != STDIN or file.format not in AS_MESSAGES:
        return data, file
    head = b""
    while len(head) < HEAD_BYTES and b"\n" not in head:
        part = data.read(1 << 10)
        head += part
        begin = head.removeprefix(BOM_UTF8).lstrip()
        if not part or not any(b.startswith(begin[: len(b)]) for b in _BEGINS):
            break
    whole = cast("IO[bytes]", Headed(head, data))
    if announces_messages(head):
        return whole, InputFile(file.path, AS_MESSAGES[file.format])
    return whole, file


class Headed(io.RawIOBase):
    """A file whose first bytes have been read already."""

    def __init__(self, head: bytes, data: Any) -> None:
        super().__init__()
        self._head, self._data = head, data

    def readable(self) -> bool:
        return True

    def readinto(self, room: memoryview) -> int:  # type: ignore[override]
        if not self._head:
            count: int = self._data.readinto(room)
            return count
        part, self._head = self._head[: len(room)], self._head[len(room) :]
        room[: len(part)] = part
        return len(part)
