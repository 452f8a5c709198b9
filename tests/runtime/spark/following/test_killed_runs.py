"""Followed runs on Spark, killed at random moments: outputs have each answer once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.connectors.kafka_mock import PARTITIONS, SeparateKafka
from tests.connectors.postgresql_server import PostgresqlServer
from tests.connectors.postgresql_server import serving as serving_postgresql
from tests.runtime.live.live_jobs import QUERY, event, expected_lines, lines, without_ids

COUNT = 400
STEP_MS = 160
PATIENCE_S = 150


@pytest.fixture
def kafka() -> Iterator[SeparateKafka]:
    kafka = SeparateKafka()
    yield kafka
    kafka.close()


@pytest.fixture
def database() -> Iterator[PostgresqlServer]:
    yield from serving_postgresql()


def events_of_partitions(seed: int) -> list[list[bytes]]:
    """The events of each partition. Each time is that of one event in every partition."""
    chance = random.Random(seed)
    return [
        [
            event(
                n * PARTITIONS + partition,
                n * STEP_MS,
                f"x{chance.randrange(9)}",
                chance.choice(("hot", "cold")),
            )
            for n in range(COUNT // PARTITIONS)
        ]
        for partition in range(PARTITIONS)
    ]


def ends() -> list[bytes]:
    """An event far behind all others, for each partition."""
    after = COUNT * STEP_MS + 60_000
    return [event(COUNT + n, after + n, "end", "none") for n in range(PARTITIONS)]


@dataclass
class Killed:
    """A command that is killed when it has written something, or after a while."""

    command: Sequence[str]
    written: Callable[[], int]
    chance: random.Random
    log: Path

    def started(self) -> subprocess.Popen[bytes]:
        """The command, leading a group of its own."""
        with self.log.open("ab") as log:
            return subprocess.Popen(self.command, stderr=log, start_new_session=True)

    def run_and_kill(self) -> None:
        """Kill the process, or with all that it has started."""
        before, patience = self.written(), time.monotonic() + self.chance.uniform(10, 60)
        process = self.started()
        while time.monotonic() < patience and self.written() == before:
            time.sleep(0.02)
        time.sleep(self.chance.choice((0.0, self.chance.uniform(0, 2))))
        assert process.poll() is None, self.log.read_text()
        if self.chance.random() < 0.5:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        process.wait()

    def run_and_terminate(self) -> int:
        """Send SIGTERM to all processes of the run, as a service manager does; the status."""
        with self.started() as process:
            patience = time.monotonic() + PATIENCE_S
            while not self.written() and time.monotonic() < patience:
                assert process.poll() is None, self.log.read_text()
                time.sleep(0.02)
            time.sleep(self.chance.uniform(0, 2))
            members = subprocess.run(
                ["pgrep", "-s", str(process.pid)], capture_output=True, text=True, check=True
            )
            subprocess.run(
                ["kill", "-TERM", *members.stdout.split()], stderr=subprocess.DEVNULL, check=False
            )
            return process.wait(PATIENCE_S)

    def run_until(self, count: int) -> None:
        """Run until everything is written, and a little longer."""
        with self.started() as process:
            patience = time.monotonic() + PATIENCE_S
            while self.written() < count and time.monotonic() < patience:
                assert process.poll() is None, self.log.read_text()
                time.sleep(0.2)
            time.sleep(2)
            process.terminate()


@dataclass
class FromTopic:
    """A topic as the input."""

    kafka: SeparateKafka

    @property
    def url(self) -> str:
        return f"kafka://{self.kafka.host}/road"

    def feed(self, number: int, parts: Sequence[Sequence[bytes]]) -> None:
        for partition, part in enumerate(parts):
            self.kafka.publish("road", part, partition)


@dataclass
class FromFiles:
    """A directory as the input."""

    directory: Path

    @property
    def url(self) -> str:
        self.directory.mkdir(exist_ok=True)
        return str(self.directory)

    def feed(self, number: int, parts: Sequence[Sequence[bytes]]) -> None:
        fresh = Path(self.url) / f"_{number}.nq"
        rounds = zip(*parts, strict=True)  # in order of time
        fresh.write_bytes(b"".join(each for some in rounds for each in some))
        fresh.rename(fresh.with_name(f"{number}.nq"))


def check_kills(
    place: Path,
    source: FromTopic | FromFiles,
    out: str,
    found: Callable[[], list[Any]],
    seed: int,
    kills: int,
    *,
    is_ordered: bool = True,
) -> None:
    """Kill a run several times; afterwards its output has the answers of a run over a file."""
    given = events_of_partitions(seed)
    if isinstance(source, FromTopic):
        in_order = [each for own in given for each in own]
    else:
        in_order = [each for some in zip(*given, strict=True) for each in some]
    expected = [json.loads(line) for line in expected_lines(place, [*in_order, *ends()])]
    (place / "q.rq").write_text(QUERY)
    command = [
        *(sys.executable, "-m", "spaseq", "run", str(place / "q.rq"), "--follow"),
        *("--checkpoint", str(place / "state"), "--stream", f"S={source.url}", "--out", out),
        *("--max-ahead", "99999 DAYS", "--bad", str(place / "bad")),
    ]
    run = Killed(command, lambda: len(found()), random.Random(seed), place / "log")
    size = COUNT // PARTITIONS // kills
    for n in range(kills):
        end = None if n == kills - 1 else (n + 1) * size
        source.feed(n, [own[n * size : end] for own in given])
        run.run_and_kill()
    source.feed(kills, [[end] for end in ends()])
    run.run_until(len(expected))
    there = found()
    if not is_ordered:
        there, expected = (sorted(some, key=canonical) for some in (there, expected))
    assert there == expected
    assert not lines(place / "bad")


def canonical(answer: Any) -> str:
    """An answer as a text, whatever the order of its names: that of a table is PostgreSQL's."""
    return json.dumps(answer, sort_keys=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_a_file_has_the_answers_from_a_topic_once(
    tmp_path: Path, kafka: SeparateKafka, seed: int
) -> None:
    out = tmp_path / "out.jsonl"

    def found() -> list[Any]:
        return [json.loads(line) for line in lines(out) if line.endswith("}")]

    check_kills(tmp_path, FromTopic(kafka), str(out), found, seed, 4)


def alerts(kafka: SeparateKafka) -> list[Any]:
    """The answers in the topic."""
    return without_ids([message.value() for message in kafka.messages("alerts")])


@pytest.mark.thorough
def test_a_topic_has_the_answers_from_a_topic_once(tmp_path: Path, kafka: SeparateKafka) -> None:
    out = f"kafka://{kafka.host}/alerts"
    check_kills(tmp_path, FromTopic(kafka), out, lambda: alerts(kafka), 3, 2)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [4, 5])
