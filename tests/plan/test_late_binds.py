"""BINDs over earlier steps: which are computed of matches, and what their variables are worth.
EXISTS over earlier steps: which are joins.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

import spaseq
from spaseq.compile import compile_query
from spaseq.plan.query_plan import QueryPlan

XSD = "http://www.w3.org/2001/XMLSchema#"

HEAD = """PREFIX : <http://e/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
    SELECT {select} WITHIN 1 HOURS FROM STREAM S <http://e/s> WHERE {{ SEQ({sequence})
    DEFINE GPM A ON S {{ ?r :a ?x }} DEFINE GPM B ON S {{ ?r :b ?y {b} }}
    DEFINE GPM C ON S {{ ?r :c ?z {c} }} }}"""

DROP = "BIND(?x - ?y AS ?d)"


def query(sequence: str, b: str = "", c: str = "", select: str = "*") -> str:
    return HEAD.format(select=select, sequence=sequence, b=b, c=c)


def plan(sequence: str, b: str = "", c: str = "") -> QueryPlan:
    return compile_query(query(sequence, b, c))


@pytest.mark.parametrize(
    ("sequence", "b", "c"),
    [
        ("A; B", DROP, ""),
        ("A; B", f"{DROP} FILTER(?d > 3)", ""),
        ("A; B", f"{DROP} BIND(?d * 2 AS ?e) FILTER(?e > 3)", ""),
        ("A; B; C", DROP, "FILTER(?z < ?d)"),
        ("A; B; C", DROP, "BIND(?d - ?z AS ?e) FILTER(?e > 0)"),
        ("A; B?; C", DROP, ""),
        ("A+; B", "BIND(SUM(?x) - ?y AS ?d)", ""),
        ("A; B", "BIND(TIMESTAMP(A) AS ?d)", ""),
        ("A; B", "BIND(NOW() - TIMESTAMP(A) AS ?d)", ""),
        ("A; B+", f"{DROP} FILTER(?d > 3)", ""),
        ("A; B+", "BIND(PREV(?y) - ?y AS ?d) FILTER(COALESCE(?d, 1) > 0)", ""),
        ("A; B!; C", f"{DROP} FILTER(?d > 3)", ""),
        ("A; (B; C)+", DROP, ""),
        ("A; (B | C)", DROP, ""),
    ],
)
def test_a_bind_over_earlier_steps_is_computed_of_each_match(sequence: str, b: str, c: str) -> None:
    made = plan(sequence, b, c)
    assert all(gpm.correlation is None for gpm in made.patterns.gpms)
    assert made.evaluator.startswith("compiled-")


@pytest.mark.parametrize(
    ("sequence", "b", "c"),
    [
        ("A; B", f"{DROP} FILTER(BOUND(?d))", ""),
        ("A; B", f"{DROP} FILTER EXISTS {{ ?r :limit ?d }}", ""),
        ("A; B", f"{DROP} OPTIONAL {{ ?r :limit ?d }}", ""),
        ("A; B; C", DROP, ". ?r :limit ?d"),
        ("A; B?; C", DROP, "FILTER(?z < ?d)"),
        ("A; B+; C", DROP, "FILTER(?z < ?d)"),
        ("(A; B)+", DROP, ""),
        ("B; A; B", DROP, ""),
        ("A; B; B!", DROP, ""),
        ("A; B", "BIND(?x + RAND() AS ?d)", ""),
        ("A; B+", "BIND(SUM(?y) AS ?d)", ""),
        ("A; B; B", "BIND(NOW() AS ?d)", ""),
        ("A; B", "BIND(TIMESTAMP(B) AS ?d)", ""),
        ("A; B", "BIND(?x AS ?d) ?r :before ?x", ""),
    ],
)
def test_others_stay_where_they_are(sequence: str, b: str, c: str) -> None:
    computed = plan(sequence, b, c).answers.computed
    assert "d" not in {variable.name for variable in computed}


@pytest.mark.parametrize(("count", "computed"), [(3, 4), (40, 0)])
def test_binds_that_double_each_other(count: int, computed: int) -> None:
    """The expression of the last one would have 2^40 terms."""
    more = " ".join(f"BIND(?d{i} * ?d{i} AS ?d{i + 1})" for i in range(count))
    assert len(plan("A; B", f"BIND(?x - ?y AS ?d0) {more}").answers.computed) == computed


def events(text: str) -> list[str]:
    """N-Triples of events such as `a9`."""
    return [
        f'<http://e/r> <http://e/{event[0]}> "{event[1:]}"^^'
        "<http://www.w3.org/2001/XMLSchema#integer> ."
        for event in text.split()
    ]


def answers(text: str, stream: str) -> list[str]:
    """The values of each answer over events, one a second."""
    engine = spaseq.Engine(text)
    given = [*enumerate(events(stream))]
    found = [m for second, event in given for m in engine.push("S", event, second * 1000)]
    matches = (*found, *engine.close())
    return [" ".join(t.split('"')[1] for _, t in match.answer.bindings) for match in matches]


DROPS = "BIND(COALESCE(PREV(?y), ?x) - ?y AS ?d) FILTER(?d > 1)"


@pytest.mark.parametrize(
    ("text", "stream", "expected"),
    [
        (query("A; B", f"{DROP} FILTER(?d > 3)", select="?d"), "a9 b8 b2", ["7"]),
        (query("A; B", "BIND(?x / ?y AS ?d)", select="?y ?d"), "a9 b0 b3", ["0"]),
        (query("A; B?; C", DROP, select="?z ?d"), "a9 c1 b2 c4", ["1", "4 7"]),
        (query("A; B; C", DROP, "FILTER(?z < ?d)", select="?d ?z"), "a9 b2 c8 c3", ["7 3"]),
        (
            query("A; B+", DROPS, select='(GROUP_CONCAT(?d; SEPARATOR=",") AS ?ds)'),
            "a9 b7 b6 b2",
            ["2", "2,5"],
        ),
        (query("A; B+", DROPS, select="?d"), "a9 b7 b6 b2", ["2", "5"]),
        (
            query("A; B+", f"{DROP} FILTER(?d != 3)", select="(SUM(?d) AS ?s)"),
            "a9 b7 b6 b4",
            ["2", "7"],
        ),
        (
            query("A; B; C", "BIND(NOW() - TIMESTAMP(A) AS ?d)", select="?d"),
            "a1 b1 c1",
            ["PT1S"],
        ),
    ],
    ids=lambda value: None if isinstance(value, str) and len(value) < 40 else "",
)
def test_values(text: str, stream: str, expected: list[str]) -> None:
    assert answers(text, stream) == expected


# --- EXISTS over earlier steps ----------------------------------------------------------------

MAP = """@prefix : <http://e/> . :n0 :next :n1 , :n2 . :n1 :next :n2 . :n2 :next :n0 , :n3 .
    :n3 :next :n3 . :n1 :of :n0 . :n2 :of :n0 , :n1 ."""

NEXT = "FILTER(EXISTS { GRAPH <http://e/map> { ?b :next ?a } })"
NEXT_OF = "FILTER(?y != 3 && (EXISTS { GRAPH <http://e/map> { ?b :next ?a . ?a :of ?b } }))"
SAME = "FILTER(EXISTS { ?s :b ?b . ?s :from ?a })"
LATER = "FILTER(EXISTS { GRAPH <http://e/map> { ?c :next ?b } })"

JOINED = [
    ("A; B", NEXT),
    ("A; B; C", NEXT_OF),
    ("A, B", NEXT),
    ("A; B+", NEXT),
    ("A; B+[:]; C", NEXT),
    ("A; (B | C)+", NEXT),
    ("A; B!; C", NEXT),
    ("A; C+ UNTIL B", NEXT),
    ("A; B?; C", SAME),
    ("A; C; B", f"{NEXT} {SAME}"),
    ("A; B", f". _:t :from ?f {NEXT} . _:t :y 3"),
]
OTHERS = [
    ("A+; B", NEXT),
    ("A?; B", NEXT),
    ("(A | C); B", NEXT),
    ("(A AND B); C", NEXT),
    ("A; B!; C", LATER),
    ("A; B", f"{NEXT} MINUS {{ ?s :from ?a ; :y 3 }}"),
    ("A; B", "FILTER(EXISTS { GRAPH <http://e/map> { ?a :next ?o . ?o :next ?b } })"),
    ("A; B", "FILTER(EXISTS { GRAPH <http://e/map> { ?a :next/:next ?b } })"),
    ("A; B", "FILTER(EXISTS { GRAPH <http://e/map> { ?a :next [] . ?b :of ?a } })"),
    ("A; B", "FILTER(EXISTS { GRAPH ?g { ?b :next ?a } })"),
    ("A; B", "FILTER(EXISTS { GRAPH <http://e/map> { ?a :next ?b } })"),
    ("A; B", "FILTER(EXISTS { GRAPH <http://e/map> { ?a :of :n0 } })"),
    ("A; B", f"OPTIONAL {{ ?s :from ?a }} {NEXT}"),
]


def exists_query(sequence: str, b: str) -> str:
    return f"""PREFIX : <http://e/> SELECT * WITHIN 12 SECONDS FROM STREAM S <http://e/s>
        FROM NAMED <http://e/map> WHERE {{ SEQ({sequence})
        DEFINE GPM A ON S {{ ?r :a ?a ; :y ?x }} DEFINE GPM B ON S {{ ?s :b ?b ; :y ?y {b} }}
        DEFINE GPM C ON S {{ ?t :c ?c ; :y ?z }} }}"""


def exists_events(draw: Random) -> list[spaseq.Event]:
    found = list[spaseq.Event]()
    for second in range(40):
        subject, kind = f"<http://e/s{second}>", draw.choice("abc")
        lines = [
            f"{subject} <http://e/{kind}> <http://e/n{draw.randrange(4)}> .",
            f'{subject} <http://e/y> "{draw.randrange(5)}"^^<{XSD}integer> .',
            f"{subject} <http://e/from> <http://e/n{draw.randrange(4)}> .",
        ]
        found.append(spaseq.Event("\n".join(lines), 1000 * second))
    return found


@pytest.mark.parametrize(("sequence", "b"), JOINED)
def test_triples_of_an_exists_are_a_join(sequence: str, b: str) -> None:
    made = compile_query(exists_query(sequence, b))
    assert all(gpm.correlation is None for gpm in made.patterns.gpms)


@pytest.mark.parametrize(("sequence", "b"), OTHERS)
def test_others_are_no_join(sequence: str, b: str) -> None:
    made = compile_query(exists_query(sequence, b))
    assert any(gpm.correlation is not None for gpm in made.patterns.gpms)


@pytest.mark.parametrize(("sequence", "b"), JOINED + OTHERS)
def test_a_join_gives_what_the_exists_gives(sequence: str, b: str, tmp_path: Path) -> None:
    """An EXISTS below `||` stays one. Answers and partial matches, bounded and pushed."""
    (tmp_path / "map.ttl").write_text(MAP)
    kb = {"http://e/map": str(tmp_path / "map.ttl")}
    kept = b.replace("(EXISTS", "(false || EXISTS")
    assert kept != b
    found = 0
    for seed in range(3):
        events, told = exists_events(Random(seed)), list[Any]()
        for text in (exists_query(sequence, b), exists_query(sequence, kept)):
            parts, engine = list[spaseq.PartialMatch](), spaseq.Engine(text, kb=kb)
            run = spaseq.run(text, {"S": events}, kb=kb, runtime="local", on_partial=parts.append)
            matches = [m.answer for m in run]
            pushed = [m.answer for e in events for m in engine.push("S", e.graph, e.time)]
            pushed += [m.answer for m in engine.close()]
            told.append((matches, [p.partial for p in parts], pushed))
        assert told[0] == told[1]
        assert told[0][0] == told[0][2]
        found += len(told[0][0])
    assert found
