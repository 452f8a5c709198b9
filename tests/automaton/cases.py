"""Test cases for evaluators: queries as text, and solutions made without graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import get_args
from unittest.mock import patch

import numpy as np
from hypothesis import strategies as st

from spaseq.algebra.answers import Answer
from spaseq.automaton.program import compiler
from spaseq.compile import CompileOptions, compile_query
from spaseq.errors import UsageError
from spaseq.expr.doubles import double_of
from spaseq.options import StageOptions
from spaseq.plan.query_plan import EvaluatorName, QueryPlan
from spaseq.rdf.columns.event_batch import EventNames
from spaseq.rdf.columns.solution_batch import BARE, SolutionBatch
from spaseq.rdf.columns.term_columns import NumberColumn, TermColumn
from spaseq.rdf.terms.number_kinds import OTHER
from spaseq.stages.sequence import SequenceStage

STREAMS = ("http://example/2", "http://example/1")
"""Stream IRIs; the second one comes first in IRI order."""

Values = dict[str, str | None]


@dataclass(frozen=True)
class Event:
    """An event given by its solutions: the values of the variables for each GPM."""

    time: int
    k: int
    stream: int
    solutions: dict[str, list[Values]] = field(default_factory=dict)


def query(
    sequence: str,
    gpms: dict[str, str],
    within: str = "1 HOURS",
    select: str = "*",
    partition: str = "",
    rest: str = "",
) -> str:
    """A query's text; `gpms` gives each GPM's graph pattern."""
    streams = "\n".join(f"FROM STREAM S{i} <{iri}>" for i, iri in enumerate(STREAMS))
    defined = "\n".join(f"DEFINE GPM {n} ON S0, S1 {{ {p} }}" for n, p in gpms.items())
    return f"""PREFIX : <http://example/> SELECT {select} WITHIN {within} {partition} {rest}
    {streams} WHERE {{ SEQ({sequence}) {defined} }}"""


def letters(text: str, names: str = "ABC") -> tuple[dict[str, str], list[Event]]:
    """GPMs with one variable each, and one event per second: `a1 b2` are solutions of A and B."""
    gpms = {name: f"?x{name} :is ?{name.lower()}" for name in names}
    events = []
    for i, word in enumerate(text.split()):
        name = word[0].upper()
        values = {f"x{name}": f"<e{i}>", name.lower(): f'"{word}"'}
        events.append(Event(1000 * i, 0, 0, {name: [values]} if name in names else {}))
    return gpms, events


def batch(plan: QueryPlan, events: Sequence[Event]) -> SolutionBatch:
    """The rows that stage 1 would make of some events."""
    names = {g.name: (i, g.variables) for i, g in enumerate(plan.patterns.gpms)}
    rows: list[tuple[int, int, int, int, str, Values]] = []
    for event in events:
        before, graph = len(rows), f"http://example/g{event.time}/{event.k}/{event.stream}"
        for name, solutions in event.solutions.items():
            if name in names:
                gpm, _ = names[name]
                for values in solutions:
                    place = event.stream, event.time, event.k
                    rows.append((*place, gpm, graph, values))
        if len(rows) == before and plan.sequence.needs_instants and not plan.sequence.partition:
            rows.append((event.stream, event.time, event.k, BARE, graph, {}))
    values, numbers = {}, {}
    for variable in plan.patterns.columns.variables:
        column = np.empty(len(rows), dtype=object)
        for i, row in enumerate(rows):
            bound = row[3] != BARE and variable in plan.patterns.gpms[row[3]].variables
            column[i] = row[5].get(variable) if bound else None
        values[variable] = TermColumn.of(column)
        found = [double_of(t) if t else (np.nan, OTHER) for t in column]
        kinds = np.array([kind for _, kind in found], np.int8)
        numbers[variable] = NumberColumn(np.array([value for value, _ in found], float), kinds)
    return SolutionBatch(
        np.array([r[0] for r in rows], np.int32),
        np.array([r[1] for r in rows], np.int64),
        np.array([r[2] for r in rows], np.int32),
        np.array([r[3] for r in rows], np.int32),
        EventNames.of([row[4] for row in rows]),
        values,
        {v: numbers[v] for v in plan.patterns.columns.numbers},
    )


def run(
    plan: QueryPlan,
    events: Sequence[Event],
    limit: int | None = None,
    restart_after: int | None = None,
) -> tuple[list[Answer], int]:
    """The answers, and the number of suppressed answers.

    `restart_after`: after this number of event times, a new stage continues from a snapshot.
    """
    stage = SequenceStage(plan, StageOptions(limit))
    answers: list[Answer] = []
    if restart_after is not None:
        cut = sorted({e.time for e in events})[restart_after]
        stage.push(batch(plan, [e for e in events if e.time <= cut]))
        answers += stage.advance(cut)
        snapshot = stage.snapshot()
        stage = SequenceStage(plan, StageOptions(limit))
        stage.restore(snapshot)
        events = [e for e in events if e.time > cut]
    stage.push(batch(plan, events))
    return answers + stage.close(), stage.suppressed


def words(answers: Sequence[Answer], text: str) -> list[str]:
    """The answers on a stream of `letters` as the words of their events."""
    given = text.split()
    return [" ".join(given[t.time // 1000] for t in a.trace) for a in answers]


def counted_plans(text: str) -> dict[str, QueryPlan]:
    """The plans of a query whose repetitions are all counted; none if it bounds none."""
    with patch.object(compiler, "MOST_STATES", 0):
        return {name: p for name, p in plans(text).items() if p.sequence.program.bounds}


def plans(text: str) -> dict[str, QueryPlan]:
    """A query's plan for each evaluator that can run it."""
    plans = {}
    for name in get_args(EvaluatorName):
        try:
            plans[name] = compile_query(text, options=CompileOptions(evaluator=name))
        except UsageError:
            continue
    return plans


