"""Quads of the messages of a log of RDF Messages, with pyoxigraph; and the lines of any log, in
blocks that are parsed together.

Many messages are parsed together, with a triple between two of them that marks the delimiter. If
the parser refuses the text, the messages are parsed one by one, so only a malformed one is lost.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, Any, TypeVar, cast

import numpy as np
import pyoxigraph as ox

from spaseq.compiled.arrays import Bytes, Int64s
from spaseq.limits import Limits
from spaseq.rdf.documents.document_events import PARSER_ERRORS, MeasuredDocument, parser_reason
from spaseq.rdf.inputs.files import READ_ERRORS
from spaseq.rdf.inputs.formats import Format
from spaseq.rdf.inputs.sizes import long_event
from spaseq.rdf.kernels import PAD
from spaseq.rdf.messages.message_lines import (
    MARKED,
    MessageLines,
    MessageText,
    Report,
    WrittenQuads,
    joined,
)
from spaseq.records import record
from spaseq.text_patterns import possessive

TOGETHER_BYTES = 1 << 20
"""Approximate bytes of messages that are parsed together."""

_VERSION = possessive(
    rb"""^[ \t]*+VERSION[ \t]++(?:"[^"\n]*+"|'[^'\n]*+')[ \t]*+(?:\#[^\n]*+)?\r?$""", re.MULTILINE
)
_SYNTAX = {Format.RDFM: ox.RdfFormat.N_QUADS, Format.RDFM_TRIG: ox.RdfFormat.TRIG}

_Message = TypeVar("_Message")

_PADDING = b"\n" * PAD
_BOM = b"\xef\xbb\xbf"


def together(messages: Iterable[MessageText]) -> Iterator[list[MessageText]]:
    """Runs of messages that are parsed together."""
    run: list[MessageText] = []
    size = 0
    try:
        for message in messages:
            run.append(message)
            size += len(message.text)
            if size >= TOGETHER_BYTES:
                yield run
                run, size = [], 0
    except READ_ERRORS:
        yield run  # messages read before count
        raise
    if run:
        yield run


