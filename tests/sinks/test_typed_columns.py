"""Terms as values of a type that is given."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from spaseq.rdf.terms.term import XSD
from spaseq.sinks.typed_columns import ColumnType, fitting_values


def literal(text: str, datatype: str) -> str:
    return f'"{text}"^^<{XSD}{datatype}>'


@pytest.mark.parametrize(
    ("kind", "term", "value"),
    [
        (pa.int64(), literal("7", "int"), 7),
        (pa.int64(), literal(str(2**63), "integer"), None),
        (pa.int64(), literal("7.0", "decimal"), None),
        (pa.float64(), literal("7", "integer"), 7.0),
        (pa.float64(), literal("1" + "0" * 400, "integer"), float("inf")),
        (pa.float64(), '"7"', None),
        (pa.decimal128(4, 2), literal("12.3", "decimal"), Decimal("12.30")),
        (pa.decimal128(4, 2), literal("123", "integer"), None),  # three digits before the point
        (pa.decimal128(4, 2), literal("0.001", "decimal"), None),  # would be rounded
        (pa.bool_(), literal("1", "boolean"), True),
        (pa.bool_(), literal("1", "integer"), None),
        (pa.date32(), literal("2026-01-02", "date"), date(2026, 1, 2)),
        (pa.date32(), literal("2026-01-02T00:00:00Z", "dateTime"), None),
        (pa.string(), "<http://e/x>", "http://e/x"),
    ],
)
def test_a_term_without_a_value_of_the_type_is_null(
    kind: pa.DataType, term: str, value: object
) -> None:
    found = fitting_values(pa.array([term, None, term]), kind)
    assert (found.type, found.to_pylist()) == (kind, [value, None, value])


def test_two_that_saw_halves_know_what_one_knows_that_saw_all() -> None:
    halves = [literal("1.25", "decimal")], [literal("12345", "integer")]
    one, other, whole = ColumnType(), ColumnType(), ColumnType()
    one.see(halves[0])
    other.see(halves[1])
    whole.see([*halves[0], *halves[1]])
    one.add(other)
    assert one.arrow == whole.arrow == pa.decimal128(38, 2)
    text = ColumnType()
    text.see(['"x"'])
    one.add(text)
    assert one.arrow == pa.string()
