"""Messages for people who come from SQL, FlinkCEP, Esper and their relatives."""

from __future__ import annotations

import pytest

from spaseq.compile import check_query
from spaseq.errors import Diagnostic

GOOD = """\
PREFIX : <http://ex.org/>
SELECT ?x ?y
WITHIN 5 MINUTES
PARTITION BY (?k)
FROM STREAM S <http://s/1>
WHERE {
  SEQ(A; B+)
  DEFINE GPM A ON S { ?s :k ?k ; :p ?x }
  DEFINE GPM B ON S { ?s :k ?k ; :q ?y FILTER(?y < ?x) }
}
"""


def errors(old: str, new: str) -> tuple[Diagnostic, ...]:
    assert GOOD.count(old) == 1
    return check_query(GOOD.replace(old, new)).errors


def test_the_query_without_a_mistake_is_good() -> None:
    assert errors("SEQ", "SEQ") == ()


NEXT = "write `A; B` (the next that matches) or `A, B` (strictly next)"
BOTH = "write `(A & B)` (at the same time) or `(A AND B)` (in any order), in a bracket"

# (the sequence, column and length of the mark, what the message says)
SEQUENCES = [
    ("A -> B", 9, 2, NEXT),
    ("A --> B", 9, 3, NEXT),
    ("A => B", 9, 2, NEXT),
    ("A >> B", 9, 2, NEXT),
    ("A THEN B", 9, 4, NEXT),
    ("A followedBy B", 9, 10, NEXT),
    ("A FOLLOWED BY B", 9, 11, NEXT),
    ("A B", 9, 1, f"steps need an operator between them: {NEXT}"),
    ("A (B | A)", 9, 1, "steps need an operator between them"),
    ("A followedByAny B", 9, 13, "write `A: B` (every later one that matches)"),
    ("A FOLLOWED BY ANY B", 9, 15, "write `A: B`"),
    ("A next B", 9, 4, "write `A, B` (strictly next)"),
    ("A && B", 9, 2, BOTH),
    ("(A && B)", 10, 2, BOTH),
    ("A || B", 9, 2, "write `(A | B)`, in a bracket"),
    ("A OR B", 9, 2, "write `(A | B)`, in a bracket"),
    ("A AND B", 9, 3, "put it in its own bracket, as in SEQ((A AND B); C)"),
    ("A & B", 9, 1, "put it in its own bracket, as in SEQ((A & B); C)"),
    ("!A; B", 7, 1, "the sign of a negated step stands behind it: write `A!`"),
    ("A; !B", 10, 1, "write `B!`"),
    ("A; ~B", 10, 1, "write `B!`"),
    ("NOT A; B", 7, 5, "write `A!`"),
    ("A; NOT B", 10, 5, "the sign of a negated step stands behind it: write `B!`"),
    ("A; notFollowedBy B", 10, 13, "write `B!`"),
    ("A NOT FOLLOWED BY B", 9, 15, "write `A; B!`"),
    ("A; B+?", 12, 1, "no reluctant loops, because shorter repetitions are answers too: write `B+`"
     " for all lengths, `B{1}` for the shortest"),
    ("A; B*?", 12, 1, "write `B*` for all lengths, no B at all for the shortest"),
    ("A; B??", 12, 1, "write `B?` for all lengths, no B at all for the shortest"),
    ("A; B{2,5}?", 16, 1, "write `B{2,5}` for all lengths, `B{2}` for the shortest"),
    ("A; B{2,}?", 15, 1, "write `B{2,}` for all lengths, `B{2}` for the shortest"),
    ("A; B{,3}", 12, 1, "write {0,n}"),
    ("A; B times(3)", 12, 5, "write `B+` (once or more), `B*`, `B?` or `B{2,5}`"),
    ("A; B.times(3)", 11, 6, "or `B{2,5}`"),
    ("A; B oneOrMore", 12, 9, "write `B+` (once or more)"),
    ("A; B.optional()", 11, 9, "`B?`"),
    ("A; B[3]", 11, 1, "or `B{2,5}`"),
    ("every A -> B", 7, 5, "leave EVERY out: every event may begin a match"),
    ("PATTERN (A B)", 7, 7, "leave PATTERN out"),
    ("begin(A).next(B)", 7, 5, "write the steps in order"),
    ("A; B WHERE ?x > 1", 12, 5, "conditions are FILTERs in the GPMs"),
]  # fmt: skip


@pytest.mark.parametrize(("sequence", "column", "length", "message"), SEQUENCES)
def test_sequences(sequence: str, column: int, length: int, message: str) -> None:
    (found,) = errors("A; B+", sequence)
    assert found.source.place(found.span.start) == (7, column)
    assert found.span.end - found.span.start == length
    assert message in found.message


