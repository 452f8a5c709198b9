"""The planner's choice of an evaluator, and its reasons."""

from __future__ import annotations

import pytest

from spaseq.api.explain import explain
from spaseq.compile import CompileOptions, check_query, compile_query
from spaseq.errors import UsageError
from spaseq.plan.query_plan import QueryPlan

OWN = {n: f"?{n.lower()} :is ?v{n.lower()}" for n in "ABCD"}
SETS = ("compiled-chain", "compiled-compact")
KEYED = {n: f"?{n.lower()} :is ?k" for n in "ABCD"}


def text(sequence: str, gpms: dict[str, str] = OWN, head: str = "", rest: str = "") -> str:
    used = {n: p for n, p in gpms.items() if n in sequence}
    defined = " ".join(f"DEFINE GPM {n} ON S {{ {p} }}" for n, p in used.items())
    return (
        f"PREFIX : <http://example/> SELECT {head} * WITHIN 1 HOURS {rest} "
        f"FROM STREAM S <http://example/s> WHERE {{ SEQ({sequence}) {defined} }}"
    )


def plan(sequence: str, gpms: dict[str, str] = OWN, head: str = "", rest: str = "") -> QueryPlan:
    return compile_query(text(sequence, gpms, head, rest))


@pytest.mark.parametrize(
    "sequence",
    ["A", "A; B; C", "A: B, C; D", "A; B!; C", "(A; (B, C)); D", "B!; A", "A; B!", "D!; A: B; C!"],
)
def test_chain(sequence: str) -> None:
    assert plan(sequence).sequence.evaluator.name == "compiled-chain"


@pytest.mark.parametrize(
    "sequence",
    [
        "A+",
        "A: B+: C",
        "A; B?; C",
        "A; (B | C); D",
        "A; ((B | C) | D)",
        "A, (B; C | D)",
        "A: (B; C | D)",
        "(A; B | C); D",
        "(A; B!; C)+",
        "(A | B)+; C",
        "D!; (A | B)+; C!",
        "(A & B)",
        "A; (B & C)+; D",
        "A; (B AND C)",
        "D!; (A; B AND C+)",
    ],
)
def test_compact(sequence: str) -> None:
    assert plan(sequence).sequence.evaluator.name == "compiled-compact"


@pytest.mark.parametrize(
    ("sequence", "reason"),
    [
        ("A; B++; (C & D)", "& stands beside a greedy loop or UNTIL"),
        ("A; (B | (C AND D))", "an alternative behind ; has several steps"),
        ("A; (B; C | D)", "an alternative behind ; has several steps"),
        ("A;[5 SECONDS] B", "an operator bounds the gap between two steps"),
        ("(B; C)!; A", "a negated step is more than a single GPM"),
        ("A; (B; C)!; D", "a negated step is more than a single GPM"),
        ("A; B; A", "steps join on ?a, and not every GPM binds it"),
    ],
)
def test_neither(sequence: str, reason: str) -> None:
    found = plan(sequence)
    assert found.sequence.evaluator.name not in SETS
    assert found.sequence.evaluator.reason.startswith(reason)


@pytest.mark.parametrize(
    ("sequence", "gpms", "reason"),
    [
        (
            "A; B",
            {"A": "?a :is ?x", "B": "?b :is ?y FILTER(?y < ?x)"},
            "a FILTER of B looks at earlier steps",
        ),
        (
            "A; B+",
            {"A": "?a :is ?x", "B": "?b :is ?y FILTER(?y < PREV(?y))"},
            "a FILTER of B looks at earlier steps",
        ),
        (
            "A; B; C",
            {"A": "?a :is ?x", "B": "?b :is ?x", "C": "?c :is ?y"},
            "steps join on ?x, and not every GPM binds it",
        ),
        ("(A; B)+", {"A": "?a :is ?x", "B": "?b :is ?x"}, "the steps of a repetition join on ?x"),
        (
            "A; B!; C",
            {"A": "?a :is ?x", "B": "?b :is ?x", "C": "?c :is ?y"},
            "the negated B shares ?x with the match",
        ),
        (
            "A+",
            {"A": "{ ?a :is ?x } UNION { ?a :was ?y }"},
            "A may leave the group variable ?x unbound",
        ),
    ],
)
def test_variables_that_bar_sharing(sequence: str, gpms: dict[str, str], reason: str) -> None:
    found = plan(sequence, gpms)
    assert found.sequence.evaluator.name not in SETS
    assert found.sequence.evaluator.reason.startswith(reason)


