"""A family in an `Engine`: its members come and go, each with the answers that it has alone."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import spaseq
from spaseq import thresholds
from spaseq.compile import CompileOptions, compile_query
from spaseq.errors import RunError
from spaseq.expr.extension import unregister
from spaseq.gpm.single_event.event_stage import SingleEventStage
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.options import StageOptions
from spaseq.plan.families import families_of, family_begun_by
from spaseq.plan.query_plan import QueryPlan
from spaseq.plan.templates import PlanTemplate
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.inputs.stream_options import BadInput, warn
from spaseq.rdf.program_events import batch_from_events, triples_of
from spaseq.runtime.pushed_units import PushedQuery, PushedUnit, restored_unit
from spaseq.stages.unit_stages import StageFactory
from tests.runtime.test_query_families import EVENTS, QUERY, USUAL, integer, texts
from tests.sizes import first_of, sizes
from tests.thresholds import Force


def engine(queries: list[str], **options: Any) -> spaseq.Engine:
    return spaseq.Engine(queries, **options)


def units(of: spaseq.Engine) -> list[str]:
    return ["family" if unit.is_family else "query" for unit in of._queries.running]


def found(of: spaseq.Engine, events: list[spaseq.Event], many: int = 1) -> list[tuple[str, Any]]:
    """The answers to events, in pieces of `many`."""
    matches: list[spaseq.Match] = []
    for first in range(0, len(events), many):
        part = events[first : first + many]
        if many == 1:
            matches += of.push("S", part[0].graph, part[0].time)
        else:
            matches += of.push_many([("S", event) for event in part])
    return sorted(((m.query, m.answer) for m in [*matches, *of.close()]), key=repr)


def member(least: int, fall: int, **changed: str) -> str:
    return QUERY.format(least=least, fall=fall, **{**USUAL, **changed})


@pytest.mark.each_once
@pytest.mark.parametrize("many", [1, 7])
@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"steps": "A; B+"},
        {"steps": "B!; A; B"},
        {"more": "PARTITION BY (?x)"},
        {"more": "AFTER MATCH SKIP PAST LAST EVENT"},
        {"form": "SELECT DISTINCT ?w"},
        {"form": "CONSTRUCT { ?x :fell ?w . _:n :to ?v }"},
        {"having": "HAVING (?v > 5)"},
    ],
    ids=str,
)
@pytest.mark.parametrize("limit", first_of([None, 1], 1))
def test_a_member_has_the_answers_that_it_has_alone(
    changed: dict[str, str], limit: int | None, many: int
) -> None:
    options: dict[str, Any] = {} if limit is None else {"limit_per_event": limit}
    together = engine(texts(**changed), **options)
    assert units(together) == ["family"]
    alone = engine(texts(**changed), disable=["query-families"], **options)
    assert units(alone) == ["query"] * 12
    answers = found(together, EVENTS, many)
    assert answers == found(alone, EVENTS, many)
    assert len(answers) > 1
    assert together.suppressed == alone.suppressed


@pytest.mark.parametrize("many", [1, 7])
@pytest.mark.parametrize(
    ("part", "text"),
    [
        ("form", 'SELECT (CONCAT("{}", STR(?x)) AS ?t)'),
        ("having", 'HAVING (CONCAT("{}", STR(?x)) != "")'),
    ],
)
def test_a_literal_that_is_too_long_is_reported_for_its_member(
    part: str, text: str, many: int
) -> None:
    queries = [member(0, 0, steps="A: B", **{part: text.format("x" * 7 * i)}) for i in range(12)]
    found_by = []
    for disable in ([], ["query-families"]):
        bad: list[BadInput] = []
        limits = spaseq.Limits(literal_bytes=60)
        own = engine(queries, on_bad=bad.append, limits=limits, disable=disable)
        answers = found(own, EVENTS, many)
        found_by.append((answers, sorted({report.file for report in bad})))
    assert found_by[0] == found_by[1]
    assert found_by[0][1] == ["query10", "query11", "query12", "query9"]


def test_answers_of_a_call_come_query_by_query() -> None:
    names = [f"query{i}" for i in range(1, 14)]
    other = "PREFIX : <http://e/> SELECT ?x WITHIN 1 HOURS FROM STREAM S <http://e/s>"
    queries = texts(steps="A; B+")
    queries.insert(5, f"{other} WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?x :b ?v }} }}")
    own = engine(queries)
    assert units(own) == ["family", "query"]
    given = [m.query for m in own.push_many([("S", event) for event in EVENTS])]
    assert given == sorted(given, key=names.index)
    assert len({*given}) > 3


def test_a_member_comes_and_goes() -> None:
    own = engine(texts())
    own.add(member(3, 9), name="late")
    assert units(own) == ["family"]
    own.add(member(3, 9, steps="A; B; B"), name="other")
    assert units(own) == ["family", "query"]
    for name in [f"query{i}" for i in range(1, 13)]:
        own.remove(name)
    assert own.queries == ("late", "other")
    assert units(own) == ["family", "query"]
    own.remove("late")
    assert units(own) == ["query"]


@pytest.mark.parametrize("limit", [None, 1])
def test_a_family_begins_with_the_member_unless_a_limit_counts_its_answers(
    limit: int | None,
) -> None:
    options = {} if limit is None else {"limit_per_event": limit}
    early, late = engine(texts(), **options), engine([], **options)
    for number, text in enumerate(texts()):
        late.add(text, name=f"q{number}")
    own = [[*each._queries.running][-1]._family for each in (early, late)]
    assert [f is not None and f.begins_with_member for f in own] == [limit is None] * 2


def test_queries_that_are_added_become_a_family() -> None:
    own = engine([])
    for i in range(12):
        own.add(member(i % 7, i % 4), name=f"q{i}")
    assert units(own) == ["query"] * (thresholds.current.family_queries - 1) + ["family"]
    alone = engine([member(i % 7, i % 4) for i in range(12)], disable=["query-families"])
    names = {f"q{i}": f"query{i + 1}" for i in range(12)}
    given = sorted(((names[name], answer) for name, answer in found(own, EVENTS)), key=repr)
    assert given == found(alone, EVENTS)
    assert len({name for name, _ in given}) >= thresholds.current.family_queries


def test_a_member_with_the_constants_of_another_begins_by_itself() -> None:
    """It has a row of its own, so it does not go on with the other's partial matches."""
    own, sums = engine(texts()), {"query1": 0, "twin": 0}
    half = len(EVENTS) // 2
    early = [m for e in EVENTS[:half] for m in own.push("S", e.graph, e.time)]
    own.add(texts()[0], name="twin")
    rest = [m for e in EVENTS[half:] for m in own.push("S", e.graph, e.time)] + own.close()
    alone = engine([texts()[0]], name="twin")
    expected = [m for e in EVENTS[half:] for m in alone.push("S", e.graph, e.time)]
    expected += alone.close()
    assert [content(m) for m in rest if m.query == "twin"] == [content(m) for m in expected]
    for match in [*early, *rest]:
        if match.query in sums:
            sums[match.query] += 1
    assert sums["query1"] > sums["twin"] > 0


