"""What LANGUAGE refuses, sentence by sentence: each an error with its place and the page's words.

What is refused about several queries of one run is in `tests/runtime/test_chaining.py`; what is
only warned of in `test_resolve.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from spaseq.compile import check_query
from tests.lang.test_resolve import query


@dataclass(frozen=True)
class Refusal:
    """A sentence of the page, a query that it refuses, where the error points, and some words of
    its message."""

    sentence: str
    query: str
    place: str
    words: str


_ONE = "one kind per bracket; nest to mix"
_OPERANDS = "Operands must match at least one event."
_REPEATED = "X must match at least one event."
_EDGE = "Refused: negation at the edge of a bracket that is not transparent"
_OPERAND = "as an operand"
_TWICE = "repeated"
_BESIDE = "beside a step that may be empty"
_COUNTED = "at an end under WITHIN n EVENTS"
_GAP = "with a gap bound that it would make meaningless"
_NONE = "a query of negations only"
_KEYS = "Every GPM that is not negated must bind them."
_PREV = "It has a value per repetition: inside the step, PREV(?x) is the one before"
_GROUP = "aggregates range over all bound ones of a group variable"
_AFTERWARDS = "Afterwards, in later FILTERs, SELECT, CONSTRUCT and HAVING"
_AS_EDGE = "at the edge of a bracket that is not transparent"
_FILTERED = "DEFINE GPM A ON S {{ ?s :p ?a FILTER({}) }} DEFINE GPM C ON S {{ ?s :p ?c }}"


def filtered(expression: str, sequence: str = "A+; C", clauses: str = "") -> str:
    """A query whose GPM A has that FILTER."""
    return query(sequence, _FILTERED.format(expression), clauses=clauses)


REFUSALS = [
    Refusal(_ONE, query("A; (B | C & A)"), "&", "nest brackets to mix"),
    Refusal(_ONE, query("A | C"), "|", "it needs a bracket of its own"),
    Refusal("PARTITION BY: the brackets may be left out for one",
            query("A; C", clauses="PARTITION BY ?s ?a"), "?a", "PARTITION BY clause"),
    Refusal("WITHIN Int EVENTS", query("A", within="WITHIN 5 EVENTS TUMBLING"), "TUMBLING",
            "WITHIN clause"),
    Refusal("WITHIN Int Unit", query("A", within="WITHIN 5 WEEKS"), "WEEKS", "WITHIN clause"),
    Refusal("CONSTRUCT takes no selection strategy",
            query("A", head="CONSTRUCT NEXT { ?s :p ?a }"), "NEXT", "CONSTRUCT clause"),
    Refusal("SKIP TO FIRST Name", query("A; C", clauses="AFTER MATCH SKIP TO FIRST Z"), "Z",
            "no GPM is called Z"),
    Refusal("SKIP TO LAST Name", query("A; C", clauses="AFTER MATCH SKIP TO LAST Z"), "Z",
            "no GPM is called Z"),
    Refusal("DEFINE GPM Name ON Name", query("A", "DEFINE GPM A ON T { ?s :p ?a }"), "T",
            "no stream is called T"),
    Refusal("The KB is an RDF dataset of named graphs",
            query("A", "DEFINE GPM A ON S { ?s :p ?a GRAPH <http://no> { ?a ?b ?c } }"),
            "<http://no>", "no FROM NAMED names the graph"),
    Refusal("prefixes are SPARQL 1.1's", query("A", "DEFINE GPM A ON S { ?s zz:p ?a }"), "zz:",
            "prefix zz: is not declared"),
    Refusal(_OPERANDS, query("(A? | B)"), "A?", "must match at least one event"),
    Refusal(_OPERANDS, query("(A & C*)"), "C*", "must match at least one event"),
    Refusal(_OPERANDS, query("(A AND (B?; C?))"), "(B?; C?)", "must match at least one event"),
    Refusal(_REPEATED, query("(A?)+; B"), "(A?)+", "must match at least one event"),
    Refusal(_REPEATED, query("A; (B?; C*){2}"), "(B?; C*){2}", "must match at least one event"),
    Refusal("union over n <= i <= m", query("A{3,2}; B"), "A{3,2}", "exclude each other"),
    Refusal(_EDGE, query("A; (B!; C)+"), "B!", _AS_EDGE),
    Refusal(_EDGE, query("A; (B; C!){2}; C"), "C!", _AS_EDGE),
    Refusal(_EDGE, query("A; ((B!; C) | C)"), "B!", _AS_EDGE),
    Refusal(_EDGE, query("A; (B AND (C; B!))"), "B!", _AS_EDGE),
    Refusal(_EDGE, query("A; (B!; C)!; C"), "B!", _AS_EDGE),
    Refusal(_OPERAND, query("A; (B! | C)"), "B!", "as an operand of |"),
    Refusal(_OPERAND, query("A; (C & B!)"), "B!", "as an operand of &"),
    Refusal(_OPERAND, query("A; ((B!) AND C)"), "B!", "as an operand of AND"),
    Refusal(_TWICE, query("A; (B!)+; C"), "B!", "as a repeated step"),
    Refusal(_TWICE, query("A; (B!){2}; C"), "B!", "as a repeated step"),
    Refusal(_TWICE, query("A; B!+; C"), "+", "sequence"),
    Refusal(_TWICE, query("A; B+!; C"), "!", "sequence"),
    Refusal(_BESIDE, query("A; B!; C?"), "B!", "beside a step that may be empty"),
    Refusal(_BESIDE, query("A*; B!; C"), "B!", "beside a step that may be empty"),
    Refusal(_BESIDE, query("A; B!; C!; A{0,2}"), "B!", "beside a step that may be empty"),
    Refusal(_COUNTED, query("A; B!", within="WITHIN 5 EVENTS"), "B!",
            "negation in last place under WITHIN n EVENTS"),
    Refusal(_COUNTED, query("B!; A", within="WITHIN 5 EVENTS"), "B!",
            "negation in first place under WITHIN n EVENTS"),
    Refusal(_GAP, query("A; [5 SECONDS] B!; C"), "B!", "gap bound before a negated step"),
    Refusal(_GAP, query("A; B!; [5 SECONDS] C!; A"), "C!", "gap bound before a negated step"),
    Refusal(_GAP, query("A; [5 SECONDS] B!"), "B!", "gap bound before a negated step"),
    Refusal(_GAP, query("B!; [5 SECONDS] A; C"), "B!", "gap bound behind a negated step in first"),
    Refusal(_NONE, query("B!"), "B!", "a query of negations only"),
    Refusal(_NONE, query("A!; B!"), "A!; B!", "a query of negations only"),
    Refusal("WITHIN is required; without it state would grow for ever, and the error says so.",
            query("A; B", within=""), "SELECT", "state would grow for ever"),
    Refusal("WITHIN d", query("A", within="WITHIN 0 SECONDS"), "WITHIN 0 SECONDS", "nothing"),
    Refusal("t0 the FROM value", query("A", within='WITHIN 1 DAYS TUMBLING FROM "yesterday"'),
            'WITHIN 1 DAYS TUMBLING FROM "yesterday"', "dateTime"),
    Refusal(_KEYS, query("A; C", "DEFINE GPM A ON S { ?s :p ?a } DEFINE GPM C ON S { ?t :p ?c }",
                         clauses="PARTITION BY (?s)"), "?s", "GPM C does not bind ?s"),
    Refusal(_KEYS, query("A", "DEFINE GPM A ON S { ?s :p ?a OPTIONAL { ?s :q ?k } }",
                         clauses="PARTITION BY (?s ?k)"), "?k", "GPM A does not always bind it"),
    Refusal("Partition variables never are group variables.",
            filtered("PREV(?s) = ?s", clauses="PARTITION BY (?s)"), "PREV(?s)",
            "?s is not bound in a repeated step"),
    Refusal(_PREV, filtered("PREV(?c) < 1"), "PREV(?c)", "not bound in a repeated step"),
    Refusal(_PREV, query("A; C+", _FILTERED.format("PREV(?c) < 1")), "PREV(?c)",
            "only inside the step that repeats it"),
    Refusal(_PREV, query("A+; C", head="SELECT (PREV(?a) AS ?x)"), "PREV(?a)",
            "only inside a repeated step"),
    Refusal(_PREV, query("A+; C", tail="HAVING (PREV(?a) > 1)"), "PREV(?a)",
            "only inside a repeated step"),
    Refusal(_GROUP, query("A; C", head="SELECT (COUNT(?a) AS ?n)"), "COUNT(?a)",
            "ranges over a group variable"),
    Refusal(_GROUP, query("A; C", tail="HAVING (SUM(?a) > 1)"), "SUM(?a)",
            "ranges over a group variable"),
    Refusal(_GROUP, query("A+; C+", head="SELECT (SUM(?a + ?c) AS ?n)"), "SUM(?a + ?c)",
            "ranges over one group variable"),
    Refusal(_AFTERWARDS, filtered("COUNT(?a) < 3"), "COUNT(?a)", "only after the step"),
    Refusal("TIMESTAMP(A) is the time of the (last) event of A",
            query("A", head="SELECT (TIMESTAMP(Z) AS ?t)"), "TIMESTAMP(Z)", "no GPM is called Z"),
    Refusal("'(' Expr AS Var ')'", query("A", head="SELECT (1 AS ?a)"), "?a",
            "has a value already"),
    Refusal("EXISTS looks at an event, which SELECT has none of",
            query("A", head="SELECT (EXISTS { ?s :p ?a } AS ?x)"), "EXISTS { ?s :p ?a }",
            "only in a GPM"),
    Refusal("EXISTS looks at an event, which HAVING has none of",
            query("A", tail="HAVING (?a > 1 || NOT EXISTS { ?s :p ?a })"),
            "NOT EXISTS { ?s :p ?a }", "only in a GPM"),
    Refusal("REGISTER STREAM: other queries can read it",
            query("A", head="REGISTER STREAM <http://s> AS SELECT *"),
            "FROM STREAM S <http://s>", "cannot read the stream that it registers"),
    Refusal("REGISTER STREAM IRI", query("A", head="REGISTER STREAM <out> AS SELECT *"), "<out>",
            "absolute IRI"),
]  # fmt: skip


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda r: f"{r.sentence}: {r.place}")
def test_refused(refusal: Refusal) -> None:
    checked = check_query(refusal.query)
    assert checked.plan is None
    found = [
        (refusal.query[d.span.start : d.span.end].strip(), d.message)
        for d in checked.errors
        if refusal.words in d.message
    ]
    assert [place for place, _ in found][:1] == [refusal.place], checked.errors
