"""Queries that are too long or too deep: an error with its place, soon, and never a traceback."""

from __future__ import annotations

import pytest

from spaseq.errors import QueryError, QueryText
from spaseq.lang.parser import MOST_CHARACTERS, MOST_LEXEMES, parse, parse_source
from tests.hostile import run_bounded
from tests.sizes import first_of

START = "PREFIX : <http://e/> SELECT * WITHIN 1 HOURS FROM STREAM S <http://e/s> SEQ("
PATTERN = ") { DEFINE GPM A ON S { ?s :p ?x . "
END = " } }"


def query(pattern: str, sequence: str = "A") -> str:
    return START + sequence + PATTERN + pattern + END


DEEP = {
    "brackets": ("FILTER(" + "(" * 20_000 + "1" + ")" * 20_000 + ")", "("),
    "negations": ("FILTER(" + "! " * 20_000 + "?x)", "!"),
    "signs": ("FILTER(" + "- " * 20_000 + "?x > 1)", "-"),
    "groups": ("{" * 20_000 + "}" * 20_000, "{"),
    "OPTIONAL": ("OPTIONAL {" * 10_000 + "}" * 10_000, "O"),
    "sub-SELECT": ("{ SELECT * {" * 10_000 + "}}" * 10_000, "{"),
    "path": ("?s " + "(" * 20_000 + ":p" + ")" * 20_000 + " ?y", "("),
    "inverse path": ("?s " + "^" * 20_000 + ":p ?y", "^"),
    "nodes": ("?s :p " + "[ :p " * 10_000 + "1" + "]" * 10_000, "["),
    "lists": ("?s :p " + "( " * 20_000 + "1" + ")" * 20_000, "("),
    "EXISTS": ("FILTER " + "EXISTS { FILTER " * 5_000 + "(1)" + "}" * 5_000, "("),
    "calls": ("FILTER(" + "STR(" * 10_000 + "?x" + ")" * 10_000 + ")", "("),
    "sum": ("FILTER(" + " + ".join(["?x"] * 2_000) + " > 1)", "?"),
}


@pytest.mark.parametrize(("pattern", "sign"), DEEP.values(), ids=list(DEEP))
def test_deep_nesting_is_an_error_with_its_place(pattern: str, sign: str) -> None:
    parsed = parse_source(QueryText(query(pattern)))
    (error,) = parsed.errors
    assert parsed.diagnostics[0].source.text[error.span.start] == sign
    assert len(error.render()) < 1_000


def test_a_deep_sequence_is_an_error_with_its_place() -> None:
    (error,) = parse_source(QueryText(query("", "(" * 20_000 + "A" + ")" * 20_000))).errors
    assert error.message == "the sequence is nested too deeply"
    assert error.span.start == len(START) + 20_000 - 1


SIGNS = ["{", "<", "(]", "x ", "\0", "'", " ", "PREFIX a: <http://e/> "]


@pytest.mark.parametrize("sign", first_of(SIGNS, 1))
def test_a_text_of_ten_megabytes_is_no_query(sign: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse(sign * (10**7 // len(sign)))
    assert len(str(caught.value)) < 10_000
    parsed = parse_source(QueryText(sign * (MOST_CHARACTERS // len(sign))))
    assert parsed.errors


def test_the_bounds_are_exact() -> None:
    text = query("")
    assert parse(text + " " * (MOST_CHARACTERS - len(text)))
    with pytest.raises(QueryError, match="at most 1,048,576 characters"):
        parse(text + " " * (MOST_CHARACTERS - len(text) + 1))
    filler = query(f"FILTER(?x IN ({','.join(['1'] * (MOST_LEXEMES // 2))}))")
    with pytest.raises(QueryError, match="at most 100,000 words and signs"):
        parse(filler)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "slice_",
    ["LIMIT 9223372036854775807 OFFSET 9223372036854775807", "OFFSET 99999999999999999999999"],
)
def test_limits_beyond_64_bits_are_numbers_like_others(slice_: str) -> None:
    code = f"""
import spaseq
engine = spaseq.Engine('''{query(f"{{ SELECT ?s ?y {{ ?s :p ?y }} {slice_} }}")}''')
engine.push("S", "<http://e/s> <http://e/p> <http://e/o> .", 0)
print(engine.close())
"""
    done = run_bounded(code, seconds=120)
    assert done.stdout == "[]\n" or "QueryError" in done.stderr, done.stderr[-1000:]


@pytest.mark.parametrize("limit", ["1e999", "-1", "1.5", "NaN"])
def test_limits_that_are_no_integers_are_errors(limit: str) -> None:
    with pytest.raises(QueryError, match="unexpected"):
        parse(query(f"{{ SELECT ?s {{ ?s :p ?y }} LIMIT {limit} }}"))
