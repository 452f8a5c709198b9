"""Sequences whose steps are joined one by one, without a key that all of them have.

The register kernel finds the waiting runs by the id of the term that joins them.
"""

from __future__ import annotations

import re
from contextlib import suppress
from random import Random

import numpy as np
import pytest

from spaseq.automaton.registers.compiled.run_sequencer import RunSequencer
from spaseq.automaton.registers.compiled.shared_ids import EqualTerms
from spaseq.expr.env import ExpressionError
from spaseq.expr.operators import equal
from spaseq.expr.values import decode
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.term_columns import TermColumn
from spaseq.rdf.terms.term import XSD
from spaseq.stages.sequence import SequenceStage
from tests.automaton.cases import Event, Values, batch, query, run
from tests.automaton.keyed_streams import agreed, in_pieces, integer, plans
from tests.sizes import first_of
from tests.thresholds import forced

CHAIN = {
    "A": "?p :to ?q ; :v ?va",
    "B": "?q :to ?r ; :v ?vb FILTER(?vb > ?va)",
    "C": "?r :to ?s ; :v ?vc",
    "D": "?r :via ?q ; :v ?vd FILTER(?vd > ?va)",
    "E": "?p :back ?s ; :v ?ve",
    "N": "?q :no ?x ; :v ?vn FILTER(?vn > ?va)",
    "M": "?m :mutes ?o ; :v ?vm",
    "R": "?q :at ?w ; :v ?vr FILTER(!BOUND(PREV(?vr)) || ?vr > PREV(?vr))",
    "G": "?g :v ?vg FILTER(?vg = ?vb)",
    "O": "?q :o ?y ; :v ?vo OPTIONAL { ?y :to ?r }",
    "T": "?q :t ?z ; :v ?vt FILTER(STRLEN(STR(?p)) != ?vt + 3)",
}
"""GPMs, each joined with others by some of their variables."""

VARIABLES = {
    "A": "pq",
    "B": "qr",
    "C": "rs",
    "D": "rq",
    "E": "ps",
    "N": "qx",
    "M": "mo",
    "R": "qw",
    "G": "g",
    "O": "qyr",
    "T": "qz",
}

SEQUENCES = [
    ("A; B; C", "60 SECONDS"),
    ("A: B: C", "20 SECONDS"),
    ("A; B: D; C", "60 SECONDS"),
    ("A; B; C; E", "120 SECONDS"),
    ("A; N!; B; C", "60 SECONDS"),
    ("A; B; N!; C", "60 SECONDS"),
    ("A; M!; B; C", "60 SECONDS"),
    ("A; R+; B; C", "60 SECONDS"),
    ("A; R{2}; B: C", "40 SECONDS"),
    ("A, B; C", "60 SECONDS"),
    ("A; (B | D); C", "60 SECONDS"),
    ("A; B?; D; C", "60 SECONDS"),
    ("A;[9 SECONDS] B; C", "60 SECONDS"),
    ("A; (B; C); E", "120 SECONDS"),
    ("(A AND C); B", "40 SECONDS"),
    ("A; R+ UNTIL N; B; C", "60 SECONDS"),
    ("A; R++; B; C", "60 SECONDS"),
    ("A; B; R+", "30 SECONDS"),
    ("A; B; G; C", "60 SECONDS"),
    ("A; O; B", "60 SECONDS"),
    ("A; T; B; C", "60 SECONDS"),
    ("A; B; C", "60 SECONDS TUMBLING"),
    ("A; B; C", "40 EVENTS"),
    ("A; B; C; N!", "30 SECONDS"),
]


def used(sequence: str) -> dict[str, str]:
    """The GPMs whose names are in a sequence."""
    text = re.sub("AND|UNTIL|SECONDS", "", sequence)
    return {name: p for name, p in CHAIN.items() if name in text}


def events_of(names: str, size: int, nodes: int, seed: int) -> list[Event]:
    """Events a second apart; some share an instant, and some have several solutions."""
    random, events, time = Random(seed), list[Event](), 0
    for _ in range(size):
        name = random.choice(names)
        count = random.choice((1, 1, 1, 2, 3))
        found = [_values(random, name, nodes) for _ in range(count)]
        tied = bool(events) and events[-1].stream == 0 and random.random() < 0.2
        time += 0 if tied else 1000
        distinct = {repr(values): values for values in found}
        events.append(Event(time, 0, int(tied), {name: [*distinct.values()]}))
    return events