def test_a_topic_has_the_answers_from_files_once(
    tmp_path: Path, kafka: SeparateKafka, seed: int
) -> None:
    out = f"kafka://{kafka.host}/alerts"
    source = FromFiles(tmp_path / "incoming")
    check_kills(tmp_path, source, out, lambda: alerts(kafka), seed, 4)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [6, 7])
def test_a_table_has_the_answers_from_files_once(
    tmp_path: Path, database: PostgresqlServer, seed: int
) -> None:
    def found() -> list[Any]:
        there = database.ask("select count(*) from pg_tables where tablename = 'alerts'")
        if not there[0][0]:
            return []
        rows = [json.loads(row[0]) for row in database.ask("select answer from alerts")]
        for row in rows:
            row.pop("id", None)
        return rows

    source = FromFiles(tmp_path / "incoming")
    out = database.url("road/alerts")
    check_kills(tmp_path, source, out, found, seed, 4, is_ordered=False)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [8, 9, 10])
def test_a_service_manager_ends_a_run_which_then_goes_on(tmp_path: Path, seed: int) -> None:
    out, source = tmp_path / "out.jsonl", FromFiles(tmp_path / "incoming")
    given = events_of_partitions(seed)
    in_order = [each for some in zip(*given, strict=True) for each in some]
    expected = expected_lines(tmp_path, [*in_order, *ends()])
    (tmp_path / "q.rq").write_text(QUERY)
    command = [
        *(sys.executable, "-m", "spaseq", "run", str(tmp_path / "q.rq"), "--follow"),
        *("--runtime", "spark", "--checkpoint", str(tmp_path / "state")),
        *("--stream", f"S={source.url}", "--out", str(out), "--max-ahead", "99999 DAYS"),
    ]
    log = tmp_path / "log"
    run = Killed(command, lambda: len(lines(out)), random.Random(seed), log)
    middle = COUNT // PARTITIONS // 2
    source.feed(0, [own[:middle] for own in given])
    assert run.run_and_terminate() == 143
    assert log.read_text().split("spaseq: ")[-1].strip() == "terminated"
    rest = [own[middle:] for own in given]
    source.feed(1, [[*own, end] for own, end in zip(rest, ends(), strict=True)])
    run.run_until(len(expected))
    assert lines(out) == expected
