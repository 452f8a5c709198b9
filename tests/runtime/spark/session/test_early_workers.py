"""Workers that start early are the workers that the stages use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from spaseq.runtime.spark.session.worker_python import (
    LIKE_DATAFRAMES,
    start_workers,
    worker_python,
    worker_variables,
)


def parents(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for _ in range(batch.num_rows):
            yield pa.RecordBatch.from_pydict({"parent": [os.getppid()]})


@pytest.mark.spark
@pytest.mark.parametrize("variables", [{}, {"SPASEQ_OTHER": "2"}])
def test_workers_of_rdds_and_of_dataframes_have_one_parent(
    spark: Any, variables: dict[str, str]
) -> None:
    context = spark.sparkContext
    with worker_python(spark):
        with worker_variables(context, variables):
            frame = spark.range(0, 1, 1, 1).mapInArrow(parents, "parent long")
        with worker_variables(context, {**LIKE_DATAFRAMES, **variables}):
            tasks = context.parallelize([0], 1).map(lambda _: os.getppid())
            assert tasks.id() >= 0
    assert tasks.collect() == [row.parent for row in frame.collect()]


def test_variables_hold_within_the_context_only() -> None:
    context = SimpleNamespace(environment={"ONE": "1"})
    with worker_variables(context, {"ONE": "2", "TWO": "3"}):
        assert context.environment == {"ONE": "2", "TWO": "3"}
    assert context.environment == {"ONE": "1"}


def test_on_a_cluster_no_worker_starts_early() -> None:
    start_workers(SimpleNamespace(sparkContext=SimpleNamespace(master="spark://host:7077")), {})
