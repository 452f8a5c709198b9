"""Messages become events; reading many together gives what reading each alone gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spaseq.logs.stream_log import Message
from spaseq.rdf.inputs.bad_input import BadInput
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.runtime.live.message_events import message_events

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


def read(messages: list[Message]) -> tuple[list[Event], list[BadInput]]:
    bad: list[BadInput] = []
    events = [
        (int(time) % 60_000, name, int(size))
        for batch in message_events(messages, OPTIONS, "nats://h/s", bad.append)
        for time, name, size in zip(
            batch.time,
            batch.names(np.arange(len(batch))).to_pylist(),
            batch.start[1:] - batch.start[:-1],
            strict=True,
        )
    ]
    return events, bad


def messages_of(*payloads: str, media: str = "") -> list[Message]:
    return [Message(text.encode(), 0, n, media) for n, text in enumerate(payloads, 1)]


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
