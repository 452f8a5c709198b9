"""The oracle against small examples for loops and negation beside what may be empty.

Streams and queries are written as in `test_oracle_language`. An event `x` matches no GPM that a
query defines unless the query names X.
"""

from __future__ import annotations

import pytest

from tests.oracle.answers import AFTER_ALL
from tests.oracle.model import Refused
from tests.oracle.test_oracle_language import answers, bound, check, keyed, named, query


@pytest.mark.parametrize(
    ("sequence", "expected"),
    [
        ("A; B+; C", "ab1c ab1b2c ab1b2b3c"),
        ("A; B+[:]; C", "ab1c ab1b2c ab1b3c ab1b2b3c"),
        ("A: B+[,]; C", "ab1c ab2c ab3c ab1b2c"),
        ("A; B++; C", "ab1b2b3c"),
        ("A: B++[,]; C", "ab1b2c ab2c ab3c"),
        ("A; B?+; C", "ab1c"),
        ("A; B+ UNTIL U; C", "ab1c ab1b2c"),
        ("A; (B | C)+ UNTIL U", "ab1 ab1b2"),
        ("A; B++ UNTIL U; C", "ab1b2c"),
        ("A; U!; B?; C", "ab1c"),
    ],
)
def test_the_table(sequence: str, expected: str) -> None:
    check("a b1 b2 u b3 c", sequence, expected)


# --- the loop's own operator ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stream", "sequence", "expected"),
    [
        # the operator before the step joins the first repetition, with its gap bound
        ("a x b1 b2", "A, B+[:]", ""),
        ("a b1 x b2", "A, B+[:]", "ab1 ab1b2"),
        ("a b1@5 b2@20 b3@22", "A; B{2,}[:10 SECONDS]", ""),
        ("a b1@5 b2@12 b3@15", "A; B{2,}[:7 SECONDS]", "ab1b2 ab1b2b3"),
        ("a b1@5 b2@12 b3@15", "A; B{2,}[:10 SECONDS]", "ab1b2 ab1b3 ab1b2b3"),
        ("a b1@5 b2@6", "A;[5 SECONDS] B{2}", "ab1b2"),
        ("a b1@5 b2@11", "A;[5 SECONDS] B{2}", ""),
        ("a b1@5 b2@11", "A;[5 SECONDS] B{2}[;]", "ab1b2"),
        ("a b1@9 b2@10", "A; B{2}[,1 SECONDS]", "ab1b2"),
        ("b1 x b2", "B{2}[,]", ""),
        # (B, C)+[;] is B, C; B, C; ...
        ("b1 c1 x b2 c2", "(B, C){2}[;]", "b1c1b2c2"),
        ("a b1 c1 x b2 c2", "A, (B, C){2}", ""),
        ("a b1 c1 x b2 c2", "A, (B, C){2}[;]", "ab1c1b2c2"),
        # without its B, a repetition is joined by the operator of C
        ("c1 x c2", "(B?, C){2}[;]", ""),
        ("c1 x b1 c2", "(B?, C){2}[;]", "c1b1c2"),
        ("c1 c2", "(B?, C){2}[;]", "c1c2"),
        # a loop that stands first in the bracket: its first B by `;`, the further ones by `,`
        ("a b1 b2 c1 x b3 b4 c2", "A, (B{2}, C){2}[;]", "ab1b2c1b3b4c2"),
        ("a b1 b2 c1 x b3 x b4 c2", "A, (B{2}, C){2}[;]", ""),
        ("a b1 b2 c1 x b3 x b4 c2", "A, (B{2}[;], C){2}[;]", "ab1b2c1b3b4c2"),
        ("a b1 b2 x b3 x b4", "A, (B{2} | C){2}[;]", ""),
        ("a b1 b2 x b3 b4", "A, (B{2} | C){2}[;]", "ab1b2b3b4"),
    ],
)
def test_own_operator(stream: str, sequence: str, expected: str) -> None:
    check(stream, sequence, expected)


@pytest.mark.parametrize("sequence", ["A; B?[,]", "A; B{0,1}[;]"])
def test_an_operator_of_at_most_one_repetition_is_refused(sequence: str) -> None:
    with pytest.raises(Refused):
        answers("a b", query(sequence))


