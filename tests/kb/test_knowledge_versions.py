"""The values of a knowledge base whose graphs change, against sets of triples."""

from __future__ import annotations

import random

import pytest
import rdflib

from spaseq.algebra.graph_changes import GraphChange, together
from spaseq.kb.knowledge_versions import LATEST, KnowledgeVersions, TimedChange
from spaseq.kb.load import load_kb
from spaseq.rdf.terms.term import Triple
from tests.kb.graph_sets import triples

GRAPHS = ("http://e/g", "http://e/h")


@pytest.mark.parametrize("seed", range(30))
def test_values_agree_with_sets(seed: int) -> None:
    """In whatever order values are asked for, and old ones dropped."""
    draw = random.Random(seed)

    def drawn() -> Triple:
        return f"<http://e/s{draw.randrange(3)}>", f"<http://e/p{draw.randrange(2)}>", '"x"'

    data = "".join(f"{s} {p} {o} .\n" for s, p, o in {drawn() for _ in range(3)})
    base = load_kb([(iri, rdflib.Graph().parse(data=data, format="nt")) for iri in GRAPHS])
    versions, now = KnowledgeVersions(base), {iri: triples(base, iri) for iri in GRAPHS}
    at, time, least = {0: {**now}}, 0, 0
    for _ in range(30):
        what = draw.random()
        if what < 0.6:
            time += draw.randrange(2)
            iri = draw.choice(GRAPHS)
            gone, come = (tuple(drawn() for _ in range(draw.randrange(3))) for _ in range(2))
            versions.add(TimedChange(time, iri, GraphChange(gone, come)))
            now[iri] = (now[iri] - {*gone}) | {*come}
            at[time] = {**now}
        elif what < 0.7:
            least = max(least, draw.randrange(time + 2))
            versions.drop(least)
        else:
            when = draw.randrange(least + 1, time + 3)
            found = versions.at(when)
            then = at[max(t for t in at if t <= when)]
            assert {iri: triples(found, iri) for iri in GRAPHS} == then
    versions.drop(LATEST)
    whole = versions.whole()
    assert {iri: triples(whole, iri) for iri in GRAPHS} == now
    known = {term for own in now.values() for triple in own for term in triple}
    assert {whole.terms.text(code) for code in range(len(whole.terms))} == known


def test_changes_together() -> None:
    one, other = ("<a>", "<p>", '"1"'), ("<a>", "<p>", '"2"')
    changes = [GraphChange((one,), (other,)), GraphChange((other,), (one,))]
    assert together(changes) == GraphChange((other,), (one,))
    assert together([GraphChange((one,), (one,))]) == GraphChange((), (one,))
