"""Messages about queries with errors: the place, the expected tokens, the nearest word."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spaseq.compile import check_query
from spaseq.errors import Diagnostic, QueryError, QueryText
from spaseq.lang.parser import parse, parse_source
from tests.lang.good_queries import good_queries

GOOD = """\
PREFIX ex: <http://ex.org/>
SELECT ?x ?y
WITHIN 5 MINUTES
PARTITION BY (?x)
FROM STREAM S <http://s/1>
WHERE {
  SEQ(A; B+)
  DEFINE GPM A ON S { ?s ex:p ?x }
  DEFINE GPM B ON S {
    ?s ex:q ?y .
    FILTER(?y < ?x)
  }
}
"""


def spoilt(*changes: tuple[str, str]) -> str:
    text = GOOD
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return text


def errors(text: str) -> tuple[Diagnostic, ...]:
    return parse_source(QueryText(text, "q.rq")).errors


def place(found: Diagnostic) -> tuple[int, int]:
    return found.source.place(found.span.start)


def test_the_query_without_a_mistake_is_good() -> None:
    assert parse_source(QueryText(GOOD)).diagnostics == ()


# (text to replace, replacement, line, column, message, some of the expected tokens, suggestion)
ONE_MISTAKE = [
    # misspelt keywords
    ("SELECT", "SLECT", 2, 1, "unexpected 'SLECT'", "SELECT", "SELECT"),
    ("PREFIX", "PREFX", 1, 1, "unexpected 'PREFX'", "PREFIX", "PREFIX"),
    ("WITHIN", "WITHN", 3, 1, "unexpected 'WITHN'", "WITHIN", "WITHIN"),
    ("PARTITION", "PARTITON", 4, 1, "unexpected 'PARTITON'", "PARTITION", "PARTITION"),
    ("FROM", "FORM", 5, 1, "unexpected 'FORM'", "FROM", "FROM"),
    ("STREAM", "STREM", 5, 6, "unexpected 'STREM' in the FROM clause", "STREAM", "STREAM"),
    ("MINUTES", "MINUETS", 3, 10, "unexpected 'MINUETS'", "a unit of time", "MINUTES"),
    ("SEQ", "SEQUENCE", 7, 3, "unexpected 'SEQUENCE'", "SEQ", "SEQ"),
    ("SEQ", "SQE", 7, 3, "unexpected 'SQE'", "SEQ", "SEQ"),
    ("DEFINE", "DEFNE", 8, 3, "unexpected 'DEFNE'", "DEFINE", "DEFINE"),
    ("DEFINE GPM A", "GPM A", 8, 3, "DEFINE is missing", "DEFINE", None),
    ("GPM A", "GMP A", 8, 10, "unexpected 'GMP' in the head of a GPM", "GPM", "GPM"),
    ("FILTER", "FLITER", 11, 5, "unexpected 'FLITER' in GPM B", "FILTER", "FILTER"),
    ("FILTER(?y < ?x)", "OPTINAL { }", 11, 5, "unexpected 'OPTINAL'", "OPTIONAL", "OPTIONAL"),
    ("?y < ?x", "regx(?x, 'a')", 11, 12, "unexpected 'regx'", "an expression", "REGEX"),
    ("?y < ?x", "prv(?x)", 11, 12, "unexpected 'prv'", "an expression", "PREV"),
    # something is missing
    ("SELECT ?x ?y\n", "", 2, 1, "SELECT or CONSTRUCT is missing", "SELECT or CONSTRUCT", None),
    ("  SEQ(A; B+)\n", "", 6, 7, "SEQ is missing", "SEQ", None),
    ("?x ?y", "", 2, 6, "the SELECT clause is incomplete", "a variable", None),
    ("5 ", "", 3, 8, "unexpected 'MINUTES' in the WITHIN clause", "a whole number", None),
    ("BY ", "", 4, 11, "unexpected '(' in the PARTITION BY clause", "BY", None),
    ("S <http", "<http", 5, 13, "unexpected '<http://s/1>'", None, None),
    ("A ON S", "A S", 8, 16, "unexpected 'S' in the head of a GPM", "ON", None),
    ("GPM A ON", "GPM ON", 8, 17, "unexpected 'S'", "ON", None),
    ("ON S {\n", "ON S\n", 10, 5, "unexpected '?s' in the head of a GPM", "'{'", None),
    ("?y < ?x", "?y < ", 11, 17, "unexpected ')' in GPM B", "an expression", None),
    ("ex:p ?x", "ex:p", 8, 31, "unexpected '}' in GPM A", "a term", None),
    ("?s ex:p ?x", "?s", 8, 26, "unexpected '}' in GPM A", "a predicate", None),
    ("; B+", ";", 7, 9, "unexpected ')' in the sequence", "the name of a GPM", None),
    ("WHERE {\n  SEQ(A; B+)", "SEQ(A; B+)", 7, 3, "unexpected 'DEFINE'", "'{'", None),
    ("ex: <http://ex.org/>", "ex: http://ex.org/", 1, 12, "put the IRI into angle", None, None),
    # brackets
    ("?x }", "?x", 8, 21, "'{' is never closed in GPM A", "'}'", None),
    ("  }\n}", "  }\n", 6, 7, "'{' is never closed in the query", "'}'", None),
    ("?y < ?x)", "?y < ?x", 11, 11, "'(' is never closed in GPM B", "')'", None),
    ("B+)", "B+", 7, 6, "'(' is never closed in the sequence", "')'", None),
    ("B+", "B{2", 7, 11, "'{' is never closed in the sequence", "'}'", None),
    ("(?x)", "(?x", 4, 14, "'(' is never closed in the PARTITION BY clause", "')'", None),
    ("?x }", "?x } }", 8, 36, "unexpected '}' in the query", "DEFINE", None),
    ("  }\n}", "  }\n}}", 13, 2, "unexpected '}' in the query", "HAVING", None),
    # something extra
    ("?x ?y", "?x, ?y", 2, 10, "unexpected ',' in the SELECT clause", None, None),
    ("?y .", "?y ?z .", 10, 16, "unexpected '?z' in GPM B", "'.'", None),
    ("?y .", "?y ..", 10, 17, "unexpected '.' in GPM B", "FILTER", None),
    ("?y < ?x", "?y < ?x < 5", 11, 20, "unexpected '<' in GPM B", "')'", None),
    ("B+", "B+!", 7, 12, "unexpected '!' in the sequence", "')'", None),
    ("  }\n}", "  }\n}\nLIMIT 10", 14, 1, "unexpected 'LIMIT' in the query", None, None),
    ("  }\n}", "  }\n}\nHAVING ?x", 14, 8, "put the condition in brackets", None, None),
    ("SELECT ?x ?y", "SELECT (?x + 1)", 2, 15, "unexpected ')'", None, None),
    ("WITHIN 5", "WITHIN 1.5", 3, 9, "unexpected '.5' in the WITHIN clause", None, None),
    # advice instead of the expected tokens, if the cause is clear
    ("A; B+", "A | B", 7, 9, "put it in its own bracket", None, None),
    ("A; B+", "(A | B & A)", 7, 14, "nest brackets to mix", None, None),
    ("(?y < ?x)", " ?y < ?x", 11, 12, "put the condition in brackets", None, None),
    ("SELECT ?x ?y", "SELECT COUNT(?x)", 2, 8, "write (COUNT(...) AS ?name)", None, None),
    ("?y < ?x", "?y <?x&&?x> 1", 11, 15, "put a space after <", None, None),
    # strings and IRIs
    ("?y < ?x", 'regex(?y, "\\d")', 11, 23, "\\d is not an escape", None, None),
    ("?y < ?x", '?y < "a', 11, 17, "this string is never closed", None, None),
    ("<http://s/1>", "<http://s 1>", 5, 15, "an IRI may not contain spaces", None, None),
    ("<http://s/1>", "<http://s/1", 5, 15, "this IRI is never closed", None, None),
    (
        "<http://s/1>",
        r"<http://s/\uD800>",
        5,
        25,
        "this escape is not a character",
        None,
        None,
    ),
    # rules beyond the grammar
    ("?y < ?x", "bound(?x, ?y)", 11, 12, "BOUND takes 1 argument, not 2", None, None),
    ("?y < ?x", "if(?x, ?y)", 11, 12, "IF takes 3 arguments, not 2", None, None),
    ("?y < ?x", "bound(1)", 11, 18, "BOUND takes a variable", None, None),
    ("?y < ?x)", "?y < ?x) BIND(1 AS ?y)", 11, 31, "?y is bound before this BIND", None, None),
    ("?y .", "?y VALUES (?a ?b) { (1) }", 10, 34, "2 variables, but 1 values", None, None),
    ("?x ?y", "(1 AS ?a) (2 AS ?a)", 2, 24, "?a already has a value", None, None),
]


@pytest.mark.parametrize(
    ("old", "new", "line", "column", "message", "expected", "suggestion"), ONE_MISTAKE
)
def test_one_mistake_is_one_error_at_its_place(
    old: str,
    new: str,
    line: int,
    column: int,
    message: str,
    expected: str | None,
    suggestion: str | None,
) -> None:
    (found,) = errors(spoilt((old, new)))
    assert message in found.message
    assert (*place(found), found.code) == (line, column, "syntax")
    assert found.suggestion == suggestion
    if expected is not None:
        assert expected in found.expected


FIVE = (
    ("SELECT", "SLECT"),
    ("MINUTES", "MINUETS"),
    ("B+)", "B+;)"),
    ("ex:p ?x", "ex:p"),
    ("FILTER(?y", "FLITER(?y"),
)


def test_five_mistakes_are_five_errors_in_order_of_place() -> None:
    found = errors(spoilt(*FIVE))
    assert [place(e) for e in found] == [(2, 1), (3, 10), (7, 13), (8, 31), (11, 5)]
    assert [e.suggestion for e in found] == ["SELECT", "MINUTES", None, None, "FILTER"]


def test_an_error_in_one_gpm_hides_nothing_in_the_others() -> None:
    parsed = parse_source(QueryText(spoilt(("ex:p ?x }", "ex:p ?x"), ("ex:q ?y .", "ex:q . ?y"))))
    assert [place(e) for e in parsed.errors] == [(8, 21), (10, 13)]
    assert parsed.broken_gpms == {"A", "B"}
    assert parsed.broken_clauses == frozenset()


def test_what_could_be_read_is_there_in_spite_of_errors() -> None:
    parsed = parse_source(QueryText(spoilt(*FIVE)))
    query = parsed.query
    assert query is not None
    assert parsed.broken_clauses == {"window", "sequence"}
    assert parsed.broken_gpms == {"A", "B"}
    assert [(gpm.name, [s.name for s in gpm.streams]) for gpm in query.gpms] == [
        ("A", ["S"]),
        ("B", ["S"]),
    ]
    assert [gpm.pattern.elements for gpm in query.gpms] == [(), ()]
    assert [stream.name for stream in query.streams] == ["S"]
    assert query.partition == parse(GOOD).partition
    assert query.form == parse(GOOD).form


@pytest.mark.parametrize(
    ("old", "new", "parts", "gpms"),
    [
        ("SELECT ?x ?y", "SELECT", {"form"}, set()),
        ("SELECT ?x ?y\n", "", {"form"}, set()),
        ("STREAM S", "STREAM", {"streams"}, set()),
        ("(?x)", "(x)", {"partition"}, set()),
        ("SEQ(A; B+)", "", {"sequence"}, set()),
        ("<http://ex.org/>", "", {"prologue"}, set()),
        ("GPM A ON", "GPM ON", {"gpms"}, set()),
        ("GPM A ON S", "GPM A", set(), {"A"}),
        ("DEFINE GPM B ON S", "DEFINE B ON S", set(), {"B"}),
        ("  }\n}", "  }\n}\nHAVING", {"having"}, set()),
    ],
)
def test_broken_clauses_are_named(old: str, new: str, parts: set[str], gpms: set[str]) -> None:
    parsed = parse_source(QueryText(spoilt((old, new))))
    assert len(parsed.errors) == 1
    assert (parsed.broken_clauses, parsed.broken_gpms) == (parts, gpms)


def test_a_misspelt_keyword_breaks_nothing() -> None:
    parsed = parse_source(QueryText(spoilt(("SELECT", "SLECT"), ("DEFINE", "DEFNE"))))
    assert len(parsed.errors) == 2
    assert parsed.query == parse(GOOD)


@pytest.mark.parametrize(
    ("clause", "message"),
    [
        ("WITHIN 3 HOURS", "a second WITHIN clause: the first is in line 3"),
        ("SELECT *", "a second SELECT clause: the first is in line 2"),
        ("CONSTRUCT { }", "CONSTRUCT beside SELECT in line 2: a query has only one of them"),
        ("PARTITION BY ?y", "a second PARTITION BY clause: the first is in line 4"),
    ],
)
def test_a_clause_written_twice(clause: str, message: str) -> None:
    (found,) = errors(spoilt(("FROM STREAM", f"{clause}\nFROM STREAM")))
    assert (found.message, found.code, place(found)) == (message, "duplicate-clause", (5, 1))


@pytest.mark.parametrize("text", ["", "  \n", "# only a comment"])
def test_an_empty_query(text: str) -> None:
    parsed = parse_source(QueryText(text))
    assert parsed.query is None
    assert [e.message for e in parsed.errors] == ["the query is empty"]


def test_a_sparql_query_lacks_a_sequence() -> None:
    (found,) = errors("SELECT * WHERE { ?s ?p ?o }")
    assert (found.message, place(found)) == ("SEQ is missing", (1, 16))


def test_a_text_that_is_no_query() -> None:
    assert [e.message for e in errors("hello world")] == [
        "unexpected 'hello' in the query",
        "SEQ is missing",
    ]


def test_too_deep_a_nesting_is_an_error_not_a_crash() -> None:
    (found,) = errors(spoilt(("?y < ?x", "(" * 5000 + "?x" + ")" * 5000)))
    assert found.message == "GPM B is nested too deeply"


def test_parse_raises_all_errors_drawn_with_carets() -> None:
    with pytest.raises(QueryError) as caught:
        parse(spoilt(("FILTER", "FLITER"), ("MINUTES", "MINUETS")), name="bad.rq")
    assert str(caught.value) == (
        "bad.rq:3:10: error: unexpected 'MINUETS' in the WITHIN clause [syntax]\n"
        "    WITHIN 5 MINUETS\n"
        "             ^^^^^^^\n"
        "    expected: a unit of time, EVENTS\n"
        "    did you mean: MINUTES\n"
        "bad.rq:11:5: error: unexpected 'FLITER' in GPM B [syntax]\n"
        "        FLITER(?y < ?x)\n"
        "        ^^^^^^\n"
        "    expected: a triple pattern, '{', '}', BIND, EVENT, FILTER, GRAPH, MINUS, OPTIONAL,"
        " SERVICE, VALUES\n"
        "    did you mean: FILTER"
    )


TEXTS = [text for _, text in good_queries()]


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_no_text_makes_the_check_fail(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(TEXTS))
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.sampled_from([start, start + 1, start + 7, len(text)]))
        text = (
            text[:start]
            + data.draw(st.text("{}()[]<>\"'#?:;,.!|&\\ \nAaé9", max_size=2))
            + text[end:]
        )
    checked = check_query(text)
    for found in checked.diagnostics:
        assert 0 <= found.span.start <= found.span.end <= len(text)
        assert found.render()
    assert checked.plan is not None or checked.errors


def test_a_surrogate_is_an_error_with_its_place() -> None:
    """No file in UTF-8 has one, but a text of Python can."""
    (finding,) = parse_source(QueryText("SELECT ?x\n# \udc8e")).diagnostics
    assert (finding.message, finding.source.place(finding.span.start)) == (
        "a surrogate is not a character",
        (2, 3),
    )


def test_a_text_with_very_many_errors_is_read_up_to_the_hundredth() -> None:
    assert len(parse_source(QueryText("\\uD800" * 1000)).errors) == 101
    parsed = parse_source(QueryText("PREFIX" + " EFIX" * 1000))
    assert len(parsed.errors) == 101
    assert parsed.errors[-1].message == "more than 100 errors"


@pytest.mark.parametrize("character", ["\u00a0", "\u200b", "\u2028", "\f", "\0"])
def test_a_character_that_cannot_be_seen_is_named(character: str) -> None:
    (error,) = errors(spoilt(("SELECT ?x", f"SELECT{character}?x")))
    assert error.message.startswith(f"unexpected character U+{ord(character):04X} in the SELECT")
    assert error.message.endswith(": write a space or a line end, or leave it out")
    assert error.source.place(error.span.start) == (2, 7)


def test_a_second_query_in_a_file() -> None:
    (error,) = errors(GOOD + GOOD)
    assert error.message == "a second SEQ: a query has one SEQ, and a file has one query"
    assert error.source.place(error.span.start) == (20, 3)
