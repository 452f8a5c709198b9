"""Typical mistakes of a new user in a query: the message, its place, and the remedy.

Each row changes one text of a good query. `line` and `column` are those of the first message.
"""

from __future__ import annotations

import pytest

from spaseq.compile import check_query
from spaseq.errors import Diagnostic

GOOD = """\
PREFIX : <http://example/>
SELECT ?room ?high
WITHIN 5 MINUTES
PARTITION BY (?room)
FROM STREAM S <http://example/readings>
FROM NAMED <http://example/kb>
WHERE {
  SEQ(Low; High)
  DEFINE GPM Low ON S { ?r :room ?room ; :celsius ?low FILTER(?low < 20) }
  DEFINE GPM High ON S { ?q :room ?room ; :celsius ?high FILTER(?high > ?low + 5) }
}
"""

SELECT, WITHIN, PARTITION = "SELECT ?room ?high", "WITHIN 5 MINUTES", "PARTITION BY (?room)"
STREAM, PREFIX = "FROM STREAM S <http://example/readings>", "PREFIX : <http://example/>"
SEQ, LOW, HIGH = "SEQ(Low; High)", "FILTER(?low < 20)", "FILTER(?high > ?low + 5)"
GPM, END = "DEFINE GPM Low ON S {", "}\n}\n"

