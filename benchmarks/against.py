#!/usr/bin/env python3
"""CPU time of workloads on this checkout against another commit, in interleaved runs.

    python benchmarks/against.py COMMIT [--pairs 9] [--size 1.0] [--only selective push ...]
                                 [--force "few_matches=never"]

Three processes stay open: one with this checkout, and two with a worktree of the commit, of which
the second shows the spread of a commit against itself. A round runs the workload once in each, in
turns; the first round loads kernels and does not count. The table has medians of the CPU time of a
run (all threads), the median of the rounds' ratios, and the ratios' quartiles for the commit
against itself. *worse* stands where the median is more than 5 % and outside these quartiles.

With `--force`, the commit is this one and the second process has these thresholds instead, in the
words of `tests/thresholds/forcing.py`: so one measures what a mechanism is worth.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import compress, islice
from pathlib import Path
from random import Random
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import queries as many  # noqa: E402
from benchmarks.generators.workloads import WORKLOADS  # noqa: E402
from tests.thresholds.forcing import assignments  # noqa: E402

LIMIT = 1.05

RUNNER = """
import gc, json, pathlib, sys, time
import spaseq
from spaseq.compiled.mode import compile_from_now_on
compile_from_now_on()
given = json.loads(sys.argv[1])
texts, streams, kb = given["texts"], given["streams"], given["kb"]
for name, own in given["lifts"].items():
    streams[name] = spaseq.Lifted(streams[name], pathlib.Path(own))
pushed = [spaseq.Event(*e) for e in given["pushed"]]

def run():
    if not pushed:
        return sum(1 for _ in spaseq.run(texts, streams, kb, runtime="local"))
    engine, found = spaseq.Engine(texts, kb), 0
    (iri,) = streams
    for at in range(0, len(pushed), given["together"]):
        found += len(engine.push_many([(iri, e) for e in pushed[at : at + given["together"]]]))
    return found + len(engine.close())

for _ in sys.stdin:
    gc.collect()
    began = time.process_time()
    found = run()
    print(json.dumps([time.process_time() - began, found]), flush=True)
"""


CHECKER = """
import json, sys
from spaseq.compile import check_query
print(json.dumps([check_query(text).plan is not None for text in json.load(sys.stdin)]))
"""


@dataclass(frozen=True)
class Work:
    """Queries over streams, read from files or pushed."""

    texts: list[str]
    streams: dict[str, str]
    kb: dict[str, str] = field(default_factory=dict)
    lifts: dict[str, str] = field(default_factory=dict)
    pushed: list[tuple[str, int]] = field(default_factory=list)
    together: int = 1


def end_to_end(name: str) -> Callable[[Path, float], Work]:
    """A workload of `end_to_end.py`, as N-Quads."""

    def made(place: Path, size: float) -> Work:
        workload = WORKLOADS[name]
        path = place / "stream.nq"
        events = islice(workload.events("low"), int(60_000 * size))
        path.write_text("".join(event.text for event in events))
        return Work([workload.query.read_text()], {"http://s.example/stream/s1": str(path)})

    return made


def several(kinds: str, count: int) -> Callable[[Path, float], Work]:
    """Queries of fifty families, of `queries.py`."""

    def made(place: Path, size: float) -> Work:
        path = place / "stream.nq"
        path.write_text(many.stream("families", int(20_000 * size), kinds))
        return Work(many.queries("families", count, kinds), {"S": str(path)})

    return made


def shapes(place: Path, size: float) -> Work:
    """Two hundred different queries, of which `compare` leaves out what one side does not know."""
    path = place / "stream.nq"
    path.write_text(many.stream("shapes", int(1000 * size), "few"))
    return Work(many.queries("shapes", 200, "few"), {"S": str(path)})


RISE = """PREFIX : <http://e/> SELECT ?s ?v ?w WITHIN 10 SECONDS PARTITION BY (?s)
    FROM STREAM S <http://e/S> WHERE { SEQ(A : B)
    DEFINE GPM A ON S { ?s :value ?v }
    DEFINE GPM B ON S { ?s :value ?w FILTER (?w > ?v + 900) } }"""
XSD = "http://www.w3.org/2001/XMLSchema#"


def _values(count: int) -> Iterator[tuple[int, int, int]]:
    random = Random(1)
    return ((i * 100, random.randrange(100), random.randrange(1000)) for i in range(count))


def push(together: int) -> Callable[[Path, float], Work]:
    """Events that are pushed to one query."""

    def made(place: Path, size: float) -> Work:
        events = [
            (f'<http://e/{s}> <http://e/value> "{v}"^^<{XSD}integer> .', time)
            for time, s, v in _values(int(6000 * size))
        ]
        return Work([RISE], {"S": ""}, pushed=events, together=together)

    return made


def lift(place: Path, size: float) -> Work:
    """Rows of CSV."""
    path, own = place / "rows.csv", place / "lift.rq"
    rows = (f"s{s},{v},{time}\n" for time, s, v in _values(int(60_000 * size)))
    path.write_text("s,v,at\n" + "".join(rows))
    own.write_text(
        f"""PREFIX : <http://e/> PREFIX prov: <http://www.w3.org/ns/prov#> PREFIX xsd: <{XSD}>
        CONSTRUCT {{ GRAPH ?e {{ ?c :value ?n }} ?e prov:generatedAtTime ?t }}
        WHERE {{ BIND (IRI(CONCAT("http://e/event/", STR(?at))) AS ?e)
        BIND (IRI(CONCAT("http://e/", ?s)) AS ?c) BIND (xsd:integer(?v) AS ?n)
        BIND (xsd:long(?at) AS ?t) }}"""
    )
    return Work([RISE], {"S": str(path)}, lifts={"S": str(own)})


def kb(place: Path, size: float) -> Work:
    """Events joined with a knowledge base of 20,000 triples."""
    stream, known = place / "stream.nq", place / "kb.nt"
    things = ((f"<http://e/{i}>", f"<http://e/z{i % 50}>", i % 1000) for i in range(10_000))
    known.write_text(
        "".join(
            f'{s} <http://e/zone> {z} .\n{s} <http://e/limit> "{n}"^^<{XSD}integer> .\n'
            for s, z, n in things
        )
    )
    at = f'<{many.TIME}> "{{}}"^^<{XSD}long> .\n'
    values = enumerate(_values(int(40_000 * size)))
    stream.write_text(
        "".join(
            f'<http://e/{s * 100 + i % 100}> <http://e/value> "{v}"^^<{XSD}integer> '
            f"<http://e/g{i}> .\n<http://e/g{i}> {at.format(time)}"
            for i, (time, s, v) in values
        )
    )
    text = """PREFIX : <http://e/> SELECT * WITHIN 10 SECONDS PARTITION BY (?z)
        FROM STREAM S <http://e/S> FROM NAMED <http://e/kb> WHERE { SEQ(A : B)
        DEFINE GPM A ON S { ?s :value ?v GRAPH <http://e/kb> { ?s :zone ?z ; :limit ?l }
          FILTER (?v > ?l + 500) }
        DEFINE GPM B ON S { ?t :value ?w GRAPH <http://e/kb> { ?t :zone ?z ; :limit ?m }
          FILTER (?w > ?m + 500) } }"""
    return Work([text], {"S": str(stream)}, {"http://e/kb": str(known)})


WORKS: Mapping[str, Callable[[Path, float], Work]] = {
    "selective": end_to_end("selective"),
    "matching": end_to_end("matching"),
    "answering": end_to_end("answering"),
    "rare": several("rare", 300),
    "few": several("few", 300),
    "all": several("many", 50),
    "shapes": shapes,
    "push": push(1),
    "push 1000": push(1000),
    "kb": kb,
    "lift": lift,
}


class Side:
    """A process that runs a workload of one checkout again and again."""

    def __init__(self, checkout: Path, work: Path, words: str = "") -> None:
        environment = {**os.environ, "PYTHONPATH": str(checkout), "PYTHONHASHSEED": "0"}
        if words:
            environment["SPASEQ_THRESHOLDS"] = assignments(words)
        self._process = subprocess.Popen(
            [sys.executable, "-c", RUNNER.replace("sys.argv[1]", "open(sys.argv[1]).read()"), work],
            env=environment,
            cwd=checkout,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self) -> tuple[float, int]:
        """CPU seconds of a run, and the number of its answers."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        seconds, answers = json.loads(self._process.stdout.readline())
        return seconds, answers

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def line(name: str, rounds: list[list[float]], answers: list[int]) -> str:
    """A line of the table. The sides are this checkout, the other, and the other again."""
    own, other = (median(r[side] for r in rounds) for side in (0, 1))
    ratio = median(r[0] / r[1] for r in rounds)
    low, _, high = quantiles([r[2] / r[1] for r in rounds], n=4)
    worse = "worse" if ratio > LIMIT and ratio > high else ""
    differ = "" if len(set(answers)) == 1 else f"answers differ: {answers}"
    return f"{name:12}{own:9.3f}{other:9.3f}{ratio:8.2f}   {low:.2f}-{high:.2f} {worse}{differ}"


