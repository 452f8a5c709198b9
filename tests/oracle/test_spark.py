"""Spark against the oracle: many generated examples in one bounded run, and in one followed run.

Answers are equal and in equal order, whatever the number of partitions and the arrival of files. A
followed run is resumed several times, each time with several new files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from time import time_ns
from typing import Any

import pytest

from spaseq.options import FollowOptions
from spaseq.runtime.spark import bounded as bounded
from spaseq.runtime.spark.following.follow import follow
from tests.oracle.forced_campaign import on_spark
from tests.oracle.spark_sample import deliver, deliver_in_turns, disagreements, job, sample

pytestmark = pytest.mark.spark

SEED = os.environ.get("SPASEQ_ORACLE_SEED", "1")
TURNS = 3


def check_bounded(spark: Any, directory: Path, size: int, seed: str, partitions: int) -> None:
    examples = sample(size, seed)
    work = job(examples, directory)
    deliver(examples, directory)
    found = list(bounded.run(work, spark=spark, partitions=partitions))
    wrong = disagreements(examples, found)
    assert not wrong, f"seed {seed}:\n" + "\n".join(wrong)


def check_followed(spark: Any, directory: Path, size: int, seed: str) -> None:
    examples = sample(size, seed)
    files, checkpoint = directory / "files", directory / "checkpoint"
    work, random = job(examples, files), Random(seed)
    found = []
    for turn in range(TURNS):
        deliver_in_turns([e.case for e in examples], files, turn, TURNS, random)
        found += follow(work, FollowOptions(checkpoint, until_done=True), spark=spark)
    assert (work.stats.late, work.stats.bad) == (0, 0)
    wrong = disagreements(examples, found)
    assert not wrong, f"seed {seed}:\n" + "\n".join(wrong)


@contextmanager
def shuffled_into(spark: Any, partitions: int) -> Iterator[None]:
    """A context in which stage 2 of followed runs has `partitions` tasks."""
    name = "spark.sql.shuffle.partitions"
    before = spark.conf.get(name)
    spark.conf.set(name, partitions)
    try:
        yield
    finally:
        spark.conf.set(name, before)


@pytest.mark.parametrize("partitions", [pytest.param(1, marks=pytest.mark.thorough), 2])
def test_bounded(spark: Any, tmp_path: Path, partitions: int) -> None:
    check_bounded(spark, tmp_path, 30, f"bounded{partitions}:{SEED}", partitions)


@pytest.mark.thorough
def test_followed(spark: Any, tmp_path: Path) -> None:
    check_followed(spark, tmp_path, 20, f"followed:{SEED}")


@pytest.mark.parametrize(
    "words",
    [
        pytest.param("least", marks=pytest.mark.slow),
        pytest.param("never", marks=pytest.mark.slow),
    ],
)
def test_forced_thresholds(words: str) -> None:
    """In another process, whose workers have the same thresholds."""
    told, crossed = on_spark(int(SEED), 10, words)
    assert not told, told
    assert ("ordered_answers" in crossed) == (words == "least")


@pytest.mark.slow
@pytest.mark.parametrize("part", range(5))
def test_bounded_on_7_partitions(spark: Any, tmp_path: Path, part: int) -> None:
    check_bounded(spark, tmp_path, 120, f"bounded7:{part}:{SEED}", 7)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(3))
def test_followed_on_7_partitions(spark: Any, tmp_path: Path, part: int) -> None:
    with shuffled_into(spark, 7):
        check_followed(spark, tmp_path, 60, f"followed7:{part}:{SEED}")


@pytest.mark.slow
def test_fresh_ones(spark: Any, tmp_path: Path) -> None:
    seed = f"fresh{time_ns()}"
    check_bounded(spark, tmp_path / "bounded", 60, seed, 2)
    check_followed(spark, tmp_path / "followed", 30, seed)
