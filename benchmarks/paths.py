#!/usr/bin/env python3
"""Property paths with a bound end, against pyoxigraph in the same process.

    python benchmarks/paths.py [--nodes 100000] [--edges 1000000] [--runs 5]

*cycle* is an event, or a knowledge base, whose triples form one cycle. *forest* is a knowledge base
in which each node has one of the nodes before it as its parent, chosen at random. Each time is the
median of the runs, for one evaluation of the path after a first one, which builds the index of the
path's edges. pyoxigraph evaluates the same pattern over its store, in memory. The last column is
its time divided by ours. Parsing and loading are left out on both sides.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Iterator
from statistics import median

import numpy as np
import pyoxigraph as ox

from spaseq.algebra.groups import translate_group
from spaseq.gpm.evaluator import GpmEvaluator
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.lang.parser import parse
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.program_events import batch_from_events

E = "http://e/"
_HEAD = f"PREFIX : <{E}> SELECT * WITHIN 1 HOURS FROM STREAM S <{E}s> FROM NAMED <{E}kb> "

Edges = list[tuple[int, int]]


def cycle(nodes: int) -> Edges:
    return [(i, (i + 1) % nodes) for i in range(nodes)]


def forest(edges: int) -> Edges:
    rng = random.Random(1)
    return [(i, rng.randrange(i)) for i in range(1, edges + 1)]


def name(node: int) -> str:
    return f"<{E}n{node}>"


def store_of(edges: Edges) -> ox.Store:
    store, p = ox.Store(), ox.NamedNode(E + "p")
    store.bulk_extend(
        ox.Quad(ox.NamedNode(f"{E}n{a}"), p, ox.NamedNode(f"{E}n{b}")) for a, b in edges
    )
    return store


def knowledge_of(edges: Edges) -> KnowledgeBase:
    table = np.array(edges, np.int32)
    texts = [name(i) for i in range(int(table.max()) + 1)] + [f"<{E}p>"]
    columns = {"g": np.zeros(len(table), np.int32), "s": table[:, 0], "o": table[:, 1]}
    columns["p"] = np.full(len(table), len(texts) - 1, np.int32)
    return KnowledgeBase.of_quads(texts, [E + "kb"], [], columns)


def event_evaluation(pattern: str, triples: list[tuple[str, str, str]], kb: KnowledgeBase):  # type: ignore[no-untyped-def]
    """(an evaluation of the pattern on one event, the number of its solutions)."""
    text = f"{_HEAD} WHERE {{ SEQ(A) DEFINE GPM A ON S {{ {pattern} }} }}"
    algebra = translate_group(parse(text).gpms[0].pattern)
    batch = batch_from_events(E + "s", [(0, None, triples)], InstantCounter())
    evaluator = GpmEvaluator(algebra, kb)
    return lambda: len(evaluator.evaluate(batch).event)


def seconds(runs: int, evaluate: Callable[[], int]) -> tuple[float, int]:
    found = evaluate()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        assert evaluate() == found
        times.append(time.perf_counter() - start)
    return median(times), found


def rows(runs: int, nodes: int, edges: int) -> Iterator[tuple[str, str, float, float, int]]:
    """(graph, path, our seconds, seconds of pyoxigraph, solutions)."""
    at = [(f"<{E}s>", f"<{E}at>", name(5))]
    for graph, made, paths in (
        ("cycle", cycle(nodes), [":p+ ?y", "^:p* ?y", "(:p/:p)+ ?y", ":p+ :n4"]),
        ("forest", forest(edges), [":p+ ?y", ":p* ?y", "^:p+ ?y", ":p+ :n0"]),
    ):
        store, kb = store_of(made), knowledge_of(made)
        for path in paths:
            query = f"PREFIX : <{E}> SELECT * {{ :n5 {path} }}"
            theirs, expected = seconds(runs, lambda q=query, s=store: sum(1 for _ in s.query(q)))  # type: ignore[misc]
            pattern = f":s :at ?x GRAPH :kb {{ ?x {path} }}"
            ours, found = seconds(runs, event_evaluation(pattern, at, kb))
            assert found == expected, (graph, path, found, expected)
            yield f"{graph}, KB", path, ours, theirs, found
        if graph == "cycle":
            triples = [(name(a), f"<{E}p>", name(b)) for a, b in made]
            for path in paths:
                query = f"PREFIX : <{E}> SELECT * {{ :n5 {path} }}"
                theirs, _ = seconds(runs, lambda q=query, s=store: sum(1 for _ in s.query(q)))  # type: ignore[misc]
                own = event_evaluation(f":n5 {path}", triples, KnowledgeBase.empty())
                ours, found = seconds(runs, own)
                yield f"{graph}, event", path, ours, theirs, found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--edges", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    print(f"{'graph':<14}{'path from :n5':<16}{'ours ms':>10}{'pyoxigraph ms':>15}{'ratio':>8}")
    for graph, path, ours, theirs, _ in rows(given.runs, given.nodes, given.edges):
        print(f"{graph:<14}{path:<16}{1e3 * ours:>10.2f}{1e3 * theirs:>15.2f}{theirs / ours:>8.1f}")


if __name__ == "__main__":
    main()
