"""Events that come again are dropped, and so are messages that are too large; a restart agrees."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from spaseq.errors import UsageError
from spaseq.logs.messages import Message
from spaseq.rdf.inputs.stream_options import BadInput, MessageOptions, StreamOptions
from spaseq.runtime.live import stream_events
from spaseq.runtime.live.stream_events import SeenGraphs, StreamEvents
from spaseq.sources.broker_stream import BrokerStream
from spaseq.storage.safe_pickles import dump_plain, load_plain
from tests.sizes import first_of


def stream(**given: Any) -> BrokerStream:
    return BrokerStream(
        StreamOptions("http://e/s", (), messages=MessageOptions(time="arrival", **given)),
        "mqtt://h/a",
    )


def message(number: int, arrival: int) -> Message:
    text = f'<http://e/x> <http://e/p> "{arrival}" <http://e/g{number}> .'
    return Message(text.encode(), 0, arrival + 1, "", arrival)


def taken(events: StreamEvents, source: BrokerStream, given: Message) -> bool:
    """Whether the event of a message is taken."""
    batches = events.read(source, [given], pytest.fail)  # type: ignore[arg-type]
    return sum(len(batch) for batch in batches) == 1


def test_an_event_is_dropped_if_its_graph_was_seen_in_the_window() -> None:
    source = stream(dedup_ms=100)
    events = StreamEvents(source.options.messages)
    expected = [(1, 0, True), (2, 50, True), (1, 99, False), (2, 150, True), (1, 150, False)]
    expected += [(1, 249, False), (1, 349, True), (2, 300, True), (2, 340, False)]
    for number, arrival, is_taken in expected:
        assert taken(events, source, message(number, arrival)) == is_taken, (number, arrival)
    assert events.duplicates == 4


def test_graphs_without_names_are_all_taken() -> None:
    source = stream(dedup_ms=100, format="turtle")
    events = StreamEvents(source.options.messages)
    for _ in range(2):
        assert taken(events, source, Message(b"<http://e/x> a <http://e/C> .", 0, 1, "", 5))


@pytest.mark.parametrize("seed", first_of(range(5), 2))
def test_what_is_dropped_does_not_depend_on_restarts(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the definition: seen means that a message with the graph arrived in the time before."""
    monkeypatch.setattr(stream_events, "_PIECE", 7)
    chance, source = random.Random(seed), stream(dedup_ms=60)
    events, seen, arrival = StreamEvents(source.options.messages), dict[int, int](), 0
    for _ in range(400):
        arrival += chance.randrange(10)
        number = chance.randrange(12)
        expected = arrival - seen.get(number, -100) >= 60
        seen[number] = arrival
        assert taken(events, source, message(number, arrival)) == expected
        if chance.random() < 0.1:
            state = load_plain(dump_plain(events.as_json()))
            events = StreamEvents(source.options.messages)
            events.restore(state)


def test_a_message_that_is_too_large_is_bad() -> None:
    bad: list[BadInput] = []
    small = message(1, 1000)
    source = stream(max_bytes=len(small.payload))
    events = StreamEvents(source.options.messages)
    large = replace(small, payload=small.payload + b" ", offset=7)
    found = list(events.read(source, [large, small], bad.append))
    assert sum(map(len, found)) == 1
    size = len(small.payload)
    assert bad == [
        BadInput(
            "mqtt://h/a message 7",
            None,
            f"it has {size + 1} bytes, and a message of this stream has at most {size}",
        )
    ]


def test_a_run_with_other_options_cannot_go_on() -> None:
    assert stream().identity() != stream(dedup_ms=5).identity()
    plain = BrokerStream(StreamOptions("http://e/s", ()), "mqtt://h/a")
    assert plain.identity() == ["http://e/s", "mqtt://h/a"]


def test_a_broker_that_gives_no_times_cannot_give_them() -> None:
    for url, is_refused in (("mqtt://h/a", True), ("ws://h/", True), ("nats://h/a", False)):
        options = StreamOptions("http://e/s", (), messages=MessageOptions(time="message"))
        if is_refused:
            with pytest.raises(UsageError, match="gives messages no time"):
                BrokerStream.of((url,), options)
        else:
            assert BrokerStream.of((url,), options) is not None


def test_points_of_the_past_share_their_memory() -> None:
    """Saved together, twenty points are hardly larger than one."""
    seen, points = SeenGraphs(10**9), list[Any]()
    for number in range(100_000):
        seen.advance(number)
        assert seen.is_new(f"http://e/g{number}")
        if number % 5000 == 4999:
            points.append(seen.as_json())
    assert len(dump_plain(points)) < 1.6 * len(dump_plain(points[-1]))
    assert len(dump_plain(points[-1])) < 25 * 100_000


def test_what_is_too_long_ago_takes_no_memory() -> None:
    seen = SeenGraphs(1000)
    for number in range(50_000):
        seen.advance(number)
        seen.is_new(f"http://e/g{number}")
    assert len(dump_plain(seen.as_json())) < 25 * 10_000
