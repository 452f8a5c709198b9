"""A soak test: a followed run on a cluster gets new files while its processes are killed.

There are four streams, with events out of order within the watermark, and three queries: by key,
without a key under strict contiguity, and with a negation in last place. At random times, drawn
from a seed, a Python worker, an executor or the driver gets SIGKILL. In the end, the output file
must have the same answers as the local runtime over all files.
"""

from __future__ import annotations

import math
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.runtime.machines import Row, nquads, put
from tests.runtime.spark.session.cluster import Cluster

STREAMS = "ABCD"
TARGETS = ("python", "executor", "driver")
STARTS = "starts of the driver"
OWN_PATIENCE = 4  # failures of one task after which Spark gives up, unless set

_HEAD = (
    "PREFIX : <http://m.example/>\nPREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"
    "SELECT * WITHIN 8 SECONDS\n"
    + "".join(f"FROM STREAM {name} <http://m.example/{name}>\n" for name in STREAMS)
)
QUERIES = {
    "keyed": _HEAD
    + """SEQ (A; B; C) {
  DEFINE GPM A ON A, B { ?machine :starts ?load FILTER (xsd:integer(?load) > 60) }
  DEFINE GPM B ON C { ?machine :starts ?more FILTER (xsd:integer(?more) < xsd:integer(?load)) }
  DEFINE GPM C ON A, B, C, D { ?machine :stops ?code }
}""",
    "contiguous": _HEAD
    + """SEQ (A, B) {
  DEFINE GPM A ON A, B, C, D { ?machine :starts ?load }
  DEFINE GPM B ON A, B, C, D { ?other :stops ?code FILTER (xsd:integer(?code) < 30) }
}""",
    "negated": _HEAD
    + """SEQ (A; B; C!) {
  DEFINE GPM A ON A { ?machine :starts ?load FILTER (xsd:integer(?load) > 30) }
  DEFINE GPM B ON B, C { ?machine :starts ?more }
  DEFINE GPM C ON D { ?machine :stops ?code }
}""",
}

DISORDER_MS, WATERMARK = 2000, "3 SECONDS"
AN_HOUR = 3_600_000

# What Spark says of a task that failed four times because its process was killed.
LOSS = re.compile(r"ExecutorLostFailure|Python worker exited unexpectedly")


def rows(random: Random, second: int, count: int) -> list[Row]:
    """Events of one stream in one second; several have the same time."""
    return [
        (
            1000 * second + random.randrange(0, 1000, 20),
            f"m{random.randrange(12)}",
            random.choice(("starts", "stops")),
            random.randrange(100),
        )
        for _ in range(count)
    ]


