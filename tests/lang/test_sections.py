"""The sections into which a query is cut, in valid texts and in texts with errors."""

from __future__ import annotations

from spaseq.lang.scan import scan
from spaseq.lang.sections import Layout, cut


def layout(text: str) -> Layout:
    return cut([lexeme for lexeme in scan(text) if lexeme.kind != "comment"], len(text))


def clauses(text: str) -> list[str]:
    return [text[c.start : c.end].strip() for c in layout(text).clauses]


def gpms(text: str) -> list[tuple[str, str]]:
    return [
        (text[g.head.start : g.head.end].strip(), text[g.pattern.start : g.pattern.end].strip())
        for g in layout(text).gpms
        if g.pattern
    ]


BODY = "SEQ(A;B{2}) { DEFINE GPM A ON S { {} } DEFINE GPM B ON S { } }"


def test_a_good_query_has_no_strays() -> None:
    text = f"PREFIX e: <x> SELECT ?from WITHIN 1 DAYS FROM STREAM Where <y> {BODY} HAVING(1)"
    found = layout(text)
    assert found.strays == ()
    assert clauses(text) == [
        "PREFIX e: <x>",
        "SELECT ?from",
        "WITHIN 1 DAYS",
        "FROM STREAM Where <y>",
    ]
    assert found.sequence and text[found.sequence.start : found.sequence.end] == "SEQ(A;B{2}) "
    assert gpms(text) == [("DEFINE GPM A ON S", "{ {} }"), ("DEFINE GPM B ON S", "{ }")]
    assert found.having and text[found.having.start :] == "HAVING(1)"


def test_from_after_tumbling_belongs_to_the_window_unless_a_stream_follows() -> None:
    assert clauses(f"WITHIN 1 DAYS TUMBLING FROM 'x' {BODY}") == ["WITHIN 1 DAYS TUMBLING FROM 'x'"]
    assert clauses(f"WITHIN 1 DAYS TUMBLING FROM STREAM S <x> {BODY}") == [
        "WITHIN 1 DAYS TUMBLING",
        "FROM STREAM S <x>",
    ]


def test_keywords_between_brackets_open_no_clause_if_the_brackets_match() -> None:
    inner = "SELECT (EXISTS { SELECT * WHERE { } } AS ?e)"
    assert clauses(f"{inner} WITHIN 1 DAYS {BODY}") == [inner, "WITHIN 1 DAYS"]
    assert clauses(f"SELECT (?x AS ?e WITHIN 1 DAYS {BODY}") == [
        "SELECT (?x AS ?e",
        "WITHIN 1 DAYS",
    ]


def test_an_unclosed_gpm_ends_at_the_next_define() -> None:
    text = "SEQ(A) { DEFINE GPM A ON S { ?s { DEFINE GPM B ON S { } }"
    assert gpms(text) == [("DEFINE GPM A ON S", "{ ?s {"), ("DEFINE GPM B ON S", "{ }")]


def test_define_in_a_string_a_name_or_a_variable_begins_nothing() -> None:
    text = "SEQ(A) { DEFINE GPM A ON S { 'DEFINE GPM' ?DEFINE DEFINE:GPM } }"
    assert len(layout(text).gpms) == 1


def test_an_unclosed_sequence_ends_at_the_body() -> None:
    text = "SEQ(A; B{2} { DEFINE GPM A ON S { } }"
    found = layout(text).sequence
    assert found and text[found.start : found.end] == "SEQ(A; B{2} "


def test_what_lies_between_sections_is_a_stray() -> None:
    text = "SELECT * SEQ(A) { x DEFINE GPM A ON S { } y } z"
    assert [s.lexeme and s.lexeme.text for s in layout(text).strays] == ["x", "y"]
