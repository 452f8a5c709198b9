"""Splits that are read separately give the same answers as a stream that is read as a whole."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from spaseq.plan.families import QueryUnits
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.event_batch import EventNames
from spaseq.rdf.columns.solution_batch import SolutionBatch, SolutionCodec
from spaseq.rdf.columns.term_columns import NumberColumn, TermColumn
from spaseq.rdf.inputs.stream_options import BadInput, StreamOptions
from spaseq.runtime.arrivals import input_splits
from spaseq.runtime.arrivals.tie_numbering import Overlap, TimeExtent, earlier
from spaseq.runtime.job.unit_graph import QueryGroups
from spaseq.runtime.spark import bounded as spark_runtime
from spaseq.runtime.spark.rows.run_files import BucketRuns, packs_of
from spaseq.runtime.spark.rows.stage_rows import NO_SPLIT
from spaseq.sources import files as source_files
from spaseq.sources.base import SplitNumbering
from spaseq.sources.files import FileSource
from tests.runtime.machines import IRIS, SOUTH, Row, answers_in_process, job_of, nquads
from tests.sizes import first_of
from tests.thresholds import Force


def extents(*given: tuple[int, int, int, int]) -> list[TimeExtent]:
    """Extents of one stream's splits: first time, last time, and number of events at each."""
    return [TimeExtent(0, split, *one) for split, one in enumerate(given)]


def test_a_tie_at_an_edge_counts_what_is_before_it() -> None:
    found = earlier(extents((1, 5, 1, 2), (5, 5, 3, 3), (5, 9, 1, 1), (10, 10, 1, 1)))
    assert {split: ties.pairs for split, ties in found.items()} == {1: [(5, 2)], 2: [(5, 5)]}


def test_splits_without_events_and_other_streams_are_passed_over() -> None:
    given = [TimeExtent(0, 0, 1, 5, 1, 2), TimeExtent(0, 1), TimeExtent(1, 2, 2, 3, 1, 1)]
    found = earlier([*given, TimeExtent(0, 3, 5, 6, 1, 1)])
    assert {split: ties.pairs for split, ties in found.items()} == {3: [(5, 2)]}


def test_splits_that_overlap_are_found_out() -> None:
    with pytest.raises(Overlap):
        earlier(extents((1, 5, 1, 1), (6, 9, 1, 1), (8, 12, 1, 1)))


def test_an_extent_is_of_all_batches() -> None:
    extent = TimeExtent(0, 0)
    for times in ([5, 3, 3], [3, 9], [9, 9, 4]):
        extent._add(np.array(times, np.int64))
    assert TimeExtent.of(extent.data()) == TimeExtent(0, 0, 3, 9, 3, 3)


# --- packs ------------------------------------------------------------------------------------


def plan(tmp_path: Path) -> QueryPlan:
    return job_of([tmp_path, tmp_path]).plans[0]


def solutions(plan: QueryPlan, times: Sequence[int]) -> SolutionBatch:
    n = len(times)
    zeros = np.zeros(n, np.int32)
    keys = pa.array([f"<http://m.example/m{t % 3}>" for t in times])
    return SolutionBatch(
        zeros,
        np.array(times, np.int64),
        zeros,
        zeros,
        EventNames.of([f"e{t}" for t in times]),
        {v: TermColumn.from_arrow(keys) for v in plan.patterns.columns.variables},
        {v: NumberColumn(np.zeros(n), np.zeros(n, np.int8)) for v in plan.patterns.columns.numbers},
    )


def test_packs_of_a_disordered_stream_are_those_of_sorted_runs(
    tmp_path: Path, force: Force
) -> None:
    force("sorted_rows=4 bucket_rows=3")
    query = plan(tmp_path)
    runs = BucketRuns(query.patterns.columns, query.sequence.key.variables, 2)
    batches = [[7, 1, 30], [2, 29, 8], [3, 4], [40, 50], [41, 60]]
    ended = [run for times in batches for run in runs.add(solutions(query, times))]
    groups, codec = QueryGroups.of(QueryUnits.of([query])), SolutionCodec(query.patterns.columns)
    made = [packs_of(run, 0, groups, 2, NO_SPLIT, None) for run in [*ended, *runs.rest()]]
    found = [(p.bucket, p.time, codec.decode(p.payload).time.tolist()) for own in made for p in own]
    assert sorted(t for _, _, times in found for t in times) == sorted(chain.from_iterable(batches))
    assert all(first == times[0] and times == sorted(times) for _, first, times in found)
    assert all(len(times) <= 4 for _, _, times in found)
    homes = {(bucket, t % 3) for bucket, _, times in found for t in times}
    assert len(homes) == 3, "a key's solutions are in one bucket"
    of_runs = [
        sorted(t for p in own for t in codec.decode(p.payload).time.tolist()) for own in made
    ]
    assert of_runs == [[1, 2, 3, 4, 7, 8, 29, 30], [40, 41, 50, 60]]


