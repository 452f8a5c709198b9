"""The engine against the oracle on queries with `&` and AND, most of them on events of one time.

Every evaluator that can run a query runs it. In the first test no step looks at another's event,
and the kernel of sets can run every query. The second test has conditions between events, and the
third has such conditions that compiled registers can run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from random import Random

import pytest
from rdflib import BNode

from tests.oracle.agreement import Tally, compare
from tests.oracle.choices import Choices, seeded
from tests.oracle.draw_events import (
    NS,
    STREAMS,
    Arrivals,
    Crowd,
    Triple,
    streamset,
    term,
)
from tests.oracle.draw_events import number as literal
from tests.oracle.engine import parsed
from tests.oracle.strategies import STEP_1, Case, case
from tests.sizes import sizes

SEED = os.environ.get("SPASEQ_ORACLE_SEED", "1")

PLAIN = frozenset(STEP_1 - {"stateful-filter", "equality-join", "PREV"}) | {
    ":", "!-first", "!-last", "EVENTS", "TUMBLING", "NEXT", "LAST", "STRICT",
}  # fmt: skip
CORRELATED = PLAIN | STEP_1 | {"gap", "MAX", "own-operator", "greedy", "until"}


def cases(features: frozenset[str], seed: str) -> Iterator[Case]:
    """Cases with `&` or AND, without end."""
    for number in count():
        choices = seeded(f"conjunctions {seed}:{number}")
        example = case(choices, features, most_events=8)
        if example.features & {"&", "AND"}:
            yield crowded(example) if choices.chance(2) else example


def crowded(example: Case) -> Case:
    """The case with more events at one time."""
    streams = {
        iri: [(time // 3000 * 3000, name, triples) for time, name, triples in events]
        for iri, events in example.streams.items()
    }
    return replace(example, streams=streams)


def run(features: frozenset[str], examples: int, seed: str, needed: str = "registers") -> Tally:
    """Compare this number of examples that an evaluator can run."""
    tally = Tally()
    for number, example in enumerate(cases(features, seed)):
        if tally.compared >= examples:
            break
        if needed not in parsed(example.query)[1]:
            continue
        if wrong := compare(example, tally, Random(number)):
            pytest.fail(f"example {number}: {wrong.kind}\n{wrong.text}", pytrace=False)
    return tally


@sizes(5, 30, 400)
def test_without_conditions(examples: int) -> None:
    tally = run(PLAIN, examples, SEED, "compiled-compact")
    for conjunction in ("&", "AND"):
        assert tally.by[conjunction, "compiled-compact"] >= examples // 20


@sizes(5, 15, 250)
def test_with_conditions(examples: int) -> None:
    tally = run(CORRELATED, examples, SEED)
    assert tally.answered["&"] >= examples // 20
    assert tally.answered["AND"] >= examples // 20


ANY_ORDER = [
    ("(A AND B); C", "BC"),
    ("(A AND B): C; D", "BCD"),
    ("D: (A AND B); C", "ABC"),
    ("D, (A AND B), C", "ABC"),
    ("(A AND B AND C); D", "BCD"),
    ("((A AND B) | C); D", "B"),
    ("(A AND B)?; C; D", "BD"),
    ("D: (A AND B)+[:]; C", "AB"),
    ("(A AND B); C+; D", "CD"),
    ("D!; (A AND B); C", "C"),
    ("(A AND B); D!; C", "C"),
    ("C: D!: (A AND B): E?", "ABD"),
    ("A: D!: B: C", "BCD"),
    ("A; D!; B; C", "BCD"),
    ("A: (E | C): D!: B", "BD"),
    ("D!: A: B: C", "BCD"),
    ("(A; B AND C); D", "BCD"),
    ("(A: B AND C; D)", "BCD"),
    ("D: (A, B AND C)", "BC"),
    ("(A; B+ AND C); D", "BCD"),
    ("(A, C? AND B); D", "BD"),
    ("(A & B); C", "BC"),
    ("D: (A; B & C)", "BC"),
    ("(A; B+[:] & C: D)", "BD"),
    ("D, (A & A: B); C", "BC"),
    ("((A & B) & C); D", "BCD"),
    ("(A & B)+[:]; D", "BD"),
    ("((A AND B) & C); D", "BD"),
    ("(A; D!; B AND C)", "BCD"),
    ("(A; D!: B & C); E", "BCD"),
    ("(A AND B; D!; C); E", "BCD"),
    ("((A: D!: B AND C) AND E)", "BCD"),
    ("(A: (B AND C: D!: E))", "BDE"),
    ("(A; (B: D!: C)+[:] AND E)", "BCD"),
    ("(A: B++[:]: C AND D)", "BC"),
    ("(A AND B; C++; D)", "BCD"),
    ("(A; B*+; C AND D); E", "B"),
    ("(B+ UNTIL E AND A)", "BE"),
    ("D: (A; B+ UNTIL E & C)", "BCE"),
    ("(A; B+[:] UNTIL E AND C): D", "BE"),
    ("(A, C++[,], B AND D)", "BC"),
]
"""Sequences that the compiled registers run, and the GPMs with conditions on others: operands of
`&` and AND look at each other, and negated steps at later ones."""

BEFORE = {"A": "D", "B": "DA", "C": "AB", "D": "CAB", "E": "AB"}


def in_any_order(choices: Choices) -> Case:
    """A case with a sequence of `ANY_ORDER`."""
    sequence, conditioned = choices.pick(ANY_ORDER)
    # In the order of the sequence, so that streams often have matches.
    names = sorted({*"ABCDE"} & {*sequence.replace("AND", "")}, key=sequence.index)
    partition, gpms = choices.pick(["", "PARTITION BY (?k)"]), []
    iris = STREAMS[: choices.pick([1, 1, 2])]
    for name in names:
        limits = [other for other in BEFORE[name] if other in names and f"{other}!" not in sequence]
        text = f"[] ex:is ex:{name} ; ex:v ?v{name}" + (" ; ex:k ?k" if partition else "")
        if name in conditioned and limits and not choices.chance(4):
            operator = choices.pick([">", "<", "=", "!="])
            text += f" FILTER(?v{name} {operator} ?v{choices.pick(limits)})"
        gpms.append(f"DEFINE GPM {name} ON S{choices.pick(range(len(iris)))} {{ {text} }}")
    window = choices.pick(["9 SECONDS", "30 SECONDS", "20 SECONDS TUMBLING", "5 EVENTS"])
    if "EVENTS" in window and "!" in sequence:
        window = "9 SECONDS"
    select = choices.pick(["", "", "NEXT", "LAST", "MAX", "STRICT"])
    sources = " ".join(f"FROM STREAM S{i} <{iri}>" for i, iri in enumerate(iris))
    query = (
        f"PREFIX ex: <{NS}> SELECT {select} * WITHIN {window} {partition} "
        f"{sources} WHERE {{ SEQ({sequence}) {' '.join(gpms)} }}"
    )
    features = frozenset(["&" if "&" in sequence else "AND", "ties"])
    streams = streamset(choices, features, Crowd(names, False, 12), iris)
    example = Case(query, features, streams)
    return crowded(example) if "&" in sequence else example


@sizes(6, 20, 600)
def test_in_any_order(examples: int) -> None:
    tally = Tally()
    for number in range(examples):
        example = in_any_order(seeded(f"any order {SEED}:{number}"))
        if wrong := compare(example, tally, Random(number)):
            pytest.fail(f"example {number}: {wrong.kind}\n{wrong.text}", pytrace=False)
    assert tally.by["AND", "compiled-registers"] >= examples // 20
    assert tally.by["&", "compiled-registers"] >= examples // 50


AT_ONE_INSTANT = [
    ("A; (B: C & D)", "CD"),
    ("A; (B, C & D)", "BCD"),
    ("A; (B; C & D); E", "CDE"),
    ("A; (B+[:] & C)", "BC"),
    ("A; (B; C AND D)", "BCD"),
    ("A; (B: C AND D: E)", "CE"),
    ("A; (B & C+[:])+", "BC"),
    ("A; ((B: C & D) | E)", "CD"),
    ("A; (B; D!; C & E)", "CE"),
    ("A; ((B; C & D) & E)", "CD"),
    ("A; (B: C & D & E)", "CDE"),
    ("(A; B & C & D)", "BCD"),
    ("((A; B & C): D & E)", "BCD"),
    ("(A; B AND C AND D)", "BCD"),
    ("D: ((A; B & C) AND E)", "BC"),
    ("((A; B: C AND D) & E)", "BC"),
    ("A: (B; C & D & E)", "CDE"),
    ("((A AND B; C) & D)", "BCD"),
    ("(A; B*; C & D & E)", "BCD"),
    ("(A; D!; B & C & E)", "BC"),
    ("(A; B & C; D)", "B"),
    ("(A; B AND C; D)", "B"),
    ("((A; B & C; D) & E)", "BE"),
    ("A; (B; C & D; E)", "C"),
]
"""Sequences whose matches take several solutions of one instant, most of them behind `;`."""


def at_one_instant(choices: Choices) -> Case:
    """A case with a sequence of `AT_ONE_INSTANT` on streams whose events share instants."""
    sequence, conditioned = choices.pick(AT_ONE_INSTANT)
    names = sorted({*"ABCDE"} & {*sequence.replace("AND", "")}, key=sequence.index)
    iris = STREAMS[: choices.pick([2, 2, 3])]
    of_stream = dict[str, list[int]]()
    gpms = []
    for name in names:
        of_stream[name] = [n for n in range(len(iris)) if choices.chance(2)] or [0]
        limits = [other for other in BEFORE[name] if other in names and f"{other}!" not in sequence]
        text = f"[] ex:is ex:{name} ; ex:v ?v{name}"
        if name in conditioned and limits and not choices.chance(4):
            text += f" FILTER(?v{name} {choices.pick(['=', '!='])} ?v{choices.pick(limits)})"
        on = ", ".join(f"S{n}" for n in of_stream[name])
        gpms.append(f"DEFINE GPM {name} ON {on} {{ {text} }}")
    sources = " ".join(f"FROM STREAM S{i} <{iri}>" for i, iri in enumerate(iris))
    query = (
        f"PREFIX ex: <{NS}> SELECT * WITHIN 9 SECONDS {sources} "
        f"WHERE {{ SEQ({sequence}) {' '.join(gpms)} }}"
    )
    streams: dict[str, Arrivals] = {iri: [] for iri in iris}
    for number in range(choices.pick([8, 10, 12, 14])):
        name = names[0] if number < 2 else choices.pick(names)
        time = number // 7 * 2000
        triples = list[Triple]()
        for shown in sorted({name, choices.pick(names)}):
            thing = BNode(f"b{number}{shown}")
            triples.append((thing, term("is"), term(shown)))
            triples.append((thing, term("v"), literal(str(choices.pick(range(2))))))
        iri = iris[choices.pick(of_stream[name])]
        streams[iri].append((time, f"{NS}event/{number}", triples))
    return Case(query, frozenset(["&" if "&" in sequence else "AND", "ties"]), streams)


@sizes(6, 20, 600)
def test_at_one_instant(examples: int) -> None:
    tally = Tally()
    for number in range(examples):
        example = at_one_instant(seeded(f"one instant {SEED}:{number}"))
        if wrong := compare(example, tally, Random(number)):
            pytest.fail(f"example {number}: {wrong.kind}\n{wrong.text}", pytrace=False)
    assert tally.by["ties", "compiled-registers"] >= examples // 4
