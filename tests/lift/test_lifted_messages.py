"""JSON messages of brokers as events: fields of messages, times, bad ones, and whole runs."""

from __future__ import annotations

import json
import pickle
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spaseq.compiled.mode import interpreted
from spaseq.connectors import source_at
from spaseq.lift.lift_checks import compiled_lift
from spaseq.lift.lifted import Lifted, lifted_source
from spaseq.lift.lifted_graphs import LiftedEvents
from spaseq.lift.lifted_messages import LiftedBroker
from spaseq.logs.messages import Message
from spaseq.rdf.inputs.stream_options import BadInput, StreamOptions
from tests.connectors.intake import ListIntake
from tests.connectors.kafka_mock import KafkaMock
from tests.connectors.nats_server import NatsServer, serving
from tests.rdf.streams import Event, events_of

HEAD = "PREFIX ex: <http://e/> PREFIX prov: <http://www.w3.org/ns/prov#>\n"
LIFT = HEAD + (
    "CONSTRUCT { ?c ex:price ?price ; prov:generatedAtTime ?at }\n"
    'WHERE { BIND (IRI(CONCAT("http://e/", ?name)) AS ?c) FILTER (?price > 0) }'
)
FIELDS = HEAD + (
    "CONSTRUCT { ex:m ex:topic ?_topic ; ex:key ?_key ; ex:partition ?_partition ;\n"
    "  ex:offset ?_offset ; prov:generatedAtTime ?_time }\nWHERE { }"
)


def lifted(lift: str, *messages: Message) -> tuple[list[Event], list[BadInput]]:
    plan = compiled_lift(lift)
    stream = LiftedBroker(StreamOptions("http://e/s", ()), "nats://h/s", plan, lift)
    bad: list[BadInput] = []
    return list(events_of(stream.events(messages, "nats://h", bad.append))), bad


def message(offset: int, value: Any, **more: Any) -> Message:
    payload = value if isinstance(value, bytes) else json.dumps(value).encode()
    return Message(payload, 0, offset, **more)


def row(name: str, price: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "price": price, **more}


def test_a_message_is_an_event() -> None:
    pretty = json.dumps(row("b", 2, at=2000), indent=2).encode()
    events, bad = lifted(LIFT, message(1, row("a", 1, at=1000)), message(2, pretty))
    assert [(event.time, event.graph) for event in events] == [(1000, None), (2000, None)]
    assert {s for event in events for s, _, _ in event.triples} == {"<http://e/a>", "<http://e/b>"}
    assert bad == []


def test_a_message_has_the_same_events_whatever_came_before() -> None:
    lift = HEAD + "CONSTRUCT { [] ex:price ?price ; prov:generatedAtTime ?at } WHERE { }"
    for text in (LIFT, lift):
        stream = LiftedBroker(
            StreamOptions("http://e/s", ()), "nats://h/s", compiled_lift(text), text
        )
        first, last = (message(n, row("a", n, at=1000)) for n in (1, 2))

        def events(
            *some: Message, stream: LiftedBroker = stream
        ) -> list[tuple[int, int, frozenset[Any]]]:
            return [
                (event.time, event.k, frozenset(event.triples))
                for event in events_of(stream.events(some, "nats://h", pytest.fail))
            ]

        alone = events(first)
        events(last, first, last)
        opened = stream.events([first], "nats://h", pytest.fail)  # another thread's
        next(opened)
        assert events(first) == alone
        assert pickle.loads(pickle.dumps(stream)) == stream
        assert len(alone) == 1


def test_fields_of_the_message_hide_those_of_the_object() -> None:
    hidden = dict.fromkeys(("_topic", "_key", "_time", "_partition", "_offset"), "hidden")
    events, _ = lifted(FIELDS, Message(json.dumps(hidden).encode(), 3, 7, "", 0, 5, b"k", "t"))
    (event,) = events
    values = {p.rpartition("/")[2][:-1]: o for _, p, o in event.triples}
    assert (values["topic"], values["key"]) == ('"t"', '"k"')
    assert (values["partition"][:3], values["offset"][:3]) == ('"3"', '"7"')
    assert event.time == 5


