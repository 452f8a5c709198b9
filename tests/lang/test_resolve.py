"""Resolution of names, and the refusals of docs/lookup.md#refusals."""

from __future__ import annotations

import pytest

from spaseq.compile import Checked, check_query

GPMS = """
  DEFINE GPM A ON S { ?s :p ?a }
  DEFINE GPM B ON S { ?s :p ?b FILTER(?b < ?a) }
  DEFINE GPM C ON S { ?s :p ?c }
"""


def query(
    sequence: str,
    gpms: str = GPMS,
    *,
    head: str = "SELECT *",
    within: str = "WITHIN 1 HOURS",
    clauses: str = "",
    tail: str = "",
) -> str:
    """A query around a sequence, over one stream S and one KB <http://kb>."""
    return (
        f"PREFIX : <http://e/>\n{head} {within} {clauses} FROM STREAM S <http://s> "
        f"FROM NAMED <http://kb>\nWHERE {{ SEQ({sequence}) {gpms} }} {tail}"
    )


def findings(checked: Checked) -> list[tuple[str, str]]:
    """(code, the text pointed at) of each finding."""
    text = checked.source.text
    return [(d.code, text[d.span.start : d.span.end]) for d in checked.diagnostics]


def only(text: str) -> tuple[str, str]:
    found = findings(check_query(text))
    assert len(found) == 1, found
    return found[0]


REFUSED = [
    ("A; D", "unknown-gpm", "D"),
    ("B!", "only-negations", None),
    ("A; (B!; C)+", "negation-at-edge", "B!"),
    ("A; (B; C!){2}; C", "negation-at-edge", "C!"),
    ("A; (B | C!)", "negation-at-edge", "C!"),
    ("A; (B AND C!)", "negation-at-edge", "C!"),
    ("A; (B & (C!))", "negation-at-edge", "C!"),
    ("(B!)+; A", "negation-at-edge", "B!"),
    ("A; ((B!; C)!); C", "negation-at-edge", "B!"),
    ("A?; B!; C?", "only-negations", "B!"),
    ("A; (B?)!; C", "empty-step", "(B?)!"),
    ("A; [5 SECONDS] B!; C", "meaningless-gap", "B!"),
    ("B!; [5 SECONDS] A; C", "meaningless-gap", "B!"),
    ("A{3,2}; B", "empty-repetition", "A{3,2}"),
    ("(A?)+; B", "empty-step", "(A?)+"),
    ("A; (B? | C)", "empty-operand", "B?"),
    ("A; (B AND C*)", "empty-operand", "C*"),
]


@pytest.mark.parametrize(("sequence", "code", "place"), REFUSED, ids=[r[0] for r in REFUSED])
def test_refused_sequences(sequence: str, code: str, place: str | None) -> None:
    found = [f for f in findings(check_query(query(sequence))) if f[0] == code]
    assert found
    assert place is None or found[0][1].strip() == place


ACCEPTED = [
    "A; B!; C", "A; (B!; C)", "A; B!; C!; A", "(A; B!; C)+", "A; (B; C)!; C", "B!; A", "A; B!",
    "A; B!; [5 SECONDS] C", "A{2}", "A{2,}", "A{0,3}; B", "(A, (B; C))",
]  # fmt: skip


@pytest.mark.parametrize("sequence", ACCEPTED)
def test_accepted_sequences(sequence: str) -> None:
    assert check_query(query(sequence)).errors == ()


def test_negation_at_an_end_needs_a_time_window() -> None:
    checked = check_query(query("A; B!", within="WITHIN 5 EVENTS"))
    assert findings(checked) == [("negation-at-end", "B!")]


def test_within_is_required_and_the_error_says_why() -> None:
    checked = check_query(query("A; B", within=""))
    (error,) = checked.errors
    assert error.code == "missing-window"
    assert "state would grow without limit" in error.message


