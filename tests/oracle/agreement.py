"""Comparison of engine and oracle on one example, with every evaluator and any order of arrival."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from spaseq.algebra.answers import Answer as EngineAnswer
from spaseq.automaton.run.event_rows import EventRows
from spaseq.errors import QueryError
from spaseq.kb.load import load_kb
from spaseq.lang import ast
from spaseq.plan.query_plan import QueryPlan
from tests.construct.reference import construct, renamed, texts
from tests.oracle.comparison import comparable
from tests.oracle.differences import REMOVALS, without
from tests.oracle.engine import COUNTING, EVALUATORS, Arrival, Piece, parsed, solved
from tests.oracle.model import Refused, TooBig
from tests.oracle.oracle import evaluate
from tests.oracle.report import disagreement, events_table
from tests.oracle.strategies import Case

ARRIVALS = (
    "several-pieces",
    "one-by-one",
    "several-watermarks",
    "restart",
    "limit",
    "answers-suppressed",
)
"""Features of arrival and of limits that a run exercises."""


@dataclass
class Tally:
    """Number of examples per feature; `by` counts per (feature, evaluator)."""

    exercised: Counter[str] = field(default_factory=Counter)
    answered: Counter[str] = field(default_factory=Counter)
    by: Counter[tuple[str, str]] = field(default_factory=Counter)
    mattered: Counter[str] = field(default_factory=Counter)
    weigh: bool = False  # whether to count in `mattered` the features that change the answers
    too_big: int = 0  # examples too big for the oracle
    not_supported: int = 0  # examples that the engine does not support

    @property
    def compared(self) -> int:
        return self.exercised["(all)"]

    def add(self, case: Case, evaluators: Sequence[str], extra: set[str], answers: int) -> None:
        used = ["(all)", *sorted(case.features | extra), *(f"on {e}" for e in evaluators)]
        self.exercised.update(used)
        if answers:
            self.answered.update(used)
            self.by.update((feature, e) for feature in used for e in evaluators)

    def weigh_features(self, case: Case, query: ast.Query, expected: list[Any]) -> None:
        """Count the features without which the query has other answers."""
        for feature in REMOVALS.keys() & case.features:
            try:
                other = expected_of(without(feature, query), case)
            except (TooBig, Refused):
                continue
            self.mattered[feature] += comparables(other) != comparables(expected)


@dataclass(frozen=True)
class Disagreement:
    """A difference between engine and oracle: its kind, and a report on one page."""

    kind: str
    text: str


def expected_of(query: ast.Query, case: Case) -> list[Any]:
    """The oracle's answers; for a CONSTRUCT query, its events as texts."""
    if isinstance(query.form, ast.Construct):
        made = texts(construct(query, case.streams, case.kb))
        return [(time, renamed(graph)) for time, graph in made]
    return evaluate(query, case.streams, case.kb)


def comparables(answers: Sequence[Any]) -> list[tuple[object, ...]]:
    """Answers of either side in one form that can be compared."""
    return [_comparable(a) for a in answers]


def _comparable(answer: Any) -> tuple[object, ...]:
    if isinstance(answer, EngineAnswer):
        made = answer.graph
        return comparable(answer) if made is None else (answer.end[0], renamed(made))
    if isinstance(answer, tuple):  # an event from the oracle
        return answer
    return comparable(answer)


def compare(
    case: Case,
    tally: Tally,
    random: Random,
    oracle: Callable[[ast.Query, Case], list[Any]] = expected_of,
) -> Disagreement | None:
    """A disagreement of engine and oracle, if any; events arrive at random."""
    try:
        query, plans = parsed(case.query)
        expected = oracle(query, case)
        if tally.weigh:
            tally.weigh_features(case, query, expected)
        return _Comparison(case, expected, plans, tally).all(random)
    except TooBig:
        tally.too_big += 1
        return None
    except QueryError as error:
        if all(d.code == "not-supported-yet" for d in error.diagnostics if d.severity == "error"):
            tally.not_supported += 1
            return None
        return Disagreement("the query is refused", f"{case.query}\n{error}")
    except Exception as error:
        page = f"{case.query}\n{events_table(case)}\n{traceback.format_exc()}"
        return Disagreement(f"{type(error).__name__}", page)


