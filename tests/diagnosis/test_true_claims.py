"""What a report says of events, values and counts is true, and its advice helps."""

from __future__ import annotations

from pathlib import Path

import pytest

import spaseq
from spaseq.diagnosis.report import Cause
from tests.diagnosis.small_streams import cause_of, query_of, steps_of

NS = "http://example/"
PAIR = {"A": "[] :a ?v", "B": "[] :b ?v"}


# --- between steps --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sequence", "head", "events", "reached"),
    [
        ("A{2}[,]; B", "WITHIN 1 HOURS", "a b a b", [(1, 0)]),
        ("A; A; B", "WITHIN 2 EVENTS", "a b a b", [(1, 2), (2, 0)]),
        ("A, A; B", "WITHIN 1 HOURS", "a b a b", [(1, 2), (2, 0)]),
        (
            "A, A; B",
            "WITHIN 1 HOURS PARTITION BY (?s)",
            "a,s=x a,s=y a,s=x b,s=y",
            [(1, 3), (2, 1), (3, 0)],
        ),
    ],
)
def test_events_of_later_steps_stand_between_those_of_earlier_ones(
    sequence: str, head: str, events: str, reached: list[tuple[int, int]]
) -> None:
    keyed = {"A": "[] :a [] ; :s ?s", "B": "[] :b [] ; :s ?s"} if "PARTITION" in head else None
    report = steps_of(query_of(sequence, keyed, head), events)
    assert [(step.step, step.reached) for step in report.steps] == reached


@pytest.mark.parametrize(
    ("sequence", "gpms", "events", "says"),
    [
        ("(A & B); C", PAIR, "a=1 &b=2 c", "?v is never equal: 1 in A, 2 in B"),
        ("A; C; B", PAIR, "a=1 c b=2", "?v is never equal: 1 in A, 2 in B"),
        ("A; (B | C)", PAIR | {"C": "[] :c ?w"}, "a=1 b=2", "1 in A, 2 in B"),
        ("A; B", PAIR, "a=18 b=18.0", "FILTER(?x = ?v)"),
        ("A; B", PAIR, "a=x b=X", "FILTER(LCASE(STR(?x)) = LCASE(STR(?v)))"),
        ("A; B", PAIR, "a=1 b=2 a=2", "no B after A has the same ?v, although some values occur"),
        ("(A; B); A", PAIR, "b=1 a=1 b=2 a=2", "no B after A has the same ?v, although"),
    ],
)
def test_terms_that_never_join(sequence: str, gpms: dict[str, str], events: str, says: str) -> None:
    cause = cause_of(query_of(sequence, gpms), events)
    assert (cause.kind, cause.term) == ("equality-join-empty", "?v")
    assert says in cause.text


def test_all_values_are_compared() -> None:
    events = [f"a={n}" for n in range(10_010)]
    cause = cause_of(query_of("A; B", PAIR), " ".join([*events[:-1], "b=10009", events[-1]]))
    assert "although some values occur in both" in cause.text


def strings(*values: str | int) -> Cause:
    """The cause of `A; B` with a FILTER ?w > ?v, where A has 1 and B has these values."""
    query = query_of("A; B", {"A": "[] :a ?v", "B": "[] :b ?w FILTER(?w > ?v)"})
    events = [
        spaseq.Event([(f"<{NS}x>", f"<{NS}{name}>", _literal(value))], n * 1000)
        for n, (name, value) in enumerate([("a", 1), *(("b", value) for value in values)])
    ]
    (cause,) = spaseq.why(query, {f"{NS}letters": events}).causes
    return cause


def _literal(value: str | int) -> str:
    typed = "^^<http://www.w3.org/2001/XMLSchema#integer>"
    return f'"{value}"' + typed * isinstance(value, int)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (("7",), 'an error for 1 candidate; ?v = 1, ?w = "7"'),
        (("7", 0), "false or an error for 2 candidates; the nearest has ?v = 1, ?w = 0, 1 off"),
        ((1, 0), "false for 2 candidates"),
    ],
)
def test_a_text_is_no_number_between_steps(values: tuple[str | int, ...], says: str) -> None:
    assert says in strings(*values).text


@pytest.mark.parametrize(
    ("head", "helps"),
    [
        ("WITHIN 2 SECONDS TUMBLING", "boundary of the tumbling window"),
        ("WITHIN 1 SECONDS TUMBLING", "2 seconds"),
    ],
)
def test_a_span_as_long_as_a_tumbling_window_needs_a_sliding_one(head: str, helps: str) -> None:
    assert helps in cause_of(query_of("A; B", None, head), "a . b").text
    steps = steps_of(query_of("A; B", None, "WITHIN 2 SECONDS"), "a . b")
    assert steps.causes == ()


def test_the_next_event_is_named_where_no_comma_stands() -> None:
    gpms = {"B": "[] :b ?x", "C": "[] :c ?x"}
    cause = cause_of(query_of("A; (B: C){2}; D", gpms), "a b=1 b=2 c=2 b=3 c=3 d")
    assert cause.suggestion == ":"
    assert "; takes :e1 at 1970-01-01T00:00:01, the next B after :e0" in cause.text
    assert ", and not :e2 at" in cause.text


def test_the_events_of_a_comma_are_named() -> None:
    cause = cause_of(query_of("A; (B, C){2}; D"), "a x b x c b c d")
    assert ":e3 at 1970-01-01T00:00:03 stands between :e2" in cause.text


