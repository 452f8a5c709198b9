"""Sorting rows by time within a bound on memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spaseq.rdf.columns.event_batch import EventNames
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.solution_columns import SolutionColumns
from spaseq.rdf.columns.term_columns import TermColumn, text_array
from spaseq.stages.sorting import BATCH_BYTES, RowSorter
from tests.thresholds import Force, forced

COLUMNS = SolutionColumns(("x",))
TIMES = st.lists(st.lists(st.integers(-5, 20), max_size=12), max_size=12)

KEPT = 0, 10_000, 20_000, 10**6
"""Bytes of runs in memory: for none, a few and all of the rows."""


def batch(times: list[int], first: int) -> SolutionBatch:
    """Rows with these times; k, the term of ?x and the event's name have the row's number."""
    numbers = range(first, first + len(times))
    zeros = np.zeros(len(times), np.int32)
    terms = TermColumn.of([f'"{i}"' for i in numbers])
    k = np.array(numbers, np.int32)
    return SolutionBatch(
        zeros, np.array(times, np.int64), k, zeros, names(numbers, first % 3), {"x": terms}
    )


def names(numbers: range, way: int) -> EventNames:
    """The names `http://e/NUMBER`, stored in one of three ways."""
    if way == 0:
        return EventNames.of([f"http://e/{i}" for i in numbers])
    if way == 1:
        return EventNames.between("http://e/", pa.array(numbers, pa.int64()), "")
    return EventNames.between("http://", text_array([f"e/{i}" for i in numbers]), "")


def filled(batches: list[list[int]], memory_rows: int, kept_bytes: int = 0) -> RowSorter:
    """A sorter that contains batches of rows with these times."""
    sorter, first = RowSorter(COLUMNS, memory_rows, kept_bytes), 0
    for times in batches:
        sorter.add(batch(times, first))
        first += len(times)
    return sorter


def rows_of(found: SolutionBatch) -> Iterator[tuple[int, int, str | None]]:
    assert found.event.texts() == [f"http://e/{k}" for k in found.k.tolist()]
    return zip(found.time.tolist(), found.k.tolist(), found.texts("x"), strict=True)


@pytest.fixture(autouse=True)
def spills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory in which sorters make their temporary directories."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@given(batches=TIMES, memory_rows=st.integers(1, 30), kept_bytes=st.sampled_from(KEPT))
@settings(deadline=None)
def test_rows_come_in_the_order_that_python_sorts_them(
    batches: list[list[int]], memory_rows: int, kept_bytes: int
) -> None:
    times = [time for some in batches for time in some]
    expected = sorted((time, k, f'"{k}"') for k, time in enumerate(times))
    parts = [part for part, _ in filled(batches, memory_rows, kept_bytes).batches()]
    assert [row for part in parts for row in sorted(rows_of(part))] == expected


@given(batches=TIMES, memory_rows=st.integers(1, 30), kept_bytes=st.sampled_from(KEPT))
@settings(deadline=None)
def test_batches_are_cut_between_times(
    batches: list[list[int]], memory_rows: int, kept_bytes: int
) -> None:
    before = -(2**63)
    for part, last in filled(batches, memory_rows, kept_bytes).batches():
        assert before < part.time.min() <= part.time.max() <= last
        before = last


@given(batches=TIMES, memory_rows=st.integers(1, 30), each=st.integers(1, 4))
@settings(deadline=None)
def test_rows_that_are_not_kept_do_not_come(
    batches: list[list[int]], memory_rows: int, each: int
) -> None:
    sorter = filled(batches, memory_rows, kept_bytes=10**6)
    held = sorter.keys(("x",))
    assert len(held) == len(sorter) == sum(map(len, batches))
    kept = np.arange(0, len(held), each)
    sorter.keep(kept)
    assert len(sorter) == len(kept)
    found = [row for rows, _ in sorter.batches() for row in rows_of(rows)]
    assert {text for _, _, text in found} == {*held.texts("x", kept)}
    assert sorted(time for time, *_ in found) == sorted(held.time[kept].tolist())


def test_rows_in_order_extend_one_run(spills: Path) -> None:
    sorter = filled([[1, 2], [2, 3], [4, 5], [0, 1]], memory_rows=2)
    assert len([*spills.glob("spaseq-run-sort-*/run-*.arrow")]) == 2
    assert sum(len(part) for part, _ in sorter.batches()) == 8


def test_nothing_is_written_below_the_bound(spills: Path) -> None:
    sorter = filled([[3, 1], [2]], memory_rows=4)
    assert [*spills.iterdir()] == []
    [(part, last)] = sorter.batches()
    assert (part.time.tolist(), last) == ([1, 2, 3], 3)


def test_runs_are_written_only_beyond_the_bytes_that_are_kept(spills: Path) -> None:
    times = [[3, 4], [1, 2], [5, 6], [0, 7]]
    assert not [*filled_runs(spills, times, kept_bytes=10**6)]
    assert len(filled_runs(spills, times, kept_bytes=2 * BATCH_BYTES + 1000)) == 2


def filled_runs(spills: Path, times: list[list[int]], kept_bytes: int) -> list[Path]:
    """The files of a sorter that makes a run of each batch, and gives the rows in order."""
    sorter = filled(times, 2, kept_bytes)
    files = [*spills.glob("spaseq-run-sort-*/run-*.arrow")]
    found = [time for part, _ in sorter.batches() for time in sorted(part.time.tolist())]
    assert found == sorted(time for some in times for time in some)
    return files


def test_terms_of_other_rows_are_not_counted(spills: Path) -> None:
    """The families of a run share the terms of a batch. Each has few rows."""
    terms = text_array([f'"{n:0>1000}"' for n in range(1000)])
    sorter = RowSorter(COLUMNS, kept_bytes=20 * BATCH_BYTES)
    for n in range(9):
        rows = batch([n], n)
        rows.values["x"] = TermColumn(np.array([n], np.int32), terms)
        sorter.add(rows)
    assert list(spills.iterdir()) == []
    (found,) = (rows for rows, _ in sorter.batches())
    assert found.texts("x") == [f'"{n:0>1000}"' for n in range(9)]


def test_files_are_removed_when_all_rows_have_been_read(spills: Path) -> None:
    sorter = filled([[3], [2], [1]], memory_rows=1)
    assert len([*spills.glob("spaseq-run-sort-*/*")]) == 3
    assert sum(len(part) for part, _ in sorter.batches()) == 3
    assert [*spills.iterdir()] == []


def test_files_are_removed_when_nobody_reads_on(spills: Path) -> None:
    batches = filled([[3], [2], [1]], memory_rows=1).batches()
    next(batches)
    assert [*spills.iterdir()]
    batches.close()
    assert [*spills.iterdir()] == []


@given(
    batches=TIMES, memory_rows=st.integers(1, 60), chunk=st.integers(1, 8), ways=st.integers(1, 4)
)
@settings(deadline=None)
def test_small_chunks_and_few_runs_give_the_same_order(
    batches: list[list[int]], memory_rows: int, chunk: int, ways: int
) -> None:
    expected = sorted((t, k) for k, t in enumerate(t for some in batches for t in some))
    with forced(f"sorted_rows={chunk} chunk_rows={2 * chunk} merged_runs={ways}"):
        parts = [part for part, _ in filled(batches, memory_rows).batches()]
    found = [row[:2] for part in parts for row in sorted(rows_of(part))]
    assert found == expected


def test_rows_in_order_are_neither_copied_nor_written(spills: Path, force: Force) -> None:
    force("sorted_rows=2")
    given_rows = [batch([1, 2], 0), batch([3, 4], 2), batch([5, 6, 7], 4)]
    sorter = RowSorter(COLUMNS)
    for rows in given_rows:
        sorter.add(rows)
    found = [part for part, _ in sorter.batches()]
    assert [part.time.tolist() for part in found] == [[1, 2], [3, 4], [5, 6, 7]]
    shared = zip(found, given_rows, strict=True)
    assert all(part.values["x"].terms is rows.values["x"].terms for part, rows in shared)
    assert [*spills.iterdir()] == []


def test_streams_that_follow_each_other_are_runs_to_merge(spills: Path, force: Force) -> None:
    force("sorted_rows=2")
    sorter = filled([[1, 4], [7, 9], [2, 3], [8, 9]], memory_rows=8)
    assert len([*spills.glob("spaseq-run-sort-*/run-*.arrow")]) == 2
    times = [sorted(part.time.tolist()) for part, _ in sorter.batches()]
    assert [time for part in times for time in part] == [1, 2, 3, 4, 7, 8, 9, 9]
