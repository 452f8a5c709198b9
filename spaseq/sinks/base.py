"""The contract of a sink of answers, a text file that gets whole lines, and a thread that writes
answers behind the run.

A file names itself when it cannot be written.
"""

from __future__ import annotations

import io
import os
import select
import stat
import sys
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Full, Queue
from threading import Thread
from typing import TYPE_CHECKING, ClassVar, Literal, Self, TextIO, TypeAlias, cast

from spaseq.algebra.answers import Answer
from spaseq.errors import InputError, RunError

if TYPE_CHECKING:
    from spaseq.algebra.answer_batch import AnswerBatch, SharedPart
    from spaseq.algebra.graph_batch import GraphBatch
    from spaseq.rdf.columns.term_columns import TextArray

_CHUNK = 1 << 16
"""Characters that are written at once."""

_GZIP = 31
"""zlib's code for the gzip format with the largest window."""

Holds: TypeAlias = Literal["solutions", "graphs", "all"]

_WAITING = 2
"""Maximum number of waiting batches. More would need memory where writing is slow."""

_JOIN_SECONDS = 5.0


class LineFile(io.TextIOBase):
    """A UTF-8 text file over a descriptor.

    Text is written in whole lines, many at a time, by one call. If the disk is full, the file is
    cut to its last whole line.

    Args:
        descriptor: where bytes go.
        name: the file in messages.
        owned: whether `close` closes the descriptor.
    """

    def __init__(self, descriptor: int, name: str, owned: bool = True) -> None:
        super().__init__()
        self._descriptor, self.name, self._owned = descriptor, name, owned
        self._parts: list[str] = []
        self._size = 0
        self._failed = False
        self._chunk = 1 if os.isatty(descriptor) else _CHUNK

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def write(self, text: str) -> int:
        """Take text; RunError if the file cannot be written."""
        self._parts.append(text)
        self._size += len(text)
        if self._size >= self._chunk:
            self._send(whole_lines=True)
        return len(text)

    def write_bytes(self, data: bytes | memoryview) -> None:
        """Write bytes after the text so far; RunError if the file cannot be written."""
        self.flush()
        if not self._failed:
            self._put(data)

    def flush(self) -> None:
        """Write everything; RunError if the file cannot be written."""
        if self._size and not self.closed:
            self._send(whole_lines=False)

    def truncate(self, size: int | None = None) -> int:
        """Cut the file, like `os.ftruncate`."""
        self.flush()
        os.ftruncate(self._descriptor, size or 0)
        return size or 0

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move to an offset, like `os.lseek`."""
        self.flush()
        return os.lseek(self._descriptor, offset, whence)

    def end(self) -> None:
        """Write everything, up to the end of the file; RunError if it cannot be written."""
        self.flush()

    def close(self) -> None:
        """Write everything and close the file; RunError if it cannot be written."""
        if self.closed:
            return
        try:
            self.end()
        finally:
            super().close()
            if self._owned:
                try:
                    os.close(self._descriptor)  # some file systems report a full disk here
                except OSError as error:
                    raise self._error(error) from error

    def _send(self, whole_lines: bool) -> None:
        text = "".join(self._parts)
        end = text.rfind("\n") + 1 if whole_lines else len(text)
        self._parts, self._size = [text[end:]], len(text) - end
        if end and not self._failed:
            self._put(text[:end].encode("utf-8", "backslashreplace"))

    def _put(self, data: bytes | memoryview) -> None:
        done, data = 0, memoryview(data)
        while done < len(data):
            try:
                done += os.write(self._descriptor, data[done:])
            except BlockingIOError:
                select.select((), (self._descriptor,), ())
            except OSError as error:
                self._failed = True
                self._keep_whole_lines(bytes(data[:done]))
                raise self._error(error) from error

    def _keep_whole_lines(self, written: bytes) -> None:
        """Cut an incomplete line at the end of the text just written."""
        part = len(written) - (written.rfind(b"\n") + 1)
        with suppress(OSError):
            status = os.fstat(self._descriptor)
            if part and stat.S_ISREG(status.st_mode):
                os.ftruncate(self._descriptor, status.st_size - part)

    def _error(self, error: OSError) -> Exception:
        if isinstance(error, BrokenPipeError):  # the reader has gone, which is no failure
            return error
        return RunError(f"cannot write {self.name}: {error.strerror}")


class GzipLines(LineFile):
    """A gzip file of UTF-8 text over a descriptor."""

    def __init__(self, descriptor: int, name: str, owned: bool = True) -> None:
        super().__init__(descriptor, name, owned)
        self._compress = zlib.compressobj(wbits=_GZIP)
        self._is_ended = False

    def end(self) -> None:
        """Write the rest of the compressor, and the end of the file."""
        self.flush()
        if not self._is_ended and not self._failed:
            self._is_ended = True
            super()._put(self._compress.flush())

    def _put(self, data: bytes | memoryview) -> None:
        super()._put(self._compress.compress(data))

    def _keep_whole_lines(self, written: bytes) -> None:
        """Leave the file as it is: readers of gzip find its last whole line."""


def open_lines(path: str, mode: int = os.O_TRUNC) -> TextIO:
    """A file for whole lines; `mode` is `os.O_TRUNC` or `os.O_APPEND`.

    Raises:
        InputError: the file cannot be opened.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | mode, 0o666)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None
    return cast(TextIO, lines_over(descriptor, path))