MATCHING = 'write REGEX(?x, "..."), CONTAINS(?x, "...") or STRSTARTS(?x, "...")'

# (the condition, column of the mark and its text, what the message says)
CONDITIONS = [
    ("?y == ?x", 50, "==", "write ="),
    ("?y <> ?x", 50, "<>", "write !="),
    ("?y =< ?x", 50, "=<", "write <="),
    ("?y => ?x", 50, "=>", "write >="),
    ("?y < ?x AND ?y > 1", 55, "AND", "write &&"),
    ("?y < ?x and ?y > 1", 55, "and", "write &&"),
    ("?y < ?x && ?y > 1 AND ?y > 2", 65, "AND", "write &&"),
    ("?y < ?x OR ?y > 1", 55, "OR", "write ||"),
    ("?y < ?x & ?y > 1", 55, "&", "write &&"),
    ("?y < ?x | ?y > 1", 55, "|", "write ||"),
    ("?y < ?x, ?y > 1", 54, ",", "join conditions with &&"),
    ("?y < ?x; ?y > 1", 54, ";", "join conditions with &&"),
    ("NOT ?y < ?x", 47, "NOT", "write ! before a bracket: !(?x < ?y)"),
    ("NOT (?y < ?x)", 47, "NOT", "write ! before a bracket"),
    ("?y IS NULL", 50, "IS", "write BOUND(?x) or !BOUND(?x)"),
    ("?y IS NOT NULL", 50, "IS", "write BOUND(?x) or !BOUND(?x)"),
    ("?y = NULL", 52, "NULL", "write BOUND(?x) or !BOUND(?x)"),
    ("?y BETWEEN 1 AND 2", 50, "BETWEEN", "write ?x >= 1 && ?x <= 9"),
    ("?y LIKE 'a%'", 50, "LIKE", MATCHING),
    ("?y NOT LIKE 'a%'", 54, "LIKE", MATCHING),
    ("?y ~ 'a'", 50, "~", MATCHING),
    ("B.y < A.x", 47, "B.y", "write ?y, and bind it in the GPM"),
    ("PREV(B.y) < 1", 52, "B.y", "write ?y"),
    ("y < ?x", 47, "y", "a variable begins with a question mark: write ?y"),
]


@pytest.mark.parametrize(("condition", "column", "written", "message"), CONDITIONS)
def test_conditions(condition: str, column: int, written: str, message: str) -> None:
    (found,) = errors("?y < ?x", condition)
    assert found.source.place(found.span.start) == (9, column)
    assert found.source.text[found.span.start : found.span.end] == written
    assert f"unexpected '{written}' in GPM B: " in found.message
    assert message in found.message


LIMIT = "--limit-per-event N bounds"
ORDER = "answers come in the order of their ends"
PARTITION = "write PARTITION BY (?x) after WITHIN"

