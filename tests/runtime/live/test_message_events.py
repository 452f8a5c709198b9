"""Messages become events; reading many together gives what reading each alone gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spaseq.errors import UsageError
from spaseq.logs.messages import Message
from spaseq.rdf.inputs.stream_options import BadInput, MessageOptions, StreamOptions
from spaseq.runtime.arrivals.stream_clock import Horizon
from spaseq.runtime.live.stream_events import arrival_times, message_events

TIME = "http://www.w3.org/ns/prov#generatedAtTime"
DATE_TIME = "http://www.w3.org/2001/XMLSchema#dateTime"
OPTIONS = StreamOptions("http://e/s", ())

Event = tuple[int, str | None, int]


def quads(event: str, seconds: int, values: int = 1) -> str:
    lines = [f"<http://e/x> <http://e/p> {n} <{event}> ." for n in range(values)]
    return "\n".join(
        [f'<{event}> <{TIME}> "2026-01-01T00:00:{seconds:02d}Z"^^<{DATE_TIME}> <{event}> .']
        + [line.replace(f" {n} ", f' "{n}" ') for n, line in enumerate(lines)]
    )


AHEAD = Horizon(30_000, 86_400_000)
"""The day after the messages came."""


def read(
    messages: list[Message], options: StreamOptions = OPTIONS
) -> tuple[list[Event], list[BadInput]]:
    bad: list[BadInput] = []
    events = [
        (int(time) % 60_000, name, int(size))
        for batch in message_events(messages, options, "nats://h/s", bad.append)
        for time, name, size in zip(
            arrival_times(batch.time, messages[0].arrival, None, AHEAD, None),
            batch.names(np.arange(len(batch))).texts(),
            batch.start[1:] - batch.start[:-1],
            strict=True,
        )
    ]
    return events, bad


def messages_of(*payloads: str, media: str = "") -> list[Message]:
    """Messages that arrived at second 30, and have times from second 11 on."""
    return [
        Message(text.encode(), 0, n, media, 30_000, 10_000 + 1000 * n)
        for n, text in enumerate(payloads, 1)
    ]


def options_with(**given: object) -> StreamOptions:
    return StreamOptions("http://e/s", (), messages=MessageOptions(**given))  # type: ignore[arg-type]


def test_a_message_may_have_one_event_or_several() -> None:
    events, bad = read(
        messages_of(
            quads("http://e/1", 1, 2), quads("http://e/2", 2) + "\n" + quads("http://e/3", 3) + "\n"
        )
    )
    assert [event[:2] for event in events] == [
        (1000, "http://e/1"),
        (2000, "http://e/2"),
        (3000, "http://e/3"),
    ]
    assert not bad


def test_an_event_never_spans_two_messages() -> None:
    events, bad = read(messages_of(quads("http://e/1", 1), quads("http://e/1", 2)))
    assert [event[:2] for event in events] == [(1000, "http://e/1"), (2000, "http://e/1")]
    assert not bad
    _, bad = read(
        messages_of(quads("http://e/1", 1), "<http://e/x> <http://e/p> 'a' <http://e/1> .")
    )
    assert [b.file for b in bad] == ["nats://h/s message 2"]


def test_a_message_that_is_no_event_is_named_and_the_others_count() -> None:
    good = [quads(f"http://e/{n}", n) for n in range(9)]
    events, bad = read(messages_of(*good[:4], "no RDF", *good[4:], "", "\0\xff"))
    assert [event[1] for event in events] == [f"http://e/{n}" for n in range(9)]
    assert [(b.file, b.line) for b in bad] == [
        ("nats://h/s message 5", 1),
        ("nats://h/s message 11", None),
        ("nats://h/s message 12", 1),
    ]


def test_media_types() -> None:
    trig = f'<http://e/1> {{ <http://e/1> <{TIME}> "2026-01-01T00:00:05Z"^^<{DATE_TIME}> }}'
    json = (
        f'{{"@id": "http://e/2", "@graph": [{{"@id": "http://e/2", "{TIME}": {{"@value": '
        f'"2026-01-01T00:00:06Z", "@type": "{DATE_TIME}"}}}}]}}'
    )
    given_messages = [
        *messages_of(trig, trig, media="application/trig; charset=utf-8"),
        *messages_of(json, media="application/ld+json"),
        *messages_of(quads("http://e/3", 7), media="Application/N-Quads"),
        *messages_of("{}", media="application/cbor"),
        *messages_of(
            quads("http://e/4", 8) + "\nMESSAGE\n" + quads("http://e/5", 9),
            media='application/n-quads; version="1.2-messages"',
        ),
    ]
    events, bad = read(given_messages)
    assert [event[1] for event in events] == [
        "http://e/1",
        "http://e/1",
        "http://e/2",
        "http://e/3",
        "http://e/4",
        "http://e/5",
    ]
    (one,) = bad
    assert "application/cbor is not one of application/n-quads" in one.reason


LINES = st.sampled_from(
    [
        *(quads(f"http://e/{n}", n, n) for n in range(3)),
        *quads("http://e/1", 1, 2).split("\n"),
        '<http://e/a> <http://e/b> "> <http://e/1> ." <http://e/1> .',
        '<http://e/a> <http://e/b> "c" <http://e/\\u0031> .',
        '<http://e/a> <http://e/b> "c" _:b .',
        '<http://e/a> <http://e/b> "c" .',
        "# a comment <http://e/1> .",
        "no RDF",
        "",
    ]
)


@given(st.lists(st.lists(LINES, max_size=3).map("\n".join), max_size=7))
@settings(deadline=None, max_examples=150)
def test_together_and_one_by_one_are_the_same(payloads: list[str]) -> None:
    together = messages_of(*payloads)
    one_by_one = [read([message]) for message in together]
    events, bad = read(together)
    assert events == [event for some, _ in one_by_one for event in some]
    assert bad == [one for _, some in one_by_one for one in some]


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\n\n"])
def test_line_ends(end: str) -> None:
    events, bad = read(messages_of(*(quads(f"http://e/{n}", n) + end for n in range(3))))
    assert len(events) == 3
    assert not bad


def triple(value: str, graph: str = "") -> str:
    return f'<http://e/x> <http://e/p> "{value}" {graph}.'


G1, G2 = "<http://e/g1> ", "<http://e/g2> "
UNTIMED = {
    "": triple("a", G1) + "\n" + triple("b", G1),
    "application/trig": "<http://e/g1> { <http://e/x> <http://e/p> 1, 2 }",
    "application/json": '{"@id": "http://e/g1", "@graph": {"http://e/p": [1,\n2]}}',
    "text/turtle": "<http://e/x> <http://e/p> 1, 2 .",
    "application/n-triples": triple("a") + "\n" + triple("b"),
    "application/ld+json": '{"http://e/p": [1,\n2]}',
}
"""A message with one event, of two triples and without a time, in each format."""


@pytest.mark.parametrize("media", UNTIMED)
def test_an_event_without_a_time_gets_that_of_the_rule(media: str) -> None:
    name = "http://e/g1" if "g1" in UNTIMED[media] else None
    given_messages = messages_of(UNTIMED[media], UNTIMED[media], media=media)
    events, bad = read(given_messages)
    assert not events
    assert [b.reason for b in bad] == ["event without a timestamp"] * 2
    events, bad = read(given_messages, options_with(time="arrival"))
    assert events == [(30_000, name, 2)] * 2
    assert not bad
    events, bad = read(given_messages, options_with(time="message"))
    assert events == [(11_000, name, 2), (12_000, name, 2)]
    assert not bad


def test_the_rule_is_for_graphs_without_any_time() -> None:
    stamp = f'{G2}<{TIME}> "2026-01-01T00:00:05Z"^^<{DATE_TIME}> .'
    unreadable = f'{G1}<{TIME}> "soon" {G1}.'
    text = "\n".join(
        [triple("a", G1), triple("b", G2), triple("c", G2), stamp, triple("d", "_:b ")]
    )
    rule = options_with(time="arrival")
    events, bad = read(messages_of(text, unreadable, text + "\nno RDF"), rule)
    both = [(30_000, "http://e/g1", 1), (5_000, "http://e/g2", 2), (30_000, None, 1)]
    # The line without a graph's name costs the event before it.
    assert events == both + both[:2]
    assert [(b.file, b.line) for b in bad] == [
        ("nats://h/s message 2", 1),
        ("nats://h/s message 3", 6),
    ]
    assert "readable timestamp" in bad[0].reason


def test_a_message_without_a_time_gives_none() -> None:
    events, bad = read([Message(UNTIMED[""].encode(), 0, 1)], options_with(time="message"))
    assert not events
    assert bad[0].reason == "event without a timestamp"


def test_the_format_of_a_stream_counts_and_not_the_media_type() -> None:
    text = f'<http://e/1> {{ <http://e/1> <{TIME}> "2026-01-01T00:00:05Z"^^<{DATE_TIME}> }}'
    for name in ("trig", ".trig", "application/trig"):
        events, bad = read(messages_of(text, media="text/html"), options_with(format=name))
        assert events == [(5000, "http://e/1", 1)]
        assert not bad
    with pytest.raises(UsageError, match="unknown format 'trigg', did you mean 'trig'"):
        options_with(format="trigg")
    with pytest.raises(UsageError, match="message or arrival"):
        options_with(time="never")


def test_a_message_with_no_event_in_it_is_bad() -> None:
    for media in ("application/json", "application/trig", "text/turtle", "application/n-triples"):
        text = "{}" if "json" in media else "# nothing"
        events, bad = read(messages_of(text, media=media))
        assert not events
        assert [b.reason for b in bad] == ["there is no event in it"]


@given(st.lists(st.lists(LINES, max_size=3).map("\n".join), max_size=7))
@settings(deadline=None, max_examples=150)
def test_together_and_one_by_one_are_the_same_with_times(payloads: list[str]) -> None:
    together, rule = messages_of(*payloads), options_with(time="message")
    one_by_one = [read([message], rule) for message in together]
    events, bad = read(together, rule)
    assert events == [event for some, _ in one_by_one for event in some]
    assert bad == [one for _, some in one_by_one for one in some]
    assert not [b for b in bad if b.reason == "event without a timestamp"]


def test_times_are_given_to_many_events_of_one_message() -> None:
    """A scan of the message for each event would take an hour."""
    count = 60_000
    text = "".join(f"<http://e/x> <http://e/p> {n} <http://e/g{n}> .\n" for n in range(count))
    text = text.replace("/p> ", '/p> "').replace(" <http://e/g", '" <http://e/g')
    options = StreamOptions("http://e/s", (), live=True, messages=MessageOptions(time="message"))
    bad: list[BadInput] = []
    message = Message(text.encode(), 0, 1, time=1_767_225_600_000)
    found = [*message_events([message], options, "s", bad.append)]
    assert not bad
    assert sum(map(len, found)) == count
    assert {int(time) for batch in found for time in batch.time} == {1_767_225_600_000}
