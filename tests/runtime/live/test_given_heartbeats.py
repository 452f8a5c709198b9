"""Messages that are heartbeats move the watermark of their partition, in the order of the log."""

from __future__ import annotations

from spaseq.connectors.base import media_of
from spaseq.logs.messages import Message, MessageColumns
from tests.runtime.live.live_jobs import IRI, event
from tests.runtime.live.test_live_engine import ARRIVAL, Fed


def heartbeat(text: str, partition: int = 0) -> Message:
    """A message with the header."""
    return Message(b"", partition, 0, media_of(text, b"", ""), ARRIVAL)


def told(payload: bytes, partition: int = 0) -> Message:
    """A message with events."""
    return Message(payload, partition, 0, "", ARRIVAL)


def fed(*messages: Message) -> Fed:
    """An engine that has taken messages; its watermark is 500 ms behind events."""
    found = Fed()
    found.engine.take(IRI, [MessageColumns.of(messages)])
    found.engine.advance()
    return found


def test_no_event_at_or_before_a_heartbeat_follows_it() -> None:
    engine = fed(
        told(event(1, 1000, "x", "hot")),
        heartbeat("2026-01-01T00:00:01.2Z"),
        told(event(2, 1200, "x", "cold")),
        told(event(3, 1201, "x", "cold")),
    )
    assert [(late.time - ARRIVAL, late.lateness_ms) for late in engine.late] == [(1200, 1)]
    assert engine.engine.watermark(IRI) == ARRIVAL + 1201
    assert not engine.bad


def test_a_heartbeat_says_nothing_of_other_partitions() -> None:
    engine = fed(heartbeat(str(ARRIVAL + 5000), 1), told(event(1, 1000, "x", "hot")))
    assert not engine.late
    assert engine.engine.watermark(IRI) == ARRIVAL + 500


def test_a_heartbeat_without_a_time_or_from_the_future_is_bad_input() -> None:
    engine = fed(heartbeat("soon"), heartbeat("4026-01-01T00:00:00Z"), heartbeat(str(ARRIVAL)))
    assert ["no xsd:dateTime" in engine.bad[0].reason, "max_ahead" in engine.bad[1].reason] == [
        True,
        True,
    ]
    assert engine.engine.watermark(IRI) == ARRIVAL + 1
    assert engine.engine.counts[IRI].bad == 2


def test_a_message_with_a_body_is_no_heartbeat() -> None:
    assert media_of("2026-01-01T00:00:00Z", b"x", "text/turtle") == "text/turtle"
