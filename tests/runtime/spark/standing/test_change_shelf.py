"""Changes of graphs on their way to workers, which begin, and are lost, at any time."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import pytest
import rdflib

from spaseq.algebra.graph_changes import GraphChange
from spaseq.kb.knowledge_versions import TimedChange
from spaseq.kb.load import load_kb
from spaseq.options import StageOptions
from spaseq.rdf.terms.term import Triple
from spaseq.runtime.spark.stages.standing_tasks import Workshop
from spaseq.runtime.spark.standing import stage_jobs
from spaseq.runtime.spark.standing.stage_jobs import ChangeShelf
from tests.kb.graph_sets import triples
from tests.sizes import first_of

GRAPHS = ("http://e/g", "http://e/h")


@dataclass
class Broadcast:
    value: Any
    there: bool = True

    def destroy(self) -> None:
        self.there = False


class Context:
    """Counts the changes that are kept for workers."""

    def __init__(self) -> None:
        self.made: list[Broadcast] = []

    def broadcast(self, value: Any) -> Broadcast:
        self.made.append(Broadcast(value))
        return self.made[-1]

    def kept(self) -> int:
        return sum(len(b.value[0]) + len(b.value[2]) for b in self.made if b.there)


@pytest.mark.parametrize("seed", first_of(range(20), 6))
def test_each_worker_has_the_values_that_events_need(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(stage_jobs, "MOST", 3)
    draw, context = random.Random(seed), Context()
    base = load_kb([(iri, rdflib.Graph()) for iri in GRAPHS])
    shelf, workers, settled, time = ChangeShelf(context), list[Workshop](), -1, 0
    now: dict[str, set[Triple]] = {iri: set() for iri in GRAPHS}
    at = {0: {**now}}
    for _ in range(60):
        for _ in range(draw.randrange(3)):
            time += draw.randrange(3)
            iri, made = draw.choice(GRAPHS), ("<http://e/s>", "<http://e/p>", f'"{time}"')
            gone = tuple(t for t in sorted(now[iri]) if draw.random() < 0.5)
            shelf.add(TimedChange(time, iri, GraphChange(gone, (made,))))
            now[iri] = (now[iri] - {*gone}) | {made}
            at[time] = {**now}
        settled = max(settled, time - draw.randrange(4))
        shelves = shelf.shelves(settled)
        if not workers or draw.random() < 0.2:
            workers.append(Workshop(("run", 0), base, StageOptions()))
        for worker in draw.sample(workers, k=draw.randrange(1, len(workers) + 1)):
            for count, told in shelves:
                assert told.there
                if count > worker.changes:
                    worker.take_changes(*told.value)
            worker.settle(settled)
            for when in range(settled + 1, time + 2):
                found = worker._versions.at(when)
                then = at[max(t for t in at if t <= when)]
                assert {iri: triples(found, iri) for iri in GRAPHS} == then
        assert context.kept() < 30
