"""Groups that are kept from close to close give what evaluation anew at each close gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from random import Random

import numpy as np
import pytest
import rdflib

import spaseq
from spaseq.algebra.answers import Answer
from spaseq.compile import CompileOptions, check_query, compile_query
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.options import StageOptions
from spaseq.plan.families import families_of
from spaseq.plan.templates import PlanTemplate, QueryTemplates
from spaseq.rdf.inputs.stream_options import warn
from spaseq.rdf.program_events import batch_of_event, triples_of
from spaseq.runtime.pushed_units import PushedQuery, PushedUnit, restored_unit
from spaseq.stages.unit_stages import StageFactory
from spaseq.windows import group_aggregates
from spaseq.windows.exact_numbers import of_doubles, rounded_quotients
from spaseq.windows.group_aggregates import ChangedGroups
from spaseq.windows.kernels.group_runs import DIGIT, LIMBS, MASK, rows_of_groups
from tests.oracle.comparison import comparable
from tests.sizes import first_of

XSD = "http://www.w3.org/2001/XMLSchema#"
VALUES = [
    f'"3"^^<{XSD}integer>',
    f'"-7"^^<{XSD}integer>',
    f'"9007199254740993"^^<{XSD}integer>',
    f'"2.5E0"^^<{XSD}double>',
    f'"2.50"^^<{XSD}double>',
    f'"1.0E16"^^<{XSD}double>',
    f'"-1.0E-30"^^<{XSD}double>',
    f'"-0.0E0"^^<{XSD}double>',
    f'"0.1"^^<{XSD}decimal>',
    f'"1.5"^^<{XSD}float>',
    f'"INF"^^<{XSD}double>',
    f'"NaN"^^<{XSD}double>',
    '"text"',
    "<http://e/x>",
]
DECIMALS = [f'"{v}"^^<{XSD}decimal>' for v in ("0.1", "0.20", "-7.25", "5.0", "1234567.890123")]
DECIMALS += [f'"{v}"^^<{XSD}integer>' for v in (3, -1)]
EXTENTS = [
    "RANGE 6 SECONDS SLIDE 2 SECONDS",
    "RANGE 5 SECONDS SLIDE 3 SECONDS",
    "RANGE 1 SECONDS SLIDE 4 SECONDS",
    "RANGE 3 SECONDS",
    "RANGE 4 SECONDS EACH EVENT",
    "RANGE 5 EVENTS EACH EVENT",
    "SESSION 3 SECONDS",
]
SELECTS = [
    "?o (COUNT(*) AS ?n) (SUM(?v) AS ?s) (AVG(?v) AS ?a) (MIN(?v) AS ?l) (MAX(?v) AS ?g)",
    "?o (COUNT(?v) AS ?n) (COUNT(DISTINCT ?v) AS ?d) (SUM(DISTINCT ?v) AS ?s)",
    "?o (AVG(DISTINCT ?v) AS ?a) (SUM(DISTINCT ?w) AS ?n) (AVG(?v) AS ?b)",
    "?o (SAMPLE(?v) AS ?n) (GROUP_CONCAT(?v; separator='-') AS ?c)",
    "?o (GROUP_CONCAT(DISTINCT ?w) AS ?d) (COUNT(*) AS ?n)",
    "?o (AVG(?v * 2) AS ?a) (COUNT(?w) AS ?n) (MIN(?w) AS ?l)",
]
HAVINGS = [
    "",
    "HAVING (AVG(?v) > 2)",
    "HAVING (3 >= SUM(?v) && COUNT(*) > 1)",
    "HAVING (MAX(?v) > 2)",
    "HAVING (AVG(DISTINCT ?v) > 1 && COUNT(DISTINCT ?v) < 4)",
    "HAVING (SUM(DISTINCT ?w) <= 5)",
]


def drawn_events(draw: Random, values: Sequence[str]) -> list[spaseq.Event]:
    time, events = 0, []
    for number in range(draw.randint(5, 40)):
        lines = []
        for _ in range(draw.choice([0, 1, 1, 1, 2])):
            subject = f"<http://e/o{draw.randint(1, 3)}>"
            lines.append(f"{subject} <http://e/v> {draw.choice(values)} .")
            if draw.random() < 0.5:
                lines.append(f"{subject} <http://e/w> {draw.choice(values)} .")
        events.append(spaseq.Event("\n".join(lines), time, f"http://e/g{number}"))
        time += draw.choice([0, 500, 1000, 1000, 2000, 9000])
    return events


def drawn_query(draw: Random) -> str:
    group = draw.choice(["GROUP BY ?o", "GROUP BY ?o", "GROUP BY ?o ?w", ""])
    select = draw.choice(SELECTS) if group else draw.choice(SELECTS).removeprefix("?o ")
    select = select.replace("?o ", "?o ?w ") if "?w" in group else select
    pattern = draw.choice(["?o :v ?v OPTIONAL { ?o :w ?w }", "?o :v ?v . ?o :w ?w FILTER(?v != 3)"])
    inner = f"SELECT {select} {{ EVENT {{ {pattern} }} }} {group} {draw.choice(HAVINGS)}"
    after = draw.choice(["", "", "FILTER(?n < 4)", "FILTER(?o != :o1)" if group else ""])
    if "?n" not in inner:
        after = ""
    source = draw.choice(["W", "NEW W", "GONE W", "NEW W, GONE W"])
    partition = draw.choice(["", "", "?r", "?o"])
    by = f"PARTITION BY ({partition})" if partition else ""
    key = {"": "", "?r": "KEY { ?x :w ?r }", "?o": "KEY { ?o :v ?x }"}[partition]
    return f"""PREFIX : <http://e/> SELECT * {by} FROM STREAM S <http://e/s>
        FROM WINDOW W ON S {draw.choice(EXTENTS)} {key}
        WHERE {{ SEQ(A) DEFINE GPM A ON {source} {{ {{ {inner} }} {after} }} }}"""


def answers(query: str, events: list[spaseq.Event], disable: Sequence[str] = ()) -> list[object]:
    matches = spaseq.run(query, {"S": events}, runtime="local", disable=disable)
    return [comparable(m.answer) for m in matches]


def check(seed: int) -> int:
    draw = Random(seed)
    query = drawn_query(draw)
    values = VALUES if draw.random() < 0.4 else draw.choice([VALUES[:2], VALUES[:6], DECIMALS])
    events = drawn_events(draw, values)
    assert compile_query(query).patterns.kept, query
    found = answers(query, events)
    assert found == answers(query, events, ["kept-groups"]), (seed, query)
    return len(found)


def test_drawn_queries() -> None:
    assert sum(map(check, range(40))) > 200


@pytest.mark.parametrize("disable", [[], ["kept-groups"]])
def test_the_knowledge_base_may_bind_what_an_aggregate_leaves_unbound(disable: list[str]) -> None:
    """MAX of nothing is unbound for :o1, so OPTIONAL binds ?m; for :o2 it is 2, which fails."""
    query = """PREFIX : <http://e/> SELECT ?o ?m FROM STREAM S <http://e/s> FROM NAMED :kb
        FROM WINDOW W ON S RANGE 1 HOURS WHERE { SEQ(A) DEFINE GPM A ON W {
        { SELECT ?o (MAX(?v) AS ?m) { EVENT { ?o :w ?x OPTIONAL { ?o :v ?v } } } GROUP BY ?o }
        OPTIONAL { GRAPH :kb { ?o :most ?m } } FILTER(?m > 5) } }"""
    lines = [f'<http://e/o{i}> <http://e/w> "a" .' for i in (1, 2)]
    lines.append(f'<http://e/o2> <http://e/v> "2"^^<{XSD}integer> .')
    known = rdflib.Graph().parse(data="@prefix : <http://e/> . :o1 :most 9 . :o2 :most 9 .")
    given = {"S": [spaseq.Event("\n".join(lines), 0)]}, {"http://e/kb": known}
    found = spaseq.run(query, *given, runtime="local", disable=disable)
    assert [(m.bindings["o"].n3(), m.bindings["m"].to_python()) for m in found] == [
        ("<http://e/o1>", 9)
    ]


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(1000, 1200), marks=pytest.mark.thorough),
        pytest.param(range(1200, 2000), marks=pytest.mark.slow),
    ],
)
def test_many_drawn_queries(seeds: range) -> None:
    assert sum(map(check, seeds)) > 5 * len(seeds)


def test_distinct_sums_and_samples_do_not_read_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six values, three of them different: a sample reads its first row, sums read none."""
    read = 0

    def counted(heads: object, counts: np.ndarray, *rest: object) -> None:
        nonlocal read
        read += int(counts.sum())
        rows_of_groups(heads, counts, *rest)

    monkeypatch.setattr("spaseq.windows.group_aggregates.rows_of_groups", counted)
    query = """PREFIX : <http://e/> SELECT * FROM STREAM S <http://e/s> FROM WINDOW W ON S
        RANGE 1 HOURS WHERE { SEQ(A) DEFINE GPM A ON W { { SELECT (SUM(DISTINCT ?v) AS ?s)
        (AVG(DISTINCT ?v) AS ?a) (SAMPLE(?v) AS ?f) { EVENT { ?o :v ?v } } } } }"""
    events = [
        spaseq.Event(
            f'<http://e/o> <http://e/v> "{v}"^^<{XSD}integer> .', 1000 * i, f"http://e/{i}"
        )
        for i, v in enumerate([3, 5, 3, 10, 5, 3])
    ]
    first = next(iter(spaseq.run(query, {"S": events}, runtime="local")))
    assert [first.bindings[v].to_python() for v in "saf"] == [18, 6, 3]
    assert read == 1


