"""Long streams of events with a key and a number, and GPMs that compare the numbers.

They are for evaluators that must agree: the compiled ones, and registers in Python.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import cycle
from random import Random

from spaseq.algebra.answers import Answer
from spaseq.compile import CompileOptions, compile_query
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.terms.term import XSD
from spaseq.stages.sequence import SequenceStage
from tests.automaton.cases import Event, Values, batch, letters, query, run

KEYED = {
    "A": "?a :k ?k ; :v ?va",
    "B": "?b :k ?k ; :v ?vb FILTER(?vb > ?va)",
    "C": "?c :k ?k ; :v ?vc FILTER(?vc < ?va)",
    "N": "?n :k ?k ; :v ?vn FILTER(?vn >= ?va)",
    "R": "?r :k ?k ; :v ?vr FILTER(!BOUND(PREV(?vr)) || ?vr > PREV(?vr))",
    "E": "?e :k ?k ; :v ?ve FILTER(?ve = ?va)",
    "L": "?l :k ?k ; :v ?vl FILTER(?vl >= ?va && ?vl >= ?vb)",
    "J": "?j :k ?k ; :j ?b ; :v ?vj FILTER(?vj <= ?vb)",
    "S": "?s :k ?k ; :v ?vs FILTER(?vs >= 1.5 * ?va)",
    "G": "?g :k ?k ; :v ?vg FILTER(?vg >= 1.1 * COALESCE(PREV(?vg), ?va))",
    "D": "?d :k ?k ; :v ?vd FILTER(-ABS(?vd / 3) < 40 - ?va)",
    "F": "?f :k ?k ; :v ?vf FILTER(?vf < ?va + 20 && ?vb > 2 * ?va)",
    "T": "?t :k ?k ; :v ?vt FILTER(?va < 30 && 60 > ?va + 40.5)",
    "K": "?x :k ?k ; :v ?vk FILTER(?vk * 2e0 > ?va + 150)",
}


def integer(value: int) -> str:
    """The literal of a whole number."""
    return f'"{value}"^^<{XSD}integer>'


ODD = {
    "a text": '"n/a"',
    "a dateTime": f'"2020-01-01T00:00:00Z"^^<{XSD}dateTime>',
    "beyond 2^53": integer(2**53 + 1),
    "a decimal": f'"50.1"^^<{XSD}decimal>',
    "a long decimal": f'"50.10000000000000000001"^^<{XSD}decimal>',
    "a float": f'"50.1"^^<{XSD}float>',
    "not a number": f'"NaN"^^<{XSD}double>',
    "infinity": f'"-INF"^^<{XSD}double>',
}
"""Values that float64 does not stand for, or not exactly."""


def plans(text: str) -> tuple[QueryPlan, QueryPlan]:
    """The query's plans for the compiled evaluator and for the Python evaluator."""
    return (
        compile_query(text, options=CompileOptions(evaluator="compiled-registers")),
        compile_query(text, options=CompileOptions(evaluator="registers")),
    )


def solutions(random: Random, name: str, value: str, keys: int) -> list[Values]:
    """One solution of a GPM of `KEYED`, with a random key."""
    low = name.lower()
    values = {low: f"<e{random.randrange(4)}>", "k": f"<k{random.randrange(keys)}>"}
    if name == "J":
        values["b"] = f"<e{random.randrange(4)}>"
    return [{**values, f"v{low}": value}]


def stream(
    names: Sequence[str], size: int, keys: int, seed: int, ties: bool = False
) -> list[Event]:
    """Events a second apart, with one solution each; with `ties`, some share an instant."""
    random, events, time = Random(seed), list[Event](), 0
    for _ in range(size):
        name, value = random.choice(names), integer(random.randrange(100))
        tied = ties and bool(events) and events[-1].stream == 0 and random.random() < 0.2
        time += 0 if tied else 1000
        events.append(Event(time, 0, int(tied), {name: solutions(random, name, value, keys)}))
    return events


def used(sequence: str) -> dict[str, str]:
    """The GPMs of `KEYED` whose names are in a sequence."""
    return {name: p for name, p in KEYED.items() if name in sequence}


def in_pieces(plan: QueryPlan, events: Sequence[Event], sizes: Sequence[int]) -> list[Answer]:
    """The answers to events that arrive in pieces of these sizes, in turn."""
    stage, answers = SequenceStage(plan), list[Answer]()
    left, size = list(events), cycle(sizes)
    while left:
        count = next(size)
        some, left = left[:count], left[count:]
        stage.push(batch(plan, some))
        answers += stage.advance(some[-1].time - 1)
    return answers + stage.close()


def agreed(
    compiled: QueryPlan,
    python: QueryPlan,
    events: Sequence[Event],
    pieces: Sequence[int] = (37,),
    restarts: Sequence[int] = (200,),
) -> list[Answer]:
    """The answers of two plans, checked to be the same.

    The compiled one gets the events at once, in pieces of these sizes in turn, and with restarts
    after some numbers of events.
    """
    expected = run(python, events)[0]
    assert run(compiled, events)[0] == expected
    assert in_pieces(compiled, events, pieces) == expected
    for cut in restarts:
        assert run(compiled, events, restart_after=cut)[0] == expected
    return expected


def places(sequence: str, text: str, within: str) -> Iterator[list[str]]:
    """The answers of each evaluator to letters, one event a second, as places of their events."""
    gpms, events = letters(text, "ABCDN")
    mentioned = {name: gpm for name, gpm in gpms.items() if name in sequence.replace("AND", "")}
    for plan in plans(query(sequence, mentioned, within).replace("ON S0, S1", "ON S0")):
        answers, *_ = run(plan, events)
        yield [" ".join(str(item.time // 1000) for item in a.trace) for a in answers]
