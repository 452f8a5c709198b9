"""CSV and TSV: rows of plain literals. A wrong row loses no other one.

Blocks without quotes, in which every line has the right number of cells, become columns by pyarrow.
Others are read row by row: no common reader distinguishes a quoted empty cell from an empty one and
also continues after a wrong row.
"""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterator
from typing import IO, Any, cast

import pyarrow as pa
import pyarrow.csv as arrow_csv

from spaseq import thresholds
from spaseq.errors import InputError
from spaseq.lift.cells import variable_of
from spaseq.lift.row_blocks import (
    BOM,
    Report,
    RowBlock,
    TextLines,
    lines_of,
    row_blocks,
    table_block,
)
from spaseq.limits import Limits
from spaseq.rdf.inputs.csv_dialect import CsvDialect
from spaseq.rdf.inputs.files import GZIP_MAGIC
from spaseq.rdf.terms.term import literal_text

_PART = 1 << 20
_NONE = "\udcff"
"""It replaces bytes that are no text. It is no UTF-8, so that its row is bad."""

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


_SHOWN = 300  # characters of a row in a report

_USUAL = (",", ";", "\t", "|")
"""Delimiters that are looked for. Of several with equally many fields it is the first."""


class _Unclosed(Exception):
    """A quoted cell that does not end."""


class _Malformed(Exception):
    """A row with text after a closing quote."""


class DelimitedRows:
    """The rows of one CSV or TSV file, after its header if it has one.

    `names` are the variables of the fields. `advice` is a hint if the header seems to have another
    delimiter; else it is empty.
    """

    def __init__(self, data: IO[bytes], dialect: CsvDialect, limits: Limits, name: str) -> None:
        """Read the header, and find the delimiter if the dialect does not say it.

        Raises:
            InputError: there is no header, or it cannot be read.
        """
        self._lines = TextLines(recoded(data, dialect), limits)
        self._limits, self._encoding = limits, "UTF-8" if dialect.is_utf8 else dialect.encoding
        self._quote = dialect.quote.encode()
        self._delimiter = dialect.delimiter or ","
        self.advice = ""
        self._rows = 0  # that were read, bad ones too
        first = self._first_lines()
        if dialect.delimiter is None:
            self._delimiter = _best_delimiter(first[-1] if first else b"", dialect.quote)
        if isinstance(dialect.header, tuple):
            self.names = [variable_of(field) for field in dialect.header]
            return
        try:
            row = next(self._texts(lambda *_: None, header=True), None)
        except UnicodeDecodeError:
            raise InputError(f"{name}: the header is {self._no_text(first[0])}") from None
        if row is None:
            raise InputError(f"{name}: there is no header, the line with the names of the fields")
        self.names = [variable_of(cell or "") for cell in row[1]]
        self.advice = _other_delimiter(row[1], self._delimiter)
        if not dialect.header:
            self.names = [f"_{number}" for number in range(1, len(row[1]) + 1)]
            self._lines.back(self._taken)

    def _first_lines(self) -> list[bytes]:
        """The lines up to the first that is not blank; they are read once more."""
        lines = []
        while line := self._lines.next():
            lines.append(line)
            if line.removeprefix(BOM).strip():
                break
        self._lines.back(lines)
        return lines

    def _no_text(self, line: bytes) -> str:
        """Why a line is no text, and what to write."""
        if line.startswith(GZIP_MAGIC):
            return "packed: give the file a name that ends in .gz"
        if self._encoding != "UTF-8":
            return f"not {self._encoding}"
        is_wide = line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        return f"not UTF-8; --csv encoding={'utf-16' if is_wide else 'cp1252'} may be right"

    def blocks(self, wanted: frozenset[str], report: Report) -> Iterator[RowBlock]:
        """The rows with the wanted fields; bad rows are reported."""
        lines = self._lines
        while chunk := lines.chunk():
            table = self._table(chunk, wanted)
            if table is None:
                lines.waiting.extend(lines_of(chunk))
                yield from self._row_blocks(wanted, report)
            else:
                yield table_block(table, wanted, self._rows + 1, lines.number - self._rows, True)
                self._rows += len(table)
                lines.number += len(table)

    def _table(self, chunk: bytes, wanted: frozenset[str]) -> pa.RecordBatch | None:
        """The wanted fields of some lines as strings; None if a line is not usual."""
        if b"\r" in chunk:
            chunk = chunk.replace(b"\r\n", b"\n")
        if (self._quote and self._quote in chunk) or b"\r" in chunk:
            return None
        if len(chunk) > self._limits.line_bytes or chunk.startswith(BOM):  # Arrow drops a BOM
            return None
        names = [*map(str, range(len(self.names)))]
        used = {name: str(self.names.index(name)) for name in wanted if name in self.names}
        try:
            if not chunk.isascii():
                chunk.decode()
            table = arrow_csv.read_csv(
                pa.py_buffer(chunk),
                arrow_csv.ReadOptions(
                    use_threads=False, block_size=len(chunk) + 1, column_names=names
                ),
                arrow_csv.ParseOptions(
                    delimiter=self._delimiter,
                    quote_char=False,
                    double_quote=False,
                    escape_char=False,
                    newlines_in_values=False,
                ),
                arrow_csv.ConvertOptions(
                    check_utf8=False,
                    column_types=dict.fromkeys(names, pa.string()),
                    null_values=[""],
                    strings_can_be_null=True,
                    include_columns=[*used.values()] or names[:1],
                ),
            )
        except (UnicodeDecodeError, pa.ArrowInvalid):
            return None
        if len(table) != chunk.count(b"\n") + (not chunk.endswith(b"\n")):
            return None  # Arrow leaves out empty lines
        (batch,) = table.combine_chunks().to_batches()
        return batch.rename_columns([*used] or ["#"])

    def _row_blocks(self, wanted: frozenset[str], report: Report) -> Iterator[RowBlock]:
        """The rows of the lines that wait, one by one."""
        places = {name: self.names.index(name) for name in wanted if name in self.names}

        def columns(rows: list[list[str | None]]) -> dict[str, Any]:
            texts = {name: [row[at] for row in rows] for name, at in places.items()}
            if len(rows) > thresholds.current.lifted_rows:
                return {name: pa.array(some, pa.large_string()) for name, some in texts.items()}
            return {
                name: [None if text is None else literal_text(text) for text in some]
                for name, some in texts.items()
            }

        yield from row_blocks(self._numbered(report), columns)

    def _numbered(self, report: Report) -> Iterator[tuple[int, int, list[str | None]]]:
        for line, row in self._texts(report):
            self._rows += 1
            if row is not None:
                yield line, self._rows, row

    def _texts(
        self, report: Report, header: bool = False
    ) -> Iterator[tuple[int, list[str | None]]]:
        """(line, cells) of each row; no cells if the row is bad, which is reported."""
        lines, width = self._lines, 0 if header else len(self.names)
        while (header or lines.waiting) and (raw := lines.next()):
            first = lines.number
            self._taken = [raw]
            if first == 1 and raw.startswith(BOM):
                raw = raw[len(BOM) :]
            if raw in (b"\n", b"\r\n"):
                continue
            reason = None
            row: list[str | None] = []
            try:
                if len(raw) > self._limits.line_bytes:
                    reason = f"a row of more than {self._limits.line_bytes:,} bytes"
                    lines.skip_rest(raw)
                elif self._quote and self._quote in raw:
                    row = self._quoted(raw)
                else:
                    text = raw.decode().removesuffix("\n").removesuffix("\r")
                    row = [cell or None for cell in text.split(self._delimiter)]
            except UnicodeDecodeError:
                if header:
                    raise
                reason = self._no_text(raw)
            except _Unclosed:
                reason = "a quoted cell has no closing quote"
            except _Malformed:
                reason = "text after a closing quote"
            if reason is None and width and len(row) != width:
                cells = "1 cell" if len(row) == 1 else f"{len(row)} cells"
                reason = f"{cells}, but the header has {width}"
            if reason is None:
                yield first, row
            elif not header:
                report(first, reason, raw[:_SHOWN].decode(errors="replace").rstrip("\r\n"))
                yield first, None  # type: ignore[misc]

    def _quoted(self, raw: bytes) -> list[str | None]:
        """The cells of a row with quotes, which may go over several lines."""
        delimiter = self._delimiter.encode()
        quote, self._taken = self._quote, [raw]
        taken, size = self._taken, len(raw)
        inside = _open_at_end(raw, delimiter, quote, False)
        while inside:
            more = self._lines.next()
            taken.append(more)
            size += len(more)
            if not more or size > self._limits.line_bytes:
                self._lines.back([line for line in taken[1:] if line])
                raise _Unclosed
            inside = _open_at_end(more, delimiter, quote, True)
        return _cells(b"".join(taken).decode(), self._delimiter, quote.decode())