@pytest.mark.parametrize(
    ("sequence", "events", "kind"),
    [
        ("A; N!; B", "a=1 n=2 n=1 b=1", "negation"),
        ("N!; A; B", "n=1 n=2 a=2 b=2", "negation"),
        ("A; B; N!", "a=1 b=1 n=2 n=1", "negation"),
        ("A; B{2} UNTIL N", "a=1 b=1 n=2 n=1 b=1", "until"),
    ],
)
def test_an_event_that_joins_is_the_example_of_a_forbidden_one(
    sequence: str, events: str, kind: str
) -> None:
    cause = cause_of(query_of(sequence, PAIR | {"N": "[] :n ?v"}), events)
    assert cause.kind == kind
    words = events.split()
    number = max(n for n, word in enumerate(words) if word == f"n={words[-1][-1]}")
    assert cause.example is not None and cause.example.startswith(f":e{number} at")


def test_no_other_event_is_blamed_where_those_of_the_loop_are_forbidden() -> None:
    gpms = {"U": "{ [] :a ?u } UNION { [] :n ?u }"}
    cause = cause_of(query_of("A{2} UNTIL U; C", gpms), "a a n c")
    assert (cause.kind, cause.example) == ("until", None)


def test_the_last_of_many_events_is_named() -> None:
    cause = cause_of(query_of("A; B"), " ".join([*["b"] * 1500, "a"]))
    assert cause.example == ":e1499 at 1970-01-01T00:24:59 is before :e1500 at 1970-01-01T00:25:00"


def test_the_last_match_of_many_is_not_named() -> None:
    cause = cause_of(query_of("A; (B | C)"), " ".join([*["b c"] * 800, "a"]))
    assert cause.example is None


def test_the_smallest_of_many_candidates() -> None:
    events = " ".join([*["a . . b"] * 1100, "a . b"])
    cause = cause_of(query_of("A; B", None, "WITHIN 1 SECONDS"), events)
    assert cause.text.startswith("of the first 1,000 candidates the smallest span up to B is 3 sec")


# --- one graph pattern ----------------------------------------------------------------------------

STREAM = """@prefix : <http://e/> . @prefix prov: <http://www.w3.org/ns/prov#> .
:g1 { :o1 :speed 30 ; :code "x" ; :at :r1 } :g1 prov:generatedAtTime 0 .
:g2 { :o2 :speed 20 ; :code 1 } :g2 prov:generatedAtTime 1000 .
:g3 { :o3 :speed 10 ; :code 2 ; :road :r1 } :g3 prov:generatedAtTime 2000 .
"""
KB = "@prefix : <http://e/> . " + " ".join(f":r{n} :street :s{n} ." for n in range(10_002))


def first_cause(folder: Path, pattern: str, stream: str = STREAM) -> str:
    query = f"""PREFIX : <http://e/> SELECT * WITHIN 1 HOURS FROM STREAM S :s FROM NAMED :kb
    WHERE {{ SEQ(A) DEFINE GPM A ON S {{ {pattern} }} }}"""
    (folder / "s.trig").write_text(stream)
    (folder / "kb.ttl").write_text(KB)
    report = spaseq.why(query, {"S": folder / "s.trig"}, {"http://e/kb": folder / "kb.ttl"})
    assert report.answers == 0
    return report.causes[0].text


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("?o :at :r11", "constant :r11 is in no event as the object of :at; did you mean :r1 (1)?"),
        ("?o :at :o1", "constant :o1 is in no event as the object of :at"),
        (":o1 :speed 20", "its subject and its object occur with the predicate, but never togeth"),
        ("GRAPH :kb { :r1 :street :s10001 } ?o :at ?r", "no triple of the knowledge base matches"),
        ("GRAPH :kb { ?r :street :zz } ?o :at ?r", ":zz is not in the knowledge base as the obj"),
        ("?o :at ?r ; :road ?r . ?p :road ?q ; :at ?q", "with those before (1 solution)"),
        ("?o :at ?r MINUS { ?o :speed ?s }", "it takes away what is left (1 solution)"),
        ("?o :code ?c FILTER(?c > 5)", "false for 2, and an error for 1, of 3 solutions"),
        ('?o :code ?c FILTER(?c > "y")', "an error for 2, and false for 1, of 3 solutions"),
        ("?o :speed ?s FILTER(?s = 25)", "all 3 solutions; ?s is 20, for example"),
        ("?o :at ?r FILTER(?r = :r11)", "the only solution; ?r is :r1; did you mean :r1?"),
        ('?o :at ?r FILTER(?r > "5")', "?r is :r1, which cannot be compared"),
        ("?o :speed ?s FILTER(?s > 99)", "?s is 10 to 30"),
    ],
)  # fmt: skip
def test_the_text_of_a_cause_in_a_pattern(pattern: str, says: str, tmp_path: Path) -> None:
    assert says in first_cause(tmp_path, pattern)


def test_a_range_of_too_many_values_is_not_given(tmp_path: Path) -> None:
    head, rest = STREAM.split("\n", 1)
    many = " ".join(f":o :n {n} ." for n in range(10_050))
    stream = f"{head}\n:g0 {{ {many} }} :g0 prov:generatedAtTime 0 .\n{rest}"
    text = first_cause(tmp_path, "?o :n ?n FILTER(?n > 99999)", stream)
    assert "for example" in text and " to " not in text
