"""Unpacking of .gz files: all bytes before any damage, and a bound on the inflation."""

from __future__ import annotations

import io
import zlib
from typing import IO

from spaseq.limits import Limits
from spaseq.rdf.inputs.stream_options import BadInput, OnBad

_PACKED_STEP = 1 << 16
"""Bytes of the packed file per read."""

_FREE_BYTES = 1 << 26
"""Unpacked bytes before the inflation is looked at: a small file may hold one line many times."""

_MAGIC = b"\x1f\x8b"
"""The first bytes of a member."""

_GZIP = 31  # zlib's sign for the gzip format, with its check sum


class UnpackedFile(io.RawIOBase):
    """The unpacked bytes of a .gz file, which may have several members.

    Reading gives every byte that can be unpacked. Then it raises an OSError with the place of the
    damage in the packed file. Other bytes after the end of a member are no damage: `after_end` says
    where they begin.
    """

    def __init__(self, packed: IO[bytes], limits: Limits) -> None:
        """Unpack the file `packed`, which is closed with this one."""
        self._packed = packed
        self._most = limits.inflation
        self._unpacker = zlib.decompressobj(_GZIP)
        self._waiting = b""  # packed bytes that wait
        self._taken = 0  # packed bytes that are unpacked
        self._given = 0  # unpacked bytes
        self._in_member = False
        self._fault: OSError | None = None
        self.after_end: int | None = None

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._packed.close()
        super().close()

    def readinto(self, room: memoryview) -> int:  # type: ignore[override]
        size = len(room)
        while size and self._fault is None and self._has_packed():
            text = self._unpacked(size)
            if text and self._given > max(_FREE_BYTES, self._most * self._taken):
                self._fault = OSError(
                    f"the .gz unpacks to more than {self._most} times its size (--max-inflation)"
                )
            elif text:
                room[: len(text)] = text
                self._given += len(text)
                return len(text)
        if size and self._fault is not None:
            raise self._fault
        return 0

    def _has_packed(self) -> bool:
        """Whether packed bytes of a member wait. Zeros between two members are padding."""
        while True:
            if not self._in_member and self._taken:
                size = len(self._waiting)
                self._waiting = self._waiting.lstrip(b"\0")
                self._taken += size - len(self._waiting)
            if self._waiting and self._taken and not self._in_member and not self._begins():
                self.after_end = self._taken
                return False
            if self._waiting:
                self._in_member = True
                return True
            self._waiting = self._packed.read(_PACKED_STEP)
            if not self._waiting:
                if self._in_member:
                    self._fault = OSError(f"the .gz ends at byte {self._taken}, within its data")
                return False

    def _begins(self) -> bool:
        """Whether another member begins with the waiting bytes."""
        if len(self._waiting) < len(_MAGIC):
            self._waiting += self._packed.read(_PACKED_STEP)
        return self._waiting.startswith(_MAGIC)

    def _unpacked(self, most: int) -> bytes:
        """The next bytes, at most `most`; perhaps none."""
        unpacker, waiting = self._unpacker, self._waiting
        before = unpacker.copy()
        try:
            text = unpacker.decompress(waiting, most)
        except zlib.error as error:
            return self._before_damage(before, str(error))
        self._waiting = unpacker.unconsumed_tail
        if unpacker.eof:
            self._waiting = unpacker.unused_data
            self._unpacker, self._in_member = zlib.decompressobj(_GZIP), False
        self._taken += len(waiting) - len(self._waiting)
        return text

    def _before_damage(self, unpacker: zlib._Decompress, error: str) -> bytes:
        """The bytes before the damage, byte by byte, because a failed call of zlib gives none."""
        texts = []
        try:
            for i in range(len(self._waiting)):
                texts.append(unpacker.decompress(self._waiting[i : i + 1]))
                self._taken += 1
        except zlib.error:
            pass
        reason = error.rpartition(": ")[2]
        self._fault = OSError(f"the .gz is damaged at about byte {self._taken}: {reason}")
        return b"".join(texts)


def report_after_end(data: object, path: str, on_bad: OnBad) -> None:
    """Report bytes behind the intact end of a .gz whose text has been read."""
    if isinstance(data, UnpackedFile) and data.after_end is not None:
        reason = f"the .gz ends at byte {data.after_end}; the bytes behind its end are not read"
        on_bad(BadInput(path, None, reason))
