"""Events that come in the body of a request: what is an event of it, and what goes into the log."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from spaseq.connectors.heartbeat_messages import is_heartbeat
from spaseq.lift.json_rows import begins_with_line, elements
from spaseq.logs.messages import UNNUMBERED, Message
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.events.graph_times import LOST_QUAD
from spaseq.rdf.inputs.formats import Format
from spaseq.rdf.inputs.message_formats import MEDIA_TYPES, format_of_media, message_format
from spaseq.rdf.inputs.stream_options import BadInput, OnBad
from spaseq.rdf.lines.line_parser import graph_named, parse_nquads_line
from spaseq.rdf.terms.term import iri_text
from spaseq.runtime.live.partition_clocks import GivenEvents
from spaseq.serve.requests import Refused


def without_surplus(
    text: bytes, suspects: Collection[int], time_predicate: str, most: int = 1000
) -> bytes:
    r"""N-Quads in which many malformed lines are blank; the events are the same.

    After the first ones, a malformed line stays only if the malformed lines right before it name
    another graph.

    Args:
        text: the lines.
        suspects: the numbers, from 1, of all lines that are malformed, and perhaps of others.
        time_predicate: the predicate of the times of events.
        most: how many malformed lines are kept in any case.

    >>> without_surplus(b'x\ny\nz\n<s:> <p:> "1" <e:1> .\nx', {1, 2, 3, 5}, "t:", 1)
    b'x\n\n\n<s:> <p:> "1" <e:1> .\nx'
    """
    lines = text.split(b"\n")
    inside = sorted(n for n in suspects if 0 < n <= len(lines))
    malformed = [n for n in inside if isinstance(parse_nquads_line(lines[n - 1]), str)]
    names: set[str | None] = set()  # in the malformed lines right before
    last = 0
    for count, number in enumerate(malformed):
        if number != last + 1:
            names.clear()
        name = graph_named(lines[number - 1], iri_text(time_predicate))
        if count >= most and name in names:
            lines[number - 1] = b""
        names.add(name)
        last = number
    return b"\n".join(lines)


REPORTS = 1000
"""Most bad events of a request that the reply names."""

_LINES = frozenset({"application/x-ndjson", "application/jsonl", "application/x-jsonlines"})
"""The media types of JSON lines, each of which is a message."""

MessageReading = Callable[[Sequence[Message], OnBad], Iterator[EventBatch]]


@dataclass(frozen=True, slots=True)
class PostedBody:
    """What is in the body of a request.

    Attributes:
        messages: they go into the log.
        events: what is known of their events.
        bad: what is no event, for the reply.
    """

    messages: list[Message]
    events: GivenEvents
    bad: list[dict[str, object]]

    def reply(self, late: int) -> dict[str, object]:
        """The reply to the request, of whose events some are late."""
        return {"accepted": len(self.events.times), "bad": self.bad, "late": late}


@dataclass(frozen=True, slots=True)
class PostedStream:
    """A stream that requests feed.

    Attributes:
        name: the stream's name.
        events: makes the events of messages, as the run does, but for times of arrival.
        time_predicate: the predicate of the times of events.
        rows: whether messages are JSON that a lift or a context reads, whatever they say they are.
        form: the format of all bodies, whatever they say they are; None if they say it.
        drops_duplicates: whether the run drops events whose graphs it has seen.
    """

    name: str
    events: MessageReading
    time_predicate: str
    rows: bool = False
    form: str | None = None
    drops_duplicates: bool = False

    def media_type(self, given: str) -> str:
        """The media type of a body; Refused if nothing here reads it."""
        is_known = self.rows or self.form is not None or format_of_media(given) is not None
        if is_known and not is_heartbeat(given):
            return given
        raise Refused(
            415,
            f"Content-Type {given[:100]} is no format of events",
            f"send one of {', '.join(filter(None, MEDIA_TYPES))}; with curl: "
            "-H 'Content-Type: application/n-quads'",
        )

    def read(self, media_type: str, body: bytes) -> PostedBody:
        """What is in the body of a request."""
        name = media_type.partition(";")[0].strip().lower()
        lines: list[int] | None = None
        broken: list[BadInput] = []
        if self.rows and body.lstrip()[:1] == b"[":
            lines, payloads, broken = _of_array(body)
        elif self.rows and (name in _LINES or begins_with_line(body.lstrip())):
            numbered = [(n, line) for n, line in enumerate(body.split(b"\n"), 1) if line.strip()]
            lines, payloads = [n for n, _ in numbered], [line for _, line in numbered]
        else:
            payloads = [body] if body.strip() else []
        events, bad = self._events(media_type, payloads)
        suspects = {one.line for one in bad if one.line is not None}
        if len(suspects) > REPORTS and self._format(media_type) is Format.NQUADS:
            payloads = [without_surplus(body, suspects, self.time_predicate, REPORTS)]
        if not payloads and not broken:
            bad = [BadInput("", None, "there is no event in it")]
        reports = [_report(one, lines) for one in bad[:REPORTS]]
        reports += [_report(one, None) for one in broken]
        if more := len(bad) + len(broken) - len(reports):
            reports.append({"line": None, "reason": f"and {more:,} more"})
        messages = [Message(payload, 0, UNNUMBERED, media_type) for payload in payloads]
        return PostedBody(messages, events, reports)

    def _format(self, media_type: str) -> Format | None:
        if self.rows:
            return None
        return format_of_media(media_type) if self.form is None else message_format(self.form)

    def _events(
        self, media_type: str, payloads: Sequence[bytes]
    ) -> tuple[GivenEvents, list[BadInput]]:
        """What is known of the events, and what is none."""
        bad: list[BadInput] = []
        if not payloads:
            return GivenEvents(), bad
        now = int(time.time() * 1000)
        messages = [Message(some, 0, n, media_type, now) for n, some in enumerate(payloads)]
        times, names = [np.empty(0, np.int64)], list[str | None]()
        for batch in self.events(
            messages, lambda one: bad.append(one) if one.lost is None else None
        ):
            times.append(batch.time)
            if self.drops_duplicates:
                names += batch.names(np.arange(len(batch))).texts()
        return GivenEvents(np.concatenate(times), names), bad


def _of_array(body: bytes) -> tuple[list[int], list[bytes], list[BadInput]]:
    """(lines, texts) of the elements of a JSON array, and what of it is no JSON."""
    broken: list[BadInput] = []

    def report(line: int, reason: str, text: str) -> None:
        broken.append(BadInput("", line, reason, text))

    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        return [], [], [BadInput("", None, "not UTF-8")]
    numbered = [(line, text[a:b].encode()) for line, _, a, b in elements(text, report)]
    return [line for line, _ in numbered], [each for _, each in numbered], broken


def _report(bad: BadInput, lines: Sequence[int] | None) -> dict[str, object]:
    line, reason = bad.line, bad.reason
    if reason == LOST_QUAD:
        reason += f": {bad.text}"
    if lines is not None:
        line = _line_of(bad, lines)
    return {"line": line, "reason": reason}


def _line_of(bad: BadInput, lines: Sequence[int]) -> int | None:
    """The line of a message, whose number is the last word of its name."""
    number = bad.file.rpartition(" ")[2]
    return lines[int(number)] if number.isdecimal() and int(number) < len(lines) else None