@pytest.mark.parametrize("value", [f'"{{v}}"^^<{XSD}{kind}>' for kind in ("integer", "double")])
@pytest.mark.parametrize(
    ("having", "passing"),
    [
        ("AVG(?v) > 95", lambda values: values and sum(values) > 95 * len(values)),
        ("SUM(?v) < -95", lambda values: sum(values) < -95),
        ("COUNT(?v) > 0 && AVG(?v) <= 4", lambda values: values and sum(values) <= 4 * len(values)),
    ],
)
def test_groups_that_surely_fail_are_not_evaluated(
    monkeypatch: pytest.MonkeyPatch,
    value: str,
    having: str,
    passing: Callable[[list[int]], bool],
) -> None:
    """Nor are those that all rows, or some of many, have left."""
    evaluated = 0
    aggregates = group_aggregates.aggregates

    def counted(kept: object, tracked: object, changed: ChangedGroups, *rest: object) -> object:
        nonlocal evaluated
        evaluated += len(changed)
        return aggregates(kept, tracked, changed, *rest)

    monkeypatch.setattr("spaseq.windows.group_keeper.aggregates", counted)
    query = f"""PREFIX : <http://e/> SELECT * PARTITION BY (?o) FROM STREAM S <http://e/s>
        FROM WINDOW W ON S RANGE 10 SECONDS SLIDE 1 SECONDS KEY {{ ?o :v ?any }}
        WHERE {{ SEQ(A) DEFINE GPM A ON W {{ {{ SELECT (COUNT(?v) AS ?n) {{ EVENT {{ ?o :v ?v }} }}
        HAVING ({having}) }} }} }}"""
    draw = Random(7)
    given = [(second, draw.randrange(50), draw.randrange(-99, 100)) for second in range(300)]
    events = [
        spaseq.Event(f"<http://e/o{key}> <http://e/v> {value.format(v=v)} .", 1000 * second)
        for second, key, v in given
    ]
    found = sum(1 for _ in spaseq.run(query, {"S": events}, runtime="local"))
    expected = 0
    for close in range(1, 310):
        for key in {key for _, key, _ in given}:
            values = [v for at, own, v in given if own == key and close - 10 <= at < close]
            expected += bool(passing(values))
    assert found == expected > 0
    assert evaluated <= found


