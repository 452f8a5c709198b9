"""The contents of a plan, apart from the evaluator and the rules."""

from __future__ import annotations

import pytest

from spaseq.compile import CompileOptions, compile_query
from spaseq.errors import UsageError
from spaseq.plan.planner import STATE_FORMAT
from spaseq.plan.query_plan import QueryPlan
from spaseq.plan.rules import NAMES, RULES, Rule, name_of

KEYED = {"A": "?x :of ?k ; :low ?l", "B": "?y :of ?k ; :high ?h", "N": "?n :of ?k"}
APART = {"A": "?x :low ?l", "B": "?y :high ?h", "N": "?n :stops ?s"}
OPTIONAL = {"A": "?x :of ?k", "B": "?y :high ?h OPTIONAL { ?y :of ?k }", "N": "?n :of ?k"}


def text(
    sequence: str = "A; B",
    gpms: dict[str, str] = KEYED,
    select: str = "*",
    within: str = "1 HOURS",
    rest: str = "",
) -> str:
    defined = " ".join(
        f"DEFINE GPM {name} ON S {{ {pattern} }}"
        for name, pattern in gpms.items()
        if name in sequence
    )
    return (
        f"PREFIX : <http://e/> SELECT {select} WITHIN {within} {rest} "
        f"FROM STREAM S <http://e/s> WHERE {{ SEQ({sequence}) {defined} }}"
    )


def plan(*arguments: str | dict[str, str], **options: str) -> QueryPlan:
    return compile_query(text(*arguments, **options))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("query", "variables", "reason"),
    [
        (text(), ("k",), "every GPM binds ?k in every solution"),
        (text("A; N!; B"), ("k",), "every GPM binds ?k in every solution"),
        (text(gpms=APART), None, "no variable is certainly bound by every GPM"),
        (text(gpms=OPTIONAL), None, "no variable is certainly bound by every GPM"),
        (text("A; N!; B", {**KEYED, "N": "?n :stops ?s"}), None, "no variable is certainly"),
        (text("(A; B)+"), None, "no variable is certainly"),  # ?k is a group variable
        (text("A, B"), None, "strict contiguity"),
        (text(within="9 EVENTS"), None, "strict contiguity, WITHIN n EVENTS"),
        (text(select="STRICT *"), None, "strict contiguity, WITHIN n EVENTS or STRICT"),
        (text(select="NEXT *"), None, "selection and AFTER MATCH look across keys"),
        (text(select="DISTINCT ?a"), None, "DISTINCT looks across keys"),
        (text(select="DISTINCT ?k ?a"), ("k",), "every GPM binds ?k"),
        (text(select="DISTINCT (STR(?k) AS ?t)"), None, "DISTINCT looks across keys"),
        (
            text(select="DISTINCT ?a", rest="PARTITION BY (?k)"),
            None,
            "DISTINCT looks across partitions",
        ),
        (text(rest="AFTER MATCH CONSUME"), None, "selection and AFTER MATCH look across keys"),
        (text("A, B", rest="PARTITION BY ?k"), ("k",), "PARTITION BY"),
    ],
)
def test_the_key_of_stage_2(query: str, variables: tuple[str, ...] | None, reason: str) -> None:
    key = compile_query(query).sequence.key
    assert key.variables == variables
    assert key.reason.startswith(reason)


def test_of_several_keys_the_first_by_name_is_taken() -> None:
    same = {"A": "?x :of ?k", "B": "?x :for ?k"}
    assert plan("A; B", same).sequence.key.variables == ("k",)


@pytest.mark.parametrize(
    ("query", "needed"),
    [
        (text(), False),
        (text("A: B"), False),
        (text("A, B"), True),
        (text("A; (B, N)!; A"), True),
        (text(within="9 EVENTS"), True),
        (text(select="STRICT *"), True),
        (text(select="MAX *"), False),
    ],
)
def test_stage_2_gets_all_events_where_they_count(query: str, needed: bool) -> None:
    assert compile_query(query).sequence.needs_instants == needed


