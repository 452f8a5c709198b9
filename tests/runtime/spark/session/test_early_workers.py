"""Workers that start early are the workers that the stages use."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from spaseq.runtime.spark.session.worker_python import (
    LIKE_DATAFRAMES,
    start_workers,
    task_variables,
    worker_python,
    worker_variables,
)

FILE_STAGE = "spaseq.runtime.spark.stages.file_tasks"


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


@pytest.mark.spark
def test_workers_of_file_tasks_load_no_pandas_and_few_kernels(spark: Any) -> None:
    def loaded(_: int) -> tuple[set[str], set[str]]:
        kernels = sys.modules["spaseq.compiled.known_functions"].KERNELS
        ready = {kernel.__module__ for kernel in kernels if kernel._compiled is not None}
        return {"pandas", FILE_STAGE} & {*sys.modules}, ready

    context = spark.sparkContext
    new = {**task_variables(), "SPASEQ_OTHER": "new"}  # no worker that has done something else
    with worker_python(spark), worker_variables(context, new):
        tasks = context.parallelize([0], 1).map(loaded)
        assert tasks.id() >= 0
    ((modules, kernels),) = tasks.collect()
    assert modules == {FILE_STAGE}
    assert "spaseq.rdf.kernels.tokenizer" in kernels
    assert all(name.startswith("spaseq.rdf.") for name in kernels)


def test_variables_hold_within_the_context_only() -> None:
    context = SimpleNamespace(environment={"ONE": "1"})
    with worker_variables(context, {"ONE": "2", "TWO": "3"}):
        assert context.environment == {"ONE": "2", "TWO": "3"}
    assert context.environment == {"ONE": "1"}


def test_on_a_cluster_no_worker_starts_early() -> None:
    start_workers(SimpleNamespace(sparkContext=SimpleNamespace(master="spark://host:7077")), {})
