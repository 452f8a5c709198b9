"""The store finds each kept solution by its number, whatever pieces they arrive in."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from spaseq.automaton.batch.row_store import Chunk, RowStore
from spaseq.automaton.program.nfa import GpmColumns
from spaseq.automaton.run.runs import Row
from spaseq.rdf.columns.event_batch import EventNames
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.term_columns import TermColumn

GPMS = [GpmColumns(("x", "y")), GpmColumns(("y",))]


def solution(number: int) -> tuple[int, Row]:
    """The GPM and the row for a number; some rows have no name and leave ?x unbound."""
    gpm = number % 3 % 2
    x, y = f"<e:{number % 5}>" if number % 7 else None, f'"{number}"'
    name = f"e:{number}" if number % 4 else None
    return gpm, (number % 2, 10 * number, number % 6, name, (x, y) if gpm == 0 else (y,))


def chunk(numbers: list[int]) -> Chunk:
    made = [solution(n) for n in numbers]
    streams, times, ks, names, solutions = zip(*(row for _, row in made), strict=True)
    values = {
        "x": TermColumn.of([s[0] if len(s) == 2 else None for s in solutions]),
        "y": TermColumn.of([s[-1] for s in solutions]),
    }
    rows = SolutionBatch(
        np.array(streams, np.int32),
        np.array(times, np.int64),
        np.array(ks, np.int32),
        np.array([gpm for gpm, _ in made], np.int32),
        EventNames.of(names),
        values,
    )
    return Chunk(np.array(numbers, np.int64), rows)


@settings(max_examples=30, deadline=None)
@given(
    sizes=st.lists(st.sampled_from([1, 1, 1, 2, 9, 600]), min_size=1, max_size=40), data=st.data()
)
def test_solutions_are_found_by_number(sizes: list[int], data: st.DataObject) -> None:
    store, ends = RowStore(GPMS, ("x", "y")), np.cumsum(sizes).tolist()
    for size, end in zip(sizes, ends, strict=True):
        store.add(chunk([*range(end - size, end)]))
    assert len(store) == ends[-1]
    more = chunk([*range(ends[-1], ends[-1] + 6)])
    asked = sorted(data.draw(st.sets(st.integers(0, ends[-1] + 5), max_size=40)))
    found = store.rows(np.array(asked, np.int64), more)
    assert found == {number: solution(number) for number in asked}
    kept = [number for number in asked if number < ends[-1]]
    store.keep(np.array(kept, np.int64))
    assert len(store) == len(kept)
    assert store.rows(np.array(kept, np.int64)) == {number: solution(number) for number in kept}


def test_what_a_window_leaves() -> None:
    """More than half of the held rows are in use, although not all remaining rows are copied."""
    store = RowStore(GPMS, ("x", "y"))
    store.add(chunk([*range(1000)]))
    for begin in (300, 600, 650, 990, 999):
        numbers = np.arange(begin, 1000)
        store.keep(numbers)
        assert store.rows(numbers) == {number: solution(number) for number in numbers.tolist()}
        (left,) = store._chunks
        held = left.numbers if left.numbers.base is None else left.numbers.base
        assert len(held) < 2 * len(left.numbers)