# --- greedy loops ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stream", "sequence", "expected"),
    [
        ("a b1 b2 c", "A; B*+; C", "ab1b2c"),
        ("a c", "A; B*+; C", "ac"),
        ("a b1 b2 b3 c", "A; B{1,2}+; C", "ab1b2c"),
        ("a b1 c1 b2", "A; B++; C", "ab1c1"),
        # at the instant of Y counts: B and the C of another stream
        ("a@0 b1@1 b2@2 c@2/T", "A; B++; C", ""),
        ("a@0 b1@1 b2@3 c@2/T", "A; B++; C", "ab1c"),
        # it only drops matches, so `;` does not look further
        ("a b1 c1 b2 c2", "A; B++: C", "ab1c1 ab1b2c2"),
        ("a b1 x b2 c", "A; B++[,]; C", "ab1c"),
        ("a b1 b2 x b3 c", "A; B++[,]; C", "ab1b2c"),
        # the loop's operator decides: after b1 b3 it cannot go on
        ("a b1 b2 b3 c", "A; B++[:]; C", "ab1b2b3c ab1b3c"),
        # an iteration of a bracket must be whole before Y
        ("a b1 c1 b2 d", "A; (B; C)++; D", "ab1c1d"),
        ("a b1 c1 b2 c2 d", "A; (B; C)++; D", "ab1c1b2c2d"),
        # an event may be both x and Y's
        ("a b1 b2", "A; B++; B", ""),
        # what follows is found past other steps
        ("a b1 b2 c d", "A; B++; C; D", "ab1b2cd"),
        ("a b1 b2 c d", "(A; B++; C | X); D", "ab1b2cd"),
    ],
)
def test_greedy(stream: str, sequence: str, expected: str) -> None:
    check(stream, sequence, expected)


def test_a_greedy_loop_goes_on_while_its_filter_holds() -> None:
    rising = "FILTER(COALESCE(?b > PREV(?b), true))"
    check("a b1 b3 b2 c", "A; B++[,]; C", "ab1b3c", B=rising)
    check("a b1 b3 b2 b4 c", "A; B++; C", "ab1b3b4c", B=rising)


def test_a_greedy_loop_goes_on_only_where_it_joins() -> None:
    same = "ex:s ex:k ?k ."
    streams = keyed(("a", "1"), ("b", "1"), ("b", "2"), ("c", "1"))
    found = named(answers(streams, query("A; B++; C", A=same, B=same, C=same)))
    assert found == ["a0b1c3"]


def test_a_greedy_loop_at_the_end_is_reported_when_the_window_closes() -> None:
    found = answers("a b1 b2 b3@9", query("A; B{1,3}+", within="5 SECONDS"))
    assert [(n, a.end) for n, a in zip(named(found), found, strict=True)] == [
        ("ab1b2", (5000, AFTER_ALL))
    ]


def test_a_greedy_loop_at_its_upper_bound_ends_at_once() -> None:
    found = answers("a b1 b2 b3", query("A; B{1,2}+", within="5 SECONDS"))
    assert [(n, a.end) for n, a in zip(named(found), found, strict=True)] == [("ab1b2", (2000, 0))]


def test_of_several_derivations_one_that_stays_is_enough() -> None:
    # b1 b2 is one repetition (B; B), or two of B; as two of two no other repetition fits
    check("a b1 b2 c", "A; (B | (B; B)){1,2}+; C", "ab1b2c")
    found = answers("a b1 b2", query("A; (B | (B; B)){1,2}+", within="9 SECONDS"))
    assert [(n, a.end) for n, a in zip(named(found), found, strict=True)] == [("ab1b2", (2000, 0))]


@pytest.mark.parametrize(
    "sequence",
    [
        "A; N!; B++; C",
        "A; B++; N!; C",
        "A; B++; N!",
        "N!; B++; C",
        "A; B++; C?",
        "A; B++; C?; D",
        "A; N!; C?; B++; D",
        "(B++ | C)",
        "(A; B++ | C)",
        "(B++; A AND C)",
        "A; (B; C++; D)+",
        "A; (B; C++; D)?",
        "A; (B; C++; D)!; X",
        "A; (B; N!; C)++; D",
        "B*+; C",
        "A?; B*+; C",
        "A?; B?+; C",
    ],
)
def test_refused_greedy(sequence: str) -> None:
    with pytest.raises(Refused):
        answers("a b", query(sequence))


def test_a_greedy_loop_at_the_end_is_refused_under_a_count_window() -> None:
    with pytest.raises(Refused):
        answers("a b", query("A; B++", within="5 EVENTS"))
    check("a b1 b2 c", "A; B++; C", "ab1b2c", within="5 EVENTS")


