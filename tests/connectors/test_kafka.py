"""Kafka as a source, against librdkafka's mock cluster, whose topics have four partitions."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spaseq.connectors import kafka as kafka_source
from spaseq.connectors import source_at
from spaseq.connectors.kafka import TopicConsumer
from spaseq.errors import InputError, UsageError
from spaseq.options import FileSourceSettings, FollowOptions
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.runtime.live.live_run import LoggedRun
from spaseq.sources.broker_stream import BrokerStream
from tests.connectors.intake import ListIntake
from tests.connectors.kafka_mock import PARTITIONS, KafkaMock
from tests.connectors.nats_server import free_port
from tests.runtime.live.live_jobs import IRI, event, events, expected_lines, job_of, lines


@pytest.fixture
def kafka() -> Iterator[KafkaMock]:
    kafka = KafkaMock()
    yield kafka
    kafka.close()


def numbers(first: int, after: int) -> list[bytes | None]:
    return [b"%d" % n for n in range(first, after)]


def test_messages_of_each_partition_come_in_order(kafka: KafkaMock) -> None:
    for partition in range(PARTITIONS):
        kafka.publish("road", numbers(0, 20), partition, {"Content-Type": "application/trig"})
    intake = ListIntake(source_at(f"kafka://{kafka.host}/road"))
    intake.wait(80)
    kafka.publish("road", numbers(20, 30), 2)
    found = intake.wait(90)
    intake.stop()
    assert intake.partitions == PARTITIONS
    for partition in range(PARTITIONS):
        mine = [m for m in found if m.partition == partition]
        assert [m.payload for m in mine] == numbers(0, 30 if partition == 2 else 20)
        assert [m.offset for m in mine] == [*range(len(mine))]
        assert {m.media_type for m in mine[:20]} == {"application/trig"}


@pytest.mark.parametrize("kept", [0, 1, 2000])
def test_a_source_is_behind_until_it_has_given_what_the_servers_kept(
    kafka: KafkaMock, kept: int
) -> None:
    kafka.make_topic("road")
    for partition in range(2):
        kafka.publish("road", numbers(0, kept), partition)
    intake = ListIntake(source_at(f"kafka://{kafka.host}/road"))
    assert intake.wait_for_kept() == 2 * kept
    intake.stop()


def test_a_source_goes_on_behind_the_logged_places(kafka: KafkaMock) -> None:
    for partition in range(2):
        kafka.publish("road", numbers(0, 10), partition)
    intake = ListIntake(source_at(f"kafka://{kafka.host}/road"), {0: 3, 1: 9})
    found = intake.wait(6)
    time.sleep(0.3)
    intake.stop()
    assert [(m.partition, m.offset) for m in found] == [(0, n) for n in range(4, 10)]


def test_a_source_that_starts_late_leaves_out_what_is_there(kafka: KafkaMock) -> None:
    kafka.publish("road", numbers(0, 5))
    intake = ListIntake(source_at(f"kafka://{kafka.host}/road?start=latest&group=mine"))
    while intake.partitions == 1:
        time.sleep(0.05)
    time.sleep(0.3)
    kafka.publish("road", numbers(5, 7))
    found = intake.wait(2)
    intake.stop()
    assert [m.offset for m in found] == [5, 6]


def test_a_reader_without_room_holds_the_source_back(kafka: KafkaMock) -> None:
    kafka.publish("road", numbers(0, 9000))
    intake = ListIntake(source_at(f"kafka://{kafka.host}/road"), room=10)
    intake.wait(10)
    time.sleep(0.3)
    assert intake.refused
    assert len(intake.messages) < 9000
    intake.room = 10**9
    found = intake.wait(9000)
    intake.stop()
    assert [m.payload for m in found] == numbers(0, 9000)


def test_a_large_message_and_messages_without_a_value(kafka: KafkaMock) -> None:
    large = b"x" * 4_000_000  # the mock keeps 5 MB of a partition
    kafka.publish("road", [large, None, b"", b"small"])
    intake = ListIntake(source_at(f"kafka://{kafka.host}/road"))
    assert [m.payload for m in intake.wait(4)] == [large, b"", b"", b"small"]
    intake.stop()


def test_a_topic_that_was_made_anew_is_refused(kafka: KafkaMock) -> None:
    kafka.publish("road", numbers(0, 10))
    intake = ListIntake(source_at(f"kafka://{kafka.host}/road"), {0: 10})
    with pytest.raises(InputError, match="has been recreated"):
        intake.wait(1)


def test_an_unreachable_server_is_named_without_the_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kafka_source, "_TIMEOUT_S", 1.0)
    port = free_port()
    url = f"kafka://me:secret@127.0.0.1:{port}/road?security.protocol=sasl_plaintext"
    with pytest.raises(InputError, match=f"no Kafka server answers at 127.0.0.1:{port}") as caught:
        ListIntake(source_at(url)).wait(1)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("kafka://me:secret@h", "give a topic"),
        ("kafka://h/a/b", "give a topic"),
        ("kafka://h,/a", "names no host"),
        ("kafka://h/a?begin=latest", "unknown parameter begin"),
        ("kafka://h/a?start=now", "start is earliest or latest"),
        ("kafka://h/a?group.id=x", "group.id cannot be set"),
    ],
)
def test_a_wrong_address_says_what_is_wrong(url: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason) as caught:
        source_at(url)
    assert "secret" not in str(caught.value)


def test_a_server_that_goes_away_is_told(kafka: KafkaMock) -> None:
    kafka.publish("road", numbers(0, 3))
    intake = ListIntake(source_at(f"kafka://{kafka.host}/road"))
    intake.wait(3)
    kafka.close()
    end = time.monotonic() + 60
    while not intake.notes and time.monotonic() < end:
        time.sleep(0.05)
    intake.stop()
    assert "connection lost" in intake.notes[0]
    assert intake.failure is None


def test_a_server_that_is_back_is_told_though_it_has_nothing_new(
    kafka: KafkaMock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A silent topic is only idle while its server is there."""
    consumers = list[TopicConsumer]()
    real = TopicConsumer.__init__

    def kept(self: TopicConsumer, *given: Any, **more: Any) -> None:
        real(self, *given, **more)
        consumers.append(self)

    monkeypatch.setattr(TopicConsumer, "__init__", kept)
    kafka.publish("road", numbers(0, 3))
    intake = ListIntake(source_at(f"kafka://{kafka.host}/road"))
    intake.wait(3)
    consumers[0]._on_away()  # as the library says it
    end = time.monotonic() + 20
    while len(intake.notes) < 2 and time.monotonic() < end:
        time.sleep(0.05)
    intake.stop()
    assert [note.rpartition("/road: ")[2] for note in intake.notes] == [
        "connection lost; connecting again",
        "connected again",
    ]


