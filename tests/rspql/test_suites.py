"""The public queries of RSP-QL and C-SPARQL: each translates, or is refused with its place."""

from __future__ import annotations

import json

import pytest

import spaseq
from spaseq.compile import check_query
from spaseq.errors import QueryError
from spaseq.lang.format import format_query
from spaseq.lang.parser import parse
from tests.rspql.suites import RSP, queries, table, table_of_page
from tests.windows.csrbench import answers, events, rows_of

pytestmark = pytest.mark.skipif(not RSP.is_dir(), reason=f"the public suites are not at {RSP}")

OUR_SLIPS = {
    "debs-q6.rspql": ":",
    "srbench-q1.rspql": ":",
    "srbench-q4.rspql": ": srbench:",
    "srbench-q5.rspql": ": srbench:",
}
"""Queries that lack nothing but declarations of prefixes."""


@pytest.mark.parametrize("name", queries())
def test_each_query_translates_or_is_refused(name: str) -> None:
    try:
        text = spaseq.translate(queries()[name])
    except QueryError as error:
        assert all(d.span.end > d.span.start and d.message for d in error.diagnostics)
        return
    checked = check_query(text)
    assert not checked.errors, "\n".join(d.render() for d in checked.errors)
    assert parse(format_query(parse(text))) == parse(text)


def test_the_table_of_the_page() -> None:
    assert table_of_page() == table(), "python -m tests.rspql.suites writes it anew"


@pytest.mark.parametrize("name", OUR_SLIPS)
def test_drafts_with_their_prefixes(name: str) -> None:
    text = (RSP / "rspql-cg" / "queries" / name).read_text("utf-8")
    given = "".join(f"PREFIX {p} <http://example/{p}> " for p in OUR_SLIPS[name].split())
    assert not check_query(spaseq.translate(given + text)).errors


_EXPECTED = [
    ("q2", "q2", "rows"),
    ("q3", "q3", "rows"),
    ("q4", "q4", "rows"),
    ("q5", "q5", "istream"),
    ("q6", "q6-5s", "rows"),
    ("q7", "q7", "rows"),
]
"""(query, expected answers, kind): the aligned queries whose windows those answers have."""


@pytest.mark.parametrize(
    "runtime",
    ["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.thorough])],
)
@pytest.mark.parametrize(("name", "of", "kind"), _EXPECTED)
def test_csrbench(name: str, of: str, kind: str, runtime: str) -> None:
    """Translated queries give the answers that half-open windows give."""
    directory = RSP / "csrbench"
    wanted = json.loads((directory / "expected-half-open.json").read_text("utf-8"))[of]
    query = spaseq.translate(directory / "aligned-rspql" / f"{name}.rspql")
    found = answers(query, wanted["vars"], events(directory), runtime)
    assert set(found) == set(rows_of(wanted["closes"], kind))