def in_halves(
    run: Sequence[_Message],
    parsed: Callable[[Sequence[_Message]], MessageLines],
    refuse: Callable[[_Message, Exception], None],
) -> Iterator[MessageLines]:
    """The quads of messages that are parsed together; after a failure, of each half by itself."""
    try:
        yield parsed(run)
    except PARSER_ERRORS as error:
        if len(run) > 1:
            for half in (run[: len(run) // 2], run[len(run) // 2 :]):
                yield from in_halves(half, parsed, refuse)
        elif run:
            refuse(run[0], error)


def marked(text: bytes, lines: Sequence[int]) -> MessageLines:
    """Messages, which begin at these lines, in the text of their quads and of the marks between.

    Raises:
        ValueError: some message has to be parsed by itself.
    """
    if text.count(MARKED) != max(len(lines) - 1, 0):
        raise ValueError("a delimiter within a statement or graph")
    return MessageLines(text, lines)


class LogParser:
    """Parses the messages of one log in order. Prefixes and the base hold for later messages, too.

    `report` is called with the line, the reason and the text of each message that is malformed.
    """

    def __init__(self, form: Format, base: str | None, limits: Limits, report: Report) -> None:
        self._form, self._limits, self._report = form, limits, report
        self._base = base
        self._prologue = b""  # the prefixes that earlier messages have declared, in one line

    def lines(self, run: Sequence[MessageText]) -> MessageLines:
        """The quads of some messages."""
        good = []
        for message in run:
            if message.refusal is None:
                good.append(message)
            else:
                self._report(message.first_line, message.refusal, message.shown)
        return joined([*in_halves(good, self._parsed, self._refuse)])

    def _refuse(self, message: MessageText, error: Exception) -> None:
        line, within = message.first_line, getattr(error, "lineno", None)
        if within is not None:
            line = message.line + within - 1 - (1 if self._prologue else 0)
        self._report(line, parser_reason(error), message.shown)

    def _parsed(self, run: Sequence[MessageText]) -> MessageLines:
        texts = [message.text for message in run]
        if self._form is Format.RDFM:
            texts = [_VERSION.sub(b"", t) if b"VERSION" in t else t for t in texts]
        text = self._prologue + (b"\n" + MARKED).join(texts)
        written = WrittenQuads(self._limits)
        measured = MeasuredDocument(io.BytesIO(text), Format.TRIG, self._limits, written.tell)
        source = cast("IO[bytes]", measured)
        parser: Any = ox.parse(source, _SYNTAX[self._form], base_iri=self._base)
        try:
            quads = written.take(parser)
        except PARSER_ERRORS:
            if len(run) == 1:
                self._keep_prologue(parser)
            raise
        self._keep_prologue(parser)
        return marked(quads, [message.first_line for message in run])

    def _keep_prologue(self, parser: Any) -> None:
        if self._form is Format.RDFM:
            return
        self._base = parser.base_iri or self._base
        prefixes = [f"@prefix {name}: <{iri}> ." for name, iri in parser.prefixes.items()]
        self._prologue = (" ".join(prefixes) + "\n").encode() if prefixes else b""


@record
class LoggedLines:
    """n consecutive lines of a log. Each is a message; or all of them are one.

    Attributes:
        data: the bytes of the lines, and PAD line feeds.
        ends: [n] the end of each line, with its line feed.
        line: the number of the first, from 1.
        limits: the limits of lines.
    """

    data: Bytes
    ends: Int64s
    line: int
    limits: Limits

    @classmethod
    def of(cls, text: bytearray, line: int, limits: Limits) -> LoggedLines:
        """The lines of a text; it becomes a part of them."""
        size = len(text)
        text += _PADDING
        data = np.frombuffer(text, np.uint8)
        ends = np.flatnonzero(data[:size] == _PADDING[0]) + 1
        if size and (not len(ends) or ends[-1] < size):
            ends = np.append(ends, size)
        return cls(data, ends, line, limits)

    @classmethod
    def one(cls, text: bytearray, line: int, limits: Limits) -> LoggedLines:
        """The lines of one message."""
        return cls(np.frombuffer(text + _PADDING, np.uint8), np.array([len(text)]), line, limits)

    def __len__(self) -> int:
        return len(self.ends)

    def text(self, first: int) -> bytearray:
        """The text of the messages from the given one on."""
        begin = int(self.ends[first - 1]) if first else 0
        return bytearray(self.data[begin : self.ends[-1]])

    def messages(self, first: int, end: int) -> list[MessageText]:
        """The messages first:end. Of one that is too long, there is only the begin."""
        begin = int(self.ends[first - 1]) if first else 0
        stops, most = self.ends[first:end].tolist(), self.limits.event_bytes
        collected = []
        for line, stop in enumerate(stops, self.line + first):
            text = self.data[begin : min(stop, begin + most + 1)].tobytes()
            begin = stop
            refusal = long_event(self.limits) if len(text) > most else None
            collected.append(MessageText(text, line, refusal))
        return collected


def logged_lines(data: IO[bytes], limits: Limits) -> Iterator[LoggedLines]:
    """The lines of a file. Of a line that is too long, only the begin and the end are kept."""
    line, rest, is_first = 1, b"", True
    while True:
        text = bytearray(rest)
        is_last = not _read(data, text, max(TOGETHER_BYTES, len(rest)))
        if is_first:
            text, is_first = text.removeprefix(_BOM), False
        end = len(text) if is_last else text.rfind(b"\n") + 1
        rest = bytes(text[end : end + limits.event_bytes + 1])
        del text[end:]
        if text:
            lines = LoggedLines.of(text, line, limits)
            line += len(lines)
            yield lines
        if is_last:
            return


def _read(data: IO[bytes], room: bytearray, size: int) -> bool:
    """Add bytes, fewer than `size` only at the end, and before an error, which is met again.

    Returns whether there were any.
    """
    begin, end = len(room), len(room) + size
    while len(room) < end:
        try:
            part: bytes = data.read1(end - len(room))  # type: ignore[attr-defined]
        except READ_ERRORS:
            if len(room) == begin:
                raise
            break
        if not part:
            break
        room += part
    return len(room) > begin
