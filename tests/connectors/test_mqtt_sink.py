"""MQTT as an output, against a real broker."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from spaseq.connectors import sink_at
from spaseq.connectors.base import NotTaken, Parcel
from spaseq.errors import InputError, UsageError
from tests.connectors.certificates import Certificates
from tests.connectors.mosquitto import Mosquitto, add_user, serving
from tests.connectors.mqtt_subscriber import Subscriber
from tests.connectors.nats_server import free_port


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Mosquitto]:
    yield from serving(tmp_path)


@contextmanager
def subscribed(broker: Mosquitto, topic: str = "alerts") -> Iterator[Subscriber]:
    subscriber = Subscriber(broker, topic)
    yield subscriber
    subscriber.close()


def parcels(first: int, after: int) -> list[Parcel]:
    return [Parcel(f"id{n}", f'{{"id": "id{n}", "n": {n}}}', "q", n) for n in range(first, after)]


def until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not done():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("version", ["", "?version=3.1.1"])
def test_answers_come_in_order_with_their_ids(broker: Mosquitto, version: str) -> None:
    with subscribed(broker) as subscriber:
        sink = sink_at(f"mqtt://{broker.host}/alerts{version}")
        sink.resume("spaseq-1", {})
        assert sink.send(parcels(0, 1500)) == []
        assert sink.send(parcels(1500, 1600)) == []
        sink.close()
        until(lambda: len(subscriber.messages) >= 1600)
        found = [json.loads(message.payload) for message in subscriber.messages]
        assert found == [{"id": f"id{n}", "n": n} for n in range(1600)]
        if not version:
            assert subscriber.ids == [f"id{n}" for n in range(1600)]
            assert {m.properties.ContentType for m in subscriber.messages} == {"application/json"}


def test_a_broker_that_is_restarted(broker: Mosquitto) -> None:
    with subscribed(broker) as subscriber:
        sink = sink_at(f"mqtt://{broker.host}/alerts")
        sink.resume("spaseq-1", {})
        sink.send(parcels(0, 3))
        until(lambda: len(subscriber.messages) == 3)
        broker.stop()
        with pytest.raises(NotTaken, match="no MQTT broker answers at 127"):
            sink.send(parcels(3, 6))
        broker.start()
        sink.resume("spaseq-1", {})
        assert sink.send(parcels(3, 6)) == []
        broker.stop()
        broker.start()
        assert sink.send(parcels(6, 9)) == []  # over a new connection, without a failure
        sink.close()
        until(lambda: {f"id{n}" for n in range(9)} <= set(subscriber.ids))


def test_an_answer_of_10_mb(broker: Mosquitto) -> None:
    with subscribed(broker) as subscriber:
        sink = sink_at(f"mqtt://{broker.host}/alerts")
        sink.resume("spaseq-1", {})
        text = json.dumps("x" * 10_000_000)
        assert sink.send([Parcel("large", text, "q", 0), *parcels(1, 2)]) == []
        until(lambda: subscriber.ids == ["large", "id1"])
        assert subscriber.messages[0].payload == text.encode()
        sink.close()


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("max_packet_size 20000", "packets of at most 20000 bytes"),
        ("message_size_limit 20000", "the broker closes the connection"),
    ],
)
def test_an_answer_that_is_too_large_is_refused(tmp_path: Path, setting: str, reason: str) -> None:
    for broker in serving(tmp_path, settings=f"allow_anonymous true\n{setting}"):
        with subscribed(broker) as subscriber:
            sink = sink_at(f"mqtt://{broker.host}/alerts")
            sink.resume("spaseq-1", {})
            large = Parcel("large", json.dumps("x" * 30_000), "q", 5)
            (refusal,) = sink.send([*parcels(0, 2), large, *parcels(2, 4)])
            assert refusal.parcel is large
            assert reason in refusal.reason
            until(lambda: subscriber.ids[-1:] == ["id3"])
            assert list(dict.fromkeys(subscriber.ids)) == ["id0", "id1", "id2", "id3"]
            sink.close()


def test_a_topic_that_is_not_allowed_refuses_for_good(tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    rules.write_text("topic readwrite open\n")
    for broker in serving(tmp_path, settings=f"allow_anonymous true\nacl_file {rules}"):
        sink = sink_at(f"mqtt://{broker.host}/closed")
        sink.resume("spaseq-1", {})
        refusals = sink.send(parcels(0, 2))
        assert [refusal.parcel.id for refusal in refusals] == ["id0", "id1"]
        assert "Not authorized" in refusals[0].reason
        sink.close()


def test_a_login_over_tls(tmp_path: Path) -> None:
    made = Certificates(tmp_path)
    passwords = tmp_path / "passwords"
    add_user(passwords, "me", "se:cret")
    port = free_port()
    settings = (
        f"password_file {passwords}\nlistener {port} 127.0.0.1\n"
        f"certfile {made.chain}\nkeyfile {made.key}"
    )
    for broker in serving(tmp_path, settings=settings):
        broker.login = {"username": "me", "password": "se:cret"}
        with subscribed(broker) as subscriber:
            place = f"127.0.0.1:{port}/alerts?ca={made.authority}"
            sink = sink_at(f"mqtts://me:se%3Acret@{place}")
            sink.resume("spaseq-1", {})
            assert sink.send(parcels(0, 2)) == []
            sink.close()
            until(lambda: subscriber.ids == ["id0", "id1"])
            wrong = sink_at(f"mqtts://me:wrong1@{place}")
            wrong.resume("spaseq-1", {})
            with pytest.raises(InputError, match="refuses this client") as caught:
                wrong.send(parcels(0, 2))
            assert "wrong1" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("mqtt://me:secret@h", "give a topic"),
        ("mqtt://h/a/+/b", "answers go to one topic"),
        ("mqtt://h/a?qos=0", "unknown parameter qos"),
        ("mqtt://h/a?ca=x", "ca goes with mqtts"),
    ],
)
def test_a_wrong_address_says_what_is_wrong(url: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason) as caught:
        sink_at(url)
    assert "secret" not in str(caught.value)
