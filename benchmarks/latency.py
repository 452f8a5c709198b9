#!/usr/bin/env python3
"""Time of one call of an in-process engine, from N-Triples text to answers.

    python benchmarks/latency.py [--events 20000] [--runs 3] [--json FILE]

The stream is synthetic, with one five-triple event per millisecond. 5 or 50 % of the events have
the types of the query. The queries are:

filter    one step with a FILTER
chain     three steps without a condition between them
sequence  three steps by key; the second and third have a FILTER on the first
any       the same under skip-till-any
knowledge the same as `filter`, joined with a knowledge base
construct the same as `sequence`, with a graph for each match

The table shows percentiles of the time to `push` one event, in microseconds:

all       over all calls
answers   over the calls that returned answers
ended     over the calls just before these; the engine finds a match in the call whose event ends
          it, and returns the answer in the next call, which makes it certain

*each* is the number of answers of a call that returns any (mean and p99). *more* is the additional
time that one more answer takes in the call that finds it (by least squares). The last column is the
events per second of `push_many` with a thousand events per call. All times are CPU time of the
calling thread: the median of the runs.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import rdflib

from spaseq import Engine, Event

NS, XSD = "http://s.example/ns#", "http://www.w3.org/2001/XMLSchema#"
RDF_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
KB, S1 = "http://s.example/kb", "http://s.example/stream/s1"
PERCENTILES = (50, 90, 99)

Integers: TypeAlias = npt.NDArray[np.int64]

MANY = 1000
WARM_UP = 500

_HEAD = f"PREFIX : <{NS}> SELECT * WITHIN 200 MILLISECONDS"
_FROM = f"FROM STREAM S1 <{S1}>"


def _step(name: str, number: int, condition: str = "") -> str:
    low = name.lower()
    triples = f"?{low} a :T{number} ; :key ?key ; :value ?v{low}"
    return f"DEFINE GPM {name} ON S1 {{ {triples} {condition} }}"


_PLAIN = " ".join(
    [
        _step("A", 1),
        "DEFINE GPM B ON S1 { ?b a :T2 ; :value ?vb }",
        "DEFINE GPM C ON S1 { ?c a :T3 ; :value ?vc }",
    ]
)
_THREE = " ".join(
    [_step("A", 1), _step("B", 2, "FILTER (?vb > ?va)"), _step("C", 3, "FILTER (?vc > ?va)")]
)
QUERIES = {
    "filter": f"{_HEAD} {_FROM} SEQ(A) {{ {_step('A', 1, 'FILTER (?va < 500)')} }}",
    "chain": f"{_HEAD} {_FROM} SEQ(A; B; C) {{ {_PLAIN} }}",
    "sequence": f"{_HEAD} PARTITION BY (?key) {_FROM} SEQ(A; B; C) {{ {_THREE} }}",
    "any": f"{_HEAD} PARTITION BY (?key) {_FROM} SEQ(A: B: C) {{ {_THREE} }}",
    "knowledge": f"{_HEAD} {_FROM} FROM NAMED <{KB}> SEQ(A) {{ "
    + _step("A", 1, f"GRAPH <{KB}> {{ ?key :name ?name }}")
    + " }",
    "construct": f"PREFIX : <{NS}> CONSTRUCT {{ ?key :rose [ :from ?va ; :to ?vb, ?vc ] }} "
    f"WITHIN 200 MILLISECONDS PARTITION BY (?key) {_FROM} SEQ(A; B; C) {{ {_THREE} }}",
}


@dataclass(frozen=True)
class Line:
    """The measurement of one query on one stream; microseconds, and events/s."""

    query: str
    share: float
    calls: int
    with_answers: int
    all: tuple[float, ...]
    answers: tuple[float, ...]
    ended: tuple[float, ...]
    each: tuple[float, float]
    more: float
    many: float


def texts(events: int, share: float, keys: int) -> list[str]:
    """The events as N-Triples texts."""
    dice = random.Random(1)
    found = []
    for i in range(events):
        e, drawn = f"<http://s.example/e/{i}>", dice.random()
        kind = int(drawn / share * 3) + 1 if drawn < share else 0
        found.append(
            f"{e} {RDF_TYPE} <{NS}T{kind}> .\n"
            f"{e} <{NS}key> <http://s.example/k/{dice.randrange(keys)}> .\n"
            f'{e} <{NS}value> "{dice.randrange(1000)}"^^<{XSD}integer> .\n'
            f'{e} <{NS}weight> "{dice.randrange(1000) / 10}"^^<{XSD}double> .\n'
            f'{e} <{NS}batch> "{i // 1000}"^^<{XSD}integer> .\n'
        )
    return found


def engine(query: str, keys: int) -> Engine:
    """A fresh engine; its knowledge base has a name for every key."""
    if KB not in query:
        return Engine(query)
    graph = rdflib.Graph()
    for key in range(keys):
        subject = rdflib.URIRef(f"http://s.example/k/{key}")
        graph.add((subject, rdflib.URIRef(f"{NS}name"), rdflib.Literal(f"key {key}")))
    return Engine(query, {KB: graph})


def pushes(query: str, stream: list[str], keys: int) -> tuple[list[int], list[int]]:
    """Nanoseconds and number of answers of each call, without the first calls."""
    own, taken, given = engine(query, keys), [], []
    for i, text in enumerate(stream):
        started = time.thread_time_ns()
        answers = own.push("S1", text, i)
        ended = time.thread_time_ns()
        if i >= WARM_UP:
            taken.append(ended - started)
            given.append(len(answers))
    return taken, given


def many(query: str, stream: list[str], keys: int) -> float:
    """Events per second of `push_many`."""
    own = engine(query, keys)
    batches = [
        [("S1", Event(text, first + i)) for i, text in enumerate(stream[first : first + MANY])]
        for first in range(0, len(stream), MANY)
    ]
    own.push_many(batches[0])
    started = time.thread_time()
    for batch in batches[1:]:
        own.push_many(batch)
    return sum(map(len, batches[1:])) / (time.thread_time() - started)


def measure(name: str, share: float, events: int, keys: int, runs: int) -> Line:
    """Measure several runs of one query."""
    query, stream = QUERIES[name], texts(events, share, keys)
    found = [[*map(np.array, pushes(query, stream, keys))] for _ in range(runs)]
    rates = [many(query, stream, keys) for _ in range(runs)]
    given = found[0][1]
    last = np.flatnonzero(given[1:])  # the event before the one that makes an answer certain
    some = given[last + 1]
    return Line(
        name,
        share,
        len(given),
        len(some),
        _percentiles([taken for taken, _ in found]),
        _percentiles([taken[last + 1] for taken, _ in found]),
        _percentiles([taken[last] for taken, _ in found]),
        (float(some.mean()), float(np.percentile(some, 99))) if len(some) else (0.0, 0.0),
        median(_slope(some, taken[last]) for taken, _ in found),
        median(rates),
    )


def _slope(answers: Integers, taken: Integers) -> float:
    """Microseconds for each additional answer of a call."""
    if len({*answers.tolist()}) < 2:
        return 0.0
    return float(np.polyfit(answers, taken, 1)[0]) / 1000


def _percentiles(runs: list[Integers]) -> tuple[float, ...]:
    if not len(runs[0]):
        return (float("nan"),) * len(PERCENTILES)
    each = np.array([np.percentile(calls, PERCENTILES) for calls in runs]) / 1000
    return tuple(np.median(each, axis=0).round(1).tolist())


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--keys", type=int, default=5)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the measurements to a file")
    options = parser.parse_args()
    groups = ("all", "answers", "ended")
    print(f"{'':17} " + "".join(f"{group:>{8 * len(PERCENTILES)}}" for group in groups))
    names = "".join(f"{f'p{p}':>8}" for p in PERCENTILES) * len(groups)
    more = f"{'calls':>6} {'each':>5} {'p99':>4} {'more':>5} {'push_many/s':>12}"
    print(f"{'query':10} {'share':>6} {names} {more}")
    lines = []
    for name in QUERIES:
        for share in (0.05, 0.5):
            line = measure(name, share, options.events, options.keys, options.runs)
            taken = "".join(f"{v:8.0f}" for v in (*line.all, *line.answers, *line.ended))
            print(
                f"{name:10} {share:6.0%} {taken} {line.with_answers:6} {line.each[0]:5.1f} "
                f"{line.each[1]:4.0f} {line.more:5.1f} {line.many:12,.0f}",
                flush=True,
            )
            lines.append(line)
    if options.json:
        options.json.write_text(json.dumps([asdict(line) for line in lines], indent=1) + "\n")


if __name__ == "__main__":
    main()