def test_alternatives_may_bind_the_same_variable() -> None:
    gpms = {"A": "?a :is ?x", "B": "?b :is ?y", "C": "?c :is ?y"}
    assert plan("A; (B | C)", gpms).sequence.evaluator.name == "compiled-compact"
    assert plan("A; (B | C)+", gpms).sequence.evaluator.name == "compiled-compact"
    assert plan("A; B; C", gpms).sequence.evaluator.name not in SETS


def test_a_key_of_every_gpm_splits_the_partition() -> None:
    """Even if stage 2 may not be split by the key."""
    assert plan("A; B; C", KEYED).sequence.evaluator.key == ("k",)
    strict = plan("A, B; C", KEYED)
    assert (
        strict.sequence.evaluator.name,
        strict.sequence.evaluator.key,
        strict.sequence.key.variables,
    ) == ("compiled-chain", ("k",), None)
    assert plan("A; B!; C", KEYED).sequence.evaluator.name == "compiled-chain"
    assert plan("A; B", KEYED, rest="PARTITION BY (?k)").sequence.evaluator.key == ()


def test_max_is_compiled() -> None:
    """By the chain kernel if all matches have as many events, so that none contains another."""
    assert plan("A: B+", head="MAX").sequence.evaluator.name == "compiled-compact"
    assert plan("A: B?", head="MAX").sequence.evaluator.name == "compiled-compact"
    assert plan("A: B; (C | D)", head="MAX").sequence.evaluator.name == "compiled-compact"
    assert plan("A: B", head="MAX").sequence.evaluator.name == "compiled-chain"
    assert plan("A: B", head="NEXT").sequence.evaluator.name == "compiled-chain"


@pytest.mark.parametrize(
    ("sequence", "evaluator", "message"),
    [
        (
            "A;[5 SECONDS] B",
            "compiled-compact",
            "the compiled-compact evaluator cannot run this query: an operator bounds the gap",
        ),
        (
            "A; B+",
            "compiled-chain",
            "the compiled-chain evaluator cannot run this query: it repeats a step",
        ),
        ("A; B", "fastest", "no evaluator 'fastest'"),
    ],
)
def test_a_forced_evaluator_that_cannot_run_the_query(
    sequence: str, evaluator: str, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        compile_query(text(sequence), options=CompileOptions(evaluator=evaluator))


def test_a_forced_evaluator() -> None:
    for evaluator in ("registers", *SETS):
        checked = check_query(text("A; B"), options=CompileOptions(evaluator=evaluator))
        assert checked.plan is not None
        assert checked.plan.sequence.evaluator.name == evaluator


def test_explain_says_which_and_why() -> None:
    assert "evaluator compiled-compact: no step looks at another's event; it repeats" in str(
        explain(text("A: B+: C"))
    )


VALUES = {
    "A": "?a :v ?va",
    "B": "?b :v ?vb FILTER(?vb > ?va)",
    "C": "?c :v ?vc FILTER(?vc > ?va && ?vc > ?vb)",
    "D": "?d :v ?vd FILTER(?vd = ?va)",
    "E": "?e :v ?ve FILTER(?ve >= ?va && ?ve <= ?vb)",
    "F": "?f :v ?vf FILTER(BOUND(?va))",
    "N": "?n :v ?vn FILTER(?vn < ?va)",
    "P": "?p :v ?vp ; :w ?wp",
    "Q": "?q :v ?vq FILTER(?vq < ?vp && ?vq < ?wp)",
}


@pytest.mark.parametrize(
    "sequence",
    ["A; B", "A; N", "A; B; C", "A; F; B; N", "A; B; F"],
)
def test_explain_names_the_threshold_sequence_kernel(sequence: str) -> None:
    shown = str(explain(text(sequence, VALUES)))
    assert "evaluator compiled-registers (threshold-sequence kernel): a FILTER of" in shown


@pytest.mark.parametrize(
    ("sequence", "rest"),
    [
        ("A; B, F", ""),  # a strict step
        ("A;[5 SECONDS] B", ""),  # a bound on the gap
        ("A; N!; B", ""),  # a negated step
        ("A; B+; C", ""),  # a loop
        ("A; B?; N", ""),  # an optional step
        ("A; D", ""),  # no threshold
        ("A; B; E", ""),  # two numbers that would both be thresholds
        ("P; Q", ""),  # the second step compares with two numbers of the first
        ("A; B", "PARTITION BY (?k)"),  # with a window that counts events
    ],
)
def test_explain_names_the_register_kernel(sequence: str, rest: str) -> None:
    query = text(sequence, VALUES)
    if rest:
        keyed = {n: p.replace(" :v", " :k ?k ; :v") for n, p in VALUES.items()}
        query = text(sequence, keyed, rest=rest).replace("1 HOURS", "9 EVENTS")
    assert "evaluator compiled-registers (register kernel): a FILTER of" in str(explain(query))
