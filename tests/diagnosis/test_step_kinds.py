"""Small streams whose only obstacle is known: the report names its kind, place and example."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tests.diagnosis.small_streams import cause_of, query_of, steps_of

PAIR = {"A": "[] :a ?v ; :s ?s", "B": "[] :b ?v ; :s ?s"}
FREE = {"A": "[] :a ?v ; :s ?s", "B": "[] :b ?w ; :s ?s"}
RISING = {"B": "[] :b ?w FILTER (!BOUND(PREV(?w)) || ?w > PREV(?w))"}


class Obstacle(NamedTuple):
    """A sequence, events, and the first cause: kind, GPM, step, and the text at its place."""

    sequence: str
    events: str
    kind: str
    gpm: str | None
    step: int | None
    at: str
    says: str = ""
    gpms: dict[str, str] | None = None
    head: str = "WITHIN 1 HOURS"
    tail: str = ""


OBSTACLES = (
    # order
    Obstacle("A; B", "b a", "order", "B", 2, "B)", "no B comes after A"),
    Obstacle("A; B", "b b a a", "order", "B", 2, "B)"),
    Obstacle("A; B; C", "a c b", "order", "C", 3, "C)", "no C comes after B"),
    Obstacle("A, B", "b a", "order", "B", 2, "B)"),
    Obstacle("A; (B | C); D", "a d b", "order", "D", 3, "D)"),
    Obstacle("A?; B; C", "c b", "order", "C", 3, "C)"),
    Obstacle("(A AND B); C", "b c a", "order", "C", 2, "C)"),
    Obstacle("A; B{2}; C", "c a b b", "order", "C", 3, "C)"),
    Obstacle("A; B!; C", "c a", "order", "C", 3, "C)"),
    Obstacle("(B; C)+", "c b", "order", None, 1, "(B; C)+"),
    Obstacle("A; (B; C)+; D", "a c b d", "order", None, 2, "(B; C)+"),
    # joins
    Obstacle(
        "A; B", "a=18,s=x b=18.0,s=x", "equality-join-empty", "B", 2, "B)",
        "18 in A, 18.0 in B; they are equal by value", PAIR,
    ),
    Obstacle(
        "A; B", "a=18,s=x b=19,s=x", "equality-join-empty", "B", 2, "B)", "18 in A, 19 in B", PAIR
    ),
    Obstacle(
        "A; B", "a=1,s=x b=1,s=X", "equality-join-empty", "B", 2, "B)", "they look alike", PAIR
    ),
    Obstacle(
        "A; B", "a=1,s=x b=2,s=y", "equality-join-empty", "B", 2, "B)",
        "no partition has events of both", FREE, "WITHIN 1 HOURS PARTITION BY (?s)",
    ),
    Obstacle(
        "A; B", "a=1,s=x b=2,s=x a=2,s=x", "equality-join-empty", "B", 2, "B)",
        "although some values occur in both", PAIR,
    ),
    Obstacle(
        "A, B", "a=1,s=x b=2,s=y", "equality-join-empty", "B", 2, "B)", "",
        FREE, "WITHIN 1 HOURS PARTITION BY (?s)",
    ),
    Obstacle("A; (B | C); D", "a=1 b=1 d=2", "equality-join-empty", "D", 3, "D)", "",
             {"A": "[] :a ?v", "D": "[] :d ?v"}),
    # conditions
    Obstacle(
        "A; B", "a=18 b=3 b=7", "condition-false", "B", 2, "FILTER (?w > ?v)",
        "the nearest has ?v = 18, ?w = 7, 11 off",
        {"A": "[] :a ?v", "B": "[] :b ?w FILTER (?w < 99) FILTER (?w > ?v)"},
    ),
    Obstacle(
        "A; B", "a=1 b=3", "condition-false", "B", 2, "FILTER (?w > ?v && ?w",
        "3 off",
        {"A": "[] :a ?v", "B": "[] :b ?w FILTER (?w > ?v && ?w > 2 * ?v + 4)"},
    ),
    Obstacle(
        "A; B+; C", "a=1 b=3 b=4 c=1", "condition-false", "B", 2, "FILTER (?w > PREV(?w))",
        "PREV(?w) is unbound, so the FILTER is an error in the first repetition",
        {"B": "[] :b ?w FILTER (?w > PREV(?w))"},
    ),
    Obstacle(
        "A; B+; C", "a=1 b=3 b=4 c=1", "condition-false", "C", 3, "FILTER (COUNT(?w) > 2)", "",
        {"B": "[] :b ?w", "C": "[] :c ?z FILTER (COUNT(?w) > 2)"},
    ),
    Obstacle(
        "A; B", "a=1 b=3", "condition-false", "A", 1, "FILTER (?v < ?w)",
        "?w is unbound, so the FILTER is an error: B binds it, move the FILTER there",
        {"A": "[] :a ?v FILTER (?v < ?w)", "B": "[] :b ?w"},
    ),
    Obstacle(
        "A; B", "a=1 b=3", "condition-false", "B", 2, "DEFINE GPM B", "",
        {"A": "[] :a ?v", "B": "?y :b ?w FILTER NOT EXISTS { ?y :b ?q FILTER (?q > ?v) }"},
    ),
    Obstacle(
        "A; (B AND C); D", "a=5 c=1 b=4 d", "condition-false", "B", 2, "FILTER (?w > ?v)", "1 off",
        {"A": "[] :a ?v", "B": "[] :b ?w FILTER (?w > ?v)"},
    ),
    # one time
    Obstacle("A; (B & C)", "a b c", "simultaneity", None, 2, "(B & C)", "are 1 second apart"),
    Obstacle("(B & C)", "b . . c . b", "simultaneity", None, 1, "(B & C)", "are 2 seconds apart"),
    Obstacle("A; (B & C)+; D", "a b c d", "simultaneity", None, 2, "(B & C)+"),
    # contiguity
    Obstacle("A, B", "a x b", "contiguity", "B", 2, "B)", ":e1 at 1970-01-01T00:00:01 stands"),
    Obstacle("A, B+, C", "a x b c", "contiguity", "B", 2, "B+"),
    Obstacle("A; B, C", "a b x c", "contiguity", "C", 3, "C)", "write ; instead"),
    Obstacle("A; (B, C)+", "a b x b x c", "contiguity", None, 2, "(B, C)+"),
    Obstacle(
        "A, B", "a=1,s=p x=1,s=q b=2,s=p", "contiguity", "B", 2, "B)",
        "stands between", FREE,
    ),
    Obstacle(
        "A, B", "a=1,s=p a=5,s=q b=2,s=p", "contiguity", "B", 2, "B)",
        "PARTITION BY (?s) leaves such events out", FREE,
    ),
    Obstacle(
        "A, B", "a=1,s=p a=5,s=p b=7,s=q a=9,s=p b=2,s=p", "contiguity", "B", 2, "B)", "",
        {"A": "[] :a ?v ; :s ?s FILTER (?v < 2)", "B": "[] :b ?w ; :s ?s"},
        "WITHIN 1 HOURS PARTITION BY (?s)",
    ),
    Obstacle("A, N!, B", "a x b", "contiguity", "B", 3, "B)"),
    # gap bounds and windows
    Obstacle("A ;[1 SECONDS] B", "a . . b", "gap-bound", "B", 2, "B)", "is 3 seconds"),
    Obstacle("A :[2 SECONDS] (B | C)", "a . . b c", "gap-bound", None, 2, "(B | C)", "3 seconds"),
    Obstacle("A; B", "a . . b", "window", "B", 2, "B)", "3 seconds", None, "WITHIN 2 SECONDS"),
    Obstacle("A; B; C", "a b . . c", "window", "C", 3, "C)", "", None, "WITHIN 2 SECONDS"),
    Obstacle("A; B+; C", "a b b b c", "window", "C", 3, "C)", "", None, "WITHIN 3 SECONDS"),
    Obstacle("A; B", "a x b", "window", "B", 2, "B)", "is 3 events", None, "WITHIN 2 EVENTS"),
    Obstacle(
        "A; B", "x a b", "window", "B", 2, "B)", "boundary", None, "WITHIN 2 SECONDS TUMBLING"
    ),
    Obstacle("(A AND B)", "a . . b", "window", None, 1, "(A AND B)", "", None, "WITHIN 2 SECONDS"),
    # repetition
    Obstacle("A; B{3}; C", "a b b c", "repetition", "B", 2, "B{3}", "at most 2 times"),
    Obstacle("A, B{3,}", "a b b x b", "repetition", "B", 2, "B{3,}", "at most 2 times"),
    Obstacle("B{4}", "b=1 b=2 b=1 b=3", "repetition", "B", 1, "B{4}", "at most 3 times", RISING),
    Obstacle("A; (B, C){2}; D", "a b c d", "repetition", None, 2, "(B, C){2}", "at most 1 time"),
    Obstacle("B{3}", "b b . b", "repetition", "B", 1, "B{3}", "", None, "WITHIN 2 SECONDS"),
    # negation, UNTIL, greedy loops
    Obstacle("A; B!; C", "a b c", "negation", "B", 2, "B!", ":e1 at"),
    Obstacle("A; C; B!", "a c b", "negation", "B", 3, "B!", ":e2 at"),
    Obstacle("B!; A; C", "b a c", "negation", "B", 1, "B!", ":e0 at"),
    Obstacle("A; N!; M!; B", "a m b", "negation", "M", 3, "M!", ":e1 at"),
    Obstacle("A; N!; B?; C", "a n c", "negation", "N", 2, "N!"),
    Obstacle("A; B+ UNTIL U; C", "a u b c", "until", "U", 2, "U;", ":e1 at"),
    Obstacle("A; B{2} UNTIL U", "a b u b", "until", "U", 2, "U)", ":e2 at"),
    Obstacle(
        "A; B++; C", "a b c=1,b=2", "greedy", "B", 2, "B++", "which C needs", {"C": "[] :c ?z"}
    ),
    Obstacle("A; B*+; C", "a b=1,c=2", "greedy", "B", 2, "B*+", "which C needs"),
    # after the sequence
    Obstacle(
        "A; B", "a=1 b=3", "having", None, None, "?b1 > 5", "2 off", tail=" HAVING (?b1 > 5)"
    ),
    Obstacle(
        "A; B", "a x b", "selection", None, None, "SELECT", ":e1 at", None,
        "SELECT STRICT * WITHIN 1 HOURS",
    ),
)  # fmt: skip


@pytest.mark.parametrize("case", OBSTACLES, ids=lambda c: f"{c.kind}-{c.sequence}-{c.events}")
def test_the_only_obstacle_is_the_cause(case: Obstacle) -> None:
    query = query_of(case.sequence, case.gpms, case.head, case.tail)
    cause = cause_of(query, case.events)
    assert (cause.kind, cause.gpm, cause.step) == (case.kind, case.gpm, case.step), cause
    assert cause.line is not None and cause.column is not None
    rest = query.split("\n")[cause.line - 1][cause.column - 1 :]
    assert rest.startswith(case.at), rest
    assert case.says in cause.text
    assert cause.count > 0


@pytest.mark.parametrize(
    ("sequence", "events", "helps"),
    [
        ("A; B; N!", "a b n b", "matches :e0 at 1970-01-01T00:00:00, :e3 at 1970-01-01T00:00:03"),
        ("A; N!; B", "a n=1 b=1 b=2", "matches :e0 at 1970-01-01T00:00:00, :e3 at"),
        ("A; B; N!", "a b b n", None),  # each B has an N after it
        ("A: B; N!", "a b n", None),
    ],
)
def test_a_match_that_any_event_would_give_is_named_with_a_negation(
    sequence: str, events: str, helps: str | None
) -> None:
    """`;` takes the next event, also if a negated step then takes the pair away."""
    own = {"N": "[] :n ?n FILTER (?n = ?w)", "B": "[] :b ?w"} if "=" in events else None
    cause = cause_of(query_of(sequence, own), events)
    assert cause.kind == "negation"
    assert cause.suggestion == (":" if helps else None)
    assert (helps or "forbids; for example") in cause.text


def test_a_gpm_without_solutions_is_no_cause_of_a_step() -> None:
    assert steps_of(query_of("A; B; C"), "a b").causes == ()


def test_counts() -> None:
    report = steps_of(query_of("A; B; C; D"), "a c b a b d")
    assert [(s.step, s.name, s.reached) for s in report.steps] == [
        (1, "A", 2),
        (2, "B", 2),
        (3, "C", 0),
    ]


def test_counts_of_a_query_with_answers() -> None:
    report = steps_of(query_of("A; N!; B+; C"), "a b b c")
    assert [(s.step, s.reached) for s in report.steps] == [(1, 1), (3, 2), (4, 2)]
    assert report.causes == ()
