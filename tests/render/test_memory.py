"""Memory estimates in `explain`, before a query runs."""

from __future__ import annotations

import pytest

from spaseq.compile import compile_query
from spaseq.render.plan_text import BYTES, memory_text
from tests.runtime.machines import KEYED, UNKEYED


@pytest.mark.parametrize("query", [KEYED, UNKEYED])
def test_memory_is_what_comes_within_the_window(query: str) -> None:
    plan = compile_query(query)
    assert memory_text(plan).startswith(f"r x 60 s x about {BYTES:,} bytes")
    megabytes = 1000 * 60 * BYTES / 2**20
    assert f"= {megabytes:,.1f} MB" in memory_text(plan, 1000)
    assert ("over all keys" in memory_text(plan)) == (query == KEYED)


def test_a_window_of_events_is_told_in_events() -> None:
    plan = compile_query(UNKEYED.replace("1 MINUTES", "200 EVENTS"))
    assert memory_text(plan).startswith("the solutions of 200 events, about ")
