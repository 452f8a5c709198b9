"""What the check refuses of windows, and what it warns of."""

from __future__ import annotations

import pytest

from spaseq.compile import check_query
from spaseq.lang.format import format_query
from spaseq.lang.parser import parse

AVG = "{ { SELECT (AVG(?v) AS ?a) { EVENT { ?o :v ?v } } HAVING (COUNT(*) > 0) } }"


def query(
    window: str = "FROM WINDOW W ON S RANGE 2 SECONDS",
    gpms: str = f"DEFINE GPM A ON W {AVG}",
    sequence: str = "A",
    head: str = "",
) -> str:
    return f"""PREFIX : <http://e/> SELECT * {head} FROM STREAM S <http://e/s> {window}
        WHERE {{ SEQ({sequence}) {gpms} }}"""


KEYED = "FROM WINDOW W ON S RANGE 2 SECONDS KEY { ?x :r ?r }"
BY_R = "WITHIN 1 HOURS PARTITION BY (?r)"
B = "DEFINE GPM B ON S { ?o :v ?limit }"

REFUSED = [
    (query("FROM WINDOW W ON T RANGE 2 SECONDS"), "unknown-stream"),
    (query("FROM WINDOW W ON S RANGE 0 SECONDS"), "empty-window"),
    (query("FROM WINDOW W ON S RANGE 1 SECONDS SLIDE 0 SECONDS"), "empty-window"),
    (query("FROM WINDOW W ON S RANGE 0 EVENTS EACH EVENT"), "empty-window"),
    (query("FROM WINDOW W ON S SESSION 0 SECONDS"), "empty-window"),
    (query('FROM WINDOW W ON S RANGE 1 SECONDS SLIDE 1 SECONDS FROM "noon"'), "not-a-time"),
    (query("FROM WINDOW S ON S RANGE 1 SECONDS"), "duplicate-window"),
    (query("FROM WINDOW V ON W RANGE 1 SECONDS FROM WINDOW W ON S RANGE 1 SECONDS"),
     "window-on-window"),
    (query("FROM WINDOW W ON S RANGE 1 SECONDS FROM WINDOW V ON S RANGE 1 SECONDS"),
     "unread-window"),
    (query(gpms=f"DEFINE GPM A ON W, S {AVG}"), "event-outside"),
    (query(gpms="DEFINE GPM A ON W { EVENT { EVENT { ?o :v ?v } } }"), "event-inside"),
    (query(gpms="DEFINE GPM A ON W { EVENT ON T { ?o :v ?v } }"), "unknown-stream"),
    (query(gpms="DEFINE GPM A ON W { SERVICE <http://e/x> { ?o :v ?v } }"), "service-on-window"),
    (query(gpms=f"DEFINE GPM A ON NEW S {AVG} DEFINE GPM C ON W {{ }}"), "not-a-window"),
    (query(head=BY_R), "missing-key"),
    (query("FROM WINDOW W ON S RANGE 2 SECONDS KEY { ?x :r ?y }", head=BY_R), "missing-key"),
    (query(KEYED), "needless-key"),
    (query("FROM WINDOW W ON S RANGE 2 SECONDS KEY { OPTIONAL { ?x :r ?r } }", head=BY_R),
     "key-pattern"),
    (query(gpms=f"DEFINE GPM A ON NEW W {{ ?o :v ?v FILTER(?v > ?limit) }} {B}",
           sequence="B; A", head="WITHIN 1 HOURS"), "foreign-variable"),
    (query(sequence="A; A"), "missing-window"),
]  # fmt: skip

WARNED = [
    (query("FROM WINDOW W ON S RANGE 1 SECONDS SLIDE 2 SECONDS"), "skipping-window"),
    (query(gpms="DEFINE GPM A ON W { { SELECT (AVG(?v) AS ?a) { EVENT { ?o :v ?v } } } }"),
     "aggregate-of-nothing"),
    (query(gpms="DEFINE GPM A ON W { { SELECT ?o (SUM(?v) AS ?a) { ?o :v ?v } GROUP BY ?o } }"),
     "collapsing-triples"),
    (query(gpms="DEFINE GPM A ON W { { SELECT ?o { EVENT { ?o :v ?v } } GROUP BY ?o "
           f"HAVING (AVG(?v) > ?limit) }} }} {B}", sequence="B; A", head="WITHIN 1 HOURS"),
     "hidden-variable"),
]  # fmt: skip


HAVINGS = [
    ("AVG(?v) < 30", True),
    ("SUM(?v) <= -1 || 10.5 > AVG(?v)", True),
    ("!(AVG(?v) > 3)", True),
    ("AVG(?v) < 30 && COUNT(*) = 0", True),
    ("AVG(?v) > 30", False),
    ("AVG(?v) < 30 && COUNT(*) > 0", False),
    ("AVG(?v) < 30 && MIN(?v) < 5", False),
    ("AVG(?v) < ?v", False),
]


@pytest.mark.parametrize(("having", "warned"), HAVINGS)
def test_having_that_an_empty_window_passes(having: str, warned: bool) -> None:
    """AVG of nothing is 0, so `AVG(?v) < 30` holds where no event is."""
    pattern = f"{{ {{ SELECT (AVG(?v) AS ?a) {{ EVENT {{ ?o :v ?v }} }} HAVING ({having}) }} }}"
    for window, may_be_empty in (
        ("FROM WINDOW W ON S RANGE 2 SECONDS", True),
        ("FROM WINDOW W ON S RANGE 2 SECONDS EACH EVENT", False),
    ):
        checked = check_query(query(window, f"DEFINE GPM A ON W {pattern}"))
        assert not checked.errors
        codes = [d.code for d in checked.warnings]
        assert ("aggregate-of-nothing" in codes) == (warned and may_be_empty)


@pytest.mark.parametrize(("text", "code"), REFUSED)
def test_refused(text: str, code: str) -> None:
    assert code in [d.code for d in check_query(text).errors]


@pytest.mark.parametrize(("text", "code"), WARNED)
def test_warned(text: str, code: str) -> None:
    checked = check_query(text)
    assert not checked.errors
    assert code in [d.code for d in checked.warnings]


def test_queries_without_findings() -> None:
    for text in (
        query(),
        query("FROM WINDOW W ON S RANGE 5 EVENTS EACH EVENT"),
        query(KEYED, head=BY_R),
        query(gpms=f"DEFINE GPM A ON NEW W {AVG}"),
    ):
        checked = check_query(text)
        assert not checked.diagnostics, checked.diagnostics
        parsed = parse(text)
        assert parse(format_query(parsed)) == parsed
