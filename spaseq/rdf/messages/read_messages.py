"""Event batches from a file of messages."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator
from typing import IO, cast

from spaseq.extras import missing
from spaseq.limits import Limits
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.inputs.files import READ_ERRORS, InputFile
from spaseq.rdf.inputs.formats import Format
from spaseq.rdf.inputs.sizes import PARSED_BYTES, long_event
from spaseq.rdf.inputs.stream_options import BadInput, OnBad, StreamOptions
from spaseq.rdf.messages.json_log import JsonLog
from spaseq.rdf.messages.message_assembly import MessageAssembly
from spaseq.rdf.messages.message_lines import MessageLines, MessageText, Report
from spaseq.rdf.messages.message_quads import LogParser, logged_lines, together
from spaseq.rdf.messages.wrapped_events import json_documents
from spaseq.text_patterns import possessive

PIECE_BYTES = 1 << 20

LINE_DELIMITER = possessive(rb"MESSAGE[ \t]*+(?:\#[^\n]*+)?\r?$", re.MULTILINE)
"""A delimiter of N-Triples and N-Quads, if it is the first text of its line."""

_NAME = rb"[A-Za-z0-9_:%\-\x80-\xff]"
_FLAT = (
    rb"""[^A-Za-z0-9_:%\-\x80-\xff<"'\#\\@]++"""
    rb'|"""(?:[^"\\]++|\\(?s:.)|"{1,2}+(?!"))*+"""(?:@[A-Za-z0-9\-]++)?+'
    rb"|'''(?:[^'\\]++|\\(?s:.)|'{1,2}+(?!'))*+'''(?:@[A-Za-z0-9\-]++)?+"
    rb'|"(?!"")(?:[^"\\\r\n]++|\\.)*+"(?:@[A-Za-z0-9\-]++)?+'
    rb"|'(?!'')(?:[^'\\\r\n]++|\\.)*+'(?:@[A-Za-z0-9\-]++)?+"
    rb'|<[^<>"{}|^`\x00-\x20]*+>'
    rb"|\#[^\r\n]*+"
    rb"|(?!(?i:MESSAGE)(?!" + _NAME + rb"))(?:" + _NAME + rb"|\.(?=" + _NAME + rb")|\\.)++"
    rb"|@(?!message(?![A-Za-z0-9\-]))"
    rb"""|<|"(?!"")|'(?!'')|\\"""
)
_DOT = rb"(?:[ \t\r\n]++|\#[^\r\n]*+)*+"
TURTLE_DELIMITER = possessive(
    rb"(?:" + _FLAT + rb")*+"
    rb"(?:((?i:MESSAGE)|@message" + _DOT + rb"\.)|(@message" + _DOT + rb'\Z|"""|\'\'\')|@|\Z)'
)
"""Text without a delimiter, then group 1, a delimiter of Turtle and TriG, or group 2, the begin of
a token that more text may complete."""

Ends = Callable[[bytes, bool], tuple[list[tuple[int, int]], int]]
"""Finds the delimiters in a text of whole lines; the flag says that it is the last one.

Returns (begin, end) of each, and the position where the scan must continue with more text.
"""


def line_messages(data: IO[bytes], limits: Limits) -> Iterator[MessageText]:
    """The messages of N-Triples or N-Quads."""
    yield from _LogCutter(data, limits, _line_delimiters).messages()


def turtle_messages(data: IO[bytes], limits: Limits) -> Iterator[MessageText]:
    """The messages of Turtle or TriG.

    >>> import io
    >>> text = b'<s> <p> "MESSAGE" . MESSAGE <s> <p> "x"@message . @message .'
    >>> [m.text for m in turtle_messages(io.BytesIO(text), Limits())]
    [b'<s> <p> "MESSAGE" . ', b' <s> <p> "x"@message . ']
    """
    yield from _LogCutter(data, limits, _turtle_delimiters).messages()


def _line_delimiters(text: bytes, last: bool) -> tuple[list[tuple[int, int]], int]:
    delimiters = []
    for word in LINE_DELIMITER.finditer(text):
        begin = word.start()
        if not text[text.rfind(b"\n", 0, begin) + 1 : begin].strip(b" \t"):
            delimiters.append((begin, begin + len(b"MESSAGE")))
    return delimiters, len(text)


def _turtle_delimiters(text: bytes, last: bool) -> tuple[list[tuple[int, int]], int]:
    delimiters, at = [], 0
    while at < len(text):
        token = TURTLE_DELIMITER.match(text, at)
        assert token is not None, "it matches the empty text"
        if token.group(1) is not None:
            delimiters.append(token.span(1))
        elif token.group(2) is not None:
            if not last and len(text) - token.start(2) <= PARSED_BYTES:
                return delimiters, token.start(2)
            at = token.start(2) + 1  # the parser refuses it, and delimiters after it still count
            continue
        at = max(token.end(), at + 1)
    return delimiters, len(text)


