"""A family in the local runtime: the answers, counts and reports of each member by itself."""

from __future__ import annotations

import gc
from typing import Any

import pytest

import spaseq
from spaseq.plan.templates import MemberPlan
from spaseq.rdf.inputs.stream_options import BadInput
from spaseq.stages import unit_stages
from spaseq.stages.unit_sequence import UnitSequence
from tests.language.test_tables import RUNTIMES
from tests.thresholds import Force

QUERY = """PREFIX : <http://e/> {form} WITHIN 10 SECONDS {more} FROM STREAM S <http://e/s>
    WHERE {{ SEQ({steps}) DEFINE GPM A ON S {{ ?x :a ?v FILTER (?v > {least}) }}
    DEFINE GPM B ON S {{ ?x :b ?w FILTER (?w < ?v - {fall}) }} }} {having}"""

USUAL = {"form": "SELECT ?v ?w", "more": "", "steps": "A; B", "having": ""}


def integer(value: int) -> str:
    return f'"{value}"^^<http://www.w3.org/2001/XMLSchema#integer>'


EVENTS = [
    spaseq.Event(
        f"<http://e/{i % 3}> <http://e/{'ab'[i % 2]}> {integer(i * 7 % 10)} .",
        i * 1000,
        f"http://e/g{i}",
    )
    for i in range(60)
]


def texts(**changed: str) -> list[str]:
    parts = {**USUAL, **changed}
    return [QUERY.format(least=i % 7, fall=i % 4, **parts) for i in range(12)]


def answers(queries: list[str], **options: Any) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for match in spaseq.run(queries, {"S": EVENTS}, runtime="local", **options):
        found.setdefault(match.query, []).append(match.answer)
    return found


@pytest.mark.each_once
@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"steps": "A; B+"},
        {"steps": "A: B"},
        {"steps": "B!; A; B"},
        {"more": "PARTITION BY (?x)"},
        {"more": "AFTER MATCH SKIP PAST LAST EVENT"},
        {"form": "SELECT DISTINCT ?w"},
        {"form": "SELECT MAX ?v ?w", "steps": "A: B+"},
        {"form": "CONSTRUCT { ?x :fell ?w . _:n :to ?v }"},
        {"having": "HAVING (?v > 5)"},
    ],
    ids=str,
)
@pytest.mark.parametrize("limit", [None, 1])
def test_a_member_has_the_answers_that_it_has_alone(
    changed: dict[str, str], limit: int | None
) -> None:
    options = {} if limit is None else {"limit_per_event": limit}
    found = answers(texts(**changed), **options)
    assert found == answers(texts(**changed), disable=["query-families"], **options)
    assert len(found) > 1


def test_many_answers_of_a_member_have_only_its_own_variables() -> None:
    """Many answers are made as columns."""
    changed = {"form": "SELECT *", "steps": "A"}
    crowds = [
        spaseq.Event(
            "".join(f"<http://e/{i}> <http://e/a> {integer(i)} .\n" for i in range(100)), time
        )
        for time in (0, 1000)
    ]
    found: list[list[Any]] = []
    for disable in ([], ["query-families"]):
        own = spaseq.run(texts(**changed), {"S": crowds}, runtime="local", disable=disable)
        found.append([(m.query, m.answer) for m in own])
    assert found[0] == found[1]
    assert len(found[0]) > 1000


def test_families_that_differ_in_their_windows() -> None:
    given = [
        text.replace("10 SECONDS", f"{seconds} SECONDS")
        for seconds in (2, 5, 40)
        for text in texts(more="PARTITION BY (?x)")
    ]
    found = answers(given)
    assert found == answers(given, disable=["query-families"])
    assert len({len(own) for own in found.values()}) > 2


HOT = """PREFIX : <http://e/> REGISTER STREAM <http://e/hot> AS CONSTRUCT { ?x :is :hot }
    WITHIN 1 SECONDS FROM STREAM S <http://e/s>
    WHERE { SEQ(A) DEFINE GPM A ON S { ?x :b ?v FILTER (?v > 3) } }"""

