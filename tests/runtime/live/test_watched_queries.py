"""`spaseq run --queries DIR`: the queries are what the directory has, as it changes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.connectors.nats_server import NatsServer, serving
from tests.runtime.live.live_jobs import IRI, QUERY, event, events, expected_lines, lines
from tests.runtime.live.test_live_run import until

ON_SPARK = (pytest.mark.spark(apart=True), pytest.mark.thorough)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    for server in serving(tmp_path):
        server.make_stream("ROAD", "road.>")
        yield server


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    directory = tmp_path / "queries"
    directory.mkdir()
    (directory / "a.rq").write_text(QUERY)
    return directory


class Watched:
    """A run over a query, or a directory of queries, in a process of its own."""

    def __init__(
        self, place: Path, server: NatsServer, queries: Path, runtime: str = "local"
    ) -> None:
        given = ("--queries", str(queries)) if queries.is_dir() else (str(queries),)
        self.out, self._told = place / "out.jsonl", place / "told.txt"
        with self._told.open("a") as told:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "spaseq", "run", *given),
                    *("--runtime", runtime, "--follow", "--checkpoint", str(place / "state")),
                    *("--stream", f"S=nats://{server.host}/road.loops?stream=ROAD"),
                    *("--watermark", "500 MILLISECONDS", "--max-ahead", "99999 DAYS"),
                    *("--out", str(self.out)),
                ],
                stderr=told,
            )

    def told(self) -> str:
        return self._told.read_text()

    def told_of(self, text: str) -> None:
        until(lambda: text in self.told() or self._process.poll() is not None)
        assert text in self.told()

    def lines(self, name: str) -> list[str]:
        return [line for line in lines(self.out) if json.loads(line)["query"] == name]

    def has(self, name: str, count: int) -> None:
        """Wait for at least some answers of a query, or for the end of the run."""
        until(lambda: len(self.lines(name)) >= count or self._process.poll() is not None)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        assert self._process.wait(60) == 143, self.told()


@pytest.mark.parametrize("runtime", ["local", pytest.param("spark", marks=ON_SPARK)])
def test_files_come_change_and_go(
    tmp_path: Path, server: NatsServer, queries: Path, runtime: str
) -> None:
    given = events(300)
    run = Watched(tmp_path, server, queries, runtime)
    server.publish("road.loops", given[:100])
    expected = [line.replace('"q"', '"a"') for line in expected_lines(tmp_path, given)]
    until(lambda: len(run.lines("a")) > 20)
    (queries / "b.rq").write_text(QUERY)
    run.told_of("query b: added")
    (queries / "a.rq").write_text("SELECT")
    run.told_of("a.rq is not used")
    server.publish("road.loops", given[100:200])
    until(lambda: len(run.lines("b")) > 20)
    run.kill()
    (queries / "a.rq").write_text(QUERY)
    run = Watched(tmp_path, server, queries, runtime)
    server.publish("road.loops", given[200:])
    until(lambda: len(run.lines("a")) == len(expected))
    (queries / "b.rq").unlink()
    run.told_of("query b: removed")
    run.stop()
    (tmp_path / "rest").mkdir()
    rest = expected_lines(tmp_path / "rest", given[100:])
    assert run.lines("a") == expected
    assert run.lines("b") == [line.replace('"q"', '"b"') for line in rest]


MAINTAINS = f"""PREFIX : <http://example/>
MAINTAIN GRAPH :last AS DELETE {{ ?x :last ?any }} INSERT {{ ?x :last ?state }}
FROM STREAM S <{IRI}> WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?x :is ?state }} }}"""
READS = f"""PREFIX : <http://example/>
SELECT ?x WITHIN 1 SECONDS FROM STREAM S <{IRI}> FROM NAMED :last
WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?y :is "cold" GRAPH :last {{ ?x :last "hot" }} }} }}"""


def test_a_query_of_the_first_ones_reads_a_graph_that_another_maintains(
    tmp_path: Path, server: NatsServer, queries: Path
) -> None:
    (queries / "a.rq").write_text(READS)
    (queries / "b.rq").write_text(MAINTAINS)
    run = Watched(tmp_path, server, queries)
    given = [event(1, 1000, "x", "hot"), event(2, 2000, "y", "cold"), event(3, 9000, "y", "none")]
    server.publish("road.loops", given)
    run.has("a", 1)
    run.stop()
    (line,) = run.lines("a")
    assert json.loads(line)["bindings"]["x"]["value"] == "http://example/x"


KEYED = f"""PREFIX : <http://example/> SELECT ?x WITHIN 1 SECONDS PARTITION BY (?x)
FROM STREAM S <{IRI}> WHERE {{ SEQ(A : B : C)
  DEFINE GPM A ON S {{ ?x :is "hot" }} DEFINE GPM B ON S {{ ?x :is "warm" }}
  DEFINE GPM C ON S {{ ?x :is "cold" }} }}"""
KEYS = 600


@pytest.mark.thorough
def test_many_keys_go_on_after_restarts(tmp_path: Path, server: NatsServer, queries: Path) -> None:
    """Each key is hot, warm and cold within 0.8 s, twice; runs end within both."""
    (queries / "a.rq").write_text(KEYED)
    given = [
        event(i, i * 400 // KEYS, f"x{i % KEYS}", ("hot", "warm", "cold")[i // KEYS % 3])
        for i in range(6 * KEYS)
    ]
    given += [event(6 * KEYS, 60_000, "end", "none")]
    for begin, end in pairwise([0, 4 * KEYS, 5 * KEYS + 50, len(given)]):
        run = Watched(tmp_path, server, queries)
        server.publish("road.loops", given[begin:end])
        run.has("a", 2 * KEYS if end == len(given) else 50)
        run.stop()
    found = Counter(json.loads(line)["bindings"]["x"]["value"] for line in run.lines("a"))
    assert found == {f"http://example/x{key}": 2 for key in range(KEYS)}, run.told()


@pytest.mark.thorough
@pytest.mark.parametrize("runtime", ["local", pytest.param("spark", marks=ON_SPARK)])
def test_a_query_over_a_broker_that_only_logs_can_read(
    tmp_path: Path, server: NatsServer, runtime: str
) -> None:
    (tmp_path / "q.rq").write_text(QUERY)
    given = events(200)
    expected = expected_lines(tmp_path, given)
    run = Watched(tmp_path, server, tmp_path / "q.rq", runtime)
    server.publish("road.loops", given[:100])
    until(lambda: len(run.lines("q")) > 20)
    run.kill()
    run = Watched(tmp_path, server, tmp_path / "q.rq", runtime)
    server.publish("road.loops", given[100:])
    until(lambda: len(run.lines("q")) == len(expected))
    run.stop()
    assert run.lines("q") == expected


def spaseq(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "spaseq", "run", *arguments], capture_output=True, text=True
    )


def test_a_bounded_run_has_all_queries_of_the_directory(tmp_path: Path, queries: Path) -> None:
    given = events(50)
    expected = expected_lines(tmp_path, given)
    (queries / "b.rq").write_text(QUERY)
    stream = ("--stream", f"S={tmp_path / 'expected.nq'}", "--runtime", "local")
    found = spaseq("--queries", str(queries), *stream)
    assert found.returncode == 0, found.stderr
    assert sorted(found.stdout.splitlines()) == sorted(
        line.replace('"q"', f'"{name}"') for line in expected for name in "ab"
    )


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ([], "there is no query"),
        (["--queries", "nowhere"], "it is no directory"),
        (["--queries", ".", "--follow", "--checkpoint", "s", "--buckets", "2"], "--queries and"),
    ],
)
def test_what_does_not_go_together_is_refused(more: list[str], message: str) -> None:
    found = spaseq(*more)
    assert found.returncode == 2
    assert message in found.stderr
