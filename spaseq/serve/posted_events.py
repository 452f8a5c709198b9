"""Events that come in the body of a request: what is an event of it, and what goes into the log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from spaseq.logs.messages import UNNUMBERED, Message
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.inputs.bad_input import BadInput, OnBad
from spaseq.rdf.inputs.formats import Format
from spaseq.rdf.inputs.message_formats import MEDIA_TYPES, format_of_media, message_format
from spaseq.serve.lost_quads import without_damaged
from spaseq.serve.refusals import Refused

REPORTS = 1000
"""Most bad events of a request that the reply names."""

_LINES = frozenset({"application/x-ndjson", "application/jsonl", "application/x-jsonlines"})
"""The media types of JSON lines, each of which is a message."""

MessageReading = Callable[[Sequence[Message], OnBad], Iterator[EventBatch]]


@dataclass(frozen=True, slots=True)
class PostedStream:
    """A stream that requests feed.

    Attributes:
        name: the stream's name.
        events: makes the events of messages, as the run does.
        time_predicate: the predicate of the times of events.
        rows: whether messages are JSON that a lift or a context reads, whatever they say they are.
        form: the format of all bodies, whatever they say they are; None if they say it.
    """

    name: str
    events: MessageReading
    time_predicate: str
    rows: bool = False
    form: str | None = None

    def media_type(self, given: str) -> str:
        """The media type of a body; Refused if nothing here reads it."""
        if self.rows or self.form is not None or format_of_media(given) is not None:
            return given
        raise Refused(
            415,
            f"Content-Type {given[:100]} is no format of events",
            f"send one of {', '.join(filter(None, MEDIA_TYPES))}; with curl: "
            "-H 'Content-Type: application/n-quads'",
        )

    def read(self, media_type: str, body: bytes) -> tuple[list[Message], dict[str, object]]:
        """The messages that go into the log, and the reply to the request."""
        name = media_type.partition(";")[0].strip().lower()
        events: dict[int, str] = {}
        lines: list[int] | None = None
        more = 0
        if self.rows and name in _LINES:
            numbered = [(n, line) for n, line in enumerate(body.split(b"\n"), 1) if line.strip()]
            lines, payloads = [n for n, _ in numbered], [line for _, line in numbered]
        else:
            payloads = [body] if body.strip() else []
        count, bad = self._count(media_type, payloads)
        suspects = {one.line for one in bad if one.line is not None}
        if suspects and self._format(media_type) is Format.NQUADS:
            damage = without_damaged(body, suspects, self.time_predicate, REPORTS)
            if damage.text != body:
                payloads, events, more = [damage.text], damage.events, damage.dropped
                count, bad = self._count(media_type, payloads)
        if not payloads:
            bad = [BadInput("", None, "there is no event in it")]
        reports = [_report(one, lines, events) for one in bad[:REPORTS]]
        more += len(bad) - len(reports)
        if more:
            reports.append({"line": None, "reason": f"and {more:,} more"})
        messages = [Message(payload, 0, UNNUMBERED, media_type) for payload in payloads]
        return messages, {"accepted": count, "bad": reports}

    def _format(self, media_type: str) -> Format | None:
        if self.rows:
            return None
        return format_of_media(media_type) if self.form is None else message_format(self.form)

    def _count(self, media_type: str, payloads: Sequence[bytes]) -> tuple[int, list[BadInput]]:
        """How many events there are, and what is none."""
        bad: list[BadInput] = []
        if not payloads:
            return 0, bad
        now = int(time.time() * 1000)
        messages = [Message(some, 0, n, media_type, now) for n, some in enumerate(payloads)]
        return sum(len(batch) for batch in self.events(messages, bad.append)), bad


def _report(
    bad: BadInput, lines: Sequence[int] | None, events: dict[int, str]
) -> dict[str, object]:
    line, reason = bad.line, bad.reason
    if line in events:
        reason += f"; so the event {events[line]} is bad"
    if lines is not None:
        line = _line_of(bad, lines)
    return {"line": line, "reason": reason}


def _line_of(bad: BadInput, lines: Sequence[int]) -> int | None:
    """The line of a message, whose number is the last word of its name."""
    number = bad.file.rpartition(" ")[2]
    return lines[int(number)] if number.isdecimal() and int(number) < len(lines) else None
