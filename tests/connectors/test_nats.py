"""NATS JetStream as a source and as a sink, against a real server."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spaseq.connectors import nats_jetstream, sink_at, source_at
from spaseq.connectors.base import NotTaken, Parcel
from spaseq.errors import InputError, RunError
from tests.connectors.certificates import Certificates
from tests.connectors.intake import ListIntake
from tests.connectors.nats_server import NatsServer, free_port, serving


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    yield from serving(tmp_path)


def numbers(first: int, after: int) -> list[bytes]:
    return [b"%d" % n for n in range(first, after)]


def source(server: NatsServer, rest: str = "road.loops?stream=ROAD", login: str = ""):  # type: ignore[no-untyped-def]
    return source_at(f"nats://{login}{server.host}/{rest}")


def test_messages_come_in_order_with_their_sequence_numbers(server: NatsServer) -> None:
    server.make_stream("ROAD", "road.>")
    server.publish("road.loops", numbers(0, 30), {"Content-Type": "application/trig"})
    server.publish("road.other", [b"of another subject"])
    intake = ListIntake(source(server))
    intake.wait(30)
    server.publish("road.loops", numbers(30, 40))
    found = intake.wait(40)
    intake.stop()
    assert [m.payload for m in found] == numbers(0, 40)
    assert [m.offset for m in found] == [*range(1, 31), *range(32, 42)]
    assert {m.media_type for m in found[:30]} == {"application/trig"}
    assert found[30].media_type == ""


@pytest.mark.parametrize("kept", [0, 1, 5000])
def test_a_source_is_behind_until_it_has_given_what_the_server_kept(
    server: NatsServer, kept: int
) -> None:
    server.make_stream("ROAD", "road.>")
    server.publish("road.loops", numbers(0, kept))
    server.publish("road.other", numbers(0, 3))
    intake = ListIntake(source(server))
    assert intake.wait_for_kept() == kept
    intake.stop()


def test_a_source_goes_on_behind_the_logged_place(server: NatsServer) -> None:
    server.make_stream("ROAD", "road.>")
    server.publish("road.loops", numbers(0, 10))
    for last in (0, 3, 9):
        intake = ListIntake(source(server, "road.loops"), {0: last})
        assert [m.offset for m in intake.wait(10 - last)] == [*range(last + 1, 11)]
        intake.stop()


def test_a_killed_server_that_comes_back_loses_and_repeats_nothing(server: NatsServer) -> None:
    server.make_stream("ROAD", "road.>")
    server.publish("road.loops", numbers(0, 10))
    intake = ListIntake(source(server))
    intake.wait(10)
    server.kill()
    time.sleep(1.0)
    server.start()
    server.publish("road.loops", numbers(10, 20))
    found = intake.wait(20)
    time.sleep(0.3)
    intake.stop()
    assert [m.payload for m in found] == numbers(0, 20)
    assert "connection lost" in intake.notes[0]
    assert "connected again" in intake.notes[-1]
    assert intake.is_connected


def test_a_consumer_that_the_server_deletes_is_made_anew(server: NatsServer) -> None:
    server.make_stream("ROAD", "road.>")
    server.publish("road.loops", numbers(0, 5))
    intake = ListIntake(source(server))
    intake.wait(5)

    async def work(_: object, stream) -> None:  # type: ignore[no-untyped-def]
        for consumer in await stream.consumers_info("ROAD"):
            await stream.delete_consumer("ROAD", consumer.name)

    server.use(work)
    server.publish("road.loops", numbers(5, 9))
    found = intake.wait(9)
    intake.stop()
    assert [m.payload for m in found] == numbers(0, 9)


def test_a_reader_without_room_holds_the_source_back(server: NatsServer) -> None:
    server.make_stream("ROAD", "road.>")
    server.publish("road.loops", numbers(0, 5000))
    intake = ListIntake(source(server), room=10)
    intake.wait(10)
    time.sleep(0.5)
    held = len(intake.messages)
    assert intake.refused
    assert held < 5000
    intake.room = 10**9
    found = intake.wait(5000)
    intake.stop()
    assert [m.payload for m in found] == numbers(0, 5000)


def test_a_message_of_10_mb_and_an_empty_one(server: NatsServer) -> None:
    server.make_stream("ROAD", "road.>")
    large = b"x" * 10_000_000
    server.publish("road.loops", [large, b"", large])
    intake = ListIntake(source(server))
    assert [m.payload for m in intake.wait(3)] == [large, b"", large]
    intake.stop()


def test_messages_that_the_server_dropped_unread_are_named(server: NatsServer) -> None:
    server.make_stream("ROAD", "road.>")
    server.publish("road.loops", numbers(0, 10))

    async def work(_: object, stream) -> None:  # type: ignore[no-untyped-def]
        await stream.purge_stream("ROAD", seq=7)

    server.use(work)
    intake = ListIntake(source(server), {0: 3})
    assert [m.offset for m in intake.wait(4)] == [7, 8, 9, 10]
    intake.stop()
    assert "dropped messages 4 to 6 of stream ROAD" in intake.notes[0]


@pytest.mark.parametrize(
    ("rest", "places", "reason"),
    [
        ("road.loops?stream=OTHER", {}, "the server has no stream OTHER"),
        ("rail.loops", {}, "no stream of the server keeps this subject"),
        ("road.loops", {0: 99}, "it has been recreated"),
    ],
)
def test_a_stream_that_cannot_be_read_is_refused(
    server: NatsServer, rest: str, places: dict[int, int], reason: str
) -> None:
    server.make_stream("ROAD", "road.>")
    intake = ListIntake(source(server, rest), places)
    with pytest.raises(InputError, match=reason):
        intake.wait(1)


def test_a_server_without_jetstream_is_named(tmp_path: Path) -> None:
    for server in serving(tmp_path, jetstream=False):
        for rest in ("road.loops", "road.loops?stream=ROAD"):
            with pytest.raises(InputError, match="JetStream"):
                ListIntake(source(server, rest)).wait(1)


def test_an_unreachable_server_is_named_without_the_password() -> None:
    port = free_port()
    intake = ListIntake(source_at(f"nats://me:secret@127.0.0.1:{port}/road.loops"))
    with pytest.raises(InputError, match=f"no NATS server answers at 127.0.0.1:{port}") as caught:
        intake.wait(1)
    assert "secret" not in str(caught.value)
    assert "check the host and the port" in str(caught.value)


def test_users_and_tokens(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    users = 'authorization { users: [{user: "me", password: "se:cr@t"}] }'
    for server in serving(tmp_path / "a", settings=users):
        server.login = {"user": "me", "password": "se:cr@t"}
        server.make_stream("ROAD", "road.>")
        server.publish("road.loops", [b"a"])
        intake = ListIntake(source(server, login="me:se%3Acr%40t@"))
        intake.wait(1)
        intake.stop()
        with pytest.raises(InputError, match="refuses this user") as caught:
            ListIntake(source(server, login="me:wr0ng@")).wait(1)
        assert "wr0ng" not in str(caught.value)
        sink = sink_at(f"nats://me:se%3Acr%40t@{server.host}/road.answers")
        sink.send([Parcel("1", "{}", "q", 1)])
        sink.close()
    for server in serving(tmp_path / "b", settings='authorization { token: "t0ken" }'):
        server.login = {"token": "t0ken"}
        server.make_stream("ROAD", "road.>")
        server.publish("road.loops", [b"a"])
        intake = ListIntake(source(server, login="t0ken@"))
        intake.wait(1)
        intake.stop()


def test_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Certificates(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(made.authority))
    settings = f'tls {{ cert_file: "{made.chain}", key_file: "{made.key}" }}'
    for server in serving(tmp_path, settings=settings):
        server.make_stream("ROAD", "road.>")
        server.publish("road.loops", [b"a"])
        intake = ListIntake(source(server))
        assert intake.wait(1)[0].payload == b"a"
        intake.stop()
        sink = sink_at(f"nats://{server.host}/road.answers")
        sink.send([Parcel("1", "{}", "q", 1)])
        sink.close()
        monkeypatch.delenv("SSL_CERT_FILE")
        with pytest.raises(InputError, match="certificate"):
            ListIntake(source(server)).wait(1)


def test_a_sink_sends_each_answer_with_its_id(server: NatsServer) -> None:
    server.make_stream("ALERTS", "alerts")
    sink = sink_at(f"nats://{server.host}/alerts")
    parcels = [Parcel(f"id{n}", f'{{"n": {n}}}', "q", n) for n in range(50)]
    sink.send(parcels[:30])
    sink.send(parcels[20:])  # ten of them again: the server knows their ids
    sink.close()
    assert server.messages("alerts") == [(p.id, p.text.encode()) for p in parcels]


def test_a_sink_waits_for_a_server_that_is_away(
    server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nats_jetstream, "_TIMEOUT_S", 1.0)
    server.make_stream("ALERTS", "alerts")
    sink = sink_at(f"nats://{server.host}/alerts")
    sink.send([Parcel("1", "{}", "q", 1)])
    server.kill()
    with pytest.raises(NotTaken):
        sink.send([Parcel("2", "{}", "q", 2)])
    server.start()
    sink.send([Parcel("2", "{}", "q", 2)])
    sink.close()
    assert [name for name, _ in server.messages("alerts")] == ["1", "2"]


def test_answers_that_no_stream_would_keep_are_refused(server: NatsServer) -> None:
    sink = sink_at(f"nats://{server.host}/alerts")
    with pytest.raises(RunError, match="no stream of the server keeps this subject") as caught:
        sink.send([Parcel("1", "{}", "q", 1)])
    assert not isinstance(caught.value, NotTaken)
    sink.close()


def test_an_answer_of_10_mb(server: NatsServer) -> None:
    server.make_stream("ALERTS", "alerts")
    sink = sink_at(f"nats://{server.host}/alerts")
    large = Parcel("1", json.dumps("x" * 10_000_000), "q", 1)
    assert sink.send([large, Parcel("2", "{}", "q", 2)]) == []
    sink.close()
    assert server.messages("alerts") == [("1", large.text.encode()), ("2", b"{}")]


@pytest.mark.parametrize(("size", "most"), [(17_000_000, -1), (30_000, 20_000)])
def test_an_answer_that_is_too_large_is_refused_alone(
    server: NatsServer, size: int, most: int
) -> None:
    """For the server, which takes 16 MB, and for a stream."""

    async def make(_: Any, stream: Any) -> None:
        await stream.add_stream(name="ALERTS", subjects=["alerts"], max_msg_size=most)

    server.use(make)
    sink = sink_at(f"nats://{server.host}/alerts")
    large = Parcel("1", json.dumps("x" * size), "q", 1)
    (refusal,) = sink.send([Parcel("0", "{}", "q", 0), large, Parcel("2", "{}", "q", 2)])
    sink.close()
    assert refusal.parcel is large
    assert "maximum" in refusal.reason
    assert [name for name, _ in server.messages("alerts")] == ["0", "2"]
