"""Files as a source: files that arrive in a directory or match a glob, or one that grows.

The position is a byte in a file, as a mark of the file's path. A part of a file is a message: whole
events, which are complete once more text follows, or once the file has settled. A line without an
end waits. Files without lines are read at once, when they have settled. A file waits until the one
before it is read to its end: else the last event of that one could be late.
"""

from __future__ import annotations

import io
import json
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from glob import glob, has_magic
from typing import IO

from spaseq.connectors.address import Address
from spaseq.connectors.base import Intake, MessageSource
from spaseq.connectors.reconnecting import offer
from spaseq.errors import InputError, UsageError
from spaseq.logs.messages import UNNUMBERED, Message
from spaseq.rdf.inputs.csv_dialect import CsvDialect
from spaseq.rdf.inputs.files import HEAD_BYTES, READ_ERRORS, InputFile
from spaseq.rdf.inputs.formats import (
    CSV,
    JSON_LINES,
    TSV,
    Format,
    PartOfFile,
    announces_messages,
    format_of,
    message_format,
)
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
        """Number of rows of a part, if the format has rows."""
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
    """The cutter of an uncompressed file of rows.

    Raises:
        UsageError: parts of the file would not determine the open points of the dialect.
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
    media = _MEDIA_TYPES.get(form, form.value)
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


SETTLED_S = 2.0
"""Time without a change after which a file is complete, except for a line without an end."""

LINE_SETTLED_S = 10.0
"""After so long a line without an end is complete, too."""

_LOOK_S = 0.1
_PART_BYTES = 2**20
_GROWTH = 4  # factor for the next part, if no event ends in it
_MOST_BYTES = 2**30
"""Larger files are not read at once."""


@dataclass(frozen=True, slots=True)
class _ReadTo:
    """The position in a file: the byte, and the line and the row that follow."""

    byte: int = 0
    line: int = 1
    row: int = 1

    def __str__(self) -> str:
        return f"{self.byte} {self.line} {self.row}"


class ArrivingFiles(MessageSource):
    """The parts of files as messages. Their times of modification, then names, are the order.

    Args:
        path: a file, a directory or a glob.
        options: of the stream.
        of_rows: whether the stream is lifted, from CSV, TSV or JSON lines.
    """

    def __init__(self, path: str, options: StreamOptions, of_rows: bool) -> None:
        super().__init__(Address("", "", path))
        self.path, self._options, self.of_rows = path, options, of_rows

    def read(self, intake: Intake) -> None:
        reading = _FilesReading(self, intake)
        intake.connected(is_behind=True)
        reading.once()
        intake.connected()
        while not intake.stopped:
            if not reading.once():
                time.sleep(_LOOK_S)

    def present(self) -> list[str]:
        """The files that are there now, in the order of reading.

        Raises:
            InputError: the path does not exist.
        """
        if os.path.isdir(self.path):
            names = [os.path.join(self.path, name) for name in os.listdir(self.path)]
        elif os.path.exists(self.path):
            names = [self.path]
        elif has_magic(self.path):
            names = glob(self.path, recursive=True)
        else:
            raise InputError(f"no such file or directory: {self.path}")
        files = []
        for name in names:
            with suppress(FileNotFoundError):
                if os.path.isfile(name) and os.path.basename(name)[0] not in "._":
                    files.append((os.stat(name).st_mtime_ns, name))
        return [name for _, name in sorted(files)]

    def cut(self, path: str) -> FileCut | None:
        """How a file is cut; None if it is in no known format."""
        return cut_of(path, self._options, self.of_rows)


class _FilesReading:
    """A source while it reads. `_seen` says since when a file has its size and time."""

    def __init__(self, source: ArrivingFiles, intake: Intake) -> None:
        self._source, self._intake = source, intake
        self._places = {
            path: _ReadTo(*map(int, text.split())) for path, text in intake.marks.items()
        }
        self._seen: dict[str, tuple[tuple[int, int], float]] = {}
        self._cuts: dict[str, FileCut | None] = {}
        self._told: set[str] = set()
        self._left: set[str] = set()  # files that are too large
        source.present()
        if os.path.isfile(source.path) and source.cut(source.path) is None:
            what = "tables and JSON lines" if source.of_rows else "RDF formats"
            raise InputError(f"{source.path}: its name ends in none of the {what} to follow")

    def once(self) -> bool:
        """Read the available data; return whether there was any."""
        has_read = False
        try:
            present = self._source.present()
        except InputError as error:
            self._tell(str(error))
            return False
        for path in present:
            if self._intake.stopped:
                break
            if not _is_text(path):
                self._tell(f"{path} is not read: its name is no UTF-8; rename it")
                continue
            try:
                has_read = self._read(path) or has_read
                if self._is_waiting(path):
                    break
            except FileNotFoundError:
                continue  # it is gone again
            except READ_ERRORS as error:
                self._tell(f"{path} is not read: {getattr(error, 'strerror', None) or error}")
        return has_read

    def _read(self, path: str) -> bool:
        """Read the available data of a file; return whether there was any."""
        status = os.stat(path)
        read_to = self._places.get(os.path.abspath(path), _ReadTo())
        if status.st_size == read_to.byte:
            return False
        key, now = (status.st_size, status.st_mtime_ns), time.monotonic()
        if self._seen.get(path, (None,))[0] != key:
            self._seen[path] = key, now
        settled_s = max(now - self._seen[path][1], time.time() - status.st_mtime)
        if path not in self._cuts:
            if not status.st_size:
                return False  # its begin may say more about its format
            try:
                self._cuts[path] = self._source.cut(path)
            except UsageError as error:
                self._cuts[path] = None
                self._tell(str(error))
        cut = self._cuts[path]
        if cut is None:
            return False
        if not cut.grows:
            return settled_s >= SETTLED_S and self._read_whole(path, read_to, status.st_size, cut)
        if status.st_size < read_to.byte:
            self._tell(f"{path} has become shorter; it is read from its begin again")
            read_to = _ReadTo()
        return self._read_parts(path, read_to, status.st_size, settled_s, cut)

    def _is_waiting(self, path: str) -> bool:
        """Whether a file has something that may not be complete yet."""
        cut = self._cuts.get(path)
        read_to = self._places.get(os.path.abspath(path), _ReadTo())
        if cut is None or (read_to.byte and not cut.grows):
            return False
        return self._seen[path][0][0] > read_to.byte and path not in self._left

    def _read_whole(self, path: str, read_to: _ReadTo, size: int, cut: FileCut) -> bool:
        """Read a file that is complete."""
        if read_to.byte:
            self._tell(f"{path} has changed since it was read; it is not read again")
            return False
        with InputFile(path, Format.NQUADS).open() as data:  # the format does not matter
            text = io.BufferedReader(data).read(_MOST_BYTES + 1)  # type: ignore[type-var]
        if len(text) > _MOST_BYTES:
            self._tell(f"{path} has more than {_MOST_BYTES} bytes; it is not read")
            self._left.add(path)
            return False
        self._give(path, text, PartOfFile(cut.media_type), _ReadTo(size))
        return True

    def _read_parts(
        self, path: str, read_to: _ReadTo, size: int, settled_s: float, cut: FileCut
    ) -> bool:
        """Read the events of a file that are complete."""
        any_read = False
        with open(path, "rb") as data:
            header = cut.header(data)
            if read_to.byte < len(header):
                read_to = _ReadTo(len(header), 1 + header.count(b"\n"))
            for end in self._ends(data, read_to.byte, size, settled_s, cut):
                data.seek(read_to.byte)
                text = data.read(end - read_to.byte)
                first = read_to.line - header.count(b"\n")  # as if the header stood right above
                part = PartOfFile(cut.media_type, first, read_to.row)
                lines, rows = text.count(b"\n"), cut.rows(text)
                read_to = _ReadTo(end, read_to.line + lines, read_to.row + rows)
                self._give(path, header + text, part, read_to)
                any_read = True
                if self._intake.stopped:
                    break
        return any_read

    def _ends(
        self, data: IO[bytes], begin: int, size: int, settled_s: float, cut: FileCut
    ) -> Iterator[int]:
        """The ends of the next parts of a file."""
        step = _PART_BYTES
        while begin < size:
            end = min(begin + step, size)
            last = cut.last(data, begin, end)
            if last == begin and end < size:
                step *= _GROWTH
                continue
            if end == size and settled_s >= SETTLED_S and last < size:
                data.seek(size - 1)
                is_whole = cut.has_whole_lines and data.read(1) == b"\n"
                last = size if is_whole or settled_s >= LINE_SETTLED_S else last
            if last == begin:
                return
            yield last
            begin, step = last, _PART_BYTES

    def _give(self, path: str, text: bytes, part: PartOfFile, read_to: _ReadTo) -> None:
        """Offer a part of a file, with the place behind it."""
        key = os.path.abspath(path)
        self._places[key] = read_to
        marks = ((key, str(read_to)), *((gone, "") for gone in self._gone()))
        message = Message(text, 0, UNNUMBERED, part.media_type, topic=path, marks=marks)
        offer(self._intake, [message])

    def _gone(self) -> list[str]:
        """The files with places that are no longer there; their places are forgotten."""
        gone = [path for path in self._places if not os.path.exists(path)]
        for path in gone:
            del self._places[path]
        return gone

    def _tell(self, text: str) -> None:
        """Tell the user something, once."""
        if text not in self._told:
            self._told.add(text)
            self._intake.note(text)


def _is_text(path: str) -> bool:
    """Whether a path can be written as UTF-8."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