# --- generated ------------------------------------------------------------------------------------

NAMES = "ABCDEFGH"
_HERE = "@"
"""Placeholder for a name that is drawn later."""


@dataclass(frozen=True)
class Case:
    text: str
    events: tuple[Event, ...]


@st.composite
def sequences(draw: st.DrawFn, depth: int = 2, plain: bool = False) -> tuple[str, bool]:
    """The text of a sequence, and whether it can match nothing."""
    steps = [draw(_steps(depth, plain)) for _ in range(draw(st.sampled_from([1, 2, 2, 3, 3, 4])))]
    if len(steps) == 1 and steps[0][1]:
        steps.append((_HERE, False))
    text = steps[0][0]
    for (_, before), (step, optional) in pairwise(steps):
        if not before and not optional and draw(st.sampled_from([False] * 5 + [True])):
            text += f"{draw(st.sampled_from(',;:'))} {_HERE}!"
        text += f"{draw(st.sampled_from(',;;::'))} {step}"
    return text, all(optional for _, optional in steps)


_REPEATS = ("+", "*", "?", "{2}", "{1,2}", "{3,}", "{2,1000}", "{0,1000}")
UNTIL = "Z"
"""A GPM that no step names."""


@st.composite
def _steps(draw: st.DrawFn, depth: int, plain: bool) -> tuple[str, bool]:
    kinds = ["name"] * 3 if plain or depth == 0 else ["name", "name", "name", "|", "bracket"]
    kind = draw(st.sampled_from(kinds))
    if kind == "name":
        text = _HERE
    else:
        count = draw(st.sampled_from([2, 2, 3])) if kind == "|" else 1
        operands = [draw(sequences(depth - 1)) for _ in range(count)]
        if any(optional for _, optional in operands):
            text = _HERE
        elif kind == "|" and draw(st.booleans()):  # alternatives with one event may follow `;`
            text = f"({' | '.join(_HERE for _ in range(count))})"
        else:
            text = f"({' | '.join(text for text, _ in operands)})"
    repeat = "" if plain else draw(st.sampled_from(["", "", "", "", *_REPEATS]))
    loop = draw(_loops(repeat)) if repeat else ""
    return text + repeat + loop, repeat in ("*", "?", "{0,1000}")


@st.composite
def _loops(draw: st.DrawFn, repeat: str) -> str:
    """What may follow a quantifier."""
    greedy = draw(st.sampled_from(["", "", "+"]))
    own = "" if repeat == "?" else draw(st.sampled_from(["", "", "[,]", "[;]", "[:]"]))
    return greedy + own + draw(st.sampled_from(["", "", f" UNTIL {UNTIL}"]))


@st.composite
def looping(draw: st.DrawFn) -> tuple[str, bool]:
    """A sequence around a greedy loop or a loop with UNTIL, like those of `sequences`."""
    op = st.sampled_from(",;;::")
    body = draw(
        st.sampled_from(
            [
                *["@"] * 4,
                "(@ | @)",
                "(@; @)",
                "(@, @)",
                "(@?: @)",
                "(@: @?)",
                "(@ | @: @)",
                "(@+, @)",
            ]
        )
    )
    repeat = draw(st.sampled_from(["+", "+", *_REPEATS[1:]]))
    loop = draw(_loops(repeat).filter(lambda loop: "+" in loop or UNTIL in loop))
    before = draw(st.sampled_from(["@", "@", "@{1,2}", "@?", "(@ | @; @)", ""]))
    after = draw(st.sampled_from(["@", "@", "(@ | @)", "@+ UNTIL Z", "@++; @", "@: @?"]))
    text = f"{body}{repeat}{loop}"
    text = f"{before}{draw(op)} {text}" if before else text
    text = f"{text}{draw(op)} {after}" if draw(st.sampled_from([True, True, False])) else text
    if before and after in text and draw(st.sampled_from([False, False, True])):
        text = f"@: ({text} | @: @): @"
    return text, False


