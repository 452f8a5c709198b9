"""What patterns need, and the events that have it, against Oxigraph and a plain loop."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings

from spaseq.algebra.groups import translate_group
from spaseq.algebra.needs import Need, needs
from spaseq.gpm.graphs.vertical_partition import ANY, NeededTriples, VerticalPartition
from tests.gpm import patterns as p
from tests.gpm.graphs import Triple, batch_of, group_of, oxigraph
from tests.thresholds import Force

P, Q = "<http://e/p>", "<http://e/q>"
ONE = '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'
ANY_Q, TERM = (Q, None), f"<<( <http://e/a> {Q} {ONE} )>>"


def has(triples: Sequence[Triple], need: Need) -> bool:
    return any(t[1] == need[0] and need[1] in (None, t[2]) for t in triples)


@pytest.mark.parametrize(
    ("group", "needed"),
    [
        ("{ ?x :p 1 ; :q ?y }", {(P, ONE), ANY_Q}),
        ("{ ?x :p ?y . ?z :p 1 }", {(P, ONE)}),
        ("{ ?x :p ?y OPTIONAL { ?x :q 1 } MINUS { ?x :q ?z } }", {(P, None)}),
        ("{ { ?x :p 1 } UNION { ?x :p 2 ; :q ?y } }", {(P, None)}),
        ("{ { ?x :p 1 } UNION { } }", set()),
        ("{ ?x :p 1 GRAPH <http://e/kb0> { ?x :q 1 } }", {(P, ONE)}),
        ("{ ?x :p ?y FILTER NOT EXISTS { ?x :q 1 } BIND (1 AS ?z) }", {(P, None)}),
        ("{ ?x :p 1 { SELECT ?x (COUNT(*) AS ?n) { ?x :q ?y } GROUP BY ?x } }", {(P, ONE), ANY_Q}),
        ("{ ?x :p 1 { SELECT (COUNT(*) AS ?n) { ?x :q ?y } } }", {(P, ONE)}),
        ("{ ?x ?p 1 . ?x :p*/:q ?y }", {ANY_Q}),
        ("{ ?x :p <<( :a :q 1 )>> . ?y :p <<( ?a :q ?b )>> }", {(P, TERM)}),
    ],
)  # fmt: skip
def test_needs_of_each_operator(group: str, needed: Collection[Need]) -> None:
    assert needs(translate_group(group_of(group))) == needed


@given(p.events, p.kbs, p.any_groups)
@settings(max_examples=150, deadline=None)
def test_each_event_with_a_solution_has_what_is_needed(events, kb, group):
    needed = needs(translate_group(group_of(group)))
    for triples, rows in zip(events, oxigraph(group, events, kb), strict=True):
        assert not rows or all(has(triples, need) for need in needed)


TERMS = [f"<http://e/{i}>" for i in range(10)]
"""The last two are in no event."""


def drawn_events(random: Random) -> list[list[Triple]]:
    """40 events of up to four triples."""
    kinds = TERMS[:3]
    return [
        [(TERMS[0], random.choice(kinds), random.choice(TERMS[:8])) for _ in range(size)]
        for size in random.choices(range(5), k=40)
    ]


def drawn_needs(random: Random, triples: int) -> list[list[list[int]]]:
    """Up to three alternatives, as numbers of terms."""
    return [
        [[random.randrange(4), random.randrange(ANY, 10)] for _ in range(triples)]
        for _ in range(random.randrange(1, 4))
    ]


@pytest.mark.parametrize("seed", range(30))
def test_possible_events_have_the_rarest_triple(seed: int, force: Force) -> None:
    few = ("least", "2", "6", "never")[seed % 4]
    random, crossed = Random(seed), force(f"few_possible={few}")
    events = drawn_events(random)
    every, index = range(len(events)), VerticalPartition(batch_of(events))
    drawn = [drawn_needs(random, triples) for triples in (0, 1, 1, 2, 2, 3)]
    arrays = [np.array(own, np.int64).reshape(len(own), len(own[0]), 2) for own in drawn]
    possible = NeededTriples(arrays).possible(index, lambda: index.lexicon.find(TERMS))
    for number, own in enumerate(drawn):
        wanted, with_rarest = set[int](), set[int]()
        for alternative in own:
            asked = [(TERMS[kind], None if o == ANY else TERMS[o]) for kind, o in alternative]
            having = [{i for i in every if has(events[i], need)} for need in asked]
            wanted |= set(every).intersection(*having)
            with_rarest |= set().union(*having)
        some = possible.of(number)
        assert possible.has_some[number] == (some is not None)
        found = np.array(()) if some is None else some.in_batch(np.arange(len(some.index.batch)))
        assert wanted <= {*found.tolist()}
        if some is None or some.numbers is not None:
            assert {*found.tolist()} <= with_rarest
            assert np.all(np.diff(found) > 0)
        assert few != "never" or len(found) in (0, len(events))
    assert few in ("2", "6") or ("few_possible" in crossed) == (few == "least")


def test_patterns_that_need_nothing_may_match_any_event() -> None:
    index = VerticalPartition(batch_of([[(TERMS[0], TERMS[1], TERMS[2])], []]))
    possible = NeededTriples([np.empty((3, 0, 2), np.int64)]).possible(
        index, lambda: index.lexicon.find([])
    )
    some = possible.of(0)
    assert some is not None and some.numbers is None and some.index is index
