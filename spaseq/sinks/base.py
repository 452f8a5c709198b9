"""The contract of a sink of answers, and a thread that writes answers behind the run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from queue import Full, Queue
from threading import Thread
from typing import TYPE_CHECKING, ClassVar, Literal, Self, TextIO, TypeAlias

from spaseq.algebra.answers import Answer
from spaseq.sinks.line_file import LineFile

if TYPE_CHECKING:
    from spaseq.algebra.answer_batch import AnswerBatch, SharedPart
    from spaseq.algebra.graph_batch import GraphBatch
    from spaseq.rdf.columns.term_columns import TextArray

Holds: TypeAlias = Literal["solutions", "graphs", "all"]

_WAITING = 2
"""The most batches that wait. More would need memory where writing is slow."""

_JOIN_SECONDS = 5.0


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
        """Write what stands before the first answer."""

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
        """Write what stands after the last answer."""

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, kind: object, error: object, at: object) -> None:
        if kind is None:
            self.close()


class WriteBehind:
    """Writes answers in another thread, in order.

    Most of that work does not hold Python's lock, so the run goes on meanwhile. The next call, or
    the end, raises what the sink has raised. If the run fails, the answers so far are written. If
    it is interrupted, they are written, too, unless nobody reads them for some seconds.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink, self._error = sink, list[BaseException]()
        self._waiting = Queue["tuple[str, Sequence[Answer]] | None"](_WAITING)
        self._thread = Thread(target=self._work, name="spaseq-answers", daemon=True)

    def write_all(self, query: str, answers: Sequence[Answer]) -> None:
        """Write answers of the query with this name; raises what `Sink.write_all` raises."""
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
