"""Limits hold for each query and each end instant, however events come and whatever else runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

import spaseq
from spaseq import Engine, Event
from tests.language.test_tables import RUNTIMES

QUERY = """PREFIX : <http://e/>
SELECT {form} WITHIN {within} {rest} FROM STREAM S <http://e/s> WHERE {{
  SEQ({steps})
  DEFINE GPM A ON S {{ ?x :a ?v {a} }}
  DEFINE GPM B ON S {{ ?y :b ?w {b} }}
}}"""

LIMIT = 2


def query(steps: str = "A: B", a: str = "", b: str = "", **changed: str) -> str:
    """A query in which any thing with :a and any with :b go together."""
    usual = {"form": "*", "within": "4 SECONDS", "rest": ""}
    return QUERY.format(steps=steps, a=a, b=b, **{**usual, **changed})


def joined(**changed: str) -> str:
    """The same about one thing, so that stage 2 has a key."""
    return query(**changed).replace("?y :b", "?x :b")


FAMILY = [joined(a=f"FILTER(?v >= {least})") for least in range(9)]
FAMILY_APART = [query(a=f"FILTER(?v = {value})") for value in range(9)]
SINGLES = [
    query(),
    query("A: B+", within="3 SECONDS"),
    joined(steps="A; B"),
    joined(rest="PARTITION BY (?x)"),
    query(b="FILTER(?w >= ?v)"),
    query(b="FILTER(STR(?w) >= STR(?v))"),
    query(form="DISTINCT ?w"),
    query(form="NEXT *"),
    query("A; B!"),
    query(rest="AFTER MATCH CONSUME") + " HAVING (?w > 0)",
    query("B"),
]
"""One for each evaluator, and for each place that applies the limit."""

QUERIES = [*FAMILY, *FAMILY_APART, *SINGLES]


def events(seed: int, count: int = 14) -> list[Event]:
    """Events of one stream about several things at once, some of them at one time."""
    chance, found = Random(seed), list[Event]()
    for number in range(count):
        integer = "http://www.w3.org/2001/XMLSchema#integer"
        triples = {
            f"<http://e/{chance.randrange(4)}> <http://e/{chance.choice('ab')}> "
            f'"{chance.randrange(9)}"^^<{integer}> .\n'
            for _ in range(chance.randrange(5))
        }
        found.append(Event("".join(sorted(triples)), 500 * (number - number % 2)))
    return found


def told(matches: Sequence[spaseq.Match]) -> dict[str, list[str]]:
    """The answers of each query in order."""
    found: dict[str, list[str]] = {}
    for match in matches:
        found.setdefault(match.query, []).append(repr(match.answer))
    return found


def pushed(given: Sequence[Event], cuts: Sequence[int], **options: Any) -> tuple[Any, int]:
    """The answers to events in batches, and how many the limit has suppressed; 1 means `push`."""
    engine = Engine(QUERIES, **options)
    matches, at = list[spaseq.Match](), 0
    sizes = iter([*cuts, len(given)])
    while at < len(given):
        size = next(sizes)
        some = given[at : at + size]
        at += size
        if size == 1:
            matches += engine.push("S", some[0].graph, some[0].time)
        else:
            matches += engine.push_many([("S", event) for event in some])
    matches += engine.close()
    return told(matches), engine.suppressed


@settings(max_examples=5, deadline=None, phases=[Phase.explicit, Phase.generate])
@example(49509, [])  # solutions of single events come in another order than those of batches
@given(st.integers(0, 10**6), st.lists(st.integers(1, 6), max_size=14))
def test_limited_answers_do_not_depend_on_batches(seed: int, cuts: list[int]) -> None:
    given = events(seed)
    one_by_one = pushed(given, [1] * len(given), limit_per_event=LIMIT)
    assert pushed(given, cuts, limit_per_event=LIMIT) == one_by_one
    stats = spaseq.Stats()
    run = spaseq.run(QUERIES, {"S": given}, runtime="local", stats=stats, limit_per_event=LIMIT)
    assert (told([*run]), stats.suppressed) == one_by_one


@pytest.mark.parametrize("seed", range(3))
def test_a_query_among_others_has_the_answers_of_its_own_limit(seed: int) -> None:
    given = events(seed, 20)
    engine = Engine(QUERIES, limit_per_event=LIMIT)
    assert sum(unit.is_family for unit in engine._queries.running) == 2
    found = engine.push_many([("S", event) for event in given]) + engine.close()
    suppressed = 0
    for number, text in enumerate(QUERIES, 1):
        every = [*spaseq.run(text, {"S": given}, runtime="local")]
        own = [match for match in found if match.query == f"query{number}"]
        ends = Counter(_counted_together(text, match) for match in every)
        wanted = {group: min(count, LIMIT) for group, count in ends.items()}
        assert Counter(_counted_together(text, match) for match in own) == wanted
        in_order = iter([repr(match.answer) for match in every])
        assert all(repr(match.answer) in in_order for match in own)
        suppressed += len(every) - len(own)
    assert engine.suppressed == suppressed > 100


def _counted_together(text: str, match: spaseq.Match) -> Any:
    partition = match.bindings["x"].n3() if "PARTITION BY" in text else ""
    return match.answer.end, partition


def crowd(predicate: str, time: int) -> Event:
    """An event about eight things."""
    integer = "http://www.w3.org/2001/XMLSchema#integer"
    return Event(
        "".join(f'<http://e/{i}> <http://e/{predicate}> "{i}"^^<{integer}> .\n' for i in range(8)),
        time,
    )


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize(("rest", "count"), [("", 3), ("PARTITION BY (?x)", 8)])
def test_answers_of_all_keys_count_together_but_not_those_of_partitions(
    runtime: str, rest: str, count: int
) -> None:
    """On Spark stage 2 is split by ?x, which all GPMs bind."""
    stats, given = spaseq.Stats(), [crowd("a", 0), crowd("b", 1000), crowd("b", 2000)]
    run = spaseq.run(
        joined(rest=rest), {"S": given}, runtime=runtime, stats=stats, limit_per_event=3
    )
    assert Counter(match.end.second for match in run) == {1: count, 2: count}
    assert stats.suppressed == 2 * (8 - count)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_flood_of_one_member_takes_nothing_from_the_others(runtime: str) -> None:
    """The member of 0 has eight answers to each event, and the member of 7 has one."""
    stats, given = spaseq.Stats(), [crowd("a", 0), crowd("b", 1000)]
    family = [joined(a=f"FILTER(?v >= {least})") for least in range(8)]
    run = spaseq.run(family, {"S": given}, runtime=runtime, stats=stats, limit_per_event=3)
    wanted = {f"query{least + 1}": min(8 - least, 3) for least in range(8)}
    assert Counter(match.query for match in run) == wanted
    assert stats.suppressed == sum(range(1, 9)) - sum(wanted.values())
