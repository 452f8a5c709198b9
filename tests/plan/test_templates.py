"""Queries that are planned by a template have the plans, and the findings, that each has alone."""

from __future__ import annotations

import pickle
import tracemalloc
from dataclasses import fields
from random import Random

import pytest

from spaseq.compile import CompileOptions, check_query
from spaseq.plan.query_plan import QueryPlan
from spaseq.plan.templates import MemberPlan, QueryTemplates

SEVERAL = CompileOptions(several=True)

FALL = """PREFIX : <http://e/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
    SELECT ?s (?p + 1 AS ?more) WITHIN 10 SECONDS PARTITION BY (?s)
    FROM STREAM S <http://e/S> WHERE { SEQ(A; B; C)
    DEFINE GPM A ON S { ?s :kind KIND ; :price ?p ; :of SELLER. FILTER (?p > HIGH) }
    DEFINE GPM B ON S { ?s :kind KIND2 ; :price ?q FILTER (?q < LOW && ?q < ?p - FALL) }
    DEFINE GPM C ON S { SELLER :note NOTE ; :sold ?s . ?s :price ?r FILTER (?r<HIGH) } }"""

USUAL = {
    "KIND2": ":k2",
    "KIND": ":k1",
    "SELLER": "<http://shop/1#me>",
    "HIGH": "100",
    "LOW": "20.5",
    "FALL": "3e1",
    "NOTE": '"a note"@en',
}


def written(changed: dict[str, str] | None = None) -> str:
    text = FALL
    for name, value in {**USUAL, **(changed or {})}.items():
        text = text.replace(name, value)
    return text


def by_template(text: str, first: str | None = None) -> QueryPlan | None:
    """The plan of a text after another one; None if no template fits."""
    templates = QueryTemplates()
    check_query(written() if first is None else first, "first", SEVERAL, templates)
    return templates.plan(text, "own", SEVERAL)


def check_equal(plan: QueryPlan, text: str) -> None:
    alone = check_query(text, "own", SEVERAL).plan
    assert alone is not None
    for field in fields(QueryPlan):
        if field.name != "sequence":  # automata are not compared
            assert getattr(plan, field.name) == getattr(alone, field.name), field.name
    if alone.shaped is not None:
        assert plan.constant_texts == alone.constant_texts
    assert plan.evaluator == alone.sequence.evaluator.name
    assert plan.sequence.evaluator == alone.sequence.evaluator


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"KIND": ":other"},
        {"KIND2": ":k3", "KIND": ":k-4_x"},
        {"SELLER": "<urn:isbn:0451450523>"},
        {"HIGH": "007", "LOW": "0.5", "FALL": "1.5E-3"},
        {"NOTE": '"Käse # 5 \'}"@en'},
    ],
)
def test_a_query_with_other_constants_fits_and_has_the_plan_that_it_has_alone(
    changed: dict[str, str],
) -> None:
    plan = by_template(written(changed))
    assert isinstance(plan, MemberPlan)
    check_equal(plan, written(changed))


@pytest.mark.parametrize(
    "changed",
    [
        {"KIND2": ":k1"},  # the query's triples could be written as one
        {"KIND": "<http://e/k1>"},
        {"KIND": ":a\\-b"},
        {"KIND": "undeclared:a"},
        {"KIND": ":price"},
        {"SELLER": "<relative>"},
        {"SELLER": "http://shop/1"},
        {"HIGH": "100.0"},
        {"HIGH": '"100"'},
        {"HIGH": "-100"},
        {"HIGH": "12345678901234567890"},
        {"HIGH": "?p"},
        {"LOW": "20.5 && ?q > 3"},
        {"LOW": "1", "FALL": "1"},
        {"NOTE": '"two\nlines"@en'},
        {"NOTE": '"a note"@de'},
        {"NOTE": '"a note"'},
        {"NOTE": "rdf:nil"},
    ],
)
def test_a_query_that_may_differ_in_more_is_planned(changed: dict[str, str]) -> None:
    assert by_template(written(changed)) is None


