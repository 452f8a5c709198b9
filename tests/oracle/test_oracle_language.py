"""The oracle against small examples for docs/meaning.md#operators to #after-match.

A stream is written as letters with a number (`a1 b1 b2`), one event per second from 0; `b1@3` sets
the time, `b1/T` puts it on stream T. GPM X matches the events of letter x and binds `?x` to the
number. Where a row of the language reference is not in answer order, only the set of answers is
compared; separate tests check the order.
"""

from __future__ import annotations

import re

import pytest
from rdflib import XSD, Literal, URIRef

from spaseq.lang.parser import parse
from tests.oracle.answers import AFTER_ALL, Answer
from tests.oracle.model import Refused, Streamset, Triple
from tests.oracle.oracle import evaluate

NS = "http://example.org/"
LETTERS = "ABCDNUXY"


def integer(n: int | str) -> Literal:
    return Literal(str(n), datatype=XSD.integer, normalize=False)


def stream_of(text: str) -> Streamset:
    """`a1 b1@3 c/T`: letter, number, time in seconds, stream."""
    streams: dict[str, list[tuple[int, str | None, list[Triple]]]] = {NS + "S": [], NS + "T": []}
    for i, token in enumerate(text.split()):
        found = re.fullmatch(r"([a-z])(\d*)(?:@(\d+))?(?:/(\w))?", token)
        assert found, token
        letter, value, time, stream = found.groups()
        triples = [(URIRef(NS + "s"), URIRef(NS + letter), integer(value or 0))]
        ms = int(time) * 1000 if time else i * 1000
        streams[NS + (stream or "S")].append((ms, f"{NS}{token.split('@')[0]}", triples))
    return streams


def query(
    sequence: str,
    select: str = "*",
    within: str = "1 HOURS",
    clauses: str = "",
    having: str = "",
    **filters: str,
) -> str:
    """A query over the letters; `filters` has the text after the triple of GPM X."""
    gpms = [
        f"DEFINE GPM {x} ON S, T {{ ex:s ex:{x.lower()} ?{x.lower()} . {filters.get(x, '')} }}"
        for x in LETTERS
        if re.search(rf"\b{x}\b", sequence)
    ]
    return f"""
        PREFIX ex: <{NS}> PREFIX xsd: <{XSD}>
        SELECT {select} WITHIN {within} {clauses}
        FROM STREAM S ex:S FROM STREAM T ex:T
        WHERE {{ SEQ({sequence}) {" ".join(gpms)} }}
        {f"HAVING ({having})" if having else ""}
    """


def answers(stream: str | Streamset, text: str) -> list[Answer]:
    streams = stream_of(stream) if isinstance(stream, str) else stream
    return evaluate(parse(text), streams)


def named(found: list[Answer]) -> list[str]:
    """Each answer as the names of its events, without spaces: `a1b1c`."""
    return ["".join(str(i.event).removeprefix(NS).split("/")[0] for i in a.trace) for a in found]


def bound(found: list[Answer]) -> list[dict[str, str]]:
    """Each answer's bindings, with literals without their datatype."""
    return [{v: re.sub(r'^"(.*)"(\^\^.*|@.*)?$', r"\1", x) for v, x in a.bindings} for a in found]


def check(stream: str, sequence: str, expected: str, **more: str) -> None:
    found = named(answers(stream, query(sequence, **more)))
    assert sorted(found) == sorted(expected.split())