def groups_that_come_and_go() -> None:
    """Many groups, each for ten seconds: what is kept of them goes."""
    query = """PREFIX : <http://e/> SELECT * FROM STREAM S <http://e/s>
        FROM WINDOW W ON S RANGE 10 SECONDS SLIDE 1 SECONDS
        WHERE { SEQ(A) DEFINE GPM A ON NEW W, GONE W {
        { SELECT ?o (COUNT(*) AS ?n) { EVENT { ?o :v ?v } } GROUP BY ?o } } }"""
    engine, found = spaseq.Engine(query), list[spaseq.Match]()
    for second in range(60):
        for place in (0, 1, 1):
            graph = f'<http://e/o{second}-{place}> <http://e/v> "{second}" .'
            found += engine.push("S", graph, second * 1000)
    found += engine.close()
    told = sorted((m.answer.end[0], *(m.bindings[v].n3() for v in "on")) for m in found)
    times = [(second + 1, second) for second in range(60)]
    times += [(second + 11, second) for second in range(60)]
    assert told == sorted(
        (time * 1000, f"<http://e/o{second}-{place}>", f'"{place + 1}"^^<{XSD}integer>')
        for time, second in times
        for place in (0, 1)
    )


def test_groups_that_come_and_go() -> None:
    groups_that_come_and_go()


