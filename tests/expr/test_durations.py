"""Durations: lexical forms, comparison, arithmetic and set functions (XPath functions 3.1)."""

from __future__ import annotations

import pytest

from spaseq.expr.compile import compile_filter, compile_term
from spaseq.expr.env import DictEnv
from tests.expr.sparql import expression, ntriples
from tests.expr.test_sequences import aggregate, group


def result(text: str) -> str:
    """The value of an expression over durations in the notation `D(PT5M)` and `M(P1Y)`."""
    term = compile_term(expression(_typed(text)))(DictEnv())
    if term is None:
        return "error"
    lexical, _, datatype = term.rpartition("^^")
    name = {"dayTimeDuration": "D", "yearMonthDuration": "M", "duration": "P"}.get(
        datatype.rpartition("#")[2].rstrip(">")
    )
    return f"{name}({lexical[1:-1]})" if name else lexical[1:-1]


def _typed(text: str) -> str:
    for short, datatype in (("D", "dayTimeDuration"), ("M", "yearMonthDuration"), ("P", "duration"),
                            ("T", "dateTime")):  # fmt: skip
        parts = text.split(f"{short}(")
        text = parts[0] + "".join(
            f'"{lexical}"^^xsd:{datatype}{rest}'
            for lexical, rest in (part.split(")", 1) for part in parts[1:])
        )
    return text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        # The canonical form: fields below their limits, no field that is zero, the sign in front.
        ("T(2020-01-01T00:05:00Z) - T(2020-01-01T00:00:00Z)", "D(PT5M)"),
        ("T(2020-01-01T00:00:00Z) - T(2020-01-01T00:05:00Z)", "D(-PT5M)"),
        ("T(2020-01-01T00:00:00.25Z) - T(2020-01-01T00:00:00Z)", "D(PT0.25S)"),
        ("T(2020-01-01T00:00:00Z) - T(2020-01-01T00:00:00.001Z)", "D(-PT0.001S)"),
        ("T(2020-03-01T00:00:00Z) - T(2020-02-01T00:00:00Z)", "D(P29D)"),
        ("T(2020-03-01T01:00:59Z) - T(2020-02-01T00:00:00Z)", "D(P29DT1H59S)"),
        ("T(2020-01-01T00:00:00Z) - T(2020-01-01T00:00:00Z)", "D(PT0S)"),
        ("T(2020-01-01T12:00:00+02:00) - T(2020-01-01T10:00:00Z)", "D(PT0S)"),
        ("D(PT90S) + D(PT0S)", "D(PT1M30S)"),
        ("M(P14M) + M(P0M)", "M(P1Y2M)"),
        ("D(PT5M) - D(PT5M)", "D(PT0S)"),
        ("M(P1M) - M(P1M)", "M(P0M)"),
        # Sums and differences
        ("D(P1DT23H) + D(PT2H)", "D(P2DT1H)"),
        ("D(PT1H) - D(P1D)", "D(-PT23H)"),
        ("M(P1Y) - M(P14M)", "M(-P2M)"),
        ("D(PT1H) + T(2020-01-01T00:00:00Z)", "2020-01-01T01:00:00Z"),
        ("T(2020-01-31T00:00:00Z) + M(P1M)", "2020-02-29T00:00:00Z"),
        ("T(2020-01-01T00:00:00Z) - D(-PT1S)", "2020-01-01T00:00:01Z"),
        # A number of times
        ("D(PT2M30S) * 2", "D(PT5M)"),
        ("2 * D(PT2M30S)", "D(PT5M)"),
        ("D(PT1S) * 1.5", "D(PT1.5S)"),
        ("D(PT1S) * 1.1e0", "D(PT1.1S)"),
        ("D(PT1S) * -1", "D(-PT1S)"),
        ("D(PT1S) * 0", "D(PT0S)"),
        ("M(P1Y1M) * 2", "M(P2Y2M)"),
        ("M(P1M) * 2.5", "M(P3M)"),
        ("M(P1M) * -2.5", "M(-P2M)"),
        ("M(P1M) * 2.4e0", "M(P2M)"),
        # A part
        ("D(PT5M) / 2", "D(PT2M30S)"),
        ("D(P1D) / 0.5", "D(P2D)"),
        ("D(P1D) / 1.6e1", "D(PT1H30M)"),
        ("D(P1D) / (1e0/0e0)", "D(PT0S)"),
        ("M(P3M) / 2", "M(P2M)"),
        ("M(-P3M) / 2", "M(-P1M)"),
        ("D(PT5M) / D(PT2M)", "2.5"),
        ("D(PT5M) / D(-PT1S)", "-300"),
        ("M(P2Y) / M(P5M)", "4.8"),
        ("(D(PT5M) - D(PT2M)) * 2 + D(PT1S)", "D(PT6M1S)"),
        # There is no value
        ("D(PT1S) / 0", "error"),
        ("D(PT1S) / 0.0", "error"),
        ("D(PT1S) / 0e0", "error"),
        ("D(PT1S) * (0e0/0e0)", "error"),
        ("D(PT1S) / (0e0/0e0)", "error"),
        ("D(PT1S) * (1e0/0e0)", "error"),
        ("D(PT1S) / D(PT0S)", "error"),
        ("M(P1Y) / M(P0M)", "error"),
        ("D(PT1S) / M(P1M)", "error"),
        ("D(PT1S) + M(P1M)", "error"),
        ("D(PT1S) + 1", "error"),
        ("1 - D(PT1S)", "error"),
        ("1 / D(PT1S)", "error"),
        ("D(PT1S) * D(PT1S)", "error"),
        ('D(PT1S) * "2"', "error"),
        ("D(PT1S) * true", "error"),
        ("P(PT1S) * 2", "error"),
        ("P(P1Y) + P(P1Y)", "error"),
        ("D(PT5) + D(PT1S)", "error"),
        ("D(5M) + D(PT1S)", "error"),
        ("D(P1Y) * 1", "error"),
        ("T(2020-01-01T00:00:00Z) + T(2020-01-01T00:00:00Z)", "error"),
        ("T(2020-01-01T00:00:00Z) * 2", "error"),
    ],
)  # fmt: skip
def test_arithmetic(text: str, value: str) -> None:
    assert result(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "D(PT300S) = D(PT5M)",
        "D(PT5M) != D(PT4M)",
        "D(PT0.5S) < D(PT0.51S)",
        "D(P1D) >= D(PT24H)",
        "D(-PT1S) < D(PT0S)",
        "D(PT0S) = M(P0M)",
        "M(P1Y) <= M(P12M)",
        "M(P13M) > M(P1Y)",
        "T(2020-01-01T00:05:00Z) - T(2020-01-01T00:00:00Z) = D(PT5M)",
        "T(2020-01-01T00:05:00.001Z) - T(2020-01-01T00:00:00Z) > D(PT5M)",
        "D(PT1M) * 5 = D(PT5M)",
        "D(PT5M) IN (D(PT1M), D(PT300S))",
        "!(D(PT1M) < 5 || D(PT1M) < M(P1M) || D(PT1M) > M(P1M))",
        '!(D(PT1M) < "PT5M")',
    ],
)
def test_comparisons_by_value(text: str) -> None:
    if text.startswith("!("):  # no operand is true; errors count as false
        for operand in text[2:-1].split(" || "):
            assert not compile_filter(expression(_typed(operand)))(DictEnv())
        return
    assert compile_filter(expression(_typed(text)))(DictEnv())


@pytest.mark.parametrize(
    ("function", "values", "value"),
    [
        ("SUM", ["D(PT1M)", "D(PT30S)"], "D(PT1M30S)"),
        ("SUM", ["D(PT90S)"], "D(PT1M30S)"),
        ("AVG", ["D(PT1M)", "D(PT30S)"], "D(PT45S)"),
        ("MIN", ["D(PT1M)", "D(PT30S)"], "D(PT30S)"),
        ("MAX", ["D(PT1M)", "D(PT30S)", "D(-P1D)"], "D(PT1M)"),
        ("SUM", ["D(PT1M)", "M(P1M)"], None),
        ("SUM", ["D(PT1M)", "1"], None),
        ("AVG", ["1", "D(PT1M)"], None),
    ],
)
def test_set_functions(function: str, values: list[str], value: str | None) -> None:
    found = compile_term(aggregate(function))(group(*map(_typed, values)))
    assert found == (None if value is None else ntriples(_typed(value)))