def _values(random: Random, name: str, nodes: int) -> Values:
    values: Values = {v: f"<n{random.randrange(nodes)}>" for v in VARIABLES[name]}
    if name == "O" and random.random() < 0.3:
        values["r"] = None
    return {**values, f"v{name.lower()}": integer(random.randrange(60))}


def _plans(sequence: str, within: str) -> tuple[QueryPlan, QueryPlan]:
    return plans(query(sequence, used(sequence), within))


@pytest.mark.parametrize("nodes", first_of([4, 10], 1))
@pytest.mark.parametrize(("sequence", "within"), SEQUENCES)
def test_chains(sequence: str, within: str, nodes: int) -> None:
    compiled, python = _plans(sequence, within)
    events = events_of("".join(sorted(used(sequence))), 260, nodes, 3)
    assert agreed(compiled, python, events, (37, 1), (60, 150))


@pytest.mark.each_once
@pytest.mark.parametrize("words", ["least", "never"])
@pytest.mark.parametrize(("sequence", "within"), SEQUENCES)
def test_terms_are_released_all_the_time(sequence: str, within: str, words: str) -> None:
    compiled, python = _plans(sequence, within)
    events = events_of("".join(sorted(used(sequence))), 200, 8, 4)
    expected = run(python, events)[0]
    with forced(words):
        assert in_pieces(compiled, events, (1, 29)) == expected


@pytest.mark.parametrize("sequence", ["A; B; C", "A: B; C", "A; N!; B; C"])
def test_a_number_that_python_compares(sequence: str) -> None:
    """The evaluator in Python takes over the waiting runs of all terms."""
    compiled, python = _plans(sequence, "60 SECONDS")
    events = events_of("".join(sorted(used(sequence))), 160, 5, 5)
    odd = {**_values(Random(1), "A", 5), "va": integer(2**53 + 1)}
    events[80] = Event(events[80].time, 0, events[80].stream, {"A": [odd]})
    assert agreed(compiled, python, events, (37, 1), (60,))


@pytest.mark.parametrize("sequence", ["A; B; C", "A: B: C"])
def test_runs_are_counted_whatever_their_terms(sequence: str) -> None:
    both = [(plan, SequenceStage(plan)) for plan in _plans(sequence, "60 SECONDS")]
    events, most = events_of("".join(sorted(used(sequence))), 150, 6, 6), 0
    for i in range(0, len(events), 10):
        states = []
        for plan, stage in both:
            stage.push(batch(plan, events[i : i + 10]))
            stage.advance(events[i + 9].time)
            states.append(stage.live_states(lambda key: key == ()))
        assert states[0].waiting == states[1].waiting
        most = max(most, *states[0].waiting.values(), 0)
    assert most > 3


def test_what_waits_by_terms() -> None:
    def joins(sequence: str, within: str = "1 MINUTES", partition: str = "") -> list[str]:
        text = query(sequence, used(sequence), within, partition=partition)
        sequencer = SequenceStage(plans(text)[0])._sequencer
        assert isinstance(sequencer, RunSequencer)
        return [join.left.variable if join else "" for join in sequencer._tables.joins]

    assert joins("A; B; C") == ["", "q", "r"]
    assert joins("A; N!; B; C") == ["", "q", "r"]
    assert joins("A; M!; B; C") == ["", "", "r"]
    assert joins("A, B; C") == ["", "", "r"]
    assert joins("A; B; C", "9 EVENTS") == ["", "", ""]


# --- FILTERs that say that two terms are equal ----------------------------------------------------

EQUAL = {
    "A": "?a :x ?x ; :v ?va",
    "B": "?b :y ?y ; :v ?vb FILTER(?y = ?x)",
    "C": "?c :z ?z ; :v ?vc FILTER(sameTerm(?z, ?y) && ?vc > ?va)",
    "D": "?d :w ?w ; :v ?vd FILTER(?x = ?w && ?vd >= ?va)",
    "N": "?n :u ?u ; :v ?vn FILTER(?u = ?x)",
    "L": "?l :t ?t ; :v ?vl FILTER(?t = COALESCE(PREV(?t), ?x))",
}
OF_STEP = {"A": "ax", "B": "by", "C": "cz", "D": "dw", "N": "nu", "L": "lt"}