READER = """PREFIX : <http://e/> SELECT ?x ?v WITHIN {seconds} SECONDS PARTITION BY (?x)
    FROM STREAM S <http://e/s> FROM STREAM Hot <http://e/hot>
    WHERE {{ SEQ(A; B) DEFINE GPM A ON S {{ ?x :a ?v FILTER (?v > {least}) }}
    DEFINE GPM B ON Hot {{ ?x :is :hot }} }}"""


def test_families_that_read_the_stream_of_another_query() -> None:
    """Its events come when the streams have been read, so no row is hopeless before."""
    readers = [READER.format(seconds=s, least=i % 9) for s in (5, 20) for i in range(10)]
    found = answers([HOT, *readers])
    assert found == answers([HOT, *readers], disable=["query-families"])
    assert len(found) > 10


def test_answers_come_query_by_query() -> None:
    names = [m.query for m in spaseq.run(texts(), {"S": EVENTS}, runtime="local")]
    assert names == sorted(names, key=lambda name: int(name.removeprefix("query")))


def test_a_member_is_counted_by_itself() -> None:
    counts = []
    for disable in ([], ["query-families"]):
        stats = spaseq.Stats()
        list(spaseq.run(texts(), {"S": EVENTS}, runtime="local", stats=stats, disable=disable))
        counts.append((stats.events, stats.matches, stats.solutions))
    assert counts[0] == counts[1]


def test_events_are_matched_in_parts(force: Force) -> None:
    whole = answers(texts())
    force("family_rows=10")
    force("family_events=3")
    assert answers(texts()) == whole


def test_an_event_beyond_a_limit_is_so_for_each_member() -> None:
    """Twelve members have more solutions on one event than the limit; each by itself has not."""
    limits = spaseq.Limits(solutions=8)
    bad: list[BadInput] = []
    crowd = "".join(f"<http://e/{i}> <http://e/a> {integer(i)} .\n" for i in range(8))
    streams = {"S": [*EVENTS, spaseq.Event(crowd, 70_000, "http://e/crowd")]}

    def run(disable: list[str]) -> list[Any]:
        options: Any = {"limits": limits, "on_bad": bad.append, "disable": disable}
        found = spaseq.run(texts(steps="A"), streams, runtime="local", **options)
        return [(m.query, m.answer) for m in found]

    together = run([])
    reported = [(b.file, b.text) for b in bad]
    bad.clear()
    assert run(["query-families"]) == together
    assert [(b.file, b.text) for b in bad] == reported
    assert any(answer.end[0] == 70_000 for _, answer in together)


CROWDED = """PREFIX : <http://e/> SELECT {shown} WITHIN {window} SECONDS FROM STREAM S <http://e/s>
    WHERE {{ SEQ(A: B)
    DEFINE GPM A ON S {{ ?x :kind "{kind}" ; :t ?t . ?y :kind "{kind}" ; :a ?v
        FILTER (STRLEN(CONCAT(?t, ?t)) > 1) }}
    DEFINE GPM B ON S {{ ?z :b ?w FILTER (?w >= {kind}) }} }}"""


def crowded(windows: tuple[int, ...], shown: str) -> list[str]:
    """A family for each window; its members differ in a kind of things."""
    return [CROWDED.format(window=w, kind=kind, shown=shown) for w in windows for kind in range(9)]


def crowd(kinds: dict[int, int], time: int, long: tuple[int, ...] = ()) -> spaseq.Event:
    """An event with so many things of some kinds; the kinds in `long` have long texts."""
    triples = []
    for kind, count in kinds.items():
        text = "text" * (20 if kind in long else 1)
        for i in range(count):
            own = (
                f'<http://e/kind> "{kind}"',
                f"<http://e/a> {integer(1)}",
                f'<http://e/t> "{text}"',
            )
            triples += [f"<http://e/{kind}-{i}> {each} .\n" for each in own]
    return spaseq.Event("".join(triples), time, f"http://e/crowd{time}")


