"""Rows of single events are columns and back."""

from __future__ import annotations

from random import Random

import pytest

from spaseq.automaton.run.event_rows import GpmRow, batch_of, events_of
from spaseq.rdf.columns.solution_batch import BARE
from spaseq.rdf.columns.solution_columns import SolutionColumns

VARIABLES = [("k", "x"), ("y", "k"), ("k",)]
"""Of two GPMs, and of BARE."""


@pytest.mark.parametrize("seed", range(20))
def test_events_of_columns_have_their_rows(seed: int) -> None:
    random, rows = Random(seed), list[GpmRow]()
    for _ in range(random.randrange(30)):
        time, k, stream = random.randrange(4), random.randrange(2), random.randrange(2)
        gpm = random.choice((0, 1, BARE))
        values = [random.choice((None, '"1"', "<http://e/a>", '"2"')) for _ in VARIABLES[gpm]]
        rows.append((gpm, (stream, time, k, f"http://e/{stream}/{time}/{k}", tuple(values))))
    found = events_of(batch_of(rows, VARIABLES, SolutionColumns(("k", "x", "y"))), VARIABLES)
    events = {(row[1], row[2], row[0]) for _, row in rows}
    assert len(found) == len(events)
    for event in found:
        own = [row for row in rows if row[1][:3] == (event.stream, event.time, event.k)]
        assert event.rows() == [*dict.fromkeys(own)]
