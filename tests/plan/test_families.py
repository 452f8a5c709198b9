"""Which queries are a family, in which constants they differ, and what their plan is."""

from __future__ import annotations

import pytest

from spaseq.compile import CompileOptions, compile_query
from spaseq.options import StageOptions
from spaseq.plan.families import Family, families_of, may_begin
from spaseq.plan.query_plan import QueryPlan
from tests.thresholds import Force

QUERY = """PREFIX : <http://e/>
    {form} WITHIN {window} {more} FROM STREAM S <http://e/s> WHERE {{ SEQ({steps})
    DEFINE GPM A ON S {{ ?x :is {kind} ; :at ?k ; :low ?v FILTER (?v > {least}) }}
    DEFINE GPM B ON S {{ ?y :is :Cold ; :at ?k ; :high ?w FILTER (?w < ?v - {fall}) {extra} }} }}"""

USUAL = {
    "form": "SELECT ?x",
    "window": "1 HOURS",
    "more": "",
    "steps": "A; B",
    "kind": ":Hot",
    "least": "20",
    "fall": "5",
    "extra": "",
}


@pytest.fixture(autouse=True)
def _two_are_enough(force: Force) -> None:
    force("family_queries=2")


def plan(disable: tuple[str, ...] = (), **changed: str) -> QueryPlan:
    options = CompileOptions(several=True, disable=disable)
    return compile_query(QUERY.format(**{**USUAL, **changed}), options=options)


def families(*changed: dict[str, str]) -> tuple[Family, ...]:
    return families_of([plan(**each) for each in changed])


@pytest.mark.parametrize(
    ("name", "values", "places"),
    [
        ("kind", (":Hot", ":Warm"), 1),
        ("least", ("20", "30"), 1),
        ("least", ("20", '"text"'), 1),
        ("fall", ("5", "7.5"), 1),
        ("form", ('SELECT ("a" AS ?it)', 'SELECT ("b" AS ?it)'), 0),
    ],
)
def test_queries_that_differ_in_constants_are_a_family(
    name: str, values: tuple[str, str], places: int
) -> None:
    (family,) = families(*({name: value} for value in values))
    assert family.members == (0, 1)
    assert len(family.places) == places


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("window", ("1 HOURS", "2 HOURS")),
        ("steps", ("A; B", "A: B")),
        ("extra", ("", "FILTER (?w > 7)")),
        ("extra", ("OPTIONAL { ?y :in 1 }", "OPTIONAL { ?y :in 2 }")),
        ("extra", ("FILTER (?w != 1)", "FILTER (?w != 2)")),
        ("extra", ("?y :p/:q 1 .", "?y :p/:q 2 .")),
        ("form", ("SELECT ?x", "SELECT ?v")),
        ("more", ("", "PARTITION BY (?k)")),
    ],
)
def test_queries_that_differ_in_more_are_none(name: str, values: tuple[str, str]) -> None:
    assert not families(*({name: value} for value in values))


@pytest.mark.parametrize(
    "changed",
    [{"steps": "A, B"}, {"window": "9 EVENTS"}, {"form": "SELECT STRICT ?x"}],
)
def test_queries_that_count_all_events_run_by_themselves(changed: dict[str, str]) -> None:
    assert not families(changed, {**changed, "least": "30"})


def test_queries_that_make_streams_run_by_themselves() -> None:
    forms = [f"REGISTER STREAM <http://e/{n}> AS CONSTRUCT {{ ?x :p ?v }}" for n in "ab"]
    assert not families(*({"form": form} for form in forms))


def test_equal_queries_have_a_row_together() -> None:
    (family,) = families({}, {"least": "30"}, {})
    assert family.owners == ((0, 2), (1,))


def test_a_family_has_the_evaluator_of_its_members() -> None:
    (family,) = families({}, {"fall": "7"}, {"kind": ":Warm", "least": "1"})
    assert family.plan.sequence.evaluator.name == plan().sequence.evaluator.name
    assert family.plan.sequence.evaluator.name == "compiled-registers"


