"""Queries and streams of a live run as its users see them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["running", "catching up", "failed", "paused"]


@dataclass(frozen=True, slots=True)
class QueryView:
    """A query as its users see it.

    Attributes:
        name: its name.
        text: its text.
        state: whether it runs.
        since: when it was added, ms since the epoch.
        streams: the IRIs of the streams that it reads.
        answers: how many answers it has given, over restarts.
        muted: how many further ones MUTE has left out.
        withheld: how many answers of the past sinks did not get, each once for each sink.
        live: how many partial matches wait in the states of its automaton; None if it is evaluated
            together with others.
        reason: why it has failed; "" if it has not.
    """

    name: str
    text: str
    state: State
    since: int
    streams: tuple[str, ...]
    answers: int
    muted: int
    withheld: int
    live: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class StreamView:
    """A stream as its users see it.

    Attributes:
        name: its name.
        iri: its IRI.
        accepted: how many events it has brought, over restarts.
        bad: how many parts of messages were no events.
        late: how many events were late.
        duplicates: how many events were dropped, because their graph was seen before; the others
            are `accepted`.
        watermark: ms since the epoch; None before its first event.
        source: where its messages come from, without secrets; None if they are posted.
        lag: how many records of its log have not been evaluated yet.
    """

    name: str
    iri: str
    accepted: int
    bad: int
    late: int
    duplicates: int
    watermark: int | None
    source: str | None
    lag: int