def test_messages_of_kafka() -> None:
    kafka = KafkaMock()
    try:
        kafka.publish("road", [b'{"speed": 7}'], 2, key="k\u00e4", timestamp=1_767_603_600_123)
        kafka.publish("road", [b'{"speed": 8, "_key": "no"}'], 3, timestamp=1_767_603_600_000)
        intake = ListIntake(source_at(f"kafka://{kafka.host}/road"))
        messages = sorted(intake.wait(2), key=lambda message: message.partition)
        intake.stop()
    finally:
        kafka.close()
    lift = FIELDS.replace("ex:offset ?_offset ;", "ex:offset ?_offset ; ex:speed ?speed ;")
    events, bad = lifted(lift, *messages)
    assert bad == []
    assert [event.time for event in events] == [1_767_603_600_123, 1_767_603_600_000]
    found = [
        {p.rpartition("/")[2][:-1]: o.partition("^")[0] for _, p, o in event.triples}
        for event in events
    ]
    time_of_day = "2026-01-05T09:00:00"
    shared = {"topic": '"road"', "offset": '"0"'}
    assert found == [
        {
            **shared,
            "key": '"k\u00e4"',
            "partition": '"2"',
            "speed": '"7"',
            "prov#generatedAtTime": f'"{time_of_day}.123Z"',
        },
        {
            **shared,
            "partition": '"3"',
            "speed": '"8"',
            "prov#generatedAtTime": f'"{time_of_day}Z"',
        },
    ]


def test_fields_that_the_message_lacks_are_unbound() -> None:
    events, bad = lifted(FIELDS, message(1, {}, time=1), message(2, {}))
    assert [len(event.triples) for event in events] == [3]
    assert [one.reason for one in bad] == ["the event has no time: field _time is empty"]


def test_the_time_of_the_message_counts_if_the_lift_makes_none() -> None:
    given = [row("a", 1, at=1000), row("a", 1), row("a", -1)]
    events, bad = lifted(LIFT, *(message(n, one, time=50 + n) for n, one in enumerate(given)))
    assert [event.time for event in events] == [1000, 51]
    assert bad == []


def test_bad_messages_among_good_ones() -> None:
    given = [
        row("a", 1, at=1),
        b"{",
        b"",
        b"[1]",
        b"[" * 100_000,
        b'{"name": "\xff"}',
        row("a", 1, at="noon"),
        row("b", 1, at=2),
    ]
    events, bad = lifted(LIFT, *(message(n, one) for n, one in enumerate(given, 1)))
    assert [event.time for event in events] == [1, 2]
    assert {one.file for one in bad} == {f"nats://h message {n}" for n in range(2, 8)}


def test_a_key_that_is_no_text_is_bad_if_the_lift_reads_it() -> None:
    events, bad = lifted(FIELDS, message(1, {}, time=1, key=b"\xff"))
    assert (events, len(bad)) == ([], 1)
    events, bad = lifted(LIFT, message(1, row("a", 1, at=1), key=b"\xff"))
    assert (len(events), bad) == (1, [])


VALUES = [1, 2.5, -3, 1e300, 2**70, True, None, "a", '\u00e9 <"\\>', [1], {"x": 1}, "b" * 300]
LIFTS = [
    LIFT,
    FIELDS,
    HEAD
    + """CONSTRUCT { GRAPH ?g { ?g ex:price ?price ; ex:key ?_key ; ex:topic ?_topic ;
      ex:offset ?_offset ; ex:partition ?_partition ; ex:sent ?_time ; ex:more ?more } 
      ?g prov:generatedAtTime ?at }
    WHERE { BIND (IRI(CONCAT("http://e/", STR(?_offset))) AS ?g) FILTER (?_offset != 77) }""",
    HEAD
    + "CONSTRUCT { ex:m ex:price ?price ; ex:line ?_line ; prov:generatedAtTime ?at } WHERE {}",
]