def sums_of_each_key() -> None:
    """Windows of seven keys in a bounded run, in steps of some rows."""
    query = """PREFIX : <http://e/> SELECT * PARTITION BY (?o) FROM STREAM S <http://e/s>
        FROM WINDOW W ON S RANGE 10 SECONDS KEY { ?o :v ?any }
        WHERE { SEQ(A) DEFINE GPM A ON W {
        { SELECT (SUM(?v) AS ?n) { EVENT { ?o :v ?v } } HAVING (COUNT(*) > 0) } } }"""
    draw, events, sums = Random(5), list[spaseq.Event](), dict[tuple[int, str], int]()
    for second in range(300):
        key, value = f"<http://e/o{draw.randrange(7)}>", draw.randrange(100)
        text = f'{key} <http://e/v> "{value}"^^<{XSD}integer> .'
        events.append(spaseq.Event(text, second * 1000))
        close = (second // 10 + 1) * 10_000
        sums[close, key] = sums.get((close, key), 0) + value
    found = spaseq.run(query, {"S": events}, runtime="local")
    told = [(m.answer.end[0], *(m.bindings[v].n3() for v in "on")) for m in found]
    expected = [(close, key, f'"{n}"^^<{XSD}integer>') for (close, key), n in sums.items()]
    assert sorted(told) == sorted(expected)


def test_sums_of_each_key() -> None:
    sums_of_each_key()


def exact_sum(values: Sequence[float], draw: Random) -> list[int]:
    """The digits of a sum, with carries that wait."""
    whole, shift, fits = of_doubles(np.array(values))
    assert fits.all()
    total = sum(m << s for m, s in zip(whole.tolist(), shift.tolist(), strict=True))
    digits = [(total >> (DIGIT * i)) & MASK for i in range(LIMBS - 1)]
    digits.append(total >> (DIGIT * (LIMBS - 1)))
    for i in range(LIMBS - 1):
        carry = draw.randint(-5, 5)
        digits[i] += carry << DIGIT
        digits[i + 1] -= carry
    return digits


def test_quotients_are_exact_and_rounded_once() -> None:
    draw = Random(1)
    sums, divisors, wanted = [], [], []
    for _ in range(2000):
        values = [
            draw.choice([1, -1]) * draw.random() * 2.0 ** draw.randrange(-30, 60)
            for _ in range(draw.randint(1, 5))
        ]
        values += [-v for v in values[1:]] if draw.random() < 0.2 else []
        divisors.append(draw.choice([1, 2, 3, 7, 2**31 - 1, draw.randint(1, 1000)]))
        sums.append(exact_sum(values, draw))
        wanted.append(float(sum(map(Fraction, values)) / divisors[-1]))
    found = rounded_quotients(np.array(sums, np.int64), np.array(divisors, np.int64))
    assert found.tolist() == wanted


def explained(query: str, disable: Sequence[str] = ()) -> str:
    return str(spaseq.explain(query, disable=disable))


def test_explain_says_which_windows_are_kept() -> None:
    head = (
        "PREFIX : <http://e/> SELECT * FROM STREAM S <http://e/s> FROM WINDOW W ON S RANGE 1 HOURS"
    )
    kept = f"""{head} WHERE {{ SEQ(A) DEFINE GPM A ON W {{
        {{ SELECT ?o (COUNT(*) AS ?n) {{ EVENT {{ ?o :v ?v }} }} GROUP BY ?o }} }} }}"""
    assert "keeps    the groups of A" in explained(kept)
    assert "anew     A: kept-groups is disabled" in explained(kept, disable=["kept-groups"])
    anew = f"{head} WHERE {{ SEQ(A) DEFINE GPM A ON W {{ ?o :v ?v OPTIONAL {{ ?o :w ?w }} }} }}"
    assert "anew     A: its pattern is neither one sub-SELECT" in explained(anew)
    ordered = kept.replace("COUNT(*)", "SAMPLE(?v)")
    assert "keeps    the groups of A" in explained(ordered)
    distinct = kept.replace("COUNT(*)", "COUNT(DISTINCT *)")
    assert "anew     A: it has COUNT(DISTINCT *)" in explained(distinct)


def test_state_is_of_its_way_of_evaluation() -> None:
    query = """PREFIX : <http://e/> SELECT * FROM STREAM S <http://e/s> FROM WINDOW W ON S
        RANGE 1 HOURS WHERE { SEQ(A) DEFINE GPM A ON W {
        { SELECT (COUNT(*) AS ?n) { EVENT { ?o :v ?v } } HAVING (COUNT(*) > 1) } } }"""
    anew = compile_query(query, options=CompileOptions(disable=["kept-groups"]))
    assert anew.signature.fingerprint != compile_query(query).signature.fingerprint


TESTS = ["AVG(?v) > {}", "AVG(?v) <= {}", "{} >= AVG(?v)", "AVG(?v) = {}"]


def family(draw: Random) -> list[str]:
    """Queries that differ in what HAVING compares with."""
    change, test, extent = (
        draw.choice(["", "NEW", "GONE"]),
        draw.choice(TESTS),
        draw.choice(EXTENTS),
    )
    return [
        f"""PREFIX : <http://e/> SELECT ?o ?a FROM STREAM S <http://e/s> FROM WINDOW W ON S {extent}
        WHERE {{ SEQ(A) DEFINE GPM A ON {change} W {{ {{ SELECT ?o (AVG(?v) AS ?a) (COUNT(*) AS ?n)
        {{ EVENT {{ ?o :v ?v }} }} GROUP BY ?o
        HAVING (COUNT(*) >= 1 && {test.format(limit)}) }} }} }}"""
        for limit in ("-1", "0", "2", "2.5", "3", "3e0", "10", "1000")
    ]


def told(
    queries: list[str], events: list[spaseq.Event], disable: Sequence[str], runtime: str = "local"
) -> list[object]:
    matches = spaseq.run(queries, {"S": events}, runtime=runtime, disable=disable)  # type: ignore[arg-type]
    return [(m.query, comparable(m.answer)) for m in matches]


@pytest.mark.parametrize("seed", first_of(range(8), 2))
def test_a_family_of_thresholds_is_one_query(seed: int) -> None:
    draw = Random(seed)
    queries, events = family(draw), drawn_events(draw, VALUES[:6])
    plans = [compile_query(text, "Q", CompileOptions(several=True)) for text in queries]
    assert [len(own.rows) for own in families_of(plans)] == [8]
    assert told(queries, events, []) == told(queries, events, ["query-families"])
    assert told(queries, events, []) == told(queries, events, ["kept-groups"])


HOW = StageFactory(KnowledgeBase.empty(), StageOptions(), warn)


def answers_of(found: list[tuple[PushedQuery, Sequence[Answer]]]) -> list[str]:
    return [repr((q.plan.identity.title, comparable(a))) for q, some in found for a in some]


@pytest.mark.parametrize("seed", first_of(range(8), 2))
def test_a_family_of_thresholds_is_pushed_as_one_query(seed: int) -> None:
    """Members go, and the family goes on from its snapshots."""
    draw = Random(seed)
    texts, events = family(draw), drawn_events(draw, VALUES[:6])
    plans = [compile_query(t, f"q{i}", CompileOptions(several=True)) for i, t in enumerate(texts)]
    queries = {plan.identity.title: PushedQuery(plan) for plan in plans}
    (own,) = families_of(plans)
    together = PushedUnit(dict(enumerate(queries.values())), HOW, own)
    alone = {name: PushedUnit({0: query}, HOW) for name, query in queries.items()}
    found, wanted = [], []
    for place, event in enumerate(events):
        if draw.random() < 0.15 and len(queries) > 1:
            name = draw.choice(sorted(queries))
            together.remove(queries.pop(name))
            del alone[name]
        if draw.random() < 0.2:
            names = [query.plan.identity.title for query in together.queries]
            queries = {name: PushedQuery(queries[name].plan) for name in names}
            state = together.snapshot()
            together = restored_unit(state, [*queries.values()], HOW)
            assert together.is_family
        assert isinstance(event.time, int)
        batch = batch_of_event(
            "http://e/s", event.time, place, f"g{place}", triples_of(event.graph)
        )
        for unit, into in [(together, found), *((unit, wanted) for unit in alone.values())]:
            unit.push(unit.match_batch(batch))
            into += answers_of(unit.advance(event.time - 1, ahead=False))
        assert sorted(found) == sorted(wanted)
    found += answers_of(together.close())
    wanted += [text for unit in alone.values() for text in answers_of(unit.close())]
    assert sorted(found) == sorted(wanted)


def test_an_engine_takes_a_family_of_thresholds_as_one_query() -> None:
    draw = Random(5)
    texts, events = family(draw), drawn_events(draw, VALUES[:6])
    found = []
    for disable, units in ([], 1), (["query-families"], 8):
        engine = spaseq.Engine(texts, disable=disable)
        assert len(engine._queries.running) == units
        made = [m for event in events for m in engine.push_many([("S", event)])]
        made += engine.close()
        found.append(sorted(repr((m.query, comparable(m.answer))) for m in made))
    assert found[0] == found[1]
    assert found[0]


@pytest.mark.thorough
@pytest.mark.spark
def test_a_family_of_thresholds_is_one_query_on_spark() -> None:
    draw = Random(1)
    queries, events = family(draw), drawn_events(draw, VALUES[:6])
    assert told(queries, events, [], "spark") == told(queries, events, ["query-families"])


def test_of_thresholds_on_one_average_one_is_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """PREFIX : <http://e/> SELECT ?o ?a FROM STREAM S <http://e/s>
        FROM WINDOW W ON S RANGE 2 SECONDS WHERE {{ SEQ(A) DEFINE GPM A ON W {{
        {{ SELECT ?o (AVG(?v) AS ?a) {{ EVENT {{ ?o :v ?v }} }} GROUP BY ?o HAVING (AVG(?v) > {}) }}
        }} }}"""
    events = [
        spaseq.Event(f'<http://e/o{i % 3}> <http://e/v> "{i % 7}"^^<{XSD}integer> .', 500 * i)
        for i in range(60)
    ]
    wanted = []
    for begin in range(0, 60, 4):  # by the definition: four events in each window
        for o in range(3):
            values = [i % 7 for i in range(begin, begin + 4) if i % 3 == o]
            mean = Fraction(sum(values), len(values)) if values else -1
            wanted += [f"query{n + 1}" for n in range(10) if mean > Fraction(n + 1, 2)]

    def refuse(*_: object) -> None:
        raise AssertionError("a member was planned")

    monkeypatch.setattr(PlanTemplate, "planned", refuse)
    texts = [text.format((n + 1) / 2) for n in range(10)]
    engine = spaseq.Engine(texts)
    found = [m.query for e in events for m in engine.push("S", e.graph, e.time)]
    assert sorted([*found, *(m.query for m in engine.close())]) == sorted(wanted)
    assert sorted(m.query for m in spaseq.run(texts, {"S": events}, runtime="local")) == sorted(
        wanted
    )


def test_a_threshold_that_an_empty_window_passes_has_its_warning() -> None:
    text = """PREFIX : <http://e/> SELECT ?a FROM STREAM S <http://e/s>
        FROM WINDOW W ON S RANGE 2 SECONDS WHERE {{ SEQ(A) DEFINE GPM A ON W {{
        {{ SELECT (AVG(?v) AS ?a) {{ EVENT {{ ?o :v ?v }} }} HAVING (AVG(?v) >= {}) }} }} }}"""
    templates, options = QueryTemplates(), CompileOptions(several=True)
    checked = [check_query(text.format(n), f"q{n}", options, templates) for n in (5, 3, 0, 4)]
    assert [bool(own.diagnostics) for own in checked] == [False, False, True, False]