class _LogCutter:
    """Reads a log piece by piece, and cuts it into messages."""

    def __init__(self, data: IO[bytes], limits: Limits, delimiters: Ends) -> None:
        self._read, self._limits, self._delimiters = data.read, limits, delimiters
        self._parts: list[bytes] = []  # the message that is being read
        self._size = 0  # its bytes
        self._begin = 1  # the line where it begins
        self._line = 1  # the line of the next part

    def messages(self) -> Iterator[MessageText]:
        """The messages, as soon as each is complete."""
        rest = b""
        while True:
            piece = self._piece(len(rest))
            text = rest + piece
            whole = (
                text if len(text) > self._limits.event_bytes or not piece else text[: _end(text)]
            )
            delimiters, after = self._delimiters(whole, not piece)
            at = 0
            for begin, end in delimiters:
                self._add(text[at:begin])
                yield self._message()
                self._line += text.count(b"\n", begin, end)
                self._begin = self._line
                at = end
            self._add(text[at:after])
            rest = text[after:]
            if not piece:
                break
        last = self._message()
        if last.refusal is not None or last.text.strip():
            yield last

    def _piece(self, least: int) -> bytes:
        """The next bytes, about as many as are scanned again, so that few scans see each byte."""
        size = max(PIECE_BYTES, least)
        room = bytearray()
        while len(room) < size:
            try:
                part = self._read(size - len(room))
            except READ_ERRORS:
                if not room:
                    raise
                break  # the next call meets the error again
            if not part:
                break
            room += part
        return bytes(room)

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        self._line += part.count(b"\n")
        if self._size > self._limits.event_bytes:
            self._parts.clear()
        else:
            self._parts.append(part)

    def _message(self) -> MessageText:
        refusal = long_event(self._limits) if self._size > self._limits.event_bytes else None
        message = MessageText(b"".join(self._parts), self._begin, refusal)
        self._parts, self._size, self._begin = [], 0, self._line
        return message


def _end(text: bytes) -> int:
    return text.rfind(b"\n") + 1


def message_file_events(
    data: IO[bytes], file: InputFile, options: StreamOptions, counter: InstantCounter, on_bad: OnBad
) -> Iterator[EventBatch]:
    """The events of a file whose format has messages. A malformed message costs only itself."""

    def report(line: int | None, reason: str, text: str) -> None:
        on_bad(BadInput(file.path, line, reason, text))

    messages = _messages(data, file.format, options, report)
    try:
        yield from events_of_messages(messages, file.path, options, counter, on_bad)
    except READ_ERRORS as error:
        reason = getattr(error, "strerror", None) or error
        on_bad(BadInput(file.path, None, f"the rest of the file is not read: {reason}"))


def events_of_messages(
    messages: Iterable[MessageLines],
    file: str,
    options: StreamOptions,
    counter: InstantCounter,
    on_bad: OnBad,
) -> Iterator[EventBatch]:
    """The events of messages in a file."""
    assembly = MessageAssembly(options, file, counter, on_bad)
    for some in messages:
        yield from assembly.batches(some)


def _messages(
    data: IO[bytes], form: Format, options: StreamOptions, report: Report
) -> Iterator[MessageLines]:
    limits = options.limits
    if form is Format.JELLY and missing("jelly"):
        report(None, f"Jelly needs {missing('jelly')}", "")
    elif form is Format.JELLY:
        from spaseq.rdf.messages.jelly_frames import jelly_messages

        yield from jelly_messages(data, limits, report)
    elif form is Format.NDJSONLD:
        lines = logged_lines(_buffered(data), limits)
        yield from JsonLog(options.base, options.contexts, limits, report).parsed(lines)
    elif form in (Format.NGSILD, Format.CLOUDEVENTS):
        from spaseq.rdf.messages.ngsi_ld import NgsiLog
        from spaseq.rdf.messages.wrapped_events import CloudEventLog

        log = NgsiLog if form is Format.NGSILD else CloudEventLog
        yield from log(options, report).parsed(json_documents(_buffered(data), limits))
    elif form is Format.SOSA:
        from spaseq.rdf.messages.observations import observation_messages

        yield from observation_messages(_buffered(data), options, report)
    else:
        cut = line_messages if form is Format.RDFM else turtle_messages
        parser = LogParser(form, options.base, limits, report)
        for run in together(cut(data, limits)):
            yield parser.lines(run)


def _buffered(data: IO[bytes]) -> IO[bytes]:
    return cast(
        "IO[bytes]", data if isinstance(data, io.BufferedIOBase) else io.BufferedReader(data)
    )