def _best_delimiter(line: bytes, quote: str) -> str:
    """The usual delimiter that splits a line into the most fields."""
    text = line.decode(errors="replace")
    if quote:
        sign = re.escape(quote)
        text = re.sub(f"{sign}[^{sign}]*({sign}|$)", "", text)
    return max(_USUAL, key=text.count)


def _other_delimiter(header: list[str | None], delimiter: str) -> str:
    """The hint about a header of one field with another usual delimiter in it."""
    text = header[0] or ""
    other = next((d for d in _USUAL if d != delimiter and d in text), None)
    if len(header) != 1 or other is None:
        return ""
    reason = f"its header is one field with {other!r} in it, and the delimiter is {delimiter!r}"
    return f"{reason}: write --csv delimiter={'tab' if other.isspace() else other}"


def _open_at_end(line: bytes, delimiter: bytes, quote: bytes, inside: bool) -> bool:
    """Whether a quoted cell is open at the end of a line; `inside` says so of its start."""
    at = 0
    while True:
        if not inside and line[at : at + 1] != quote:
            at = line.find(delimiter, at) + 1
            if not at:
                return False
            continue
        close = line.find(quote, at if inside else at + 1)
        while close >= 0 and line[close + 1 : close + 2] == quote:
            close = line.find(quote, close + 2)
        if close < 0:
            return True
        inside, at = False, line.find(delimiter, close + 1) + 1
        if not at:
            return False


def _cells(text: str, delimiter: str, quote: str) -> list[str | None]:
    """The cells of a row with quotes; an empty one is None, a quoted empty one ""."""
    text = text.removesuffix("\n").removesuffix("\r")
    cells: list[str | None] = []
    offset, malformed = 0, False
    while True:
        if text[offset : offset + 1] == quote:
            parts, start = [], offset + 1
            while True:
                close = text.find(quote, start)
                parts.append(text[start:close])
                if text[close + 1 : close + 2] != quote:
                    break
                parts.append(quote)
                start = close + 2
            cells.append("".join(parts))
            end = text.find(delimiter, close + 1)
            malformed = malformed or (len(text) if end < 0 else end) != close + 1
        else:
            end = text.find(delimiter, offset)
            cells.append(text[offset : end if end >= 0 else None] or None)
        if end < 0:
            if malformed:
                raise _Malformed
            return cells
        offset = end + 1