def test_queries_that_call_functions_fail_apart() -> None:
    @spaseq.function("http://e/fragile")
    def fragile(value: int) -> int:
        if value == 7:
            raise OSError("no such device")
        return value

    try:
        queries = [
            member(i, 1).replace(f"?v > {i}", f"?v > {i} && <http://e/fragile>(?v) > 0")
            for i in range(9)
        ]
        assert units(engine(queries)) == ["query"] * 9
    finally:
        unregister("http://e/fragile")


@sizes(3, 8, 500)
def test_any_members_at_any_time(examples: int) -> None:
    """Each member by itself over the events between its coming and its going."""
    for seed in range(examples):
        random = Random(seed)
        changed = random.choice([{}, {"steps": "A; B+"}, {"steps": "B!; A; B"}])
        start = texts(**changed)
        own = engine(start)
        alone = {f"query{i}": engine([text], name=f"query{i}") for i, text in enumerate(start, 1)}
        given: list[Any] = []
        wanted: list[Any] = []
        for number, event in enumerate(EVENTS):
            if random.random() < 0.15 and len(alone) > 1:
                name = random.choice(sorted(alone))
                own.remove(name)
                del alone[name]
            if random.random() < 0.15:
                text, name = (
                    member(random.randrange(7), random.randrange(5), **changed),
                    f"n{number}",
                )
                own.add(text, name=name)
                alone[name] = engine([text], name=name)
            given += own.push("S", event.graph, event.time)
            for each in alone.values():
                wanted += each.push("S", event.graph, event.time)
        given += own.close()
        for each in alone.values():
            wanted += each.close()
        assert "family" in units(own)
        assert sorted(map(content, given)) == sorted(map(content, wanted)), seed


def content(match: spaseq.Match) -> str:
    """An answer without the numbers of its events."""
    answer = match.answer
    return repr((match.query, answer.first[0], answer.end[0], answer.bindings, answer.lists))


