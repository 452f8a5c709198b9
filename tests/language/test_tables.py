"""Small streams for docs/meaning.md#operators to #after-match, on both runtimes.

On Spark, one run contains all rows, each on a separate stream.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any, get_args

import pytest

import spaseq
from spaseq.algebra.answers import Answer
from spaseq.compile import compile_query
from spaseq.errors import UsageError
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.options import FollowOptions
from spaseq.plan.query_plan import CompileOptions, EvaluatorName
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.runtime import local
from spaseq.runtime.job.job import Job
from spaseq.runtime.spark import bounded as bounded
from spaseq.runtime.spark.following.follow import follow
from spaseq.sources.files import FileSource
from tests.language import tables
from tests.language.tables import Row
from tests.runtime.machines import put

RUNTIMES = ["local", pytest.param("spark", marks=pytest.mark.spark)]
ALL_ROWS = [*tables.NUMBERS, *tables.LETTERS, *tables.SELECTION, *tables.LOOPS]
LONG_AFTER = 10**6
"""Seconds; an event at this time closes all windows."""


def words(row: Row, answers: Iterable[Answer]) -> list[str]:
    """The values of each answer's events, in answer order for SELECTION, else sorted."""
    values = row.values.split()
    found = [" ".join(values[t.time // 1000] for t in a.trace) for a in answers]
    return found if row in tables.SELECTION else sorted(found)


def expected(row: Row) -> list[str]:
    return row.expected if row in tables.SELECTION else sorted(row.expected)


@pytest.mark.parametrize("row", ALL_ROWS, ids=lambda r: r.id)
def test_in_process(row: Row, tmp_path: Path) -> None:
    path = tmp_path / "stream.nq"
    path.write_text(tables.nquads(row.values))
    matches = list(spaseq.run(tables.row_query(row), {"S": path}, runtime="local"))
    assert words(row, [m.answer for m in matches]) == expected(row)


@pytest.mark.parametrize("row", ALL_ROWS, ids=lambda r: r.id)
def test_pushed_one_by_one(row: Row) -> None:
    engine = spaseq.Engine(tables.row_query(row))
    found: list[spaseq.Match] = []
    for second, value in enumerate(row.values.split()):
        found += engine.push("S", tables.triples(value, second), 1000 * second)
    found += engine.close()
    assert words(row, [m.answer for m in found]) == expected(row)


@pytest.mark.parametrize("evaluator", get_args(EvaluatorName))
@pytest.mark.parametrize("row", tables.LOOPS, ids=lambda r: r.id)
def test_loops_by_every_evaluator(row: Row, evaluator: str, tmp_path: Path) -> None:
    path = tmp_path / "stream.nq"
    path.write_text(tables.nquads(row.values))
    try:
        plan = compile_query(tables.row_query(row), options=CompileOptions(evaluator=evaluator))
    except UsageError as error:
        pytest.skip(str(error))
    source = FileSource(StreamOptions(tables.S, (str(path),)))
    found = local.run(Job((plan,), (source,), KnowledgeBase.empty()))
    assert words(row, [answer for _, answer in found]) == expected(row)


def stream_of(row: Row) -> str:
    return f"{tables.S}{ALL_ROWS.index(row)}"


def job(directory: Path) -> Job:
    """All rows; each row's stream is a directory."""
    plans = [compile_query(tables.row_query(row, stream_of(row)), row.id) for row in ALL_ROWS]
    paths = [directory / str(number) for number in range(len(ALL_ROWS))]
    for path in paths:
        path.mkdir(parents=True)
    pairs = zip(ALL_ROWS, paths, strict=True)
    streams = [FileSource(StreamOptions(stream_of(row), (str(path),))) for row, path in pairs]
    return Job(tuple(plans), tuple(streams), KnowledgeBase.empty())


def check(answers: Iterable[tuple[int, Answer]]) -> None:
    """Check that every row has its answers."""
    by_query = sorted(answers, key=lambda pair: pair[0])
    found = {n: [a for _, a in pairs] for n, pairs in groupby(by_query, key=lambda pair: pair[0])}
    for number, row in enumerate(ALL_ROWS):
        assert words(row, found.get(number, [])) == expected(row), row.id


@pytest.mark.spark
@pytest.mark.parametrize(
    "partitions",
    [2, *(pytest.param(n, marks=pytest.mark.thorough) for n in (1, 7))],
)
def test_on_spark(spark: Any, tmp_path: Path, partitions: int) -> None:
    work = job(tmp_path)
    for number, row in enumerate(ALL_ROWS):
        put(tmp_path / str(number) / "1.nq", tables.nquads(row.values))
    check(bounded.run(work, spark=spark, partitions=partitions))


@pytest.mark.thorough
@pytest.mark.spark
def test_followed_on_spark(spark: Any, tmp_path: Path) -> None:
    """Events arrive in files cut at random, over several runs, each resuming the one before."""
    random, work = Random("tables"), job(tmp_path / "files")
    waiting = [
        [*(tables.event(v, i) for i, v in enumerate(row.values.split())),
         tables.event("end", LONG_AFTER)]
        for row in ALL_ROWS
    ]  # fmt: skip
    found: list[tuple[int, Answer]] = []
    for turn in range(3):
        for number, events in enumerate(waiting):
            size = len(events) if turn == 2 else random.randint(0, len(events))
            if size:
                put(tmp_path / "files" / str(number) / f"{turn}.nq", "".join(events[:size]))
            del events[:size]
        found += follow(work, FollowOptions(tmp_path / "state", until_done=True), spark=spark)
    check(found)
