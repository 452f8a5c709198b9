"""Partial matches of the engine against the oracle's, on generated queries and streams.

Events arrive at once, and in pieces with restarts. The queries have at least two steps. There are
60 examples with a fixed seed, and 2,000 in a slow run, which prints how often it exercised each
feature. `SPASEQ_ORACLE_EXAMPLES` and `SPASEQ_ORACLE_SEED` are as in `test_differential`.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from random import Random
from time import time_ns
from typing import Any

import pytest

from spaseq.algebra.answers import Answer as EngineAnswer
from spaseq.algebra.answers import PartialAnswer
from spaseq.compile import check_query
from spaseq.errors import QueryError, UsageError
from spaseq.kb.load import load_kb
from spaseq.plan.query_plan import CompileOptions, QueryPlan
from tests.oracle.answers import Answer
from tests.oracle.choices import replayed, seeded, shrink
from tests.oracle.comparison import comparable
from tests.oracle.engine import Arrival, solved
from tests.oracle.model import Refused, TooBig
from tests.oracle.partial import Partial, partials
from tests.oracle.report import answers_text, events_table
from tests.oracle.strategies import EVERYTHING, Case, case
from tests.sizes import sizes

SEED = os.environ.get("SPASEQ_ORACLE_SEED", "1")
EXAMPLES = int(os.environ.get("SPASEQ_ORACLE_EXAMPLES", "2000"))

DRAWN = EVERYTHING - {"CONSTRUCT"}
WANTED = {"!", "+", "*", "?", "{n,m}", "PARTITION", "EVENTS", "TUMBLING", "greedy", "until"}
"""Features of which some examples must have partial matches."""


@dataclass
class Counts:
    """Number of examples per feature, and of those with partial matches."""

    compared: int = 0
    skipped: int = 0
    exercised: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)

    def add(self, example: Case, matches: int) -> None:
        self.compared += 1
        self.exercised.update(example.features)
        if matches:
            self.found.update({"(all)", *example.features})

    def table(self) -> str:
        rows = sorted(self.exercised)
        return "\n".join(f"{r:24s} {self.exercised[r]:6d} {self.found[r]:6d}" for r in rows)


def plan_of(query: str) -> QueryPlan:
    """The plan of a query whose partial matches are asked for.

    Raises:
        QueryError: the query has errors.
    """
    checked = check_query(query, options=CompileOptions(partial=True))
    if checked.plan is None:
        raise QueryError(checked.errors)
    return checked.plan


def found_by(plan: QueryPlan, example: Case, random: Random | None) -> list[PartialAnswer]:
    """The engine's partial matches."""
    pieces = solved(plan, example.streams, example.kb, random)
    arrival = Arrival(random, knowledge=load_kb(list(example.kb.items())))
    times = sorted(time for events in example.streams.values() for time, _, _ in events)
    arrival.answers(plan, pieces, times)
    return arrival.partials


def told(partial: Partial | PartialAnswer) -> tuple[Any, ...]:
    """All parts of a partial match of either side."""
    closed = partial.closing if isinstance(partial, Partial) else partial.closed
    at = None if closed is None else closed[0]
    return comparable(partial.answer), partial.reached, tuple(partial.waiting), at


def wrong(example: Case, counts: Counts, random: Random) -> str | None:
    """A page on an example of which engine and oracle give other partial matches, if they do."""
    try:
        plan = plan_of(example.query)
        query = check_query(example.query).query
        assert query is not None
        expected = partials(query, example.streams, example.kb)
    except (TooBig, Refused, QueryError, UsageError):
        counts.skipped += 1
        return None
    if not plan.levels:  # a single step
        counts.skipped += 1
        return None
    counts.add(example, len(expected))
    for chance in (None, random):
        found = found_by(plan, example, chance)
        if list(map(told, found)) != list(map(told, expected)):
            return page(example, expected, found)
    return None


def page(example: Case, expected: list[Partial], found: list[PartialAnswer]) -> str:
    own = [_line(p.answer, (p.reached, p.waiting, p.closing)) for p in expected]
    other = [_line(p.answer, (p.reached, p.waiting, p.closed)) for p in found]
    head = ["", example.query, events_table(example)]
    return "\n".join([*head, "the oracle's:", *own, "the engine's:", *other])


def _line(answer: Answer | EngineAnswer, rest: object) -> str:
    return f"{answers_text([answer])}  reached, waiting and closed: {rest}"


def run(compared: int, seed: str) -> Counts:
    """Compare this number of examples; the first disagreement is shrunk and fails the test."""
    counts = Counts()
    for number in count():
        if counts.compared >= compared:
            return counts
        choices, chance = seeded(f"{seed}:{number}"), f"{seed}/{number}"
        if text := wrong(case(choices, DRAWN), counts, Random(chance)):
            text = smallest(choices.made, chance) or text
            pytest.fail(f"example {seed}:{number}\n{text}", pytrace=False)
    raise AssertionError


def smallest(made: list[int], chance: str) -> str | None:
    """The page of a small example that is still wrong."""

    def check(example: Case) -> str | None:
        return wrong(example, Counts(), Random(chance))

    made = shrink(made, lambda m: check(case(replayed(m), DRAWN)) is not None)
    example = case(replayed(made), DRAWN)
    while simpler := next(filter(check, example.with_fewer_events()), None):
        example = simpler
    return check(example)


@sizes(8, 24, 300)
def test_some(examples: int) -> None:
    counts = run(examples, SEED)
    assert counts.found["(all)"] >= examples / 3


@sizes(4, 8, 40)
def test_fresh(examples: int) -> None:
    run(examples, f"fresh{time_ns()}")


@pytest.mark.slow
def test_many() -> None:
    counts = run(EXAMPLES, SEED)
    print(f"\n{counts.table()}\nskipped: {counts.skipped}")
    assert EXAMPLES < 2_000 or not [row for row in WANTED if not counts.found[row]]