@pytest.mark.each_once
@pytest.mark.parametrize("lift", LIFTS)
@pytest.mark.parametrize(("odd", "seed"), [(0.0, 1), (0.02, 2), (0.2, 3)])
def test_many_messages_together_give_what_each_gives_alone(
    lift: str, odd: float, seed: int
) -> None:
    chance = random.Random(seed)

    def one(number: int) -> Message:
        given: dict[str, Any] = row(f"n{number % 7}", chance.randrange(5), at=1000 + number)
        payload = json.dumps(given).encode()
        if chance.random() < odd:
            given[chance.choice(["name", "price", "at", "more", "_key"])] = chance.choice(VALUES)
            if chance.random() < 0.3:
                del given["at"]
            dumped = json.dumps(given, ensure_ascii=False, indent=chance.choice([None, 1])).encode()
            broken = [b"", b" ", b"{", b"[]", b'{"name": "\xff"}', b'{"name": 1, "name": 2}']
            payload = chance.choice([dumped, dumped, dumped, chance.choice(broken)])
        strange = chance.random() < odd / 2
        time = None if strange else 5000 + number
        key = b"\xff" if strange and chance.random() < 0.1 else b"k%d" % (number % 3)
        return Message(payload, 3, number, "", 900, time, None if strange else key, "t")

    messages = [one(number) for number in range(150)]
    alone = [lifted(lift, message) for message in messages]
    events, bad = lifted(lift, *messages)
    assert events == [event for some, _ in alone for event in some]
    assert {(b.file, b.reason) for b in bad} == {(b.file, b.reason) for _, s in alone for b in s}
    assert len(bad) == sum(len(some) for _, some in alone)
    assert len(events) > 75


@pytest.mark.skipif(interpreted(), reason="kernels that are interpreted make no columns")
def test_many_messages_are_lifted_as_columns() -> None:
    messages = [message(n, row("a", n, at=n)) for n in range(1, 200)]
    stream = LiftedBroker(StreamOptions("http://e/s", ()), "nats://h/s", compiled_lift(LIFT), LIFT)
    (batch,) = stream.events(messages, "nats://h", pytest.fail)
    assert isinstance(batch, LiftedEvents)
    assert len(batch) == 199


def test_labels_do_not_depend_on_the_messages_before() -> None:
    lift = HEAD + "CONSTRUCT { [] ex:price ?price ; prov:generatedAtTime ?at } WHERE { }"
    alone, _ = lifted(lift, message(2, row("b", 2, at=1)))
    after, _ = lifted(lift, message(1, row("a", 1, at=1)), message(2, row("b", 2, at=1)))
    assert after[1].triples == alone[0].triples
    assert {s for s, _, _ in after[0].triples}.isdisjoint(s for s, _, _ in after[1].triples)


def test_the_lift_belongs_to_what_a_checkpoint_keeps() -> None:
    def source(lift: str) -> Any:
        options = StreamOptions("http://e/s", ())
        return lifted_source(Lifted("nats://h/s?stream=S", lift), options)

    assert source(LIFT).identity() == source(LIFT).identity() != source(FIELDS).identity()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    for server in serving(tmp_path):
        server.make_stream("TRADES", "trades")
        yield server


QUERY = """PREFIX ex: <http://e/>
SELECT ?low ?high WITHIN 10 SECONDS FROM STREAM S <http://e/s>
WHERE {
  SEQ(A: B)
  DEFINE GPM A ON S { ?c ex:price ?low }
  DEFINE GPM B ON S { ?c ex:price ?high FILTER (?high > ?low) }
}"""


def written(directory: Path) -> int:
    """How many answers the output has."""
    out = directory / "out.jsonl"
    return out.read_text().count("\n") if out.exists() else 0


@pytest.mark.thorough
def test_a_run_on_a_broker(tmp_path: Path, server: NatsServer) -> None:
    (tmp_path / "q.rq").write_text(QUERY)
    (tmp_path / "s.lift.rq").write_text(LIFT)
    url = f"S=nats://{server.host}/trades?stream=TRADES"
    words = ["run", "q.rq", "--runtime", "local", "--follow", "--checkpoint", "state"]
    words += ["--stream", url, "--lift", "S=s.lift.rq", "--out", "out.jsonl"]
    words += ["--watermark", "0 SECONDS"]
    first = [row("a", 5, at=1000), row("a", 7, at=2000), row("z", 9, at=3000)]
    for given, answers in ((first, 1), ([row("a", 6, at=9000), row("z", 1, at=60000)], 2)):
        server.publish("trades", [json.dumps(one).encode() for one in given])
        run = subprocess.Popen([sys.executable, "-m", "spaseq", *words], cwd=tmp_path)
        try:
            late = time.monotonic() + 60
            while time.monotonic() < late and run.poll() is None and written(tmp_path) < answers:
                time.sleep(0.1)
        finally:
            run.terminate()
            run.wait(60)
        assert written(tmp_path) == answers
    rows = [json.loads(text)["bindings"] for text in (tmp_path / "out.jsonl").open()]
    assert [(r["low"]["value"], r["high"]["value"]) for r in rows] == [("5", "7"), ("5", "6")]
