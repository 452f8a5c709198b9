"""Kafka as a source, while a real broker is killed and comes back."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from spaseq.connectors import source_at
from spaseq.options import FileSourceSettings, FollowOptions
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.runtime.live.live_run import LoggedRun
from spaseq.sources.broker_stream import BrokerStream
from tests.connectors.intake import ListIntake
from tests.connectors.kafka_09 import OLD, OldKafka
from tests.runtime.live.live_jobs import IRI, event, events, expected_lines, job_of, lines

pytestmark = pytest.mark.slow


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[OldKafka]:
    kafka = OldKafka(tmp_path)
    yield kafka
    kafka.close()


def numbers(first: int, after: int) -> list[bytes]:
    return [b"%d" % n for n in range(first, after)]


def test_messages_come_once_and_in_order_over_restarts_of_the_broker(kafka: OldKafka) -> None:
    for partition in range(2):
        kafka.publish("road", numbers(0, 500), partition)
    intake = ListIntake(source_at(f"kafka://{kafka.host}/road?{OLD}"))
    intake.wait(1000)
    for first in (500, 1000):
        kafka.kill()
        time.sleep(2)
        kafka.start()
        for partition in range(2):
            kafka.publish("road", numbers(first, first + 500), partition)
        intake.wait(2 * (first + 500))
    time.sleep(1)
    intake.stop()
    assert any("connection lost" in note for note in intake.notes)
    assert "connected again" in intake.notes[-1]
    assert intake.is_connected
    for partition in range(2):
        mine = [m for m in intake.messages if m.partition == partition]
        assert [m.payload for m in mine] == numbers(0, 1500)
        assert [m.offset for m in mine] == [*range(1500)]
        assert {(m.time, m.media_type) for m in mine} == {(None, "")}


def test_a_run_is_killed_off_from_its_broker_and_answers_as_a_run_over_a_file(
    kafka: OldKafka, tmp_path: Path
) -> None:
    """The broker is killed while the run reads, and between two runs."""
    given = events(600)[:-1]
    ends = [event(1000 + n, 600 * 40 + 60_000 + n, "end", "none") for n in range(2)]
    expected = expected_lines(tmp_path, [*given, *ends])
    assert len(expected) > 50
    kafka.publish("road", given[0:200:2], 0)
    kafka.publish("road", given[1:200:2], 1)
    with Followed(kafka, tmp_path) as run:
        run.wait(200)
        kafka.kill()
        kafka.start()
        for partition in range(2):
            kafka.publish("road", given[200 + partition : 400 : 2], partition)
        run.wait(400)
    kafka.kill()
    kafka.start()
    for partition in range(2):
        kafka.publish("road", [*given[400 + partition :: 2], ends[partition]], partition)
    with Followed(kafka, tmp_path) as run:
        run.wait(len(given) - 400 + 2)
    assert lines(tmp_path / "out.jsonl") == expected


class Followed:
    """A live run over a topic, in a thread."""

    def __init__(self, kafka: OldKafka, directory: Path) -> None:
        url = f"kafka://{kafka.host}/road?{OLD}"
        self._job, self._stop = job_of(BrokerStream(StreamOptions(IRI, ()), url)), threading.Event()
        options = FollowOptions(directory / "state", FileSourceSettings(max_ahead_ms=10**12))
        more = {"out": str(directory / "out.jsonl"), "form": "jsonl", "columns": ["x"]}
        self._thread = threading.Thread(
            target=LoggedRun(stop=self._stop).run, args=(self._job, options), kwargs=more
        )

    def __enter__(self) -> Followed:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def wait(self, count: int) -> None:
        """Wait until this run has read so many events."""
        end = time.monotonic() + 90
        while self._job.stats.events < count and time.monotonic() < end:
            time.sleep(0.02)
        assert self._job.stats.events == count
        assert not self._job.stats.late