# --- until ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stream", "sequence", "expected"),
    [
        # only what begins before the last repetition does, or with it
        ("a b1 u b2 c", "A; B+ UNTIL U; C", "ab1c"),
        ("a b1 b2 u c", "A; B+ UNTIL U; C", "ab1c ab1b2c"),
        ("a u b1 c", "A; B+ UNTIL U; C", ""),
        ("u a b1 c", "A; B+ UNTIL U; C", "ab1c"),
        ("a@0 b1@1 u@1/T c@2", "A; B+ UNTIL U; C", ""),
        ("a@0 u@0/T b1@1 c@2", "A; B+ UNTIL U; C", "ab1c"),
        # a loop without repetitions is not affected
        ("a u c", "A; B* UNTIL U; C", "ac"),
        ("a u b1 c", "A; B* UNTIL U; C", "ac"),
        ("a u b1 c", "A; B? UNTIL U; C", "ac"),
        # with nothing before, from the first repetition on
        ("u b1 b2", "B+ UNTIL U", "b1 b1b2 b2"),
        ("b1 u b2", "B+ UNTIL U", "b1 b2"),
        ("b1@0 u@0/T b2@1", "B+ UNTIL U", "b2"),
        ("a u b1 b2", "A?; B+ UNTIL U", "b1 b1b2 b2"),
        # in a bracket, what stands before it in that bracket
        ("a u b1 c", "A; (B+ UNTIL U | C)", "ab1"),
        # b1 b2 forestalls c, although UNTIL then forbids it
        ("a b1 u b2 c", "A; (B{2} UNTIL U | C)", ""),
        ("a u b1 c u b2 c", "A; (B+ UNTIL U; C)+", "ab1c ab1cb2c"),
        ("a b1 u b2 c", "A; (B{2} UNTIL U; C)+", ""),
        # the first instant of a repetition counts
        ("a b1 u c1", "A; (B; C)+ UNTIL U", "ab1c1"),
        ("a b1 c1 u b2 c2", "A; (B; C)+ UNTIL U", "ab1c1"),
        # a repetition that UNTIL would forbid does not count as one by which a loop could go on
        ("a b1 u b2 c", "A; B++ UNTIL U; C", "ab1c"),
        ("a u b1 c", "A; B*+ UNTIL U; C", "ac"),
        ("a b1 u b2", "A; B{1,3}+ UNTIL U", "ab1"),
    ],
)
def test_until(stream: str, sequence: str, expected: str) -> None:
    check(stream, sequence, expected)


def test_until_sees_the_last_repetition_and_what_is_bound_later() -> None:
    check("a b1 u2 b2 b3 c", "A; B+ UNTIL U; C", "ab1c ab1b2b3c", U="FILTER(?u = ?b)")
    check("a1 b1 u5 b2 c5", "A; B+ UNTIL U; C", "a1b1c5", U="FILTER(?u = ?c)")
    check("a1 b1 u5 b2 c4", "A; B+ UNTIL U; C", "a1b1c4 a1b1b2c4", U="FILTER(?u = ?c)")


def test_until_in_a_repetition_sees_that_repetition() -> None:
    same = "FILTER(?u = ?a)"
    check("a1 u1 b1 a2 b2", "(A; B+ UNTIL U){2}", "", U=same)
    check("a1 u2 b1 a2 b2", "(A; B+ UNTIL U){2}", "a1b1a2b2", U=same)


def test_until_binds_nothing() -> None:
    found = answers("u7 a1 b1", query("A; B+ UNTIL U"))
    assert bound(found) == [{"a": "1", "b": "1"}]


def test_until_needs_a_gpm_that_is_no_step() -> None:
    for sequence in ("A; B+ UNTIL A", "A; B+ UNTIL B", "A; N!; B; C+ UNTIL N"):
        with pytest.raises(Refused):
            answers("a b", query(sequence))


# --- negation beside a step that may be empty -----------------------------------------------------


@pytest.mark.parametrize(
    ("stream", "sequence", "expected"),
    [
        ("a c d", "A; N!; C?; D", "ad acd"),
        ("a n c d", "A; N!; C?; D", ""),
        ("a c n d", "A; N!; C?; D", "acd"),
        ("a b n c", "A; N!; B*; C", "abc"),
        ("a b1 b2 n c", "A; N!; B*; C", "ab1c ab1b2c"),
        # again for what then stands beside the negation
        ("a n d", "A; N!; B?; C?; D", ""),
        ("a c n d", "A; N!; B?; C?; D", "acd"),
        ("a b c n d", "A; N!; B?; C?; D", "abcd abd acd"),
        # before: the negated step is then in first place
        ("n@0 b@1", "A?; N!; B", ""),
        ("n@0 b@5", "A?; N!; B", "b"),
        ("n@3 a@4 b@5", "A?; N!; B", "ab"),
        # on both sides
        ("a n c", "A; B?; N!; C", ""),
        ("a b n c", "A; B?; N!; C", ""),
        ("a n b c", "A; B?; N!; C", "abc"),
    ],
)
def test_negation_beside_a_step_that_may_be_empty(
    stream: str, sequence: str, expected: str
) -> None:
    check(stream, sequence, expected, within="4 SECONDS")


