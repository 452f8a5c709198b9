#!/usr/bin/env python3
"""Speed of matching graph patterns against events, compared with one query per event elsewhere.

    python benchmarks/graph_patterns.py [--events 200000] [--runs 5] [--json FILE]

The generator makes synthetic events with five triples and a time. All variants run in one process.
The measured time does not include reading the events.

spaseq      the solutions of all events, batch by batch, as columns of codes
handed on   the same, and the columns that the sequence needs: texts, names, numbers
pyoxigraph  a query for each of the first 2 000 events; each event is already in a separate store
rdflib      a prepared query for each of the first 500 events, each already in a separate graph

The numbers are events per second of CPU time: the median of the runs after a warm-up run. The
number in brackets is the ratio to pyoxigraph. All variants must find the same number of solutions
on the events that they share.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice, pairwise
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import pyoxigraph
import rdflib
from rdflib.plugins.sparql import prepareQuery

from spaseq.compile import compile_query
from spaseq.gpm.evaluator import GpmEvaluator
from spaseq.gpm.pattern_stage import PatternStage
from spaseq.kb.load import load_kb
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.rdf.ranges import read_stream

FEW = 2_000
FEWER = 500
STREAM = "http://s.example/stream/s1"
PREFIX = "PREFIX : <http://s.example/ns#>\n"

SHAPES = {
    "one triple": "?x a :T1",
    "star of 2": "?x a :T1 ; :key ?k",
    "star of 3": "?x a :T1 ; :key ?k ; :value ?v",
    "star of 5": "?x a :T1 ; :key ?k ; :value ?v ; :weight ?w ; :batch ?b",
    "star of 3, no constant": "?x :key ?k ; :value ?v ; :weight ?w",
    "star and FILTER": "?x a :T1 ; :key ?k ; :value ?v . FILTER (?v < 100)",
    "path": "?x a :T1 ; :key+ ?k",
    "OPTIONAL": "?x a :T1 ; :key ?k OPTIONAL { ?x :value ?v FILTER (?v < 100) }",
    "UNION": "{ ?x a :T1 ; :value ?v } UNION { ?x a :T2 ; :weight ?v }",
    "EXISTS": "?x a :T1 ; :key ?k FILTER EXISTS { ?x :value ?v }",
}


@dataclass(frozen=True)
class Line:
    """The measurement of one pattern by one variant."""

    shape: str
    way: str
    events: int
    solutions: int
    seconds: float

    @property
    def rate(self) -> float:
        """Events per second."""
        return self.events / self.seconds


def batches(events: int) -> list[EventBatch]:
    """The synthetic stream."""
    with TemporaryDirectory() as directory:
        generate = Path(__file__).with_name("generate.py")
        arguments = ["synthetic", "--events", str(events), "--out", directory]
        subprocess.run([sys.executable, generate, *arguments], check=True)
        options = StreamOptions(STREAM, (f"{directory}/s1.nq",))
        return list(read_stream(options, lambda bad: sys.exit(bad.reason)))


def graphs(given: Sequence[EventBatch]) -> Iterator[str]:
    """The events as N-Triples."""
    for batch in given:
        triples = zip(*(batch.terms.take(c) for c in (batch.s, batch.p, batch.o)), strict=True)
        start = batch.start.tolist()
        for first, end in pairwise(start):
            yield "".join(f"{' '.join(t)} .\n" for t in islice(triples, end - first))


# --- the variants -------------------------------------------------------------------------------


def by_spaseq(pattern: str, given: Sequence[EventBatch]) -> Callable[[], int]:
    evaluator = GpmEvaluator(plan_of(pattern).patterns.gpms[0].pattern, load_kb([]))
    return lambda: sum(len(evaluator.evaluate(batch).event) for batch in given)


def handed_on(pattern: str, given: Sequence[EventBatch]) -> Callable[[], int]:
    matcher = PatternStage(plan_of(pattern), load_kb([]))
    return lambda: sum(len(matcher.match(batch)) for batch in given)


def plan_of(pattern: str) -> Any:
    """The plan of a query that selects all variables of a pattern."""
    head = f"SELECT * WITHIN 1 SECONDS FROM STREAM S <{STREAM}>"
    return compile_query(f"{PREFIX} {head} WHERE {{ SEQ(A) DEFINE GPM A ON S {{ {pattern} }} }}")


def by_pyoxigraph(pattern: str, given: Sequence[EventBatch]) -> Callable[[], int]:
    stores = [pyoxigraph.Store() for _ in range(FEW)]
    for store, text in zip(stores, graphs(given), strict=False):
        store.load(text.encode(), format=pyoxigraph.RdfFormat.N_TRIPLES)
    query = f"{PREFIX} SELECT * WHERE {{ {pattern} }}"
    return lambda: sum(sum(1 for _ in store.query(query)) for store in stores)


def by_rdflib(pattern: str, given: Sequence[EventBatch]) -> Callable[[], int]:
    found = [rdflib.Graph().parse(data=t, format="nt") for t in islice(graphs(given), FEWER)]
    query = prepareQuery(f"{PREFIX} SELECT * WHERE {{ {pattern} }}")
    return lambda: sum(len(graph.query(query)) for graph in found)


def measured(work: Callable[[], int], runs: int) -> tuple[float, int]:
    """(median seconds of CPU time, solutions)."""
    found, seconds = work(), []
    for _ in range(runs):
        at = time.process_time()
        work()
        seconds.append(time.process_time() - at)
    return median(seconds), found


def lines(given: Sequence[EventBatch], runs: int) -> Iterator[Line]:
    """All patterns by all variants."""
    events = sum(map(len, given))
    for shape, pattern in SHAPES.items():
        for way, make, count in (
            ("spaseq", by_spaseq, events),
            ("handed on", handed_on, events),
            ("pyoxigraph", by_pyoxigraph, FEW),
            ("rdflib", by_rdflib, FEWER),
        ):
            seconds, found = measured(make(pattern, given), runs)
            yield Line(shape, way, count, found, seconds)


def check(found: Sequence[Line], given: Sequence[EventBatch]) -> None:
    """Stop if the variants disagree on the events that they share."""
    for line in found:
        if line.way in ("pyoxigraph", "rdflib"):
            [gpm] = plan_of(SHAPES[line.shape]).patterns.gpms
            evaluator = GpmEvaluator(gpm.pattern, load_kb([]))
            left, ours = line.events, 0
            for batch in given:
                part = batch.part(0, min(left, len(batch)))
                ours += len(evaluator.evaluate(part).event)
                left -= len(part)
                if not left:
                    break
            if ours != line.solutions:
                sys.exit(f"{line.shape}: {line.way} finds {line.solutions} solutions, not {ours}")


def print_table(found: Sequence[Line]) -> None:
    ways = list(dict.fromkeys(line.way for line in found))
    print(f"{'events/s':24}" + "".join(f"{way:>22}" for way in ways))
    for shape in SHAPES:
        mine = {line.way: line for line in found if line.shape == shape}
        reference = mine["pyoxigraph"].rate
        cells = (f"{mine[w].rate:,.0f} ({mine[w].rate / reference:,.2f})" for w in ways)
        print(f"{shape:24}" + "".join(f"{cell:>22}" for cell in cells))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", type=Path, metavar="FILE")
    given = parser.parse_args()
    if given.events < FEW:
        parser.error(f"--events: at least {FEW}")
    events = batches(given.events)
    found = list(lines(events, given.runs))
    check(found, events)
    print_table(found)
    if given.json is not None:
        rows = [asdict(line) | {"events_per_second": line.rate} for line in found]
        given.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