# (text to replace, replacement, line, column, the marked text, what the message says)
CLAUSES = [
    ("?y < ?x) }\n}", "?y < ?x) }\n}\nLIMIT 10", 11, 1, "LIMIT", LIMIT),
    ("?y < ?x) }\n}", "?y < ?x) }\n}\nORDER BY ?x", 11, 1, "ORDER BY", ORDER),
    ("?y < ?x) }\n}", "?y < ?x) }\n}\nORDER BY ?x LIMIT 1", 11, 1, "ORDER BY", ORDER),
    ("?y < ?x) }\n}", "?y < ?x) }\n}\nGROUP BY ?x", 11, 1, "GROUP BY", PARTITION),
    ("?y < ?x) }\n}", "?y < ?x) }\n}\nGROUP BY ?x HAVING (?x > 1)", 11, 1, "GROUP BY",
     PARTITION),
    ("?x ?y", "?x ?y LIMIT 5", 2, 14, "LIMIT", LIMIT),
    ("?x ?y", "TOP 5 ?x", 2, 8, "TOP", LIMIT),
    ("PARTITION", "GROUP", 4, 1, "GROUP BY", PARTITION),
    ("PARTITION", "KEY", 4, 1, "KEY BY", PARTITION),
    ("?x ?y", "COUNT(?y)", 2, 8, "COUNT", "write (COUNT(...) AS ?name)"),
    ("?x ?y", "?x COUNT(?y)", 2, 11, "COUNT", "write (COUNT(...) AS ?name)"),
    ("?x ?y", "COUNT(?y) AS ?n", 2, 8, "COUNT", "write (COUNT(...) AS ?name)"),
    ("?x ?y", "(COUNT(?y))", 2, 18, ")", "(COUNT(?y) AS ?name)"),
    ("?x ?y", "LAST(?y)", 2, 15, ")", "(LAST(?y) AS ?name)"),
    ("?x ?y", "?x, ?y", 2, 10, ",", "SELECT has no commas"),
    ("?x ?y", "?x AS ?y", 2, 11, "AS", "write (?x AS ?y)"),
    ("?x ?y", "?x + 1", 2, 11, "+", "put an expression into brackets"),
    ("?x ?y", "A.x", 2, 8, "A.x", "write ?x"),
    ("?x ?y", "x", 2, 8, "x", "write ?x"),
    ("MINUTES", "min", 3, 10, "min", "write MINUTES"),
    (" MINUTES", "s", 3, 9, "s", "write SECONDS"),
    ("5 MINUTES", "100 ROWS", 3, 12, "ROWS", "write EVENTS"),
    ("5 MINUTES", "INTERVAL '5' MINUTE", 3, 8, "INTERVAL", "as in WITHIN 5 MINUTES"),
    ("5 MINUTES", "(5 MINUTES)", 3, 8, "(", "as in WITHIN 5 MINUTES"),
    ("5 MINUTES", "1.5 HOURS", 3, 9, ".5", "write a whole number, in a smaller unit"),
    ("5 MINUTES", "5 MINUTES SLIDING", 3, 18, "SLIDING", "a window slides unless TUMBLING"),
    ("WITHIN 5", "WINDOW 5", 3, 1, "WINDOW", "write WITHIN 5 MINUTES"),
    ("MINUTES", "MINUTES ONE ROW PER MATCH", 3, 18, "ONE ROW", "every match is one answer"),
    ("MINUTES\nPARTITION BY (?k)", "MINUTES\nAFTER MATCH SKIP PAST LAST ROW", 4, 28, "ROW",
     "write EVENT"),
    ("FROM STREAM S <", "FROM <", 5, 6, "<http://s/1>", "write FROM STREAM S <iri>"),
    ("FROM STREAM S <", "FROM STREAM S AS <", 5, 15, "AS", "write FROM STREAM S <iri>"),
    ("FROM STREAM S <", "FROM NAMED STREAM <", 5, 6, "NAMED STREAM", "write FROM STREAM S <iri>"),
    ("SEQ(A; B+)", "PATTERN (A B+)", 7, 3, "PATTERN", "write SEQ(A, B+)"),
    ("SEQ(A; B+)", "PATTERN SEQ(A; B+)", 7, 3, "PATTERN", "unexpected 'PATTERN'"),
    ("DEFINE GPM A ON S", "DEFINE A AS", 8, 10, "A", "write DEFINE GPM A ON S { ... }"),
    ("SEQ(A; B+)", "MATCH_RECOGNIZE (PATTERN (A B+))", 7, 3, "MATCH_RECOGNIZE",
     "there is no MATCH_RECOGNIZE"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "line", "column", "written", "message"), CLAUSES)
def test_clauses(old: str, new: str, line: int, column: int, written: str, message: str) -> None:
    (found,) = errors(old, new)
    assert found.source.place(found.span.start) == (line, column)
    assert found.source.text[found.span.start : found.span.end] == written
    assert message in found.message


def test_a_query_of_sql_has_one_error() -> None:
    (found,) = check_query(
        """SELECT * FROM trades MATCH_RECOGNIZE (
          PARTITION BY symbol ORDER BY at
          MEASURES A.price AS first, LAST(B.price) AS bottom
          ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW
          PATTERN (A B+ C) WITHIN INTERVAL '1' HOUR
          DEFINE B AS B.price < PREV(B.price), C AS C.price > LAST(B.price)
        ) LIMIT 10"""
    ).errors
    assert found.source.place(found.span.start) == (1, 22)
    assert "there is no MATCH_RECOGNIZE: write SELECT ... WITHIN" in found.message


def test_other_words_may_be_names() -> None:
    """A word of another language is no mistake where a name stands."""
    query = """PREFIX : <http://ex.org/> SELECT ?limit WITHIN 5 MINUTES FROM STREAM TOP :s WHERE {
      SEQ(LIMIT; NEXT+, EVENT, PATTERN; (EVERY, THEN))
      DEFINE GPM LIMIT ON TOP { ?s :limit ?limit } DEFINE GPM NEXT ON TOP { ?s :next ?next }
      DEFINE GPM EVENT ON TOP { ?s :e ?e } DEFINE GPM PATTERN ON TOP { ?s :p ?p }
      DEFINE GPM EVERY ON TOP { ?s :v ?v } DEFINE GPM THEN ON TOP { ?s :t ?t }
    }"""
    assert check_query(query).errors == ()


def test_the_message_has_a_caret() -> None:
    (found,) = errors("A; B+", "A -> B")
    assert found.render().split("\n")[:3] == [
        f"<query>:7:9: error: unexpected '->' in the sequence: {NEXT} [syntax]",
        "      SEQ(A -> B)",
        "            ^^",
    ]
