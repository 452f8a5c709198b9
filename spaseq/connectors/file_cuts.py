"""Where a file that grows can be cut, so that each part has whole events."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from typing import IO

from spaseq.errors import UsageError
from spaseq.rdf.inputs.csv_dialect import CsvDialect
from spaseq.rdf.inputs.file_messages import CSV, JSON_LINES, TSV
from spaseq.rdf.inputs.files import HEAD_BYTES, InputFile
from spaseq.rdf.inputs.formats import Format, announces_messages, format_of
from spaseq.rdf.inputs.message_formats import message_format
from spaseq.rdf.inputs.stream_options import StreamOptions

_MEDIA_TYPES = {
    Format.NQUADS: "application/n-quads",
    Format.NTRIPLES: "application/n-triples",
    Format.TRIG: "application/trig",
    Format.TURTLE: "text/turtle",
    Format.JSONLD: "application/ld+json",
    Format.RDFXML: "application/rdf+xml",
    Format.RDFM: 'application/n-quads; version="1.2-messages"',
    Format.RDFM_TRIG: 'application/trig; version="1.2-messages"',
    Format.NDJSONLD: "application/x-ld+ndjson",
    Format.JELLY: "application/x-jelly-rdf",
}
_ROWS = {".csv": CSV, ".tsv": TSV, ".jsonl": JSON_LINES, ".ndjson": JSON_LINES}


class FileCut(ABC):
    """How a file in one format is cut; `media_type` is the format's."""

    grows = True
    """Whether the file may be read before it is complete."""

    has_whole_lines = False
    """Whether the last event is complete, once the file has settled and no line is cut short."""

    def __init__(self, media_type: str) -> None:
        self.media_type = media_type

    @abstractmethod
    def last(self, data: IO[bytes], begin: int, end: int) -> int:
        """The last place in begin:end at which a part may end; `begin` if there is none.

        `begin` is such a place.
        """

    def header(self, data: IO[bytes]) -> bytes:
        """The begin of the file that each part of it needs, too."""
        return b""

    def rows(self, part: bytes) -> int:
        """How many rows a part has, if the format has rows."""
        return 0


class WholeFile(FileCut):
    """A file that is read at once, when it is complete."""

    grows = False

    def last(self, data: IO[bytes], begin: int, end: int) -> int:
        return begin


class BetweenEvents(FileCut):
    """N-Quads and N-Triples: between two events, behind which nothing belongs to the first."""

    def __init__(self, media_type: str, file: InputFile, options: StreamOptions) -> None:
        super().__init__(media_type)
        self._file, self._options = file, options
        self.has_whole_lines = file.format.has_graphs

    def last(self, data: IO[bytes], begin: int, end: int) -> int:
        from spaseq.rdf.ranges import last_place  # it loads numba

        return last_place(self._file, self._options, begin, end)


class BehindLines(FileCut):
    """JSON lines: behind a line. NDJSON-LD may begin with a line that has a context alone."""

    def last(self, data: IO[bytes], begin: int, end: int) -> int:
        data.seek(begin)
        return begin + data.read(end - begin).rfind(b"\n") + 1

    def header(self, data: IO[bytes]) -> bytes:
        if self.media_type == JSON_LINES:
            return b""
        data.seek(0)
        line = data.readline()
        try:
            return line if json.loads(line).keys() == {"@context"} else b""
        except (ValueError, AttributeError):
            return b""

    def rows(self, part: bytes) -> int:
        return sum(1 for line in part.split(b"\n") if line.strip())


class BehindRows(FileCut):
    """CSV and TSV: behind a row, which may have line ends between quotes."""

    def __init__(self, media_type: str, dialect: CsvDialect) -> None:
        super().__init__(media_type)
        self._quote = dialect.quote.encode() or b"\0"  # no text has it
        self._has_header = dialect.header is True

    def last(self, data: IO[bytes], begin: int, end: int) -> int:
        data.seek(begin)
        part = data.read(end - begin)
        cut = part.rfind(b"\n") + 1
        while cut and part.count(self._quote, 0, cut) % 2:
            cut = part.rfind(b"\n", 0, cut - 1) + 1
        return begin + cut

    def header(self, data: IO[bytes]) -> bytes:
        if not self._has_header:
            return b""
        data.seek(0)
        header = b""
        while line := data.readline():
            header += line
            if header.strip() and header.count(self._quote) % 2 == 0:
                break
        return header if header.endswith(b"\n") else b""

    def rows(self, part: bytes) -> int:
        count, quotes = 0, 0
        for line in part.split(b"\n"):
            quotes += line.count(self._quote)
            count += quotes % 2 == 0 and bool(line.strip())
        return count


def _rows_cut(media: str, dialect: CsvDialect) -> FileCut:
    """How a file of rows is cut that is not packed.

    Raises:
        UsageError: no part of the file would say what the dialect leaves open.
    """
    if media == JSON_LINES:
        return BehindLines(media)
    if "\n".encode(dialect.encoding) != b"\n":
        raise UsageError(f"--csv encoding={dialect.encoding}: files that grow are not read in it")
    if dialect.header is not True and dialect.delimiter is None and media == CSV:
        raise UsageError("--csv: files without a header that grow need delimiter=, too")
    return BehindRows(media, dialect)


def cut_of(path: str, options: StreamOptions, of_rows: bool) -> FileCut | None:
    """How a file is cut; None if its name ends in no known format.

    Args:
        path: the file.
        options: of its stream.
        of_rows: whether the stream is lifted, from rows.

    Raises:
        UsageError: the format needs an option that is missing.
    """
    if of_rows:
        media = _ROWS.get(os.path.splitext(path.removesuffix(".gz"))[1].lower())
        if media is None:
            return None
        if path.endswith(".gz"):
            return WholeFile(media)
        return _rows_cut(media, options.csv)
    form = _format(path, options)
    if form is None:
        return None
    if not form.has_graphs and options.triples_per_event is None:
        raise UsageError(
            f"{path}: {form.value} has no graphs; say with --triples-per-event how many triples "
            "are an event"
        )
    media = _MEDIA_TYPES[form]
    if path.endswith(".gz"):
        return WholeFile(media)
    if form in (Format.NQUADS, Format.NTRIPLES):
        return BetweenEvents(media, InputFile(path, form), options)
    return BehindLines(media) if form is Format.NDJSONLD else WholeFile(media)


def _format(path: str, options: StreamOptions) -> Format | None:
    given = options.messages.format or options.format
    form = format_of(path) if given is None else message_format(given)
    if form is Format.NQUADS and not path.endswith(".gz"):
        try:
            with open(path, "rb") as file:
                return Format.RDFM if announces_messages(file.read(HEAD_BYTES)) else form
        except OSError:
            return form
    return form
