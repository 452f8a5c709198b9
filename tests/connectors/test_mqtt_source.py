"""MQTT as a source, against a real broker."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from spaseq.connectors import source_at
from spaseq.connectors.base import MessageSource
from spaseq.errors import InputError, UsageError
from tests.connectors.certificates import Certificates
from tests.connectors.intake import ListIntake
from tests.connectors.mosquitto import Mosquitto, add_user, serving
from tests.connectors.nats_server import free_port


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Mosquitto]:
    yield from serving(tmp_path)


def numbers(first: int, after: int) -> list[bytes]:
    return [b"%d" % n for n in range(first, after)]


def source(broker: Mosquitto, rest: str = "road/+/loop", login: str = "") -> MessageSource:
    return source_at(f"mqtt://{login}{broker.host}/{rest}")


def started(broker: Mosquitto, rest: str = "road/+/loop", **given: object) -> ListIntake:
    """An intake whose source has subscribed."""
    intake = ListIntake(source(broker, rest), **given)  # type: ignore[arg-type]
    probe = rest.split("?")[0].replace("+", "probe").replace("#", "probe")
    for _ in range(100):
        broker.publish(probe, [b"probe"])
        if intake.messages:
            break
    intake.wait(1)
    time.sleep(0.2)
    intake.messages.clear()
    return intake


@pytest.mark.parametrize("version", ["", "?version=5&qos=1", "?version=3.1.1"])
def test_messages_come_in_order_with_their_topics(broker: Mosquitto, version: str) -> None:
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties

    intake = started(broker, f"road/+/loop{version}")
    trig = Properties(PacketTypes.PUBLISH)
    trig.ContentType = "application/trig"
    broker.publish("road/a/loop", numbers(0, 300), properties=trig)
    broker.publish("road/a/other", [b"of another topic"])
    broker.publish("road/b/loop", numbers(300, 310), qos=2)
    found = intake.wait(310)
    intake.stop()
    assert [m.payload for m in found] == numbers(0, 310)
    assert {m.topic for m in found[:300]} == {"road/a/loop"}
    assert {m.topic for m in found[300:]} == {"road/b/loop"}
    media = "" if "3.1.1" in version else "application/trig"
    assert [m.media_type for m in found] == [media] * 300 + [""] * 10
    assert {m.time for m in found} == {None}


def test_a_filter_of_all_levels(broker: Mosquitto) -> None:
    intake = started(broker, "road/#?qos=0")
    broker.publish("road", [b"0"])
    broker.publish("road/a/b/c", [b"1"])
    assert [m.payload for m in intake.wait(2)] == [b"0", b"1"]
    intake.stop()


@pytest.mark.parametrize("version", ["5", "3.1.1"])
def test_the_broker_keeps_what_is_not_committed(broker: Mosquitto, version: str) -> None:
    """Messages that no log has come again, in the next run; those that a log has do not."""
    rest = f"road/+/loop?version={version}"
    started(broker, rest).stop()
    broker.publish("road/a/loop", numbers(0, 15))
    intake = ListIntake(source(broker, rest), commits=False)
    intake.wait(15)
    intake.commit(5)
    time.sleep(0.3)
    intake.stop()
    broker.publish("road/a/loop", numbers(15, 20))
    intake = ListIntake(source(broker, rest))
    intake.wait(15)
    time.sleep(0.3)
    intake.stop()
    assert [m.payload for m in intake.messages] == numbers(5, 20)
    intake = ListIntake(source(broker, rest))
    time.sleep(1)
    intake.stop()
    assert intake.messages == []


def test_a_source_of_another_log_has_its_own_session(broker: Mosquitto) -> None:
    first = started(broker)
    second = started(broker, name="another-log")
    first.messages.clear()
    broker.publish("road/a/loop", numbers(0, 10))
    for intake in (first, second):
        intake.wait(10)
        intake.stop()
        assert intake.messages[-1].payload == b"9"
        assert intake.notes == []


@pytest.mark.parametrize("version", ["5", "3.1.1"])
def test_a_broker_that_is_restarted_loses_and_repeats_nothing(
    broker: Mosquitto, version: str
) -> None:
    intake = started(broker, f"road/+/loop?version={version}", commits=False)
    intake.commit()
    broker.publish("road/a/loop", numbers(0, 10))
    intake.wait(10)  # none is acknowledged: all come again
    broker.stop()
    time.sleep(0.5)
    intake.commits = True
    broker.start()
    broker.publish("road/a/loop", numbers(10, 20))
    intake.wait(20)
    time.sleep(0.5)
    intake.stop()
    assert [m.payload for m in intake.messages] == numbers(0, 20)
    assert "connection lost" in intake.notes[0]
    assert "connected again" in intake.notes[-1]
    assert intake.is_connected
    again = ListIntake(source(broker, f"road/+/loop?version={version}"))
    time.sleep(1)
    again.stop()
    assert again.messages == []


def test_a_broker_without_persistence_forgets_and_that_is_told(tmp_path: Path) -> None:
    for broker in serving(tmp_path, settings="allow_anonymous true\npersistence false"):
        intake = started(broker)
        broker.stop()
        broker.start()
        for _ in range(100):
            broker.publish("road/a/loop", [b"after"])
            if intake.messages:
                break
            time.sleep(0.1)
        intake.stop()
        assert any("forgotten the session" in note for note in intake.notes)


def test_a_reader_without_room_holds_the_source_back(broker: Mosquitto) -> None:
    intake = started(broker)
    intake.room = 10
    broker.publish("road/a/loop", numbers(0, 5000))
    intake.wait(10)
    time.sleep(0.5)
    assert intake.refused
    assert len(intake.messages) < 5000
    intake.room = 10**9
    found = intake.wait(5000)
    intake.stop()
    assert [m.payload for m in found] == numbers(0, 5000)


def test_a_message_of_10_mb_and_an_empty_one(broker: Mosquitto) -> None:
    intake = started(broker)
    large = b"x" * 10_000_000
    broker.publish("road/a/loop", [large, b"", large])
    assert [m.payload for m in intake.wait(3)] == [large, b"", large]
    intake.stop()


def test_a_retained_message_comes_once_though_the_connection_is_lost(broker: Mosquitto) -> None:
    broker.publish("road/a/loop", [b"kept"], retain=True)
    intake = ListIntake(source(broker))
    intake.wait(1)
    broker.stop()
    broker.start()
    broker.publish("road/a/loop", [b"next"])
    intake.wait(2)
    time.sleep(0.3)
    intake.stop()
    assert [m.payload for m in intake.messages] == [b"kept", b"next"]


def test_users(tmp_path: Path) -> None:
    users = tmp_path / "users"
    add_user(users, "me", "se:cr@t#")
    users.chmod(0o644)
    settings = f"allow_anonymous false\npassword_file {users}"
    for broker in serving(tmp_path, settings=settings):
        broker.login = {"username": "me", "password": "se:cr@t#"}
        for version in ("5", "3.1.1"):
            rest = f"road/+/loop?version={version}"
            intake = ListIntake(source(broker, rest, "me:se%3Acr%40t%23@"), name=version)
            while not intake.messages:
                broker.publish("road/a/loop", [b"a"])
            intake.stop()
            for login in ("me:wr0ng@", ""):
                with pytest.raises(InputError, match="refuses this client") as caught:
                    ListIntake(source(broker, rest, login)).wait(1)
                assert "wr0ng" not in str(caught.value)


def test_tls(tmp_path: Path) -> None:
    made = Certificates(tmp_path)
    settings = (
        f"allow_anonymous true\ncafile {made.authority}\ncertfile {made.chain}\n"
        f"keyfile {made.key}\n"
    )
    broker = Mosquitto(tmp_path, settings)
    try:
        url = f"mqtts://localhost:{broker.port}/road/+/loop"
        intake = ListIntake(source_at(f"{url}?ca={made.authority}"))
        while not intake.messages and intake.failure is None:
            broker.publish("road/a/loop", [b"hello"], ca=made.authority)
        assert intake.wait(1)[0].payload == b"hello"
        intake.stop()
        with pytest.raises(InputError, match="certificate"):
            ListIntake(source_at(url)).wait(1)
        with pytest.raises(UsageError, match="No such file"):
            ListIntake(source_at(f"{url}?ca=nowhere.pem")).wait(1)
    finally:
        broker.stop()


def test_an_unreachable_broker_is_named_without_the_password() -> None:
    pytest.importorskip("paho.mqtt.client")
    port = free_port()
    intake = ListIntake(source_at(f"mqtt://me:secret@127.0.0.1:{port}/a"))
    with pytest.raises(InputError, match=f"no MQTT broker answers at 127.0.0.1:{port}") as caught:
        intake.wait(1)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("mqtt://h/", "give a topic"),
        ("mqtt://h/a#", "# stands alone"),
        ("mqtt://h/#/a", "# stands alone"),
        ("mqtt://h/a/b+/c", r"\+ stands alone"),
        ("mqtt://h/a?qos=2", "qos is 0 or 1"),
        ("mqtt://h/a?version=4", "version is 5 or 3.1.1"),
        ("mqtt://h/a?Qos=1", "did you mean qos"),
        ("mqtt://h/a?ca=x", "ca goes with mqtts"),
        ("mqtt://h,i/a", "one host"),
    ],
)
def test_a_url_that_cannot_be_is_refused(url: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        source_at(url)


def test_the_library_is_loaded_when_a_run_connects() -> None:
    program = (
        "import sys; from spaseq.connectors import source_at; source_at('mqtt://h/a'); "
        "assert 'paho' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