def test_every_text_has_the_findings_that_it_has_alone() -> None:
    """Texts with random changes of single characters, mistakes among them."""
    random, templates, fitted = Random(3), QueryTemplates(), 0
    check_query(written(), "first", SEVERAL, templates)
    for _ in range(60):
        text = list(written())
        place = random.randrange(text.index("W"), len(text))
        text[place] = random.choice([*"0159.:?<>\"'-#;,}{) \n\\exk", random.choice(text)])
        changed = "".join(text)
        found = check_query(changed, "own", SEVERAL, templates)
        alone = check_query(changed, "own", SEVERAL)
        assert found.diagnostics == alone.diagnostics, changed
        assert (found.plan is None) == (alone.plan is None)
        if isinstance(found.plan, MemberPlan):
            fitted += 1
            check_equal(found.plan, changed)
    assert fitted


@pytest.mark.parametrize(
    ("first", "other"),
    [
        ('FILTER (?v = "x")', 'FILTER (?v = "5")'),  # warned of: a number in quotation marks
        ('FILTER (?v > "5"^^xsd:double)', 'FILTER (?v > "17"^^xsd:double)'),
        ("FILTER (?v > -5)", "FILTER (?v > -17)"),
        ("FILTER (?v > 5) # at least 5", "FILTER (?v > 17) # at least 17"),
        ("?s :p 5.", "?s :p 17."),
        ("?s :p :k5.", "?s :p :k5.1."),
        ("FILTER (?v > 5) :a :b 5", "FILTER (?v > 5) :a :b 6"),
        (":a :p 1 . :b :q/:r 2", ":b :p 1 . :b :q/:r 2"),
        (":a :p 1 . :b :p 2", ":b :p 1 . :b :p 2"),
        ("OPTIONAL { ?s :p 5 }", "OPTIONAL { ?s :p 6 }"),
        ("FILTER (?v IN (5, 7))", "FILTER (?v IN (6, 7))"),
        ("FILTER (?v>5&&?v<7)", "FILTER (?v>6&&?v<8)"),
        ("FILTER (?v<5&&?v>1)", "FILTER (?v<6&&?v>2)"),
        ("", " "),
    ],
)
def test_whatever_fits_has_the_plan_and_the_findings_that_it_has_alone(
    first: str, other: str
) -> None:
    text = (
        "PREFIX : <http://e/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
        "SELECT * WITHIN 1 HOURS FROM STREAM S <http://e/S> SEQ(A) "
        "{{ DEFINE GPM A ON S {{ ?s :v ?v . {} }} }}"
    )
    templates = QueryTemplates()
    check_query(text.format(first), "first", SEVERAL, templates)
    found = check_query(text.format(other), "own", SEVERAL, templates)
    alone = check_query(text.format(other), "own", SEVERAL)
    assert found.diagnostics == alone.diagnostics
    if found.plan is not None:
        check_equal(found.plan, text.format(other))


def test_names_and_shapes_of_a_member_change_without_planning_it() -> None:
    plan = by_template(written({"HIGH": "7"}))
    assert isinstance(plan, MemberPlan)
    other = plan.with_identity(plan.identity).without_shape()
    assert other.identity == plan.identity
    assert other.shaped is None
    assert isinstance(other, MemberPlan)


def test_a_pickled_member_is_the_same_query() -> None:
    text = written({"HIGH": "7", "KIND": ":k5"})
    plan = by_template(text)
    again = pickle.loads(pickle.dumps(plan))
    assert isinstance(again, MemberPlan)
    check_equal(again, text)


def test_many_members_keep_little_beside_their_template() -> None:
    """Names, plan and constants take less than the texts of the queries would."""
    templates = QueryTemplates()
    check_query(written(), "first", SEVERAL, templates)
    check_query(written({"HIGH": "1"}), "second", SEVERAL, templates)  # makes the template
    kept = []
    for _ in range(3):  # threads that other tests have left may allocate, too
        tracemalloc.start()
        try:
            texts = (written({"HIGH": str(200 + i)}) for i in range(500))
            plans = [templates.plan(text, f"query{i}", SEVERAL) for i, text in enumerate(texts)]
            kept.append(tracemalloc.get_traced_memory()[0])
        finally:
            tracemalloc.stop()
        assert all(isinstance(plan, MemberPlan) for plan in plans)
    assert min(kept) < len(written()) * len(plans)


def test_a_query_of_itself_alone_has_no_template() -> None:
    templates = QueryTemplates()
    check_query(written(), "first", CompileOptions(), templates)
    assert templates.plan(written(), "own", CompileOptions()) is None