def test_unknown_names_come_with_the_nearest_one() -> None:
    gpms = """DEFINE GPM Alpha ON Sensor { ?s :p ?a }
              DEFINE GPM Beta ON S { ?s :p ?b GRAPH <http://kbb> { ?b :q ?c } }"""
    checked = check_query(query("Alpha; Betta", gpms))
    found = {d.code: d.suggestion for d in checked.errors}
    assert found == {"unknown-gpm": "Beta", "unknown-stream": None, "unknown-kb": "<http://kb>"}


def test_duplicates_are_refused() -> None:
    gpms = "DEFINE GPM A ON S { ?s :p ?a } DEFINE GPM A ON S { ?s :q ?a }"
    assert only(query("A", gpms))[0] == "duplicate-GPM"
    assert only(query("A; B; C", clauses="FROM STREAM S <http://t>"))[0] == "duplicate-stream"


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        ("PREV(?a) > 1", "prev-outside"),
        ("PREV(?c) > 1", "not-a-group-variable"),
        ("COUNT(?c) > 1", "not-a-group-variable"),
        ("TIMESTAMP(Z) > 1", "unknown-gpm"),
    ],
)
def test_what_cannot_mean_anything_in_a_filter(expression: str, code: str) -> None:
    gpms = f"""DEFINE GPM A ON S {{ ?s :p ?a }}
      DEFINE GPM C ON S {{ ?s :p ?c FILTER({expression}) }}"""
    assert code in [c for c, _ in findings(check_query(query("A+; C", gpms)))]


@pytest.mark.parametrize(
    "pattern",
    [
        "?b :q ?w BIND(COUNT(?w) AS ?n)",
        "?b :q ?w FILTER EXISTS { ?w :r ?z FILTER(MAX(?z) > 1) }",
        "?b :q ?w OPTIONAL { ?w :r ?z FILTER(MAX(?z) > 1) }",
    ],
)
def test_an_aggregate_of_what_no_repeated_step_binds(pattern: str) -> None:
    gpms = f"DEFINE GPM A ON S {{ ?a :p ?v }} DEFINE GPM B ON S {{ {pattern} }}"
    assert only(query("A+; B", gpms))[0] == "not-a-group-variable"
    group = pattern.replace("COUNT(?w)", "COUNT(?v)").replace("MAX(?z)", "MAX(?v)")
    assert check_query(query("A+; B", gpms.replace(pattern, group))).errors == ()


def test_an_aggregate_inside_its_step_is_a_running_one() -> None:
    gpms = "DEFINE GPM A ON S { ?x :p ?a FILTER(COUNT(?a) < 3) }"
    assert findings(check_query(query("A+", gpms))) == []


def test_partition_variables_are_bound_by_every_gpm() -> None:
    gpms = "DEFINE GPM A ON S { ?s :p ?a } DEFINE GPM B ON S { ?t :p ?b }"
    checked = check_query(query("A; B", gpms, clauses="PARTITION BY (?s)"))
    assert [d.code for d in checked.errors] == ["unbound-partition"]
    negated = check_query(query("A; B!; A", gpms, clauses="PARTITION BY (?s)"))
    assert negated.errors == ()


WARNED = [
    ("A; C", GPMS, "unused-gpm"),
    ("A, B!, C", GPMS, "vacuous-negation"),
    ("A; (B | B); C", GPMS, "unreachable-alternative"),
    ("A", "DEFINE GPM A ON S { ?s :p ?a FILTER(?aa > 1) }", "unbound-variable"),
    ("B; A", "DEFINE GPM A ON S { ?s :p ?a } DEFINE GPM B ON S { ?s :p ?b FILTER(?b < ?a) }",
     "unbound-variable"),
]  # fmt: skip


@pytest.mark.parametrize(("sequence", "gpms", "code"), WARNED)
def test_warnings(sequence: str, gpms: str, code: str) -> None:
    checked = check_query(query(sequence, gpms))
    assert checked.errors == ()
    assert code in [d.code for d in checked.warnings]