@pytest.mark.each_once
@pytest.mark.parametrize("shown", ["?x ?v", "?x ?v ?w"], ids=["bounds", "carried bounds"])
@pytest.mark.parametrize("windows", [(100,), (100, 200)], ids=["a family", "families"])
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_limit_is_of_each_member_and_not_of_what_members_have_in_common(
    runtime: str, windows: tuple[int, ...], shown: str
) -> None:
    """A member alone meets its own kind only; all kinds together exceed what an event may need."""
    limits = spaseq.Limits(solutions=40, literal_bytes=100)
    events = [
        crowd({1: 2}, 0),
        crowd(dict.fromkeys(range(9), 3), 1000),  # 9 pairs of each kind, and 27 things
        crowd({2: 7, 3: 1}, 2000),  # 49 pairs of kind 2
        crowd({4: 1, 5: 1}, 3000, long=(4,)),
        spaseq.Event(f"<http://e/b> <http://e/b> {integer(9)} .", 4000, "http://e/last"),
    ]

    def run(disable: list[str]) -> tuple[list[Any], list[Any]]:
        bad: list[BadInput] = []
        options: Any = {"limits": limits, "on_bad": bad.append, "disable": disable}
        found = spaseq.run(crowded(windows, shown), {"S": events}, runtime=runtime, **options)
        answers = sorted((m.query, repr(m.answer)) for m in found)
        return answers, sorted((b.file, b.reason, b.text) for b in bad)

    answers, bad = run([])
    assert (answers, bad) == run(["query-families", "shared-patterns"])
    assert {query for query, _ in answers} == {f"query{i + 1}" for i in range(9 * len(windows))}
    assert {(b[0], b[2][:14]) for b in bad} == {
        (f"query{number + 9 * i}", f"http://e/crowd{time}"[:14])
        for i in range(len(windows))
        for number, time in ((3, 2000), (5, 3000))
    }


@pytest.mark.parametrize(("predicate", "is_made"), [("c", False), ("b", True)])
def test_stage_2_is_made_only_if_each_step_has_a_solution(
    predicate: str, is_made: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []

    class Noted(UnitSequence):
        def __init__(self, *given: Any) -> None:
            made.append(self)
            super().__init__(*given)

    monkeypatch.setattr(unit_stages, "UnitSequence", Noted)
    queries = [
        f"""PREFIX : <http://e/> SELECT ?x WITHIN 10 SECONDS PARTITION BY (?x)
        FROM STREAM S <http://e/s> WHERE {{ SEQ(A; B) DEFINE GPM A ON S {{ ?x :a "{i}" }}
        DEFINE GPM B ON S {{ ?x :b "{i}" }} }}"""
        for i in range(12)
    ]
    events = [
        spaseq.Event('<http://e/x> <http://e/a> "0" .', 0),
        spaseq.Event(f'<http://e/x> <http://e/{predicate}> "0" .', 1000),
    ]
    found = list(spaseq.run(queries, {"S": events}, runtime="local"))
    assert (len(found), len(made)) == (int(is_made), int(is_made))


def test_answers_and_work_are_counted_by_query() -> None:
    several = spaseq.run(texts(), {"S": EVENTS}, runtime="local")
    counts: dict[str, int] = {}
    for match in several:
        counts[match.query] = counts.get(match.query, 0) + 1
    assert several.stats.answers == counts
    assert several.stats.matches == sum(counts.values()) > 0
    assert [*several.stats.query_seconds] == ["query1 and 11 more of its family"]


def test_the_plans_of_a_run_that_is_over_go_without_a_collection_of_garbage() -> None:
    """A collection of old objects is rare, so cycles would hold the memory of several runs."""
    queries = texts()
    answers(queries)  # what is kept for good
    gc.collect()
    gc.disable()
    try:
        before = living_members()
        assert answers(queries)
        assert living_members() == before
    finally:
        gc.enable()


def living_members() -> int:
    return sum(isinstance(each, MemberPlan) for each in gc.get_objects())
