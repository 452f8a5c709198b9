"""The table of docs/meaning.md#partial-matches."""

from __future__ import annotations

import pytest

import spaseq
from tests.docs.language_page import Row, events_of, expand, page

(ROWS,) = [t.rows for s in page() for t in s.tables() if "partial matches" in t.columns]


@pytest.mark.parametrize("row", ROWS, ids=lambda r: f"line{r.line}")
def test_row(row: Row) -> None:
    events = events_of(row.plain("stream"))
    found: list[spaseq.PartialMatch] = []
    streams = {
        name: [spaseq.Event(e.ntriples, e.time_ms) for e in events if e.stream == name]
        for name in "ST"
    }
    list(spaseq.run(expand(row.spans("query")), streams, runtime="local", on_partial=found.append))
    names = {e.time_ms: e.name for e in events}
    told = [
        f"{' '.join(names[t.time] for t in m.answer.trace)} → {', '.join(m.waiting)}" for m in found
    ]
    assert " · ".join(told) == row.plain("partial matches").replace("none", "")