def shown(sequence: str, gpms: str, clauses: str = "") -> list[str]:
    """The codes of the warnings of a query that shows ?a."""
    text = f"""PREFIX : <http://e/> SELECT ?a WITHIN 1 HOURS {clauses}
    FROM STREAM S <http://e/s> WHERE {{ SEQ({sequence}) {gpms} }}"""
    checked = check_query(text)
    assert checked.errors == ()
    return [d.code for d in checked.warnings]


@pytest.mark.parametrize("sequence", ["A{3}", "A+", "A{2,4}", "B; (A | C){2}"])
def test_loops_of_events_of_several_things(sequence: str) -> None:
    gpms = "DEFINE GPM A ON S { ?s :p ?a }"
    if "B" in sequence:
        gpms += "DEFINE GPM B ON S { ?t :p ?b } DEFINE GPM C ON S { ?u :q ?a }"
    assert "unjoined-loop" in shown(sequence, gpms)


SOME = "DEFINE GPM A ON S { ?s :p ?a } DEFINE GPM B ON S { ?t :p ?b }"


@pytest.mark.parametrize(
    ("sequence", "gpms", "clauses"),
    [
        ("A{3}", "DEFINE GPM A ON S { ?s :p ?a }", "PARTITION BY (?a)"),
        ("A{3}", "DEFINE GPM A ON S { ?s :p ?a FILTER(COALESCE(PREV(?a), ?a) = ?a) }", ""),
        ("B; A{3}", "DEFINE GPM A ON S { ?s :p ?a } DEFINE GPM B ON S { ?t :p ?a }", ""),
        ("A?", "DEFINE GPM A ON S { ?s :p ?a }", ""),
        ("A; B{2}", SOME, ""),  # only ?a is shown
    ],
)
def test_loops_that_need_no_key(sequence: str, gpms: str, clauses: str) -> None:
    assert "unjoined-loop" not in shown(sequence, gpms, clauses)


@pytest.mark.parametrize(
    ("having", "warned"),
    [
        ("COUNT(?a) < 4", True),
        ("4 >= COUNT(?a)", True),
        ("COUNT(?a) > 4", False),
        ("?a = 4", False),
    ],
)
def test_having_before_the_longest_match(having: str, warned: bool) -> None:
    text = f"""PREFIX : <http://e/> SELECT MAX ?k WITHIN 1 HOURS PARTITION BY (?k)
    FROM STREAM S <http://e/s> WHERE {{ SEQ(A+) DEFINE GPM A ON S {{ ?x :k ?k ; :p ?a }} }}
    HAVING ({having})"""
    checked = check_query(text)
    assert checked.errors == ()
    assert ("having-before-max" in [d.code for d in checked.warnings]) is warned


def test_a_filter_may_use_what_the_same_step_bound_before() -> None:
    gpms = "DEFINE GPM A ON S { ?x :p ?a FILTER(?a > PREV(?a)) }"
    assert check_query(query("A+", gpms)).diagnostics == ()


def test_the_origin_of_a_tumbling_window_is_a_time() -> None:
    good = query("A; C", within='WITHIN 1 HOURS TUMBLING FROM "2020-01-31T00:00:00Z"')
    assert check_query(good).errors == ()
    bad = query("A; C", within='WITHIN 1 HOURS TUMBLING FROM "2020-02-31T00:00:00Z"')
    assert [d.code for d in check_query(bad).errors] == ["not-a-time"]


def test_a_window_of_nothing_is_refused() -> None:
    for within in ("WITHIN 0 SECONDS TUMBLING", "WITHIN 0 EVENTS"):
        checked = check_query(query("A; C", within=within))
        assert "empty-window" in [d.code for d in checked.errors]


def test_a_stream_has_one_name() -> None:
    twice = query("A; B; C", clauses="FROM STREAM T <http://s>")
    assert only(twice) == ("duplicate-stream", "<http://s>")