@dataclass
class _Comparison:
    """One example, run by every evaluator that can run it."""

    case: Case
    expected: list[Any]
    plans: dict[str, QueryPlan]
    tally: Tally
    extra: set[str] = field(default_factory=set)

    def all(self, random: Random) -> Disagreement | None:
        chosen = next(iter(self.plans.values()))
        whole = solved(chosen, self.case.streams, self.case.kb, None)
        pieces = solved(chosen, self.case.streams, self.case.kb, random)
        if len(pieces) > len(whole):
            self.extra.add("several-pieces")
        if any(isinstance(piece.solutions, EventRows) for piece in pieces):
            self.extra.add("one-by-one")
        for name, plan in self.plans.items():
            # Solutions do not depend on the evaluator.
            wrong = self._wrong(plan, whole, Arrival()) or self._wrong(
                plan, pieces, Arrival(random)
            )
            wrong = wrong or self._limited(plan, pieces, Arrival(random, random.randint(1, 3)))
            if wrong is not None:
                return Disagreement(f"{wrong.kind} by {name}", wrong.text)
        evaluators = [e for e in (*EVALUATORS, *COUNTING) if e in self.plans]
        self.tally.add(self.case, evaluators, self.extra, len(self.expected))
        return None

    def _run(self, plan: QueryPlan, pieces: list[Piece], arrival: Arrival) -> list[EngineAnswer]:
        streams = self.case.streams.values()
        times = sorted(time for events in streams for time, _, _ in events)
        arrival.knowledge = load_kb(list((self.case.kb or {}).items()))
        found = arrival.answers(plan, pieces, times)
        if arrival.steps:
            self.extra.add("several-watermarks")
        if arrival.restarts:
            self.extra.add("restart")
        return found

    def _wrong(self, plan: QueryPlan, pieces: list[Piece], arrival: Arrival) -> Disagreement | None:
        found = self._run(plan, pieces, arrival)
        if comparables(found) != comparables(self.expected):
            return self._told("different answers", found)
        if arrival.hasty or arrival.tardy:
            return self._told("answers before or after they were final", found)
        return None

    def _limited(
        self, plan: QueryPlan, pieces: list[Piece], arrival: Arrival
    ) -> Disagreement | None:
        """Check a run with a limit: order, and number of answers per end and partition."""
        if plan.answers.template is not None:
            return None  # answers without triples count, but are not visible
        found = self._run(plan, pieces, arrival)
        assert arrival.limit is not None
        self.extra.add("limit")
        if arrival.suppressed:
            self.extra.add("answers-suppressed")
        allowed = Counter(_group(plan, a) for a in self.expected)
        wanted = {group: min(n, arrival.limit) for group, n in allowed.items()}
        kept = comparables(found)
        in_order = iter(comparables(self.expected))
        if Counter(_group(plan, a) for a in found) != wanted:
            return self._told(f"not so many answers as the limit {arrival.limit} allows", found)
        if not all(answer in in_order for answer in kept):
            return self._told("under a limit, answers in another order or none of all", found)
        if arrival.suppressed != len(self.expected) - len(found):
            return self._told(f"{arrival.suppressed} answers suppressed, not as many", found)
        return None

    def _told(self, kind: str, found: list[EngineAnswer]) -> Disagreement:
        return Disagreement(kind, disagreement(self.case, self.expected, found))


def _group(plan: QueryPlan, answer: Any) -> Hashable:
    """The end and the partition of an answer."""
    singles = dict(answer.singles)
    return tuple(answer.end), tuple(singles.get(v) for v in plan.sequence.partition)
