"""Messages that are heartbeats: no event at or before a time follows.

A broker's message is one if it has the header `spaseq-heartbeat` with the time, and no body. Its
media type says so in the log.

>>> media = media_of("2026-01-31T08:00:00Z", b"", "")
>>> media, heartbeat_time(media)
('application/x-spaseq-heartbeat; time=2026-01-31T08:00:00Z', 1769846400000)
"""

from __future__ import annotations

import re

from spaseq.logs.messages import MessageColumns
from spaseq.rdf.terms.times import LIMIT_MS, parse_datetime

HEADER = "spaseq-heartbeat"
"""The header, or user property, of a message that is a heartbeat."""

_WHOLE_NUMBER = re.compile("-?[0-9]{1,18}")
_TYPE = "application/x-spaseq-heartbeat; time="


def media_of(time: str | None, payload: bytes, media_type: str) -> str:
    """The media type of a message with the header's text, if it has the header."""
    return media_type if time is None or payload else f"{_TYPE}{time[:100]}"


def is_heartbeat(media_type: str) -> bool:
    """Whether a message is a heartbeat."""
    return media_type.startswith(_TYPE)


def heartbeat_time(media_type: str) -> int | None:
    """The time (ms) of a message that is a heartbeat; None if it is no time."""
    return time_of(media_type.removeprefix(_TYPE))


def time_of(text: str) -> int | None:
    """A time (ms) as users write it: an xsd:dateTime, or milliseconds since 1970."""
    text = text.strip()
    time_ms = int(text) if _WHOLE_NUMBER.fullmatch(text) else parse_datetime(text)
    return None if time_ms is None or abs(time_ms) >= LIMIT_MS else time_ms


def by_kind(messages: MessageColumns) -> list[MessageColumns]:
    """The messages in order; heartbeats stand apart from others."""
    if not any(map(is_heartbeat, set(messages.media_type))):
        return [messages]
    return messages.runs_of_types()