# --- on Spark ------------------------------------------------------------------------------------


def rows(times: Sequence[int]) -> list[Row]:
    return [(t, f"m{n % 3}", ("starts", "stops")[n // 3 % 2], n) for n, t in enumerate(times)]


@pytest.fixture(params=first_of(["files", "shuffle"], 1))
def small(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small ranges; only a few events at both ends are read beforehand.

    Rows go between the stages in files of this machine, or through Spark as on a cluster.
    """
    files = request.param == "files"
    monkeypatch.setattr(spark_runtime, "is_one_machine", lambda spark: files)
    size = len(nquads(rows([1000]))) + 20
    monkeypatch.setattr(source_files, "SPLIT_BYTES", 8 * size)
    monkeypatch.setattr(source_files, "_PEEK_BYTES", 3 * size)


def compare(spark: Any, north: Path, bad_lines: Sequence[int]) -> None:
    south = north.with_name("south.nq")
    south.write_text(nquads(SOUTH, "s"))
    bad: list[BadInput] = []
    job = job_of([north, south], on_bad=bad.append)
    assert list(spark_runtime.run(job, spark=spark)) == answers_in_process(job_of([north, south]))
    assert [b.line for b in bad] == bad_lines
    lost = max(0, len(bad_lines) - 1)
    assert job.stats.events == nquads_events(north) - lost + len(SOUTH)


def nquads_events(path: Path) -> int:
    return path.read_text().count("generatedAtTime")


def is_scanned(path: Path) -> bool:
    found = input_splits.bounded_splits(
        [FileSource(StreamOptions(IRIS[0], (str(path),)))], time_scan=False
    )
    assert len(found) > 5
    return found[0].numbering is SplitNumbering.WHOLE


@pytest.mark.spark
def test_ties_across_the_edges_of_splits_and_lines_are_numbered_as_in_one_go(
    spark: Any, small: None, tmp_path: Path
) -> None:
    path = tmp_path / "north.nq"
    lines = nquads(rows([1000 * (n // 7) for n in range(60)])).splitlines(keepends=True)
    lines.insert(80, "this is no quad\n")
    path.write_text("".join(lines))
    assert not is_scanned(path)
    compare(spark, path, [81, 80, 83])  # the events on both sides are bad, too


@pytest.mark.spark
def test_blank_nodes_on_both_sides_of_an_edge_are_two(
    spark: Any, small: None, tmp_path: Path
) -> None:
    path = tmp_path / "north.nq"
    text = nquads(rows([1000 * (n // 7) for n in range(60)]))
    path.write_text(re.sub("<http://m.example/(m[0-9])>", r"_:\1", text))
    assert not is_scanned(path)
    compare(spark, path, [])


@pytest.mark.spark
def test_a_stream_that_is_seen_to_be_in_disorder_is_scanned_first(
    spark: Any, small: None, tmp_path: Path
) -> None:
    path = tmp_path / "north.nq"
    path.write_text(nquads(rows([1000 * (n // 7) for n in reversed(range(60))])))
    assert is_scanned(path)
    compare(spark, path, [])


@pytest.mark.spark
def test_a_stream_whose_disorder_is_hidden_is_read_again(
    spark: Any, small: None, tmp_path: Path
) -> None:
    path = tmp_path / "north.nq"
    times = [1000 * (n // 7) for n in range(60)]
    times[44] = 1000  # in the middle of a range
    lines = nquads(rows(times)).splitlines(keepends=True)
    lines.insert(20, "this is no quad\n")
    path.write_text("".join(lines))
    assert not is_scanned(path)
    compare(spark, path, [21, 20, 23])