def test_the_rule_can_be_disabled() -> None:
    without = [plan(("query-families",), least=least) for least in ("1", "2")]
    assert not families_of(without)
    assert not families_of([plan(), plan(("query-families",), least="30")])


def test_a_query_that_is_alone_has_no_shape() -> None:
    assert compile_query(QUERY.format(**USUAL)).shaped is None


def test_a_few_queries_run_by_themselves(force: Force) -> None:
    force("family_queries=8")
    assert not families(*({"least": str(i)} for i in range(7)))
    assert families(*({"least": str(i)} for i in range(8)))


@pytest.mark.parametrize("window", ["2 HOURS", "1 HOURS TUMBLING"])
def test_families_that_differ_in_their_windows_have_the_plans_they_would_have_alone(
    window: str,
) -> None:
    few = [plan(least=least) for least in ("20", "30")]
    others = [plan(least=least, window=window) for least in ("40", "50")]
    first, second = families_of([*few, *others])
    (alone,) = families_of(others)
    assert repr(second.plan) == repr(alone.plan)
    assert first.plan.signature.fingerprint != second.plan.signature.fingerprint


def test_families_that_differ_in_more_than_their_windows_are_planned_by_themselves() -> None:
    few = [plan(least=least, fall="5") for least in ("20", "30")]
    others = [plan(least=least, fall="6", window="2 HOURS") for least in ("20", "30")]
    *_, second = families_of([*few, *others])
    (alone,) = families_of(others)
    assert repr(second.plan) == repr(alone.plan)


def test_the_plan_of_one_row_has_its_constants_in_their_places() -> None:
    """What a member needs more than this for an event is a limit of the member."""
    (family,) = families({"kind": ":Hot", "fall": "5"}, {"kind": ":Warm", "fall": "7"})
    first, second = family.only(1).patterns.gpms
    assert "<http://e/Warm>" in repr(first.pattern) and "<http://e/Hot>" not in repr(first.pattern)
    assert "'7'" in repr(first.pattern) + repr(second.pattern)
    assert "_:#" not in repr(first.pattern) + repr(second.pattern)


def begun(**changed: str) -> Family:
    """A family whose members differ in the least value of A."""
    plans = [plan(**changed, least=least) for least in ("20", "30")]
    (family,) = families_of(plans, may_begin(StageOptions()))
    return family


@pytest.mark.parametrize("changed", [{}, {"steps": "A: B"}, {"more": "PARTITION BY (?k)"}])
def test_solutions_of_later_steps_belong_to_all_members(changed: dict[str, str]) -> None:
    family = begun(**changed)
    assert family.begins_with_member
    first, later = family.plan.patterns.gpms
    assert "Table" in repr(first.pattern) and "Table" not in repr(later.pattern)
    assert family.plan.sequence.evaluator.name == "compiled-registers"


def test_a_bound_of_a_later_step_is_carried_by_the_first() -> None:
    """The bound of an event is a condition on the member with which a match has begun."""
    plans = [plan(extra=f"FILTER (?w > {least})") for least in ("7", "8")]
    (family,) = families_of(plans, may_begin(StageOptions()))
    later = family.plan.patterns.gpms[1]
    assert family.begins_with_member and later.conditions
    assert '"8"' in repr(family.only(1).patterns.gpms[0].pattern)
    assert "_:#" not in repr(family.only(1).patterns.gpms)


@pytest.mark.parametrize(
    "changed",
    [
        {"steps": "A+; B"},
        {"steps": "A; B; A"},
        {"more": "AFTER MATCH SKIP PAST LAST EVENT"},
        {"form": "SELECT MAX ?x"},
    ],
)
def test_members_have_partitions_of_their_own_elsewhere(changed: dict[str, str]) -> None:
    assert not begun(**changed).begins_with_member


def test_a_later_step_of_one_kind_for_each_member_has_the_table() -> None:
    """With its kind, a step has few solutions; without, each event would be one."""
    plans = [plan(extra=f"?y :of {kind} .") for kind in (":p", ":q")]
    (family,) = families_of(plans, may_begin(StageOptions()))
    assert not family.begins_with_member