def test_of_equal_answers_of_the_union_the_earliest_end_counts() -> None:
    found = answers("a c", query("A; N!; C?", within="5 SECONDS"))
    ends = dict(zip(named(found), [a.end for a in found], strict=True))
    assert ends == {"ac": (1000, 0), "a": (5000, AFTER_ALL)}
    same = answers("a b", query("A; B; (N; X)!; A?", within="5 SECONDS"))
    assert [(n, a.end) for n, a in zip(named(same), same, strict=True)] == [
        ("ab", (5000, AFTER_ALL))
    ]


def test_a_union_is_refused_if_one_of_its_sequences_is() -> None:
    for sequence in ("A?; N!; B?", "A; (N!; B?; C | D)", "A; (B; N!; C? | D)", "N!; A?"):
        with pytest.raises(Refused):
            answers("a b", query(sequence))
    for sequence in ("A?; N!; B", "A; N!; B?"):
        with pytest.raises(Refused):
            answers("a b", query(sequence, within="5 EVENTS"))
    check("a c", "A; N!; B?; C", "ac", within="5 EVENTS")


# --- running aggregates ---------------------------------------------------------------------------


def test_a_sum_bounds_a_loop() -> None:
    below = "FILTER(SUM(?b) < 6)"
    check("a b2 b3 b4 c", "A, B+; C", "ab2c ab2b3c", B=below)
    check("a b2 b4 b3 c", "A; B+; C", "ab2c ab2b3c", B=below)  # b4 is passed over


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("COUNT(?b) <= 2", "b1 b1b3"),
        ("SUM(?b) <= 4", "b1 b1b3"),
        ("AVG(?b) <= 1.5", "b1 b1b2"),
        ("MIN(?b) = ?b", "b1"),
        ("MAX(?b) = ?b", "b1 b1b3"),
        ("FIRST(?b) = 1", "b1 b1b3 b1b3b2"),
        ("LAST(?b) < 3", "b1 b1b2"),
        ('GROUP_CONCAT(?b; SEPARATOR="-") IN ("1", "1-2")', "b1 b1b2"),
        ("STRLEN(STR(LIST(?b))) < 50", "b1"),
        ("SAMPLE(?b) > 0", "b1 b1b3 b1b3b2"),
    ],
)
def test_every_aggregate_ranges_over_the_repetitions_so_far(test: str, expected: str) -> None:
    wanted = " ".join(f"a{e}" for e in expected.split())
    check("a b1 b3 b2", "A; B+", wanted, B=f"FILTER({test})")


def test_running_aggregates_begin_afresh_where_previous_values_do() -> None:
    below = "FILTER(SUM(?b) < 4)"
    check("a1 b1 b2 a2 b3", "(A, B{1,2}){2}", "a1b1b2a2b3 a1b1a2b3", B=below)


def test_inside_the_step_other_gpms_see_the_repetitions_so_far() -> None:
    few = "FILTER(COUNT(?a) < 3 && COUNT(?b) >= COUNT(?a) - 1)"
    check("a1 b1 a2 b2 a3 b3", "(A; B){3}", "", B=few)
    check("a1 b1 a2 b2 a3 b3", "(A; B){2}", "a1b1a2b2 a2b2a3b3", B=few)


def test_a_variable_that_the_repetition_has_not_bound_adds_nothing() -> None:
    check("a1 b1 a2 b2", "(A; B){2}", "a1b1a2b2", A="FILTER(COUNT(?b) = COUNT(?a) - 1)")
    once = "FILTER(COUNT(?b) <= 1)"
    check("b1 c1 c2", "(B | C){3}", "b1c1c2", C=once)


def test_a_negated_step_and_until_see_the_repetitions_so_far() -> None:
    second = "FILTER(COUNT(?b) = 2)"
    check("a1 n1 b1 a2 b2", "(A; N!; B){2}", "a1b1a2b2", N=second)
    check("a1 b1 a2 n1 b2", "(A; N!; B){2}", "", N=second)
