"""Starts the worker processes of a local session while Spark still plans.

Each stage of a followed run forks its workers from its own process, which takes a second or two to
load the package and its kernels. Spark would start the first one after it has planned a batch, and
the second one after stage 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Thread
from typing import Any

LIKE_DATAFRAMES = {"SPARK_SIMPLIFIED_TRACEBACK": "1"}
"""The variable by which workers of `mapInArrow` differ from workers of RDDs and of stateful
processors. Spark shares workers among functions with equal variables."""


@contextmanager
def worker_variables(context: Any, variables: Mapping[str, str]) -> Iterator[None]:
    """Functions that are made in this context run in workers with these environment variables."""
    environment = context.environment
    before = dict(environment)
    environment.update(variables)
    try:
        yield
    finally:
        environment.clear()
        environment.update(before)


def start_workers(spark: Any, variables: Mapping[str, str]) -> None:
    """Start a process from which workers with these variables are forked, without waiting for it.

    Nothing happens on a cluster, where it is not known which machines will have tasks. Call it
    where functions are made, that is in `worker_python`.
    """
    context = spark.sparkContext
    if not context.master.startswith("local"):
        return
    with worker_variables(context, variables):
        task = context.parallelize([0], 1).map(_nothing)
        task.id()  # notes the variables
    Thread(target=_run, args=(task,), daemon=True).start()


def _nothing(number: int) -> int:
    return number


def _run(task: Any) -> None:
    with suppress(Exception):  # the run that needs the workers will say what is wrong
        task.collect()