def files(random: Random, seconds: int, per_second: int) -> Iterator[list[str]]:
    """The text of each stream's file per second of arrival; the last files end all windows."""
    ends = seconds + DISORDER_MS // 1000
    arrivals: list[list[list[tuple[int, Row]]]] = []  # per stream and second
    for _ in STREAMS:
        events = [row for s in range(seconds) for row in rows(random, s, per_second)]
        due: list[list[tuple[int, Row]]] = [[] for _ in range(ends)]
        for row in events:
            arrival = row[0] + random.randrange(DISORDER_MS)
            due[arrival // 1000].append((arrival, row))
        arrivals.append(due)
    for second in range(ends):
        texts = []
        for name, due in zip(STREAMS, arrivals, strict=True):
            arrived = sorted(due[second], key=lambda e: e[0])
            texts.append(nquads([row for _, row in arrived], f"{name}{second}"))
        yield texts
    last = (1000 * seconds + AN_HOUR, "m", "ends", 0)
    yield [nquads([last], f"{name}end") for name in STREAMS]


@dataclass(frozen=True)
class Plan:
    """The duration of a soak, the events per second and stream, and the kills with their times."""

    seconds: int
    per_second: int
    kills: Sequence[tuple[int, str]]  # (second, one of TARGETS)

    @classmethod
    def drawn(cls, random: Random, seconds: int, per_second: int, each: int) -> Plan:
        """A plan that kills every target `each` times, at random times in the middle."""
        kills = [(random.randrange(seconds // 5, seconds), target) for target in TARGETS * each]
        return cls(seconds, per_second, sorted(kills))


class Driver:
    """The followed run as a process, which is restarted after a kill."""

    def __init__(self, directory: Path, master: str, patience: int = OWN_PATIENCE) -> None:
        self.out = directory / "alerts.jsonl"
        self._directory = directory
        queries = []
        for name, text in QUERIES.items():
            (directory / f"{name}.rq").write_text(text)
            queries.append(str(directory / f"{name}.rq"))
        self._queries = queries
        self._command = [
            sys.executable, "-m", "spaseq", "run", *queries, *self._inputs(),
            "--master", master, "--out", str(self.out), "--follow",
            "--checkpoint", str(directory / "checkpoint"), "--watermark", WATERMARK,
            "--late", str(directory / "late.jsonl"),
        ]  # fmt: skip
        self._settings = directory / "settings"
        self._settings.mkdir()
        (self._settings / "spark-defaults.conf").write_text(f"spark.task.maxFailures {patience}\n")
        self.starts = 0
        self.process = self._start()

    def _inputs(self) -> list[str]:
        return [a for n in STREAMS for a in ("--stream", f"{n}={self._directory / n}")]

    def _start(self) -> subprocess.Popen[bytes]:
        self.starts += 1
        self.has_lost_a_process = False
        with (self._directory / f"driver-{self.starts}.log").open("wb") as log:
            return subprocess.Popen(
                self._command,
                env=os.environ | {"SPARK_CONF_DIR": str(self._settings)},
                stderr=log,
                start_new_session=True,
            )

    def wait_for_the_first_batch(self, patience: float = 600) -> None:
        """Wait until all processes have started and all kernels are compiled."""
        end = time.monotonic() + patience
        while not (self._directory / "checkpoint" / "spark" / "commits" / "0").exists():
            self.check()
            assert time.monotonic() < end, self._last_words()
            time.sleep(0.2)

    def wait_for_a_batch(self, patience: float = 600) -> None:
        """Wait until the run has committed one more batch; it may be started anew meanwhile."""
        commits, end = (
            self._directory / "checkpoint" / "spark" / "commits",
            time.monotonic() + patience,
        )
        before = {path.name for path in commits.iterdir()}
        while {path.name for path in commits.iterdir()} <= before:
            self.revive()
            assert time.monotonic() < end, self._last_words()
            time.sleep(0.2)

    def check(self) -> None:
        """Check that the process runs; otherwise fail with its last output."""
        status = self.process.poll()
        assert status is None, f"exit status {status}: {self._last_words()}"

    def _last_words(self) -> str:
        log = self._directory / f"driver-{self.starts}.log"
        return log.read_text(errors="replace")[-3000:]

    def kill(self) -> None:
        """Kill the process with SIGKILL, and start a new one."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process = self._start()

    def revive(self) -> None:
        """Start anew if Spark has given up because of kills: it does after four failures of a task.

        Any other end fails with the process's last output.
        """
        status = self.process.poll()
        if status is not None:
            words = self._last_words()
            given_up = status == 4 and self.has_lost_a_process and LOSS.search(words)
            assert given_up, f"exit status {status}: {words}"
            print(f"Spark gave up: {words.strip()}", flush=True)
            self.process = self._start()

    def interrupt(self) -> int:
        """Send Ctrl-C; returns the exit status."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(120)

    def expected(self) -> Counter[str]:
        """The answers of the local runtime over all files that have arrived."""
        command = [
            sys.executable, "-m", "spaseq", "run", *self._queries, *self._inputs(),
            "--runtime", "local",
        ]  # fmt: skip
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        return Counter(done.stdout.decode().splitlines())

    def found(self) -> Counter[str]:
        """The answers in the output file."""
        return Counter(self.out.read_text("utf-8").splitlines() if self.out.exists() else ())


def soak(directory: Path, cluster: Cluster, seed: int, plan: Plan) -> None:
    """Run a soak test to its end, and check its answers.

    Raises:
        AssertionError: the answers differ from the local runtime's, or the run ended by itself.
    """
    random = Random(seed)
    for name in STREAMS:
        (directory / name).mkdir()
    driver = Driver(directory, cluster.url)
    try:
        kills = list(plan.kills)
        started = 0.0
        for second, texts in enumerate(files(random, plan.seconds, plan.per_second)):
            if second == 1:
                driver.wait_for_the_first_batch()
                started = time.monotonic()
            time.sleep(max(0.0, started + second - time.monotonic()))
            _arrive(directory, second, texts)
            while kills and kills[0][0] <= second and _kill(random, cluster, driver, kills[0][1]):
                del kills[0]  # else there is none now, but perhaps in a second
            driver.check()
        assert not kills, f"never there to be killed: {kills}"
        expected = driver.expected()
        assert {text.split('"')[3] for text in expected} == set(QUERIES)
        _wait(driver, sum(expected.values()), driver.check)
        assert driver.interrupt() == 130
        found = driver.found()
        assert found == expected, f"missing {expected - found}, too much {found - expected}"
        assert (directory / "late.jsonl").read_text() == ""
    finally:
        if driver.process.poll() is None:
            os.killpg(driver.process.pid, signal.SIGKILL)


@dataclass(frozen=True)
class Storm:
    """Many kills, each a moment after the one before."""

    kills: int
    patience: int = OWN_PATIENCE  # failures of one task after which Spark gives up
    kinds: tuple[str, ...] = ("worker", "daemon", "executor", "driver")
    weights: tuple[float, ...] = (0.93, 0.03, 0.03, 0.01)
    again: float = 0.02  # the probability that a driver is killed in a few seconds of its start
    pause: float = 0.5  # seconds at most between two kills
    burst: int = 32  # after so many kills a batch must be committed before the next one
    seconds: float = math.inf  # the storm ends then, even with fewer kills
    per_second: int = 4


def storm(directory: Path, cluster: Cluster, seed: int, plan: Storm) -> Counter[str]:
    """Run a followed run through a storm of kills, and check its answers.

    Each kill comes with new files. A restarted driver may be killed while it starts.

    Returns:
        How many processes of each kind were killed, and how many drivers were started.

    Raises:
        AssertionError: the answers differ from the local runtime's, or the run ended by itself.
    """
    random, killed, begun = Random(seed), Counter[str](), time.monotonic()
    for name in STREAMS:
        (directory / name).mkdir()
    *rounds, last = files(random, 4 * plan.kills, plan.per_second)
    driver = Driver(directory, cluster.url, plan.patience)
    try:
        for number, texts in enumerate(rounds):
            if number == 1:
                driver.wait_for_the_first_batch()
            _arrive(directory, number, texts)
            kind, count = _strike(random, cluster, driver, plan)
            if not count:
                continue
            before = killed.total()
            killed[kind] += count
            if killed.total() // 100 > before // 100:
                seconds = time.monotonic() - begun
                print(f"{killed.total()} kills in {seconds:.0f} s: {dict(killed)}", flush=True)
            time.sleep(random.uniform(0, plan.pause))
            if killed.total() // plan.burst > before // plan.burst:
                driver.wait_for_a_batch()
            if killed.total() >= plan.kills or time.monotonic() > begun + plan.seconds:
                break
        else:
            raise AssertionError(f"too few processes for {plan.kills} kills: {dict(killed)}")
        _arrive(directory, len(rounds), last)
        expected = driver.expected()
        _wait(driver, sum(expected.values()), driver.revive)
        assert driver.interrupt() == 130
        found = driver.found()
        assert found == expected, f"missing {expected - found}, too much {found - expected}"
    finally:
        if driver.process.poll() is None:
            os.killpg(driver.process.pid, signal.SIGKILL)
    killed[STARTS] = driver.starts
    return killed


def _arrive(directory: Path, number: int, texts: Sequence[str]) -> None:
    """Put one file into each stream's directory."""
    for name, text in zip(STREAMS, texts, strict=True):
        put(directory / name / f"{number:05}.nq", text)


def _strike(random: Random, cluster: Cluster, driver: Driver, plan: Storm) -> tuple[str, int]:
    """Kill processes of a kind drawn from a storm's plan: the kind, and how many were killed.

    There are none while a driver starts, and no Python workers while there are no new files.
    """
    target = random.choices(plan.kinds, plan.weights)[0]
    end = time.monotonic() + 20
    while time.monotonic() < end:
        driver.revive()
        count = _kill(random, cluster, driver, target)
        if count:
            return target, count
        time.sleep(0.1)
    if random.random() < plan.again:
        driver.kill()
        return "driver", 1
    return target, 0


def _kill(random: Random, cluster: Cluster, driver: Driver, target: str) -> int:
    """Kill a process of a kind, or one or more workers at once; returns how many."""
    if target == "driver":
        driver.kill()
        return 1
    found = {
        "python": cluster.pythons,
        "worker": cluster.python_workers,
        "daemon": cluster.daemons,
        "executor": cluster.executors,
    }[target]()
    most = len(found) if target == "worker" else 1
    count = 0
    for pid in random.sample(found, random.randint(1, most)) if found else ():
        with suppress(ProcessLookupError):  # it has just ended
            os.kill(pid, signal.SIGKILL)
            driver.has_lost_a_process = True
            count += 1
    return count


def _wait(driver: Driver, count: int, look: Callable[[], None], patience: float = 600) -> None:
    """Wait until `count` answers exist, and a little longer to find superfluous answers.

    Meanwhile, `look` sees to the driver.
    """
    end = time.monotonic() + patience
    while sum(driver.found().values()) < count and time.monotonic() < end:
        look()
        time.sleep(0.5)
    time.sleep(5)
