"""Parquet and Arrow files: answers as tables with typed columns (`answer_columns`)."""

from __future__ import annotations

import io
import os
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from spaseq.algebra.answers import Answer
from spaseq.errors import RunError, UsageError
from spaseq.scratch import ScratchDirectory
from spaseq.sinks.base import LineFile, Sink

if TYPE_CHECKING:
    import pyarrow as pa

    from spaseq.algebra.answer_batch import AnswerBatch
    from spaseq.sinks.answer_columns import AnswerColumns

_ROWS = 16_384
"""Answers that are in memory at once."""


class ArrowSink(Sink):
    """Answers of one query as a table.

    The types of the columns are known after the last answer. Until then the answers wait in a
    temporary file, so memory does not grow with them.
    """

    one_query = True
    ends = True
    binary = True
    about = "tables with typed columns, for data frames"

    def __init__(self, out: TextIO, variables: Sequence[str] = ()) -> None:
        super().__init__(out, variables)
        self._query: str | None = None
        self._answers: list[tuple[str, Answer]] = []
        self._raw: list[pa.RecordBatch] = []
        self._rows = 0  # of all batches in `_raw`
        self._waiting: _WaitingBatches | None = None
        self._columns: AnswerColumns

    def open(self) -> None:
        from spaseq.sinks.answer_columns import AnswerColumns  # Arrow, which other formats need not

        if _is_terminal(self.out):
            raise UsageError(f"{self.form} is not text: give a file, --out FILE")
        self._columns = AnswerColumns(self.variables, graphs=not self.variables)

    def write(self, query: str, answer: Answer) -> None:
        self._check_query(query)
        self._answers.append((query, answer))
        if self._rows + len(self._answers) == _ROWS:
            self._put_aside()

    def write_batch(self, query: str, answers: AnswerBatch) -> None:
        self._check_query(query)
        self._make_columns()
        self._raw.append(self._columns.raw_of(query, answers))
        self._rows += len(answers)
        while self._rows >= _ROWS:
            self._put_aside()

    def close(self) -> None:
        self._put_aside()
        assert self._waiting is not None
        self._write_table(_binary(self.out, self.form), self._typed(self._waiting))

    def _check_query(self, query: str) -> None:
        if self._query is None:
            self._query = query
        if query != self._query:
            raise UsageError(f"{self.form} holds the answers of one query; use jsonl for several")

    def _make_columns(self) -> None:
        """Make columns of the last answers."""
        if self._answers:
            self._raw.append(self._columns.raw(self._answers))
            self._rows += len(self._answers)
            self._answers = []

    def _put_aside(self) -> None:
        """Put as many answers aside as one batch of the file has, or all that are left."""
        import pyarrow as pa

        self._make_columns()
        if self._waiting is None:
            self._waiting = _WaitingBatches(self._columns.raw_schema)
        empty = self._columns.raw([])
        table = pa.Table.from_batches(self._raw, empty.schema)
        some, rest = table.slice(0, _ROWS).combine_chunks(), table.slice(_ROWS)
        self._waiting.add(next(iter(some.to_batches()), empty))
        self._raw, self._rows = rest.to_batches(), len(rest)

    def _typed(self, waiting: _WaitingBatches) -> Iterator[pa.RecordBatch]:
        for batch in waiting.read():
            yield self._columns.typed(batch)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the answers that were written."""
        return self._columns.schema

    @abstractmethod
    def _write_table(self, file: io.RawIOBase, batches: Iterator[pa.RecordBatch]) -> None:
        """Write a table to a file."""


class Parquet(ArrowSink):
    """A Parquet file."""

    form = suffix = "parquet"

    def _write_table(self, file: io.RawIOBase, batches: Iterator[pa.RecordBatch]) -> None:
        from pyarrow import parquet

        with parquet.ParquetWriter(file, self.schema) as writer:
            for batch in batches:
                writer.write_batch(batch)


class ArrowFile(ArrowSink):
    """An Arrow IPC file."""

    form = suffix = "arrow"

    def _write_table(self, file: io.RawIOBase, batches: Iterator[pa.RecordBatch]) -> None:
        import pyarrow as pa

        with pa.ipc.new_file(pa.PythonFile(file, "w"), self.schema) as writer:
            for batch in batches:
                writer.write_batch(batch)


class _WaitingBatches:
    """Batches in a temporary file."""

    def __init__(self, schema: pa.Schema) -> None:
        import pyarrow as pa

        self._directory = ScratchDirectory("table")
        self._path = str(Path(self._directory.name) / "answers.arrow")
        self._file = pa.OSFile(self._path, "wb")
        self._writer = pa.ipc.new_stream(self._file, schema)

    def add(self, batch: pa.RecordBatch) -> None:
        try:
            self._writer.write_batch(batch)
        except OSError as error:
            raise self._failed(error) from error

    def read(self) -> Iterator[pa.RecordBatch]:
        """All batches; the file is removed afterwards."""
        import pyarrow as pa

        try:
            self._writer.close()
            self._file.close()
        except OSError as error:
            raise self._failed(error) from error
        with pa.OSFile(self._path, "rb") as file:
            yield from pa.ipc.open_stream(file)
        self._directory.cleanup()

    def _failed(self, error: OSError) -> RunError:
        reason = os.strerror(error.errno) if error.errno else str(error)
        return RunError(f"cannot keep answers in {self._directory.name}: {reason}")


class _Bytes(io.RawIOBase):
    """Bytes that go where a text stream writes."""

    def __init__(self, write: Any) -> None:
        self._write, self._size = write, 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._size

    def write(self, data: Any) -> int:
        content = bytes(data)
        self._write(content)
        self._size += len(content)
        return len(content)


def _binary(out: TextIO, form: str) -> io.RawIOBase:
    if isinstance(out, LineFile):
        return _Bytes(out.write_bytes)
    buffer = getattr(out, "buffer", None)
    if buffer is None:
        raise UsageError(f"{form} is not text: it needs a binary file")
    return _Bytes(buffer.write)


def _is_terminal(out: TextIO) -> bool:
    with suppress(OSError, ValueError, AttributeError):
        return os.isatty(out.fileno())
    return False