def append_line(path: Path, line: str) -> None:
    """Append a line to a file, and make its directory; the line is on disk when this returns.

    Raises:
        RunError: the disk is full, or fails.
    """
    try:
        path.parent.mkdir(exist_ok=True)
        with open_lines(str(path), os.O_APPEND) as file:
            file.write(f"{line}\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror}") from error


def lines_over(descriptor: int, path: str) -> LineFile:
    """A file for whole lines over an open descriptor; `.gz` at the end of its path packs it."""
    return GzipLines(descriptor, path) if path.endswith(".gz") else LineFile(descriptor, path)


@contextmanager
def standard_lines() -> Iterator[TextIO]:
    """Standard output for whole lines; it stays open."""
    if sys.stdout is not sys.__stdout__ or sys.stdout is None:  # a program has replaced it
        yield sys.stdout
        return
    sys.stdout.flush()
    with LineFile(sys.stdout.fileno(), "standard output", owned=False) as file:
        yield cast(TextIO, file)


class Sink(ABC):
    """Writes the answers of queries to a text stream, in one format.

    A sink is used as a context manager, or by these calls: `open` once, then `write` for each
    answer, then `close` once. A `with` block that raises does not call `close`, so an unfinished
    document does not look finished. A followed run that resumes calls neither `open` nor `close`
    again: it appends to what is there.

    When `write` returns, the text stream has the whole answer (and may buffer it). A sink keeps no
    answers, so its memory does not grow with them. `close` completes the document and leaves the
    text stream open, because the caller owns it.

    `write_all` takes many answers. If they are columns, it calls `write_batch`, `write_part` or
    `write_graphs`, which a format may implement besides `write` to be faster; all must write the
    same.

    A subclass implements `write`, and `open` and `close` where its documents have a beginning or
    an end. It sets the class variables below, and one line in `spaseq.sinks` registers it. All
    users of formats read that registry: `spaseq run --format`, its help, and the Spark sink.
    """

    form: ClassVar[str]
    """The name of the format."""

    suffix: ClassVar[str]
    """The ending of the names of files in this format, without the dot."""

    about: ClassVar[str]
    """A short description of the format for `--help`."""

    holds: ClassVar[Holds] = "all"
    """The answers that the format supports: solutions (SELECT), graphs (CONSTRUCT), or all."""

    one_query: ClassVar[bool] = False
    """Whether a document contains the answers of only one query."""

    ends: ClassVar[bool] = False
    """Whether `close` writes something, so that a followed run, which has no end, cannot use it."""

    binary: ClassVar[bool] = False
    """Whether the format is not text; it is then written to the file below the text stream."""

    def __init__(self, out: TextIO, variables: Sequence[str] = ()) -> None:
        """Prepare a document.

        Args:
            out: the text stream to write to.
            variables: the projected variables of the query, in order, without `?`; formats that are
                tables need them.
        """
        self.out = out
        self.variables = tuple(variables)

    def open(self) -> None:  # noqa: B027 - most formats begin with their first answer
        """Write the text before the first answer."""

    @abstractmethod
    def write(self, query: str, answer: Answer) -> None:
        """Write one answer of the query with this name.

        Raises:
            UsageError: the format cannot hold the answer.
        """

    def write_all(self, query: str, answers: Sequence[Answer]) -> None:
        """Write answers of the query with this name, like `write` for each."""
        if isinstance(answers, list) or not self._wrote_columns(query, answers):
            for answer in answers:
                self.write(query, answer)

    def _wrote_columns(self, query: str, answers: Sequence[Answer]) -> bool:
        """Write answers if they are columns; whether they are."""
        from spaseq.algebra.answer_batch import (
            AnswerBatch,  # Arrow, which few answers need
            SharedPart,
        )
        from spaseq.algebra.graph_batch import GraphBatch

        if isinstance(answers, AnswerBatch):
            for part in answers.parts():
                self.write_batch(query, part)
        elif isinstance(answers, SharedPart):
            self.write_part(query, answers)
        elif isinstance(answers, GraphBatch):
            for graphs in answers.parts():
                self.write_graphs(query, graphs)
        else:
            return False
        return True

    def write_batch(self, query: str, answers: AnswerBatch) -> None:
        """Write answers that are columns; a format overrides this if it needs no `Answer`s."""
        for answer in answers:
            self.write(query, answer)

    def write_part(self, query: str, answers: SharedPart) -> None:
        """Write a query's part of a batch that several queries share, like `write`."""
        for answer in answers:
            self.write(query, answer)

    def write_graphs(self, query: str, answers: GraphBatch) -> None:
        """Write graph events that are columns, like `write`."""
        for answer in answers:
            self.write(query, answer)

    def write_lines(self, lines: TextArray) -> None:
        """Write the texts of a column, one after the other."""
        if not len(lines):
            return
        _, offsets, data = lines.buffers()
        places = memoryview(offsets).cast("q")
        text = memoryview(data)[places[lines.offset] : places[lines.offset + len(lines)]]
        if isinstance(self.out, LineFile):
            self.out.write_bytes(text)
        else:
            self.out.write(str(text, "utf-8"))

    def close(self) -> None:  # noqa: B027 - most formats end with their last answer
        """Write the text after the last answer."""

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, kind: object, error: object, at: object) -> None:
        if kind is None:
            self.close()


