"""Families that begin with the member, with limits: each member answers and fails as if alone.

`python -m tests.oracle.test_member_limits --cases N --first SEED` tries more sets, by number.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

import spaseq
from spaseq.api.prepare import load_knowledge
from spaseq.compile import CompileOptions, compile_query
from spaseq.options import KnowledgeOptions, StageOptions
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.inputs.stream_options import warn
from spaseq.rdf.program_events import batch_from_events, triples_of
from spaseq.runtime.pushed import PushedQueries, Tolerated
from spaseq.stages.unit_stages import StageFactory
from tests.oracle.agreement import comparables
from tests.oracle.choices import Choices, seeded
from tests.oracle.query_sets import events
from tests.oracle.strategies import Case
from tests.oracle.test_member_families import drawn
from tests.sizes import sizes
from tests.thresholds import forced

INTEGER = "http://www.w3.org/2001/XMLSchema#integer"

FORCED = ("rows_as_events=0 heap_runs=1", "rows_as_events=1000000", "limit_room=1")


class Run:
    """Queries over the events of a case; those that have too many partial matches fail."""

    def __init__(self, plans: Sequence[QueryPlan], case: Case, most: int, families: bool) -> None:
        base = load_knowledge(plans, case.kb, KnowledgeOptions())
        self._how = StageFactory(base, StageOptions(most_waiting=most), warn)
        self._plans, self._families = plans, families
        self.queries = self._made()
        self._counters = {iri: InstantCounter(ordered=True) for iri in case.streams}
        self.answers: dict[str, list[Any]] = {plan.identity.name: [] for plan in plans}

    def _made(self) -> PushedQueries:
        return PushedQueries(self._plans, self._how, self._families, Tolerated.ALL)

    @property
    def begins_with_member(self) -> bool:
        units = (unit for unit in self.queries.running if unit.is_family)
        return any(unit._family.begins_with_member for unit in units if unit._family)

    def take(self, iri: str, given: Sequence[Any], restarts: bool) -> None:
        """Take events of a stream, which come together."""
        rows = [(int(e.time), e.iri and str(e.iri), triples_of(e.graph)) for e in given]
        batch = batch_from_events(iri, rows, self._counters[iri])
        self.queries.push(self.queries.match_batch(batch))
        self._tell(self.queries.advance(rows[-1][0] - 1))
        for query, excess in self.queries.exceeded().items():
            if query.failure is None:
                self.queries.fail(query, repr(excess))
        if restarts:
            state, self.queries = self.queries.snapshot(), self._made()
            self.queries.restore(state)

    def close(self) -> dict[str, tuple[list[Any], str | None]]:
        """The answers of each query, and why it has failed."""
        self._tell(self.queries.close())
        failures = {query.plan.identity.name: query.failure for query in self.queries.queries}
        return {name: (comparables(own), failures[name]) for name, own in self.answers.items()}

    def _tell(self, answers: Sequence[tuple[int, Any]]) -> None:
        for number, answer in answers:
            self.answers[self.queries.queries[number].plan.identity.name].append(answer)


def outcomes(
    plans: Sequence[QueryPlan], case: Case, most: int, choices: Choices, restarts: bool
) -> tuple[bool, list[Any]]:
    """Whether a family begins with the member; what queries give together, and each by itself."""
    runs = [Run(plans, case, most, families=True), *(Run([p], case, most, False) for p in plans)]
    begins = runs[0].begins_with_member
    read = {iri for plan in plans for iri in plan.inputs.streams}
    pairs = [(iri, event) for iri in sorted(read) for event in events(case, iri)]
    pairs.sort(key=lambda pair: int(pair[1].time))
    while begins and pairs:
        size = choices.pick([1, 1, 2, 5])
        iri = pairs[0][0]
        some = [event for other, event in pairs[:size] if other == iri]
        pairs = [*(pair for pair in pairs[:size] if pair[0] != iri), *pairs[size:]]
        for run in runs:
            run.take(iri, some, restarts)
    together, *apart = runs
    alone = {name: own for run in apart for name, own in run.close().items()}
    return begins, [together.close(), alone]


def check(number: int) -> tuple[bool, bool, bool]:
    """Compare one set; gives whether it begins so, and whether queries failed, and answered."""
    choices = seeded(f"member limits:{number}")
    with forced(f"family_queries=2 {FORCED[number % len(FORCED)]}"):
        example, texts = drawn(seeded(f"members:{number}"))
        options = CompileOptions(several=True)
        plans = [compile_query(text, f"q{n}", options) for n, text in enumerate(texts)]
        # PREV in the first repetition never holds: only a query by itself waits for no event then.
        if len(plans) < 2 or "PREV(" in texts[0]:
            return False, False, False
        most = choices.pick([0, 1, 2, 4, 9, 100])
        begins, (together, alone) = outcomes(plans, example, most, choices, choices.chance(2))
    assert together == alone, f"set {number}, at most {most}\n" + "\n\n".join(texts)
    found = together.values()
    failed, answered = any(reason for _, reason in found), any(own for own, _ in found)
    return begins, begins and failed, begins and answered


@sizes(25, 50, 1000)
def test_each_member_fails_as_if_alone(examples: int) -> None:
    found = [check(number) for number in range(examples)]
    begun, failed, answered = (sum(column) for column in zip(*found, strict=True))
    assert begun > examples // 8
    assert failed > examples // 20
    assert answered > examples // 40


QUERY = """PREFIX : <http://e/>
SELECT * WITHIN 4 SECONDS FROM STREAM S <http://e/s> WHERE {{
  SEQ({steps})
  DEFINE GPM A ON S {{ ?x :a ?v }}
  DEFINE GPM B ON S {{ ?y :a ?w FILTER (?w > ?v + {plus}) }}
  DEFINE GPM C ON S {{ ?z :c ?u FILTER (?u < ?v - {plus}) }}
}}"""


@pytest.mark.each_once
@pytest.mark.parametrize("value", ["9", "9007199254740993"])  # the latter is no double
@pytest.mark.parametrize("steps", ["A; B; C", "A; B+; C", "A; B; C!", "A; (B | C); B", "A; B{2,3}"])
@pytest.mark.parametrize("form", FORCED)
def test_where_the_partial_matches_of_a_member_are(steps: str, value: str, form: str) -> None:
    """A member's partial matches wait in the states in which those of the query by itself wait."""
    plans = [
        compile_query(
            QUERY.format(steps=steps, plus=plus), f"q{plus}", CompileOptions(several=True)
        )
        for plus in (0, 1, 3)
    ]
    with forced(f"family_queries=2 {form}"):
        case = Case("", frozenset(), {"http://e/s": []})
        runs = [
            Run(plans, case, 10**6, families=True),
            *(Run([p], case, 10**6, False) for p in plans),
        ]
        assert runs[0].begins_with_member
        random, waited = Random(steps), 0
        for second in range(20):
            number = value if second == 9 else str(random.randrange(9))
            number = f'"{number}"^^<{INTEGER}>'
            some = [f"<http://e/{random.choice('xy')}> <http://e/{p}> {number} ." for p in "ac"]
            given = [spaseq.Event("\n".join(some), second * 1000)]
            states = []
            for run in runs:
                run.take("http://e/s", given, restarts=second % 5 == 4)
                for query in run.queries.queries:
                    unit = run.queries.unit(query)
                    states.append(dict(unit.live_states(query).waiting))
            assert states[:3] == states[3:], second
            waited += sum(map(len, states))
        assert waited > 100


if __name__ == "__main__":
    parser = ArgumentParser()
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    chosen = parser.parse_args()
    counts, differ = [0, 0, 0], 0
    for n in range(chosen.first, chosen.first + chosen.cases):
        try:
            counts = [a + b for a, b in zip(counts, check(n), strict=True)]
        except AssertionError as error:
            differ += 1
            print(error, flush=True)
    print(f"{chosen.cases} sets: {counts} begin, failed, answered; {differ} differ")
