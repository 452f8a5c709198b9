"""Numbers of many digits: exact up to a bound, beyond it an error instead of endless arithmetic."""

from __future__ import annotations

from decimal import Decimal

import pytest

from spaseq.expr.compile import compile_filter, compile_term
from spaseq.expr.env import DictEnv
from spaseq.expr.numbers import MOST_DIGITS
from spaseq.expr.values import Opaque, decode
from spaseq.lang import ast
from spaseq.lang.parser import parse
from spaseq.rdf.terms.term import XSD
from tests.hostile import run_bounded

NINES = "9" * MOST_DIGITS


def expression(text: str) -> ast.Expr:
    query = parse(
        f"PREFIX xsd: <{XSD}> SELECT * WITHIN 1 HOURS FROM STREAM S <http://e/s> "
        f"SEQ(A) {{ DEFINE GPM A ON S {{ ?s ?p ?x FILTER({text}) }} }}"
    )
    (condition,) = [e.expr for e in query.gpms[0].pattern.elements if isinstance(e, ast.Filter)]
    return condition


def typed(lexical: str, datatype: str = "integer") -> str:
    return f'"{lexical}"^^<{XSD}{datatype}>'


def result(text: str, x: str) -> str | None:
    return compile_term(expression(text))(DictEnv({"x": x}))


def test_the_longest_numbers_are_exact() -> None:
    assert result("?x - 1", typed(NINES)) == typed(str(10**MOST_DIGITS - 2))
    assert result("?x - 1 < ?x", typed(NINES)) == typed("true", "boolean")
    assert decode(typed("0" * 10**5 + "7")) == 7
    assert decode(typed("-" + "0" * 10**5 + "7")) == -7
    assert decode(typed("0" * 10**5 + "7.5", "decimal")) == Decimal("7.5")


@pytest.mark.parametrize("datatype", ["integer", "decimal", "nonNegativeInteger"])
def test_a_longer_number_has_no_value(datatype: str) -> None:
    assert isinstance(decode(typed(NINES + "9", datatype)), Opaque)
    assert result("?x + 1", typed(NINES + "9", datatype)) is None
    assert not compile_filter(expression("?x > 1"))(DictEnv({"x": typed(NINES + "9", datatype)}))


@pytest.mark.parametrize(
    "text",
    [
        "?x + 1",
        "?x * 10",
        "?x * ?x",
        "-?x - 2",
        "?x / 0.00000000000000000001",
        "xsd:decimal(?x) * 1.1",
        "xsd:integer(CONCAT(STR(?x), '1'))",
    ],
)
def test_a_longer_result_is_an_error(text: str) -> None:
    assert result(text, typed(NINES)) is None


@pytest.mark.parametrize(
    ("text", "x"),
    [
        ("?x - ?x", typed("P" + "9" * 3990 + "Y", "yearMonthDuration")),
        ("?x + ?x", typed("P" + "9" * 3999 + "Y", "yearMonthDuration")),
        ("xsd:dateTime('2020-01-01T00:00:00') + ?x", typed("P" + "9" * 3990 + "M", "duration")),
        ("xsd:dateTime('2020-01-01T00:00:00') + ?x", typed("P" + "9" * 3990 + "D", "duration")),
        ("xsd:time('00:00:00') + ?x", typed("PT0." + "9" * 3990 + "S", "dayTimeDuration")),
        ("YEAR(?x)", typed("2020-01-01T00:00:00." + "9" * 5000, "dateTime")),
    ],
)
def test_long_durations_never_fail_otherwise(text: str, x: str) -> None:
    """The result is a term of bounded length, or an error of the expression."""
    found = result(text, x)
    assert found is None or len(found) < 3 * MOST_DIGITS


MILLION = f"""
from spaseq.expr.compile import compile_filter
from spaseq.expr.env import DictEnv
from tests.expr.test_long_numbers import expression, typed
for datatype in ("integer", "decimal", "double", "float", "int", "duration", "dateTime"):
    env = DictEnv({{"x": typed("9" * 10**6, datatype)}})
    for text in ("?x > 5", "?x * ?x = 1", "-?x < 0", "ABS(?x) > 1", "ROUND(?x) > 1", "?x / 3 > 1",
                 "xsd:integer(STR(?x)) > 1", "xsd:decimal(STR(?x)) > 1", "?x IN (1, 2.5)",
                 "xsd:double(STR(?x)) > 1", "STRLEN(STR(?x)) = {10**6}", "?x = {NINES}"):
        compile_filter(expression(text))(env)
print("done")
"""


@pytest.mark.thorough
def test_numbers_of_a_million_digits_take_no_time() -> None:
    """Seven datatypes in twelve expressions; the square of one number alone took minutes."""
    done = run_bounded(MILLION, seconds=60)
    assert done.stdout == "done\n", done.stderr