# --- section 4: values ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "sequence", "expected"),
    [
        (
            "14 88 11 10 16",
            "A; B+; C",
            ["14 11 16", "14 11 10 16", "88 11 16", "88 11 10 16", "11 10 16"],
        ),
        ("14 10 16", "A, B?, C", ["14 10 16", "10 16"]),
        ("14 88 16", "A; B!; C", ["14 16", "88 16"]),
        ("14 88 16", "A, B!, C", ["88 16"]),
        ("14 12 11 16", "A, B+, C", ["14 12 11 16", "12 11 16"]),
    ],
)
def test_values(values: str, sequence: str, expected: list[str]) -> None:
    numbers = values.split()
    events = [
        (i * 1000, None, [(URIRef(NS + "s"), URIRef(NS + "v"), integer(n))])
        for i, n in enumerate(numbers)
    ]
    text = f"""
        PREFIX ex: <{NS}> SELECT * WITHIN 1 HOURS FROM STREAM S ex:S
        WHERE {{ SEQ({sequence})
            DEFINE GPM A ON S {{ ?s ex:v ?a }}
            DEFINE GPM B ON S {{ ?s ex:v ?b . FILTER(?b < ?a) }}
            DEFINE GPM C ON S {{ ?s ex:v ?c . FILTER(?c = 16) }} }}
    """
    found = answers({NS + "S": events}, text)
    traces = [" ".join(numbers[i.instant[0] // 1000] for i in a.trace) for a in found]
    assert sorted(traces) == sorted(expected)


# --- section 4: letters ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sequence", "expected"),
    [
        ("A; B", "a1b1 a2b1"),
        ("A: B", "a1b1 a1b2 a2b1 a2b2"),
        ("A, B", "a2b1"),
        ("A: B: C", "a1b1c a1b2c a2b1c a2b2c"),
        ("A: B+: C", "a1b1c a1b2c a1b1b2c a2b1c a2b2c a2b1b2c"),
        ("(A AND C)", "a1c a2c"),
    ],
)
def test_letters(sequence: str, expected: str) -> None:
    check("a1 a2 b1 b2 c", sequence, expected)


def test_absence_before() -> None:
    check("a1 a2 b1 b2 c", "B!; C", "", within="1 SECONDS")


def test_absence_after_is_reported_when_the_window_closes() -> None:
    found = answers("a1 a2 b1 b2 c", query("C; B!", within="1 SECONDS"))
    assert named(found) == ["c"]
    assert found[0].end == (5000, AFTER_ALL)


# --- the original system's cases ------------------------------------------------------------------


def prices(*events: tuple[int, int]) -> Streamset:
    """(price, time in seconds)."""
    rows = [
        (t * 1000, str(p), [(URIRef(NS + "s"), URIRef(NS + "p"), integer(p))]) for p, t in events
    ]
    return {NS + "S": rows}


def price_query(sequence: str, **filters: str) -> str:
    gpms = [f"DEFINE GPM {x} ON S {{ ?s{x} ex:p ?{x.lower()} . {f} }}" for x, f in filters.items()]
    return (
        f"PREFIX ex: <{NS}> SELECT * WITHIN 1 HOURS FROM STREAM S ex:S "
        f"WHERE {{ SEQ({sequence}) {' '.join(gpms)} }}"
    )


def price_answers(text: str, *events: tuple[int, int]) -> list[list[int]]:
    return [[int(str(i.event)) for i in a.trace] for a in answers(prices(*events), text)]


def test_lower_then_equal() -> None:
    text = price_query("A; B; C", A="", B="FILTER(?b < ?a)", C="FILTER(?c = ?a)")
    found = price_answers(text, (14, 0), (16, 1), (12, 2), (14, 3))
    assert [14, 12, 14] in found
    assert found == [[14, 12, 14]]


def test_conjunction_at_one_time() -> None:
    text = price_query(
        "A, (B & C), D",
        A="FILTER(?a = 14)",
        B="FILTER(?b < ?a)",
        C="FILTER(?c > ?a)",
        D="FILTER(?d = 16)",
    )
    assert price_answers(text, (14, 10), (12, 15), (18, 15), (16, 20)) == [[14, 12, 18, 16]]


def test_either() -> None:
    text = price_query(
        "A, (B | C), D",
        A="FILTER(?a = 14)",
        B="FILTER(?b < ?a)",
        C="FILTER(?c > ?a)",
        D="FILTER(?d = 18)",
    )
    assert price_answers(text, (14, 0), (12, 1), (18, 2)) == [[14, 12, 18]]


# --- section 3: instants and operators ------------------------------------------------------------


@pytest.mark.parametrize(
    ("stream", "sequence", "expected"),
    [
        # events with equal times follow each other on one stream, but not on different streams
        ("a1@0 b1@0", "A; B", "a1b1"),
        ("b1@0 a1@0", "A; B", ""),
        ("a1@0 b1@0/T", "A; B", ""),
        ("b1@0/T a1@0 a2@0 b2@0/T", "A; B", "a1b2"),
        # strict contiguity considers every stream of the query
        ("a1@0 x@1/T b1@2", "A, B", ""),
        ("a1@0 b1@1 b2@1/T", "A, B", "a1b1 a1b2"),
        # everything at the next matching instant is taken
        ("a1 b1@3 b2@3/T b3@4", "A; B", "a1b1 a1b2"),
        # a bound on the gap
        ("a1@0 b1@5", "A;[5 SECONDS] B", "a1b1"),
        ("a1@0 b1@6", "A;[5 SECONDS] B", ""),
        ("a1@0 b1@1 b2@4 b3@9", "A:[4 SECONDS] B", "a1b1 a1b2"),
        ("a1@0 b1@5", "A,[4 SECONDS] B", ""),
        # a bracket around a plain sequence is transparent
        ("a1 b1 x c1", "A; (B, C)", ""),
        ("a1 b1 x b2 c1", "A; (B, C)", ""),
        ("a1 x b1 c1", "A; (B, C)", "a1b1c1"),
        # but an operand is a unit: of two that end together, only the one that begins first counts
        ("a1 b1 b2 c1 d1", "A; ((B: C) | D)", "a1b1c1"),
        ("a1 b1 d1 c1", "A; ((B; C) | D)", "a1b1c1 a1d1"),
        # nothing before: the operator has no effect
        ("b1 b2", "A?; B", "b1 b2"),
        ("b1 x b2", "A?, B", "b1 b2"),
    ],
)
def test_operators(stream: str, sequence: str, expected: str) -> None:
    check(stream, sequence, expected, X="")


@pytest.mark.parametrize(
    ("stream", "sequence", "expected"),
    [
        ("a1 b1", "(A | B)", "a1 b1"),
        ("a1@1 b1@1 b2@2", "(A & B)", "a1b1"),
        ("a1@1 b1@1/T", "(A & B)", "a1b1"),
        ("a1 b1 c1", "(A AND C); B", ""),
        ("b1 a1 c1", "(A AND B); C", "b1a1c1"),
        ("a1@1 b1@1/T c1@1 d1@2", "(A & B & C); D", "a1c1b1d1"),
        ("a1 b1 b2 c1", "((A; B) AND C)", "a1b1c1"),
    ],
)
def test_binary_steps(stream: str, sequence: str, expected: str) -> None:
    found = {frozenset(re.findall(r"\w\d", n)) for n in named(answers(stream, query(sequence)))}
    assert found == {frozenset(re.findall(r"\w\d", n)) for n in expected.split()}


def test_conjunction_may_use_one_event_twice_and_any_order_may_not() -> None:
    text = """PREFIX ex: <http://example.org/> SELECT * WITHIN 1 HOURS FROM STREAM S ex:S
        WHERE { SEQ(%s) DEFINE GPM A ON S { ex:s ex:a ?a } DEFINE GPM B ON S { ex:s ex:a ?b } }"""
    assert len(answers("a1", text % "(A & B)")) == 1
    assert answers("a1", text % "(A AND B)") == []
    assert len(answers("a1 a2", text % "(A AND B)")) == 2


def test_two_solutions_of_one_event_are_two_matches() -> None:
    s, a = URIRef(NS + "s"), URIRef(NS + "a")
    streams = {NS + "S": [(0, None, [(s, a, integer(1)), (s, a, integer(2))])]}
    assert bound(answers(streams, query("A"))) == [{"a": "1"}, {"a": "2"}]


def test_joins_are_by_term_and_filters_by_value() -> None:
    s = URIRef(NS + "s")
    streams = {
        NS + "S": [
            (0, None, [(s, URIRef(NS + "a"), integer("1"))]),
            (1000, None, [(s, URIRef(NS + "b"), integer("01"))]),
        ]
    }
    assert answers(streams, query("A; B", B="ex:s ex:b ?a .")) == []
    assert len(answers(streams, query("A; B", B="FILTER(?a = ?b)"))) == 1


def test_a_filter_over_what_nothing_binds_is_false() -> None:
    assert answers("a1 b1", query("A; B", B="FILTER(?b < ?c)")) == []


# --- section 3: repetition and group variables ----------------------------------------------------


@pytest.mark.parametrize(
    ("stream", "sequence", "expected"),
    [
        ("a1 b1 b2 c1", "A; B*; C", "a1c1 a1b1c1 a1b1b2c1"),
        ("a1 b1 b2 b3 c1", "A; B{2,3}; C", "a1b1b2c1 a1b1b2b3c1"),
        ("a1 b1 b2 b3", "A; B{2}", "a1b1b2"),
        ("a1 b1 x b2 c1", "A, B+; C", "a1b1c1"),
        ("a1 b1 c1 b2 c2", "A; (B, C){2}", "a1b1c1b2c2"),
        ("a1 b1 c1 x b2 c2", "A, (B, C){2}", ""),
        ("a1 x a2", "A+", "a1 a1a2 a2"),
        ("n a1 x a2", "N!, A{2}", ""),
        ("a1 b1 a2", "(A | B){2}", "a1b1 b1a2"),
        ("a1 b1 x b2", "A, (B+ | C)", "a1b1"),
        ("a1 b1 a2 a3", "(A; B?){2}", "a1b1a2 a1a2 a2a3"),
        ("x", "A?", ""),
    ],
)
def test_repetition(stream: str, sequence: str, expected: str) -> None:
    check(stream, sequence, expected, within="1 HOURS")


def test_a_group_variable_is_the_last_bound_one_afterwards() -> None:
    found = answers("a1 b1 b3 c2", query("A; B+; C", C="FILTER(?c < ?b)"))
    assert named(found) == ["a1b1b3c2"]


def test_previous_repetition() -> None:
    rising = "FILTER(COALESCE(?b > PREV(?b), true))"
    check("b1 b3 b2 b4", "B{2}", "b1b3 b3b4 b2b4", B=rising)
    check("b1 b3 b2 b4", "B{3}", "b1b3b4", B=rising)


def test_reentering_a_step_starts_afresh() -> None:
    rising = "FILTER(COALESCE(?b > PREV(?b), true))"
    check("a1 b5 b6 a2 b1 b2", "(A, B{2}){2}", "a1b5b6a2b1b2", B=rising)


def test_previous_is_unbound_where_the_previous_repetition_bound_nothing() -> None:
    asks = "FILTER(!COALESCE(PREV(?b) = PREV(?b), false))"
    assert "a1b1a2a3b3" in named(answers("a1 b1 a2 a3 b3", query("(A; B?){3}", B=asks)))
    assert "a1b1a2b2" not in named(answers("a1 b1 a2 b2", query("(A; B?){2}", B=asks)))


def test_single_variables_agree_in_all_repetitions() -> None:
    same = "ex:s ex:b ?k ."
    found = named(answers("a1 b1 b1 b2", query("A; B+", A="ex:s ex:a ?k .", B=same)))
    assert sorted(found) == ["a1b1", "a1b1b1"]


def test_aggregates_range_over_one_flat_list() -> None:
    select = """(COUNT(?b) AS ?n) (SUM(?b) AS ?sum) (AVG(?b) AS ?mean) (MIN(?b) AS ?low)
        (MAX(?b) AS ?high) (FIRST(?b) AS ?one) (LAST(?b) AS ?end) (LIST(?b) AS ?all) ?b
        (GROUP_CONCAT(?b; SEPARATOR="-") AS ?text)"""
    found = answers("a1 b3 b1 a2 b2", query("(A, B+){2}", select=select))
    (row,) = [b for b, name in zip(bound(found), named(found), strict=True) if name == "a1b3b1a2b2"]
    assert row.pop("all").count(",") == 2
    assert float(row.pop("mean")) == 2
    assert row == {
        "n": "3", "sum": "6", "low": "1", "high": "3", "one": "3", "end": "2", "b": "2",
        "text": "3-1-2",
    }  # fmt: skip


# --- section 3: negation --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stream", "sequence", "expected"),
    [
        ("a1 n b1", "A; N!; B", ""),
        ("a1 b1 n b2", "A; N!; B", "a1b1"),
        # it never makes `;` search further
        ("a1 n b1 b2", "A; N!; B", ""),
        ("a1 n b1 b2", "A: N!: B", ""),
        ("a1 x y b1", "A; (X; Y)!; B", ""),
        ("a1 y x b1", "A; (X; Y)!; B", "a1b1"),
        ("a1 x b1", "A; (X | Y)!; B", ""),
        ("a1 x b1", "A; X!; Y!; B", ""),
        ("a1 n b1 c1", "A; N!; (B; C)", ""),
        ("a1 b1 n c1", "A; N!; (B; C)", "a1b1c1"),
        ("a1 b1 n b2", "A; N!; B+", "a1b1 a1b1b2"),
        ("a1 n b1 a2 b2", "(A; N!; B){1,2}", "a2b2"),
        # ties: an event of another stream at the same instant is not before
        ("a1@0 n@0/T b1@1", "A; N!; B", "a1b1"),
    ],
)
def test_negation(stream: str, sequence: str, expected: str) -> None:
    check(stream, sequence, expected)


def test_a_negated_step_sees_what_is_bound_later() -> None:
    smaller = "FILTER(?n < ?b)"
    check("a1 n5 b3", "A; N!; B", "a1b3", N=smaller)
    check("a1 n5 b7", "A; N!; B", "", N=smaller)


def test_in_a_repetition_a_negated_step_sees_that_repetition() -> None:
    same = "FILTER(?n = ?b)"
    check("a1 n2 b1 a2 b2", "(A; N!; B){2}", "a1b1a2b2", N=same)
    check("a1 n1 b1 a2 b2", "(A; N!; B){2}", "", N=same)
    unbound = "FILTER(BOUND(?b))"
    check("a1 n c1 a2 b2 c2", "(A; N!; (B | C)){2}", "a1c1a2b2", N=unbound)


@pytest.mark.parametrize(
    ("stream", "sequence", "expected"),
    [
        ("n@0 c@3", "N!; C", "c"),
        ("n@1 c@3", "N!; C", ""),
        ("n@0 c@2 d@3", "N!; C; D", "cd"),
        ("n@1 c@2 d@3", "N!; C; D", ""),
        ("c@0 n@3", "C; N!", "c"),
        ("c@0 n@2", "C; N!", ""),
        ("c@0 d@1 n@2", "C; D; N!", ""),
        ("c@0 d@1 n@3", "C; D; N!", "cd"),
        ("n@0 c@1 n@2", "N!; C; N!", ""),
        ("n@0 c@4 n@8", "N!; C; N!", "c"),
    ],
)
def test_negation_at_the_ends(stream: str, sequence: str, expected: str) -> None:
    check(stream, sequence, expected, within="2 SECONDS")


@pytest.mark.parametrize(
    "sequence",
    [
        "(N! | A)",
        "A; (N!; B | C)",
        "A; (N!; B)+",
        "A?; N!; B?",
        "N!; A?",
        "A?;[5 SECONDS] N!; B",
        "(A?; N!; B | C)",
        "A;[5 SECONDS] N!; B",
        "N!;[5 SECONDS] B",
        "N!",
        "A; (B?; C?)+",
        "(A? | B)",
    ],
)
def test_refused(sequence: str) -> None:
    with pytest.raises(Refused):
        answers("a1", query(sequence))


def test_refused_with_a_count_window() -> None:
    with pytest.raises(Refused):
        answers("a1", query("A; N!", within="5 EVENTS"))


# --- section 3: windows, partitions, answers ------------------------------------------------------


@pytest.mark.parametrize(
    ("within", "expected"),
    [
        ("2 SECONDS", "a1b3 a4b6"),
        ("1 SECONDS", ""),
        ("3 SECONDS TUMBLING", ""),  # b3 falls into the next interval
        ("3 SECONDS TUMBLING FROM 1970-01-01T00:00:01Z", "a1b3 a4b6"),
        ("3 SECONDS TUMBLING FROM 1970-01-01T00:01:01Z", "a1b3 a4b6"),
        ("4 SECONDS TUMBLING", "a1b3 a4b6"),
    ],
)
def test_windows(within: str, expected: str) -> None:
    check("a1@1 b3@3 a4@4 b6@6", "A; B", expected, within=within)


def test_a_count_window_counts_every_event_of_the_query() -> None:
    check("a1 x x b1", "A; B", "a1b1", within="4 EVENTS")
    check("a1 x x b1", "A; B", "", within="3 EVENTS")
    check("a1@0 x@1/T x@1 b1@2", "A; B", "", within="3 EVENTS")
    check("a1@0 a2@0/T x@1", "A", "", within="1 EVENTS")  # both at one instant


def test_absence_in_a_tumbling_window_ends_with_the_interval() -> None:
    found = answers("c@3 n@4", query("C; N!", within="4 SECONDS TUMBLING"))
    assert [a.end for a in found] == [(4000, AFTER_ALL)]


def keyed(*rows: tuple[str, str]) -> Streamset:
    """(letter, key), one per second."""
    s = URIRef(NS + "s")
    return {
        NS + "S": [
            (
                i * 1000,
                f"{NS}{letter}{i}",
                [(s, URIRef(NS + letter), integer(i)), (s, URIRef(NS + "k"), Literal(key))],
            )
            for i, (letter, key) in enumerate(rows)
        ]
    }


KEYS = dict.fromkeys("ABCN", "ex:s ex:k ?k .")


def test_partitions_are_evaluated_by_themselves() -> None:
    streams = keyed(("a", "1"), ("a", "2"), ("b", "2"), ("b", "1"))
    text = query("A, B", clauses="PARTITION BY (?k)", **KEYS)
    assert named(answers(streams, text)) == ["a1b2", "a0b3"]
    assert named(answers(streams, query("A, B", **KEYS))) == ["a1b2"]
    counted = query("A; B", within="2 EVENTS", clauses="PARTITION BY (?k)", **KEYS)
    assert named(answers(streams, counted)) == ["a1b2", "a0b3"]


def test_filters_do_not_decide_an_events_partition() -> None:
    streams = keyed(("a", "1"), ("b", "1"), ("b", "1"))
    more = {**KEYS, "B": "ex:s ex:k ?k . FILTER(?b > 1)"}
    assert answers(streams, query("A, B", clauses="PARTITION BY ?k", **more)) == []


def test_order_is_by_end_then_first_then_trace() -> None:
    found = named(answers("a1 a2 b1 b2 c", query("A: B+: C")))
    assert found == ["a1b1b2c", "a1b1c", "a1b2c", "a2b1b2c", "a2b1c", "a2b2c"]
    assert named(answers("a1 a2 b1 b2 c", query("A: B"))) == ["a1b1", "a2b1", "a1b2", "a2b2"]


def test_having_distinct_and_expressions() -> None:
    stream = "a1 a2 b1 b2"
    assert named(answers(stream, query("A: B", having="?a = ?b"))) == ["a1b1", "a2b2"]
    found = answers(stream, query("A: B", select="DISTINCT ?b"))
    assert bound(found) == [{"b": "1"}, {"b": "2"}]
    rows = bound(answers(stream, query("A, B", select="(?a + ?b AS ?c) (?c * 2 AS ?d) ?z")))
    assert rows == [{"c": "3", "d": "6"}]


def test_timestamp() -> None:
    rows = bound(answers("a1 a2 b1", query("A+, B", select="(TIMESTAMP(A) AS ?t)")))
    assert {r["t"] for r in rows} == {"1970-01-01T00:00:01Z"}
    late = 'FILTER(TIMESTAMP(A) > "1970-01-01T00:00:00Z"^^xsd:dateTime)'
    check("a1 a2 b1", "A: B", "a2b1", B=late)


# --- section 5 ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("strategy", "sequence", "expected"),
    [
        ("ALL", "A: B: C", "a1b1c a1b2c a2b1c a2b2c"),
        ("NEXT", "A: B: C", "a1b1c"),
        ("LAST", "A: B: C", "a2b2c"),
        ("MAX", "A: B: C", "a1b1c a1b2c a2b1c a2b2c"),
        ("NEXT", "A: B+: C", "a1b1b2c"),
        ("LAST", "A: B+: C", "a2b1b2c"),
        ("MAX", "A: B+: C", "a1b1b2c a2b1b2c"),
        ("STRICT", "A: B+: C", "a2b1b2c"),
        ("STRICT", "A: B", "a2b1"),
        ("NEXT", "A: B", "a1b1 a1b2"),
        ("LAST", "A: B", "a2b1 a2b2"),
    ],
)
def test_selection(strategy: str, sequence: str, expected: str) -> None:
    check("a1 a2 b1 b2 c", sequence, expected, select=f"{strategy} *")


