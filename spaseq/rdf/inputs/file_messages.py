"""Parts of files as messages: their media types say where in the file they begin.

>>> text_type = PartOfFile("text/csv", 17, 15).media_type
>>> text_type, part_of_file(text_type), part_of_file("text/csv")
('text/csv; line=17; row=15', PartOfFile(format='text/csv', line=17, row=15), None)
"""

from __future__ import annotations

import re

from spaseq.records import record

_PART = re.compile(r"(.*); line=([0-9]{1,18}); row=([0-9]{1,18})")

CSV, TSV, JSON_LINES = "text/csv", "text/tab-separated-values", "application/x-ndjson"
"""The media types of rows. A message of CSV or TSV begins with the header of its file."""


@record
class PartOfFile:
    """Which part of a file a message has.

    Attributes:
        format: the media type of the file.
        line: the number of the first line, from 1, in formats of lines.
        row: the number of the first row, from 1, in formats of rows.
    """

    format: str
    line: int = 1
    row: int = 1

    @property
    def media_type(self) -> str:
        """The media type of the message."""
        return f"{self.format}; line={self.line}; row={self.row}"


def part_of_file(media_type: str) -> PartOfFile | None:
    """The inverse of `PartOfFile.media_type`; None for a message that is no part of a file."""
    found = _PART.fullmatch(media_type)
    return None if found is None else PartOfFile(found[1], int(found[2]), int(found[3]))
