"""Lines of texts of rows: in chunks, and one by one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO

from spaseq.limits import Limits
from spaseq.rdf.inputs.files import READ_ERRORS

Report = Callable[[int, str, str], None]
"""Called with the line, the reason and the text of a row that is bad."""

BOM = b"\xef\xbb\xbf"
_CHUNK = 1 << 23


@dataclass
class TextLines:
    """The lines of a text, with one place back."""

    data: IO[bytes]
    limits: Limits
    number: int = 0  # lines given
    waiting: deque[bytes] = field(default_factory=deque)
    failure: Exception | None = None  # raised after the lines that came before it

    def next(self) -> bytes:
        """The next line with its end; b"" at the end."""
        line = self.waiting.popleft() if self.waiting else self.data.readline(self._most)
        self.number += bool(line)
        return line

    def chunk(self) -> bytes:
        """The next lines, whole ones if they are not too long; b"" at the end."""
        if self.failure is not None:
            raise self.failure
        if self.waiting:
            waited = b"".join(self.waiting)
            self.waiting.clear()
            return waited
        given: bytes = self.data.read1(_CHUNK)  # type: ignore[attr-defined]
        if given and not given.endswith(b"\n"):
            try:
                given += self.data.readline(self._most)
            except READ_ERRORS as error:
                self.failure = error
                given = given[: given.rfind(b"\n") + 1]
                return given or self.chunk()
        return given

    def skip_rest(self, raw: bytes) -> None:
        """Go to the end of a line that is too long; `raw` is its begin."""
        while raw and not raw.endswith(b"\n"):
            raw = self.next()
            self.number -= bool(raw)

    @property
    def _most(self) -> int:
        return self.limits.line_bytes + 1

    def back(self, lines: list[bytes]) -> None:
        """Give these lines, the last that were taken, once more."""
        self.waiting.extendleft(reversed(lines))
        self.number -= len(lines)


def lines_of(chunk: bytes) -> list[bytes]:
    """The lines of a text with their ends."""
    lines = [line + b"\n" for line in chunk.split(b"\n")]
    last = lines.pop()
    return [*lines, last[:-1]] if last != b"\n" else lines