@pytest.mark.parametrize(
    ("skip", "expected"),
    [
        ("NO SKIP", "a1b1 a2b1 a1b2 a2b2 a3b3 a1b3 a2b3"),
        ("CONSUME", "a1b1 a2b1 a3b3"),
        ("SKIP TO NEXT EVENT", "a1b1 a2b1 a3b3"),
        ("SKIP PAST LAST EVENT", "a1b1 a3b3"),
        ("SKIP TO FIRST B", "a1b1 a3b3"),
        ("SKIP TO LAST B", "a1b1 a3b3"),
        ("SKIP TO FIRST A", "a1b1 a2b1 a2b2 a2b3 a3b3"),
        ("SKIP TO FIRST C", "a1b1 a2b1 a1b2 a2b2 a3b3 a1b3 a2b3"),
    ],
)
def test_after_match(skip: str, expected: str) -> None:
    check("a1 a2 b1 b2 a3 b3", "A: B: C?", expected, clauses=f"AFTER MATCH {skip}")


def test_after_match_works_on_what_selection_left() -> None:
    more = {"select": "LAST *", "clauses": "AFTER MATCH SKIP TO NEXT EVENT"}
    check("a1 a2 b1 b2", "A: B", "a2b1", **more)


def test_selection_and_skip_stay_within_a_partition() -> None:
    streams = keyed(("a", "1"), ("a", "2"), ("b", "1"), ("b", "2"))
    clauses = "PARTITION BY (?k) AFTER MATCH SKIP PAST LAST EVENT"
    assert named(answers(streams, query("A; B", clauses=clauses, **KEYS))) == ["a0b2", "a1b3"]