DATE_TIME = f"^^<{XSD}dateTime>"
TERMS = [
    "<n1>",
    "<n2>",
    '"text"',
    '"Text"',
    '"text"@en',
    '"text"@EN',
    f'"1"^^<{XSD}boolean>',
    f'"true"^^<{XSD}boolean>',
    '"2020-01-01T00:00:00Z"' + DATE_TIME,
    '"2020-01-01T01:00:00+01:00"' + DATE_TIME,
    '"2020-01-01T00:00:00"' + DATE_TIME,
    f'"2020-01-01"^^<{XSD}date>',
    f'"P1D"^^<{XSD}dayTimeDuration>',
    f'"PT24H"^^<{XSD}duration>',
    '"odd"^^<http://example/odd>',
    f'"x"^^<{XSD}integer>',
    f'"1"^^<{XSD}integer>',
    f'"1.0"^^<{XSD}decimal>',
    f'"0.1"^^<{XSD}decimal>',
    f'"0.1"^^<{XSD}float>',
    f'"0.1"^^<{XSD}double>',
    "<<( <n1> <p> <n2> )>>",
]

SEQUENCES_OF_EQUAL = [
    ("A; B", "60 SECONDS"),
    ("A: B; C", "30 SECONDS"),
    ("A; N!; D", "60 SECONDS"),
    ("A; B; N!; C", "60 SECONDS"),
    ("A; (B | D)", "40 SECONDS"),
    ("A; L+", "20 SECONDS"),
    ("A: L{2}; D", "30 SECONDS"),
    ("A; L+ UNTIL N; D", "40 SECONDS"),
    ("A; B", "40 EVENTS"),
    ("A, B; D", "60 SECONDS"),
]


@pytest.mark.parametrize("terms", ["all", "IRIs"])
@pytest.mark.parametrize(("sequence", "within"), SEQUENCES_OF_EQUAL)
def test_equal_terms(sequence: str, within: str, terms: str) -> None:
    text = re.sub("UNTIL|SECONDS", "", sequence)
    gpms = {name: gpm for name, gpm in EQUAL.items() if name in text}
    compiled, python = plans(query(sequence, gpms, within))
    random, events, time = Random(sequence), list[Event](), 0
    among = TERMS if terms == "all" else [f"<n{i}>" for i in range(6)]
    for i in range(220):
        name = random.choice(sorted(gpms))
        subject, variable = OF_STEP[name]
        value = f"v{name.lower()}", integer(random.randrange(50))
        time += random.choice((0, 1000, 1000)) if i % 2 else 1000
        values = {subject: f"<e{random.randrange(4)}>", variable: random.choice(among)}
        events.append(Event(time, 0, i % 2, {name: [{**values, value[0]: value[1]}]}))
    assert agreed(compiled, python, events, (37, 1), (60,))


def test_terms_that_are_equal_have_one_id() -> None:
    """As SPARQL's operator says, whatever the order of the terms."""
    terms = EqualTerms()
    ids = {text: terms.number((text,)) for text in TERMS}
    for one in TERMS:
        for other in TERMS:
            with suppress(ExpressionError):
                if equal(decode(one), decode(other)):
                    assert ids[one] == ids[other], (one, other)
    plain = [ids[text] for text in TERMS[:4]]
    assert len({*plain}) == 4
    assert terms.numbers([TermColumn.of(np.array(TERMS, object))], len(TERMS)).tolist() == [
        *ids.values()
    ]


def test_what_waits_by_equal_terms() -> None:
    def joins(sequence: str) -> list[str]:
        text = query(sequence, {n: g for n, g in EQUAL.items() if n in sequence}, "1 MINUTES")
        stage = SequenceStage(plans(text)[0])
        events = [Event(1000, 0, 0, {"A": [{"a": "<a>", "x": "<n1>", "va": integer(1)}]})]
        stage.push(batch(plans(text)[0], events))
        stage.advance(1000)
        sequencer = stage._sequencer
        assert isinstance(sequencer, RunSequencer)
        return [j.left.variable if j else "" for j in sequencer._tables.joins]

    assert joins("A; B") == ["", "y"]
    assert joins("A; N!; D") == ["", "w"]
