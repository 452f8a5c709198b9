"""Events in the body of a request, their messages for the log, and the kept replies.

Replies to requests with an `Idempotency-Key`, which may come again, are kept. A reply goes into the
log of its stream together with the events. So it is known again after a restart.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from itertools import chain
from math import inf
from typing import Any

import numpy as np

from spaseq.connectors.base import is_heartbeat
from spaseq.lift.json_rows import begins_with_line, elements
from spaseq.logs.messages import UNNUMBERED, Message
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.events.graph_times import LOST_QUAD
from spaseq.rdf.inputs.formats import MEDIA_TYPES, Format, format_of_media, message_format
from spaseq.rdf.inputs.stream_options import BadInput, OnBad
from spaseq.rdf.lines.statements import graph_named, parse_nquads_line
from spaseq.rdf.terms.term import iri_text
from spaseq.runtime.live.partition_clocks import GivenEvents
from spaseq.serve.requests import Refused

LONGEST_KEY = 255

_MARK = "reply:"


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
    """The contents of the body of a request.

    Attributes:
        messages: they go into the log.
        events: their events.
        bad: the bad input, for the reply.
    """

    messages: list[Message]
    events: GivenEvents
    bad: list[dict[str, object]]

    def reply(self, late: int) -> dict[str, object]:
        """The reply to the request, of whose events some are late."""
        return {"accepted": len(self.events.times), "bad": self.bad, "late": late}


@dataclass(frozen=True, slots=True)
class PostedStream:
    """A stream that gets its events from requests.

    Attributes:
        name: the stream's name.
        events: makes the events of messages, as the run does, without times of arrival.
        time_predicate: the predicate of the times of events.
        rows: whether messages are JSON for a lift or a context, whatever their media types.
        form: the format of all bodies, whatever their media types; None: by media type.
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
        """The contents of the body of a request."""
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
        both = chain(((one, lines) for one in bad), ((one, None) for one in broken))
        reports = [_report(*one) for one in nsmallest(REPORTS, both, key=lambda one: _order(*one))]
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
        """The events, and the bad input."""
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
    """(lines, texts) of the elements of a JSON array, and the parts that are no JSON."""
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
    line = _line_of(bad, lines)
    names_event = bad.text and (line is None or bad.reason == LOST_QUAD)
    return {"line": line, "reason": f"{bad.reason}: {bad.text}" if names_event else bad.reason}


def _order(bad: BadInput, lines: Sequence[int] | None) -> float:
    line = _line_of(bad, lines)
    return inf if line is None else line


def _line_of(bad: BadInput, lines: Sequence[int] | None) -> int | None:
    """The line of a message, whose number is the last word of its name; of others their own."""
    if lines is None:
        return bad.line
    number = bad.file.rpartition(" ")[2]
    return lines[int(number)] if number.isdecimal() and int(number) < len(lines) else None


class KeptReplies:
    """The replies of a while, by stream and key.

    A reply is a mark of the stream's log (`StreamLog.marks`), which goes when its time is over.

    Args:
        retain_ms: how long a reply is kept.
        now: ms since the epoch.
    """

    def __init__(
        self, retain_ms: int, now: Callable[[], int] = lambda: int(time.time() * 1000)
    ) -> None:
        self._retain_ms, self._now = retain_ms, now
        self._kept: dict[tuple[str, str], tuple[int, str, dict[str, Any]]] = {}
        self._locks: dict[tuple[str, str], asyncio.Lock] = {}
        self._access = threading.Lock()

    def recall(self, stream: str, marks: Mapping[str, str]) -> None:
        """Take the replies that the log of a stream has."""
        kept = [(name[len(_MARK) :], json.loads(t)) for name, t in marks.items() if _is_own(name)]
        for key, (at, digest, reply) in sorted(kept, key=lambda item: item[1][0]):
            self._kept[stream, key] = at, digest, reply

    def lock(self, stream: str, key: str) -> asyncio.Lock:
        """Held while a request with this key is served, so that its like waits."""
        return self._locks.setdefault((stream, key), asyncio.Lock())

    def unlocked(self, stream: str, key: str) -> None:
        """Drop an unused lock."""
        lock = self._locks.get((stream, key))
        if lock is not None and not lock.locked():
            del self._locks[stream, key]

    def reply(self, stream: str, key: str, digest: str) -> dict[str, Any] | None:
        """The reply to an earlier request with this key.

        Raises:
            Refused: that request had another body.
        """
        kept = self._kept.get((stream, key))
        if kept is None or kept[0] < self._oldest():
            return None
        if kept[1] != digest:
            raise Refused(
                422,
                "another body came with this Idempotency-Key",
                "give each body a key, and send it again as it was",
            )
        return kept[2]

    def marks(
        self, stream: str, key: str, digest: str, reply: dict[str, Any]
    ) -> tuple[tuple[str, str], ...]:
        """The marks for the log with the events of a request, including dropped replies."""
        kept = json.dumps([self._now(), digest, reply], separators=(",", ":"))
        with self._access:
            gone = [
                k for (s, k), (at, *_) in self._kept.items() if s == stream and at < self._oldest()
            ]
        return (*((_MARK + old, "") for old in gone if old != key), (_MARK + key, kept))

    def keep(self, stream: str, marks: Iterable[tuple[str, str]]) -> None:
        """Record marks that are in the log."""
        with self._access:
            for name, text in marks:
                self._kept.pop((stream, name[len(_MARK) :]), None)
                if text:
                    self.recall(stream, {name: text})

    def _oldest(self) -> int:
        return self._now() - self._retain_ms


def _is_own(mark: str) -> bool:
    return mark.startswith(_MARK)


def digest_of(media_type: str, body: bytes) -> str:
    """The digest of a body."""
    return hashlib.sha256(media_type.encode() + b"\0" + body).hexdigest()
