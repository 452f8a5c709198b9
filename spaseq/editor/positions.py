"""Lines and columns of the protocol, in UTF-16, UTF-8 or UTF-32 units, and offsets in a text."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True)
class Positions:
    """The places of a text; `encoding` is "utf-8", "utf-16" or "utf-32".

    >>> Positions("\\U0001f600 ?x").place(2), Positions("\\U0001f600 ?x").offset(0, 3)
    ((0, 3), 2)
    """

    text: str
    encoding: str = "utf-16"

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(end.end() for end in _LINE_END.finditer(self.text))]

    def place(self, offset: int) -> tuple[int, int]:
        """(line, column) of a character offset, both counted from 0."""
        offset = max(0, min(offset, len(self.text)))
        line = bisect_right(self._starts, offset) - 1
        return line, self._units(self.text[self._starts[line] : offset])

    def offset(self, line: int, column: int) -> int:
        """The character offset of a place; a place beyond a line is the end of that line."""
        if line < 0:
            return 0
        if line >= len(self._starts):
            return len(self.text)
        start = self._starts[line]
        end = self._starts[line + 1] if line + 1 < len(self._starts) else len(self.text)
        row = self.text[start:end].rstrip("\r\n")
        if self.encoding == "utf-32" or row.isascii():
            return start + max(0, min(column, len(row)))
        used = 0
        for number, character in enumerate(row):
            used += self._units(character)
            if used > column:
                return start + number
        return start + len(row)

    def _units(self, text: str) -> int:
        if self.encoding == "utf-32" or text.isascii():
            return len(text)
        if self.encoding == "utf-8":
            return len(text.encode("utf-8", "surrogatepass"))
        return len(text) + sum(character > "\uffff" for character in text)