# (the good text, the mistake, line, column, what the message says, what it suggests)
MISTAKES = [
    (SELECT, "SELECT ?room, ?high", 2, 13,
     "unexpected ',' in the SELECT clause: SELECT has no commas: write SELECT ?x ?y", None),
    (SELECT, "SELECT room high", 2, 8,
     "unexpected 'room' in the SELECT clause: a variable begins with a question mark: "
     "write ?room", None),
    (SELECT, "SELECT ?room ?hihg", 2, 14, "?hihg is selected, but nothing binds it", "?high"),
    (SELECT, "SELECT ?room (?high - ?low)", 2, 27,
     "unexpected ')' in the SELECT clause: give the expression a name: (?high - ?low "
     "AS ?name)", None),
    (SELECT, "SELECT ?room ?high - ?low AS ?rise", 2, 20,
     "unexpected '-' in the SELECT clause: put an expression into brackets, with a "
     "name: (?x + 1 AS ?name)", None),
    (SELECT, "SELECT COUNT(*)", 2, 8,
     "unexpected 'COUNT' in the SELECT clause: write (COUNT(...) AS ?name)", None),
    (SELECT, "SELECT (COUNT(*) AS ?n)", 2, 9,
     "COUNT(*) counts no group variable; name one", None),
    (SELECT, "SELECT (COUNT(1) AS ?n)", 2, 9,
     "COUNT ranges over a group variable, but names none", None),
    (SELECT, "ASK", 2, 1,
     "unexpected 'ASK' in the PREFIX clause: write SELECT: each match is one answer", None),
    (SELECT, "DESCRIBE ?room", 2, 1,
     "unexpected 'DESCRIBE' in the PREFIX clause: write CONSTRUCT { ... }: each match gives "
     "one graph", None),
    (SELECT, "SELECT (MAX(?high) AS ?top)", 2, 9,
     "MAX ranges over a group variable, but ?high is not bound in a repeated step; "
     "repeat its step, as in High+", None),
    (SELECT, "SELECT ?room ?high LIMIT 10", 2, 20,
     "unexpected 'LIMIT' in the SELECT clause: a query has no LIMIT, because a stream "
     "has no end; the option --limit-per-event N bounds the answers of one instant", None),
    (SELECT, "SELECT (?high AS ?low)", 2, 18,
     "?low already has a value; AS needs a new name", None),
    ("SELECT ?room ?high\n", "", 2, 1, "SELECT or CONSTRUCT is missing", None),
    ("WITHIN 5 MINUTES\n", "", 2, 1,
     "WITHIN is required: without a window, the state would grow without limit", None),
    (WITHIN, "WITHIN 5 MIN", 3, 10, "unexpected 'MIN' in the WITHIN clause: write MINUTES", None),
    (WITHIN, "WITHIN 5", 3, 8, "the WITHIN clause is incomplete", None),
    (WITHIN, "WITHIN '5 MINUTES'", 3, 8,
     "unexpected '5 MINUTES' in the WITHIN clause: write a number and a unit, as in "
     "WITHIN 5 MINUTES", None),
    (WITHIN, "WITHIN 0.5 MINUTES", 3, 9,
     "unexpected '.5' in the WITHIN clause: write a whole number, in a smaller unit", None),
    (WITHIN, "WITHIN 5 MINUETS", 3, 10, "unexpected 'MINUETS' in the WITHIN clause", "MINUTES"),
    (WITHIN, "WITHIN 0 EVENTS", 3, 1,
     "an empty window holds no match: write a number of at least 1", None),
    (WITHIN, "WITHIN PT5M", 3, 8,
     "unexpected 'PT5M' in the WITHIN clause: write a number and a unit, as in WITHIN "
     "5 MINUTES", None),
    (WITHIN, "WITHIN 1 EVENTS", 3, 1,
     "this can have no answers: a match has at least 2 events", None),
    (WITHIN, "WINDOW 5 MINUTES", 3, 1,
     "unexpected 'WINDOW' in the SELECT clause: write WITHIN 5 MINUTES", None),
    (WITHIN, 'WITHIN 5 MINUTES TUMBLING FROM "noon"', 3, 33, "'noon' is not a dateTime", None),
    (WITHIN, "WITHIN 5 MINUTES\nWITHIN 6 MINUTES", 4, 1,
     "a second WITHIN clause: the first is in line 3", None),
    (PARTITION, "PARTITION BY (?r)", 4, 15,
     "PARTITION BY ?r: GPM High does not bind ?r; every GPM that is not negated must", "?room"),
    (PARTITION, "PARTITION BY room", 4, 14,
     "unexpected 'room' in the PARTITION BY clause: name a variable that every GPM "
     "binds: PARTITION BY (?x)", None),
    (PARTITION, "GROUP BY ?room", 4, 1,
     "unexpected 'GROUP BY' in the WITHIN clause: write PARTITION BY (?x) after "
     "WITHIN; aggregates range over the repetitions of one match", None),
    (PARTITION, "PARTITION (?room)", 4, 11, "unexpected '(' in the PARTITION BY clause", None),
    (PARTITION, "ORDER BY ?room", 4, 1,
     "unexpected 'ORDER BY' in the WITHIN clause: answers come in the order of their "
     "ends, always", None),
    (STREAM, "FROM STREAM <http://example/readings>", 5, 13,
     "unexpected '<http://example/readings>' in the FROM clause: write FROM STREAM S "
     "<iri>, with a name for the stream", None),
    (STREAM, "FROM <http://example/readings>", 5, 6,
     "unexpected '<http://example/readings>' in the FROM clause: write FROM STREAM S "
     "<iri>, with a name for the stream, or FROM NAMED <iri> for a graph of the knowledge base",
     None),
    (STREAM, "FROM S <http://example/readings>", 5, 6,
     "unexpected 'S' in the FROM clause: write FROM STREAM S <iri>, with a name for "
     "the stream", None),
    (STREAM, "FROM STREAM S http://example/readings", 5, 15,
     "unexpected 'http://example/readings' in the FROM clause: put the IRI into angle "
     "brackets: <http://example/readings>", None),
    (STREAM, "FROM STREAM s <http://example/readings>", 9, 21, "no stream is called S", "s"),
    ("FROM STREAM S <http://example/readings>\n", "", 2, 1,
     "the query reads no stream: write FROM STREAM S <iri> before WHERE", None),
    (STREAM, "FROM NAMED STREAM S <http://example/readings>", 5, 6,
     "unexpected 'NAMED STREAM' in the FROM clause: write FROM STREAM S <iri>, with a "
     "name for the stream", None),
    ("PREFIX : <http://example/>\n", "", 8, 28,
     "prefix : is not declared; add PREFIX : <http://...> at the top", None),
    (PREFIX, "PREFIX <http://example/>", 1, 8,
     "unexpected '<http://example/>' in the PREFIX clause", None),
    (PREFIX, "@prefix : <http://example/> .", 1, 1,
     "unexpected '@prefix' in the query: write PREFIX without the @, and no dot at the "
     "end of the line", None),
    (PREFIX, "PREFIX : http://example/", 1, 10,
     "unexpected 'http://example/' in the PREFIX clause: put the IRI into angle "
     "brackets: <http://example/>", None),
    (":celsius ?low", "sosa:hasSimpleResult ?low", 9, 42,
     "prefix sosa: is not declared; add PREFIX sosa: <http://www.w3.org/ns/sosa/> at "
     "the top", None),
    (":celsius ?low", "ex:celsius ?low", 9, 42,
     "prefix ex: is not declared; add PREFIX ex: <http://...> at the top", None),
    (":celsius ?low", "celsius ?low", 9, 42,
     "unexpected 'celsius' in GPM Low: a name has a prefix: write :celsius", None),
    (":celsius ?low", "<http://example/celsius ?low", 9, 42, "this IRI is never closed", None),
    (":celsius ?low", ":celsius low", 9, 51,
     "unexpected 'low' in GPM Low: write ?low for a variable, or :low for a name of "
     "the data", None),
    (":celsius ?low", ":celsius ?low ; a Reading", 9, 60,
     "unexpected 'Reading' in GPM Low: write ?Reading for a variable, or :Reading for "
     "a name of the data", None),
    (":celsius ?low", ":celsius ?low . GRAPH <http://example/kbs> { ?room :floor 1 }", 9, 64,
     "no FROM NAMED names the graph <http://example/kbs>", "<http://example/kb>"),
    (SEQ, "SEQ(Low; Hihg)", 8, 12, "no GPM is called Hihg", "High"),
    (SEQ, "SEQ(low; High)", 8, 7, "no GPM is called low", "Low"),
    (SEQ, "SEQ(Low -> High)", 8, 11,
     "unexpected '->' in the sequence: write `Low; High` (the next that matches) or "
     "`Low, High` (strictly next)", None),
    (SEQ, "SEQ(Low High)", 8, 11,
     "unexpected 'High' in the sequence: steps need an operator between them: write "
     "`Low; High` (the next that matches) or `Low, High` (strictly next)", None),
    (SEQ, "SEQ(Low; !High)", 8, 12,
     "unexpected '!' in the sequence: the sign of a negated step stands behind it: "
     "write `High!`", None),
    (SEQ, "SEQ(Low; High", 8, 6, "'(' is never closed in the sequence", None),
    (SEQ, "Low; High", 7, 7, "SEQ is missing", None),
    (SEQ, "SEQ(Low | High)", 8, 11,
     "unexpected '|' in the sequence: put it in its own bracket, as in SEQ((A | B); C)", None),
    (SEQ, "SEQ(Low OR High)", 8, 11,
     "unexpected 'OR' in the sequence: write `(Low | High)`, in a bracket", None),
    (SEQ, "SEQ(Low UNTIL High)", 8, 11,
     "unexpected 'UNTIL' in the sequence: UNTIL stands behind a loop: write `Low+ "
     "UNTIL High`", None),
    (SEQ, "SEQ(Low+? ; High)", 8, 11,
     "unexpected '?' in the sequence: there are no reluctant loops, because shorter "
     "repetitions are answers too: write `Low+` for all lengths, `Low{1}` for the "
     "shortest", None),
    (SEQ, "SEQ(Low{3,1}; High)", 8, 7,
     "at least 3 and at most 1: the bounds exclude each other", None),
    (SEQ, "SEQ(Low; High; )", 8, 18, "unexpected ')' in the sequence", None),
    (SEQ, "SEQ(Low;[10 MINUTES] High)", 8, 12,
     "this gap bound has no effect: a match fits into 5 MINUTES; write WITHIN 10 "
     "MINUTES or more, or a shorter bound", None),
    (SEQ, "SEQ(Low; [10] High)", 8, 15, "unexpected ']' in the sequence", None),
    (SEQ, "SEQ(High; Low)", 10, 73,
     "the FILTER can never hold: ?low is bound only later; move it to Low", None),
    (SEQ, "SEQ(Low!)", 8, 7,
     "a query of negations only has no matches: add a step that is not negated", None),
    (SEQ, "SEQ(Low)", 2, 14, "?high is selected, but nothing binds it", None),
    (SEQ, "PATTERN (Low High)", 8, 3,
     "there is no PATTERN: write SEQ(A, B+) in the braces of WHERE, with an operator "
     "between the steps", None),
    (SEQ, "SEQ(Low, Low!, High)", 8, 12,
     "negation between two ',' can never fail: no event lies between them; write `;`", None),
    (LOW, "FILTER ?low < 20", 9, 63,
     "unexpected '?low' in GPM Low: put the condition in brackets", None),
    (LOW, "FILTER(?low == 20)", 9, 68, "unexpected '==' in GPM Low: write =", None),
    (LOW, "FILTER(low < 20)", 9, 63,
     "unexpected 'low' in GPM Low: a variable begins with a question mark: write ?low", None),
    (LOW, "FILTER(?lwo < 20)", 9, 63, "the FILTER can never hold: nothing binds ?lwo", "?low"),
    (LOW, "FILTER(?low < 20 AND ?low > 0)", 9, 73, "unexpected 'AND' in GPM Low: write &&", None),
    (LOW, 'FILTER(?low < "20")', 9, 63,
     'this never holds for a number: "20" is a string; write 20 without quotation marks', None),
    (LOW, "FILTER(?low < 20", 9, 62, "'(' is never closed in GPM Low", None),
    (LOW, "FILTER(Low.celsius < 20)", 9, 63,
     "unexpected 'Low.celsius' in GPM Low: write ?celsius, and bind it in the GPM: a "
     "variable belongs to the whole query", None),
    (LOW, "FILTER(?low < ?high)", 9, 70,
     "the FILTER can never hold: ?high is bound only later; move it to High", None),
    (LOW, "FILTER(CONTAIN(?room, 'a'))", 9, 63, "unexpected 'CONTAIN' in GPM Low", "CONTAINS"),
    (LOW, "FILTER(CONTAINS(?room))", 9, 63, "CONTAINS takes 2 arguments, not 1", None),
    (LOW, "FILTER(?low BETWEEN 1 AND 20)", 9, 68,
     "unexpected 'BETWEEN' in GPM Low: write ?x >= 1 && ?x <= 9", None),
    (LOW, "FILTER(?low IS NOT NULL)", 9, 68,
     "unexpected 'IS' in GPM Low: write BOUND(?x) or !BOUND(?x)", None),
    (LOW, "FLITER(?low < 20)", 9, 56, "unexpected 'FLITER' in GPM Low", "FILTER"),
    (LOW, "FILTER(PREV(?low) < 20)", 9, 63,
     "PREV(?low): ?low is not bound in a repeated step; repeat its step, as in Low+", None),
    (LOW, "FILTER(AVG(?low) < 20)", 9, 63,
     "AVG ranges over a group variable, but ?low is not bound in a repeated step; "
     "repeat its step, as in Low+", None),
    (LOW, "WHERE ?low < 20", 9, 56,
     "unexpected 'WHERE' in GPM Low: conditions are FILTERs: write FILTER(?x > 1)", None),
    (LOW, "FILTER(?low < 20,5)", 9, 72,
     "unexpected ',' in GPM Low: join conditions with &&", None),
    (HIGH, "FILTER(NOW() - TIMESTAMP(Low) < 60)", 10, 65,
     "this never holds: a duration is compared with a number; write a duration as "
     '"PT5S"^^xsd:dayTimeDuration', None),
    (HIGH, "FILTER(TIMESTAMP(high) > TIMESTAMP(Low))", 10, 65, "no GPM is called high", "High"),
    (HIGH, "FILTER(xsd:decimal(?high) > 5)", 10, 65,
     "prefix xsd: is not declared; add PREFIX xsd: "
     "<http://www.w3.org/2001/XMLSchema#>, which is assumed", None),
    (HIGH, "FILTER(STR(?high) > 25)", 10, 65,
     "this never holds: a string is compared with a number; leave STR out, or write "
     "xsd:decimal(...) around it", None),
    (HIGH, "MINUS { ?r :celsius ?c FILTER(?c > ?high) }", 10, 93,
     "the FILTER can never hold: MINUS does not see ?high; write FILTER NOT EXISTS { "
     "... } instead of MINUS", None),
    (GPM, "DEFINE Low ON S {", 9, 10,
     "unexpected 'Low' in the head of a GPM: write DEFINE GPM Low", None),
    (GPM, "DEFINE GPM Low {", 9, 14, "the head of a GPM is incomplete", None),
    (GPM, "DEFINE GPM Low ON Sensors {", 9, 21, "no stream is called Sensors", None),
    (GPM, "DEFINE GPM Low ON s {", 9, 21, "no stream is called s", "S"),
    (GPM, "DEFINE GPM High ON S {", 8, 7, "no GPM is called Low", None),
    (GPM, "DEFINE GPM Low AS S {", 9, 18, "unexpected 'AS' in the head of a GPM", None),
    (END, "}\n", 7, 7, "'{' is never closed in the query", None),
    (END, "}\n}\nHAVING ?high > 3\n", 12, 8,
     "unexpected '?high' in the HAVING clause: put the condition in brackets", None),
    (END, "}\n}\nHAVING (?hgh > 3)\n", 12, 9,
     "HAVING can never hold: nothing binds ?hgh", "?high"),
    (END, "}\n}\nORDER BY ?high\n", 12, 1,
     "unexpected 'ORDER BY' in the query: answers come in the order of their ends, always", None),
    (PARTITION, "AFTER MATCH SKIP PAST LAST ROW", 4, 28,
     "unexpected 'ROW' in the AFTER MATCH clause: write EVENT", None),
    (PARTITION, "AFTER MATCH SKIP TO LAST Hot", 4, 26, "no GPM is called Hot", None),
]  # fmt: skip