@pytest.mark.parametrize(
    ("query", "known"),
    [
        (text(), False),
        (text(within="9 EVENTS"), False),
        (text(rest="PARTITION BY ?k"), False),
        (text(within="9 EVENTS", rest="PARTITION BY ?k"), True),
        (text("A, B", rest="PARTITION BY ?k"), True),
        (text("A; N!; B", {**KEYED, "N": "?n :stops ?s"}, rest="PARTITION BY ?k"), True),
    ],
)
def test_stage_1_knows_the_partitions_of_events_where_they_count(query: str, known: bool) -> None:
    assert bool(compile_query(query).patterns.memberships) == known


def test_columns_are_all_variables_and_numbers_are_what_conditions_compare() -> None:
    gpms = {**KEYED, "B": "?y :of ?k ; :high ?h FILTER (?h > ?l)"}
    columns = plan("A; B", gpms).patterns.columns
    assert columns.variables == ("h", "k", "l", "x", "y")
    assert columns.numbers == ("h", "l")


def test_star_leaves_out_what_negated_steps_bind() -> None:
    projection = plan("A; N!; B", APART).answers.projection
    assert [item.name for item in projection] == ["l", "x", "h", "y"]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (text(), text().replace(" ", "  "), True),
        (text(), text().replace("?k", "?key"), False),
        (text(), text(within="2 HOURS"), False),
    ],
)
def test_the_fingerprint_is_of_the_canonical_text(one: str, other: str, same: bool) -> None:
    prints = {compile_query(query).signature.fingerprint for query in (one, other)}
    assert (len(prints) == 1) == same


def test_the_fingerprint_is_of_the_evaluator_and_the_name() -> None:
    given = [("query", None), ("other", None), ("query", "registers")]
    prints = {
        compile_query(text(), name, CompileOptions(evaluator=evaluator)).signature.fingerprint
        for name, evaluator in given
    }
    assert len(prints) == 3


def test_the_state_format_is_part_of_the_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    before = plan().signature.fingerprint
    monkeypatch.setattr("spaseq.plan.planner.STATE_FORMAT", STATE_FORMAT + 1)
    assert plan().signature.fingerprint != before


def test_a_registered_query_has_the_name_of_its_stream() -> None:
    query = text().replace("SELECT *", "REGISTER STREAM <http://e/out> AS CONSTRUCT { ?x :is ?y }")
    identity = compile_query(query, "file").identity
    assert (identity.name, identity.title) == ("http://e/out", "file")
    assert compile_query(text(), "file").identity.name == "file"


def test_an_evaluator_that_does_not_exist() -> None:
    with pytest.raises(UsageError, match=r"no evaluator 'fast': registers, compiled-registers"):
        compile_query(text(), options=CompileOptions(evaluator="fast"))


QUERIES = [
    text(),
    text("A; B", {**KEYED, "B": "?y :of ?k ; :high ?h FILTER (?h > ?l)"}, select="?k"),
    text("A: B", {**APART, "B": "?y :high ?h FILTER (?h > ?l)"}),
    text("A; B+", APART),
    text("A; B", {**APART, "B": "?y :high ?h SERVICE <http://e/p> { ?h :in ?c }"}),
]


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("rule", RULES, ids=name_of)
def test_a_rule_changes_nothing_the_second_time(query: str, rule: Rule) -> None:
    options = CompileOptions(disable=[name_of(rule)], pushed=True)
    once = rule(compile_query(query, options=options))
    assert rule(once) == once


@pytest.mark.parametrize("query", QUERIES)
def test_the_plan_without_rules_is_the_plan_as_written(query: str) -> None:
    written = compile_query(query, options=CompileOptions(disable=NAMES, pushed=True))
    assert written.sequence.evaluator.name == "registers"
    assert set(written.inputs.predicates) == {None}
    assert not any(gpm.private or gpm.correlation for gpm in written.patterns.gpms)
    evaluation = written.patterns.evaluation
    assert not (evaluation.rare_first or evaluation.shared or evaluation.lazy)


def test_each_rule_says_what_it_does() -> None:
    effects = [(rule.__doc__ or "").partition("\n")[0] for rule in RULES]
    assert len({*effects}) == len(RULES)
    assert all(effect.endswith(".") for effect in effects)
