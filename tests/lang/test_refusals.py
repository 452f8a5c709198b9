"""The refusals of docs/lookup.md and docs/meaning.md: each is an error with a place and a message.

`tests/runtime/job/test_unit_graph.py` tests the refusals about several queries of one run, and
`test_resolve.py` tests the warnings.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from spaseq.compile import check_query
from tests.lang.test_resolve import query


@dataclass(frozen=True)
class Refusal:
    """A heading of these pages, and a query that its section refuses.

    The error points at `place`, and its message contains `words`.
    """

    heading: str
    query: str
    place: str
    words: str


_AT_EDGE = "at the edge of a bracket that is not transparent"
_FILTERED = "DEFINE GPM A ON S {{ ?s :p ?a FILTER({}) }} DEFINE GPM C ON S {{ ?s :p ?c }}"


def filtered(expression: str, sequence: str = "A+; C", clauses: str = "") -> str:
    """A query whose GPM A has this FILTER."""
    return query(sequence, _FILTERED.format(expression), clauses=clauses)


REFUSALS = [
    Refusal("Binary steps", query("A; (B | C & A)"), "&", "nest brackets to mix"),
    Refusal("Binary steps", query("A | C"), "|", "put it in its own bracket"),
    Refusal("Grammar",
            query("A; C", clauses="PARTITION BY ?s ?a"), "?a", "PARTITION BY clause"),
    Refusal("Grammar", query("A", within="WITHIN 5 EVENTS TUMBLING"), "TUMBLING",
            "WITHIN clause"),
    Refusal("Grammar", query("A", within="WITHIN 5 WEEKS"), "WEEKS", "WITHIN clause"),
    Refusal("Grammar",
            query("A", head="CONSTRUCT NEXT { ?s :p ?a }"), "NEXT", "CONSTRUCT clause"),
    Refusal("After match", query("A; C", clauses="AFTER MATCH SKIP TO FIRST Z"), "Z",
            "no GPM is called Z"),
    Refusal("After match", query("A; C", clauses="AFTER MATCH SKIP TO LAST Z"), "Z",
            "no GPM is called Z"),
    Refusal("Refusals", query("A", "DEFINE GPM A ON T { ?s :p ?a }"), "T",
            "no stream is called T"),
    Refusal("Graphs of the knowledge base",
            query("A", "DEFINE GPM A ON S { ?s :p ?a GRAPH <http://no> { ?a ?b ?c } }"),
            "<http://no>", "no FROM NAMED names the graph"),
    Refusal("Refusals", query("A", "DEFINE GPM A ON S { ?s zz:p ?a }"), "zz:",
            "prefix zz: is not declared"),
    Refusal("Binary steps", query("(A? | B)"), "A?", "must match at least one event"),
    Refusal("Binary steps", query("(A & C*)"), "C*", "must match at least one event"),
    Refusal("Binary steps", query("(A AND (B?; C?))"), "(B?; C?)", "must match at least one event"),
    Refusal("Repetition", query("(A?)+; B"), "(A?)+", "must match at least one event"),
    Refusal("Repetition", query("A; (B?; C*){2}"), "(B?; C*){2}", "must match at least one event"),
    Refusal("Repetition", query("A{3,2}; B"), "A{3,2}", "exclude each other"),
    Refusal("Negation", query("A; (B!; C)+"), "B!", _AT_EDGE),
    Refusal("Negation", query("A; (B; C!){2}; C"), "C!", _AT_EDGE),
    Refusal("Negation", query("A; ((B!; C) | C)"), "B!", _AT_EDGE),
    Refusal("Negation", query("A; (B AND (C; B!))"), "B!", _AT_EDGE),
    Refusal("Negation", query("A; (B!; C)!; C"), "B!", _AT_EDGE),
    Refusal("Negation", query("A; (B! | C)"), "B!", "as an operand of |"),
    Refusal("Negation", query("A; (C & B!)"), "B!", "as an operand of &"),
    Refusal("Negation", query("A; ((B!) AND C)"), "B!", "as an operand of AND"),
    Refusal("Negation", query("A; (B!)+; C"), "B!", "as a repeated step"),
    Refusal("Negation", query("A; (B!){2}; C"), "B!", "as a repeated step"),
    Refusal("Negation", query("A; B!+; C"), "+", "sequence"),
    Refusal("Negation", query("A; B+!; C"), "!", "sequence"),
    Refusal("Negation", query("A?; B!; C?"), "B!", "a sequence of negations only is left"),
    Refusal("Negation", query("A; (B!; C?; A)+"), "B!", _AT_EDGE),
    Refusal("Negation", query("A; (A; C?; B! | C)"), "B!", _AT_EDGE),
    Refusal("Negation", query("A; B!; C?", within="WITHIN 5 EVENTS"), "B!", "in last place under"),
    Refusal("Negation", query("C?; B!; A", within="WITHIN 5 EVENTS"), "B!", "in first place under"),
    Refusal("Negation", query("C?; B!; [5 SECONDS] A"), "B!", "gap bound behind a negated step"),
    Refusal("Loops", query("A; B?[:]"), "B?[:]", "joins repetitions"),
    Refusal("Loops", query("A; B{0,1}[:]"), "B{0,1}[:]", "joins repetitions"),
    Refusal("Loops", query("A; B!; C++"), "C++", "beside a negated step"),
    Refusal("Loops", query("A; B++; C!"), "B++", "beside a negated step"),
    Refusal("Loops", query("A; B!; C?; A++"), "A++", "beside a negated step"),
    Refusal("Loops", query("A; B++; C?"), "B++", "before a step that may be empty"),
    Refusal("Loops", query("A; (B++; C | A)"), "B++", "at the edge of a bracket with |"),
    Refusal("Loops", query("A; (C AND (C; B++))"), "B++", "at the edge of a bracket with AND"),
    Refusal("Loops", query("A; (B; A++; C)+"), "A++", "inside a repeated step"),
    Refusal("Loops", query("A; (B; A++; C)!; C"), "A++", "inside a negated step"),
    Refusal("Loops", query("A; (B; C!; A)++; C"), "(B; C!; A)++", "around a negated step"),
    Refusal("Loops", query("A*+; C"), "A*+", "in first place if it may be empty"),
    Refusal("Loops", query("A?; B?+; C"), "B?+", "in first place if it may be empty"),
    Refusal("Loops", query("A; B++", within="WITHIN 5 EVENTS"), "B++", "in last place under"),
    Refusal("Loops", query("A; B+ UNTIL A"), "A", "A is a step of the sequence"),
    Refusal("Loops", query("A; B+ UNTIL C; C!; A"), "C", "C is a step of the sequence"),
    Refusal("Loops", query("A; B+ UNTIL Z; C"), "Z", "no GPM is called Z"),
    Refusal("Negation", query("A; B!", within="WITHIN 5 EVENTS"), "B!",
            "negation in last place under WITHIN n EVENTS"),
    Refusal("Negation", query("B!; A", within="WITHIN 5 EVENTS"), "B!",
            "negation in first place under WITHIN n EVENTS"),
    Refusal("Negation", query("A; [5 SECONDS] B!; C"), "B!", "gap bound before a negated step"),
    Refusal("Negation", query("A; B!; [5 SECONDS] C!; A"), "C!", "gap bound before a negated step"),
    Refusal("Negation", query("A; [5 SECONDS] B!"), "B!", "gap bound before a negated step"),
    Refusal("Negation", query("B!; [5 SECONDS] A; C"), "B!",
            "gap bound behind a negated step in first"),
    Refusal("Negation", query("B!"), "B!", "a query of negations only"),
    Refusal("Negation", query("A!; B!"), "A!; B!", "a query of negations only"),
    Refusal("Window",
            query("A; B", within=""), "SELECT", "the state would grow without limit"),
    Refusal("Window", query("A", within="WITHIN 0 EVENTS"), "WITHIN 0 EVENTS", "empty window"),
    Refusal("Window", query("A", within='WITHIN 1 DAYS TUMBLING FROM "yesterday"'),
            "yesterday", "dateTime"),
    Refusal("Partition",
            query("A; C", "DEFINE GPM A ON S { ?s :p ?a } DEFINE GPM C ON S { ?t :p ?c }",
                  clauses="PARTITION BY (?s)"), "?s", "GPM C does not bind ?s"),
    Refusal("Partition", query("A", "DEFINE GPM A ON S { ?s :p ?a OPTIONAL { ?s :q ?k } }",
                         clauses="PARTITION BY (?s ?k)"), "?k", "GPM A does not always bind it"),
    Refusal("Group variables",
            filtered("PREV(?s) = ?s", clauses="PARTITION BY (?s)"), "PREV(?s)",
            "?s is not bound in a repeated step"),
    Refusal("PREV", filtered("PREV(?c) < 1"), "PREV(?c)", "not bound in a repeated step"),
    Refusal("PREV", query("A; C+", _FILTERED.format("PREV(?c) < 1")), "PREV(?c)",
            "only inside the step that repeats it"),
    Refusal("PREV", query("A+; C", head="SELECT (PREV(?a) AS ?x)"), "PREV(?a)",
            "only inside a repeated step"),
    Refusal("PREV", query("A+; C", tail="HAVING (PREV(?a) > 1)"), "PREV(?a)",
            "only inside a repeated step"),
    Refusal("Aggregates", query("A; C", head="SELECT (COUNT(?a) AS ?n)"), "COUNT(?a)",
            "ranges over a group variable"),
    Refusal("Aggregates", query("A; C", tail="HAVING (SUM(?a) > 1)"), "SUM(?a)",
            "ranges over a group variable"),
    Refusal("Aggregates", query("A+; C+", head="SELECT (SUM(?a + ?c) AS ?n)"), "SUM(?a + ?c)",
            "ranges over one group variable"),
    Refusal("Timestamp",
            query("A", head="SELECT (TIMESTAMP(Z) AS ?t)"), "TIMESTAMP(Z)", "no GPM is called Z"),
    Refusal("Select", query("A", head="SELECT (1 AS ?a)"), "?a",
            "already has a value"),
    Refusal("Functions",
            query("A", head="SELECT (EXISTS { ?s :p ?a } AS ?x)"), "EXISTS { ?s :p ?a }",
            "only in a GPM"),
    Refusal("Functions",
            query("A", tail="HAVING (?a > 1 || NOT EXISTS { ?s :p ?a })"),
            "NOT EXISTS { ?s :p ?a }", "only in a GPM"),
    Refusal("Register stream",
            query("A", head="REGISTER STREAM <http://s> AS SELECT *"),
            "FROM STREAM S <http://s>", "cannot read the stream that it registers"),
    Refusal("Register stream", query("A", head="REGISTER STREAM <out> AS SELECT *"), "<out>",
            "absolute IRI"),
]  # fmt: skip


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda r: f"{r.heading}: {r.place}")
def test_refused(refusal: Refusal) -> None:
    checked = check_query(refusal.query)
    assert checked.plan is None
    places = [
        refusal.query[d.span.start : d.span.end].strip()
        for d in checked.errors
        if refusal.words in d.message
    ]
    assert places[:1] == [refusal.place], checked.errors


def test_headings_are_those_of_the_language_reference() -> None:
    docs = Path(__file__).parents[2] / "docs"
    text = "".join((docs / page).read_text() for page in ("lookup.md", "meaning.md"))
    headings = {line.lstrip("# ") for line in text.splitlines() if line.startswith("##")}
    assert {refusal.heading for refusal in REFUSALS} <= headings