def findings(good: str, mistake: str) -> tuple[Diagnostic, ...]:
    assert good in GOOD
    text = GOOD.replace(good, mistake) if good == END else GOOD.replace(good, mistake, 1)
    return check_query(text).diagnostics


def test_the_query_without_a_mistake_has_no_findings() -> None:
    assert findings("SEQ", "SEQ") == ()


@pytest.mark.parametrize("form", ["ASK", "DESCRIBE ?room", "ASK {}"])
def test_another_form_of_query_is_one_mistake(form: str) -> None:
    assert len(findings(SELECT, form)) == 1


def test_there_are_many_and_each_is_another_one() -> None:
    assert len({(good, mistake) for good, mistake, *_ in MISTAKES}) == len(MISTAKES) >= 80


@pytest.mark.parametrize(
    ("good", "mistake", "line", "column", "message", "suggestion"),
    MISTAKES,
    ids=[row[1].strip() or f"without {row[0]}" for row in MISTAKES],
)
def test_a_mistake_is_named_at_its_place_with_its_remedy(
    good: str, mistake: str, line: int, column: int, message: str, suggestion: str | None
) -> None:
    found = findings(good, mistake)
    first = found[0]
    assert first.source.place(first.span.start) == (line, column)
    assert message in first.message
    assert first.suggestion == suggestion
    for each in found:
        assert each.suggestion != each.source.text[each.span.start : each.span.end]