CHANGES: list[dict[str, str]] = [
    {},
    {"steps": "A; B+"},
    {"steps": "B!; A; B"},
    {"more": "AFTER MATCH SKIP PAST LAST EVENT"},
    {"more": "AFTER MATCH SKIP TO NEXT EVENT", "steps": "A: B"},
    {"form": "SELECT DISTINCT ?x", "steps": "A: B"},
    {"form": "SELECT MAX ?v ?w", "steps": "A: B+"},
    {"more": "PARTITION BY (?x)", "steps": "A: B"},
]


@sizes(2, 8, 500)
def test_a_family_goes_on_from_its_snapshot(examples: int) -> None:
    """Members come and go; each member's answers are those of a family that was never stopped."""
    restarts = 0
    for seed in range(examples):
        random, changed = Random(seed), CHANGES[seed % len(CHANGES)]
        limit = random.choice([None, 1])
        start = texts(**changed)[: random.choice([1, 8, 12])]
        running, stopped = Pushed(limit, start), Pushed(limit, start)
        events = crowd(random)
        for number in range(0, len(events), 2):
            change = random.random()
            if change < 0.3:
                text = member(random.randrange(7), random.randrange(5), **changed)
                running.add(f"n{number}", text)
                stopped.add(f"n{number}", text)
            elif change < 0.6 and len(running.members) > 1:
                gone = random.choice([*running.members])
                running.remove(gone)
                stopped.remove(gone)
            if random.random() < 0.3:
                stopped.restart()
                restarts += 1
            some = events[number : number + 2]
            assert running.push(some) == stopped.push(some), seed
            assert running.unit.sequence.suppressed == stopped.unit.sequence.suppressed, seed
        assert running.close() == stopped.close(), seed
        assert running.answered, seed
    assert restarts > 3 * examples


def test_a_query_goes_on_from_its_snapshot() -> None:
    query = PushedQuery(planned("a", member(3, 1, steps="A; B+")))
    unit = PushedUnit({0: query}, HOW)
    whole = PushedUnit({0: PushedQuery(query.plan)}, HOW)
    count = 0
    for event in EVENTS:
        unit = restored_unit(unit.snapshot(), [query], HOW)
        expected = pushed(whole, [event])
        assert pushed(unit, [event]) == expected
        count += len(expected)
    assert count > 3


def test_a_damaged_or_foreign_snapshot_is_refused() -> None:
    own = Pushed(None, texts())
    snapshot = own.unit.snapshot()
    others = Pushed(None, [member(9, 9 + i) for i in range(12)])
    with pytest.raises(RunError, match="other queries"):
        restored_unit(snapshot, [*others.members.values()], HOW)
    with pytest.raises(RunError, match="damaged"):
        restored_unit(snapshot, [*own.members.values()][1:], HOW)
    with pytest.raises(RunError, match="damaged"):
        restored_unit(snapshot[:-9], [*own.members.values()], HOW)


def crowd(random: Random) -> list[spaseq.Event]:
    """Events on two things with many matches."""
    return [
        spaseq.Event(
            f"<http://e/{random.randrange(2)}> <http://e/{random.choice('ab')}> "
            f"{integer(random.randrange(10))} .",
            i // 2 * 1000,
        )
        for i in range(80)
    ]


def planned(name: str, text: str) -> QueryPlan:
    return compile_query(text, name=name, options=CompileOptions(several=True))


HOW = StageFactory(KnowledgeBase.empty(), StageOptions(), warn)

Pairs = list[tuple[str, Any]]


def pushed(unit: PushedUnit, events: list[spaseq.Event]) -> Pairs:
    """The answers to some events, which come together, in order."""
    triples = [triples_of(event.graph) for event in events]
    rows = [
        (int(e.time), f"http://e/g{e.time}", some) for e, some in zip(events, triples, strict=True)
    ]
    unit.push(unit.match_batch(batch_from_events("http://e/s", rows, InstantCounter(ordered=True))))
    found = unit.advance(int(events[-1].time), ahead=False)
    return [(query.plan.identity.title, answer) for query, some in found for answer in some]