class WriteBehind:
    """Writes answers in another thread, in order.

    Most of that work does not hold Python's lock, so the run continues meanwhile. The next call, or
    the end, raises the sink's error. If the run fails, the answers so far are written. After an
    interrupt, too, unless the output has no reader for some seconds.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink, self._error = sink, list[BaseException]()
        self._waiting = Queue["tuple[str, Sequence[Answer]] | None"](_WAITING)
        self._thread = Thread(target=self._work, name="spaseq-answers", daemon=True)

    def write_all(self, query: str, answers: Sequence[Answer]) -> None:
        """Write answers of the query with this name; raises the errors of `Sink.write_all`."""
        self._raise()
        self._waiting.put((query, answers))

    def _raise(self) -> None:
        if self._error:
            raise self._error.pop()

    def _work(self) -> None:
        has_failed = False
        while (given := self._waiting.get()) is not None:
            if has_failed:
                continue
            try:
                self._sink.write_all(*given)
            except BaseException as error:
                has_failed = True
                self._error.append(error)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, at: object) -> None:
        if kind is None or issubclass(kind, Exception):
            self._waiting.put(None)
            self._thread.join()
            if kind is None:
                self._raise()
            return
        with suppress(Full):
            self._waiting.put(None, timeout=_JOIN_SECONDS)
            self._thread.join(_JOIN_SECONDS)