_PATTERNS = {
    "nothing": "[] :is []",
    "own": "?{own} :is []",
    "key": "?{own} :is ?k",
    "key only": "[] :is ?k",
    "maybe": "{{ ?{own} :is ?{own}2 }} UNION {{ ?{own} :was :x }}",
    "shared": "?{own} :is ?s",
}
_KINDS = {
    "own": ["own"],
    "few variables": ["nothing", "nothing", "own"],
    "key": ["key only", "key"],
    "partition": ["key only", "key"],
    "mixed": ["nothing", "own", "own", "key", "shared", "maybe"],
}


@st.composite
def named(draw: st.DrawFn, sequence: str, once: bool) -> str:
    """A sequence with names drawn; `once`: each name once, if there are enough."""
    count = sequence.count(_HERE)
    few = NAMES[: draw(st.sampled_from([2, 3, 4]))]
    for i in range(count):
        name = NAMES[i] if once and i < len(NAMES) else draw(st.sampled_from(few))
        sequence = sequence.replace(_HERE, name, 1)
    return sequence


@st.composite
def cases(
    draw: st.DrawFn,
    plain: bool = False,
    strategies: Sequence[str] = ("",),
    select: Sequence[str] = ("*",),
    rest: Sequence[str] = ("",),
    loops: bool = False,
    ends: bool = False,
    kinds: Sequence[str] = tuple(sorted(_KINDS)),
) -> Case:
    """Draws a query and a stream for it; `loops`: with a greedy loop, or one with UNTIL."""
    kind = draw(st.sampled_from(kinds))
    sequence, optional = draw(looping() if loops else sequences(0 if plain else 2, plain))
    if not optional:
        seldom = [True] if ends else [False] * 4 + [True]
        first = draw(st.sampled_from(seldom))
        last = draw(st.sampled_from([False, *seldom]))
        sequence = f"{_HERE}!; {sequence}" if first else sequence
        sequence = f"{sequence}; {_HERE}!" if last else sequence
    text = draw(named(sequence, kind in ("own", "mixed") and draw(st.booleans())))
    patterns = {
        name: _PATTERNS[draw(st.sampled_from(_KINDS[kind]))].format(own=name.lower())
        for name in sorted(set(text) & {*NAMES, UNTIL})
    }
    within = draw(
        st.sampled_from(
            ["1 HOURS", "9 SECONDS", "4 SECONDS", "5 SECONDS TUMBLING", "5 EVENTS", "9 EVENTS"]
        )
    )
    head = f"{draw(st.sampled_from(strategies))} {draw(st.sampled_from(select))}"
    partition = "PARTITION BY (?k)" if kind == "partition" else ""
    whole = query(text, patterns, within, head, partition, draw(st.sampled_from(rest)))
    return Case(whole, tuple(draw(events(patterns))))


@st.composite
def events(draw: st.DrawFn, patterns: dict[str, str], most: int = 11) -> list[Event]:
    """Draws events on two streams, at few instants, with up to two solutions for some GPMs."""
    found: list[Event] = []
    time, count, due = 0, draw(st.integers(4, most)), sorted(patterns)
    for i in range(count):
        time += draw(st.sampled_from([0, 1000, 1000, 1000, 2000]))
        stream = draw(st.sampled_from([0, 0, 1]))
        k = sum(e.time == time and e.stream == stream for e in found)
        solutions: dict[str, list[Values]] = {}
        names = {due[i * len(due) // count]} if draw(st.booleans()) else set()
        names |= draw(st.sets(st.sampled_from(due), max_size=2))
        for name in sorted(names):
            size = draw(st.sampled_from([1, 1, 1, 2]))
            solutions[name] = [draw(_solutions(name, patterns[name])) for _ in range(size)]
            if len(solutions[name]) == 2 and solutions[name][0] == solutions[name][1]:
                del solutions[name][1]
        found.append(Event(time, k, stream, solutions))
    return found


@st.composite
def _solutions(draw: st.DrawFn, name: str, pattern: str) -> Values:
    own = name.lower()
    values: Values = {}
    if f"?{own}" in pattern:
        values[own] = draw(st.sampled_from(["<o1>", "<o1>", "<o2>"]))
    if f"?{own}2" in pattern:
        values[f"{own}2"] = draw(st.sampled_from([None, '"1"', '"2"']))
    for variable in "ks":
        if f"?{variable}" in pattern:
            values[variable] = draw(st.sampled_from(["<v1>", "<v1>", "<v2>"]))
    return values