class Pushed:
    """A family that begins with some queries."""

    def __init__(self, limit: int | None, start: list[str]) -> None:
        self.how = StageFactory(KnowledgeBase.empty(), StageOptions(limit), warn)
        self.members = {f"q{i}": PushedQuery(planned(f"q{i}", t)) for i, t in enumerate(start)}
        queries = [*self.members.values()]
        family = family_begun_by(queries[0].plan)
        assert family is not None
        if len(queries) > 1:
            (family,) = families_of([query.plan for query in queries])
        self.unit = PushedUnit(dict(enumerate(queries)), self.how, family)
        self.answered = False

    def add(self, name: str, text: str) -> None:
        query = PushedQuery(planned(name, text))
        if self.unit.takes(query.plan):
            self.members[name] = query
            self.unit.add(query)

    def remove(self, name: str) -> None:
        self.unit.remove(self.members.pop(name))

    def restart(self) -> None:
        """As another process would: nothing but the snapshot and the texts is left."""
        snapshot, names = self.unit.snapshot(), [q.plan.identity.title for q in self.unit.queries]
        self.members = {name: PushedQuery(self.members[name].plan) for name in names}
        unit = restored_unit(snapshot, [self.members[name] for name in names], self.how)
        assert unit.is_family
        self.unit = unit

    def push(self, events: list[spaseq.Event]) -> Pairs:
        found = pushed(self.unit, events)
        self.answered |= bool(found)
        return found

    def close(self) -> Pairs:
        found = [(q.plan.identity.title, a) for q, some in self.unit.close() for a in some]
        self.answered |= bool(found)
        return found


def test_no_member_that_a_template_recognises_is_planned_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = """PREFIX : <http://e/> SELECT ?s ?v WITHIN 5 SECONDS FROM STREAM S <http://e/S>
        WHERE {{ SEQ(A; B) DEFINE GPM A ON S {{ ?s :v ?v FILTER (?v > {0}) }}
        DEFINE GPM B ON S {{ ?s :v ?w FILTER (?w < ?v - {0}) }} }}"""
    events = [
        spaseq.Event(f"<http://e/s> <http://e/v> {integer(v)} .", 1000 * i)
        for i, v in enumerate((9, 20, 3, 12, 1))
    ]
    wanted = []
    for least in range(20):  # by the definition: the next event that is low enough
        for i, v in enumerate((9, 20, 3, 12, 1)):
            later = [w for w in (9, 20, 3, 12, 1)[i + 1 :] if w < v - least]
            wanted += [(f"query{least + 1}", integer(v))] if v > least and later else []

    def refuse(*_: object) -> None:
        raise AssertionError("a member was planned")

    monkeypatch.setattr(PlanTemplate, "planned", refuse)
    texts = [text.format(least) for least in range(20)]
    engine = spaseq.Engine(texts)
    found = [m for event in events for m in engine.push("S", event.graph, event.time)]
    found += engine.close()
    assert sorted((m.query, m.bindings["v"]) for m in found) == sorted(wanted)
    local = spaseq.run(texts, {"S": events}, runtime="local")
    assert sorted((m.query, m.bindings["v"]) for m in local) == sorted(wanted)


OF_KIND = """PREFIX : <http://e/> SELECT ?x WITHIN 10 SECONDS FROM STREAM S <http://e/s>
    WHERE {{ SEQ(A; B) DEFINE GPM A ON S {{ ?x :kind :k{kind} ; :is 0 }}
    DEFINE GPM B ON S {{ ?x :kind :k{kind} ; :is 1 }} }}"""


def test_pushed_events_reach_the_members_whose_constants_they_have(
    force: Force, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every third event concerns no member, and is matched by none."""
    force("template_queries=least")
    matched, match = list[int](), SingleEventStage.match
    number = '"{}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    triple = "<http://e/x> <http://e/{}> {} .\n".format
    graphs = [
        triple("kind", f"<http://e/k{i % 18}>") + triple("is", number.format(i // 18 % 2))
        for i in range(72)
    ]
    expected = [
        (f"query{kind + 1}", 100 * i)
        for i in range(72)
        for kind in range(12)
        if kind == i % 18 and i // 18 % 2
    ]
    found = list[tuple[str, int]]()

    def counted(stage: SingleEventStage, iri: str, time: int, *rest: Any) -> Any:
        matched.append(time // 100)
        return match(stage, iri, time, *rest)

    monkeypatch.setattr(SingleEventStage, "match", counted)
    with spaseq.Engine([OF_KIND.format(kind=kind) for kind in range(12)]) as engine:
        for i, graph in enumerate(graphs):
            found += ((m.query, m.answer.end[0]) for m in engine.push("S", graph, 100 * i))
        found += ((m.query, m.answer.end[0]) for m in engine.close())
    assert found == expected
    assert matched == [i for i in range(72) if i % 18 < 12]