@contextmanager
def worktree(commit: str) -> Iterator[Path]:
    """A checkout of a commit."""
    with TemporaryDirectory() as directory:
        path = Path(directory) / "other"
        git: Any = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--detach", "-q", str(path), commit], check=True)
        try:
            yield path
        finally:
            subprocess.run([*git, "remove", "--force", str(path)], check=True)


def planned(texts: list[str], checkout: Path) -> list[bool]:
    """Whether the planner of a checkout accepts each of some queries."""
    done = subprocess.run(
        [sys.executable, "-c", CHECKER],
        input=json.dumps(texts),
        env={**os.environ, "PYTHONPATH": str(checkout)},
        cwd=checkout,
        check=True,
        text=True,
        stdout=subprocess.PIPE,
    )
    found: list[bool] = json.loads(done.stdout)
    return found


def compare(name: str, other: Path, given: argparse.Namespace) -> str:
    """Measure one workload, of queries that both sides know."""
    with TemporaryDirectory() as directory:
        work, made = Path(directory) / "work.json", WORKS[name](Path(directory), given.size)
        known = map(all, zip(planned(made.texts, ROOT), planned(made.texts, other), strict=True))
        texts = [*compress(made.texts, known)]
        work.write_text(json.dumps(vars(replace(made, texts=texts))))
        sides = [Side(ROOT, work), Side(other, work, given.force), Side(other, work, given.force)]
        rounds, answers = list[list[float]](), list[int]()
        for number in range(given.pairs + 1):
            found = [(0.0, 0)] * 3
            for turn in range(3):
                side = (number + turn) % 3
                found[side] = sides[side].run()
            if number:
                rounds.append([seconds for seconds, _ in found])
                answers = [count for _, count in found]
        for each in sides:
            each.close()
    return line(name, rounds, answers)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("commit")
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--size", type=float, default=1.0, help="factor for the number of events")
    parser.add_argument("--only", nargs="+", choices=WORKS, default=list(WORKS))
    parser.add_argument("--force", default="", help="thresholds of the other side")
    given = parser.parse_args()
    print("workload         this    other   ratio   other against itself")
    with worktree(given.commit) as other:
        for name in given.only:
            print(compare(name, other, given), flush=True)


if __name__ == "__main__":
    main()