def test_a_wrong_setting_is_named() -> None:
    intake = ListIntake(source_at("kafka://127.0.0.1:1/a?sasl.nonsense=hidden1"))
    with pytest.raises(UsageError, match=r"sasl\.nonsense") as caught:
        intake.wait(1)
    assert "hidden1" not in str(caught.value)


def test_a_live_run_over_partitions_answers_as_a_run_over_a_file(
    tmp_path: Path, kafka: KafkaMock
) -> None:
    """Each partition is in order, and they are read side by side, in three runs."""
    given = events(300)[:-1]
    ends = [event(1000 + n, 300 * 40 + 60_000 + n, "end", "none") for n in range(PARTITIONS)]
    expected = expected_lines(tmp_path, [*given, *ends])
    read = 0
    for some in (given[:100], given[100:], None):
        for partition in range(PARTITIONS):
            mine = ends[partition : partition + 1] if some is None else some[partition::PARTITIONS]
            kafka.publish("road", [*mine], partition)
        stream = BrokerStream(StreamOptions(IRI, ()), f"kafka://{kafka.host}/road")
        options = FollowOptions(tmp_path / "state", FileSourceSettings(max_ahead_ms=10**12))
        job, stop = job_of(stream), threading.Event()
        out = str(tmp_path / "out.jsonl")
        run = threading.Thread(
            target=LoggedRun(stop=stop).run,
            args=(job, options),
            kwargs={"out": out, "form": "jsonl", "columns": ["x"]},
        )
        run.start()
        count = PARTITIONS if some is None else len(some)
        end = time.monotonic() + 60
        while job.stats.events < count and time.monotonic() < end:
            time.sleep(0.02)
        stop.set()
        run.join()
        assert job.stats.events == count
        assert not job.stats.late
        read += count
    assert lines(tmp_path / "out.jsonl") == expected
