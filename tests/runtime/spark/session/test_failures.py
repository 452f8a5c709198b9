"""Failures of Spark become errors that say in one line what went wrong."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import spaseq
from spaseq.errors import InputError, RunError, SpaseqError
from spaseq.expr.extension import unregister
from spaseq.runtime.spark.session.failures import spark_errors
from spaseq.spark import answers, cause, errors
from tests.runtime.machines import HEAD, KEYED, NORTH, SOUTH, nquads

LIGHT = "http://m.example/light"
CALLING = f"""{HEAD} SEQ (A) {{
  DEFINE GPM A ON N, S {{ ?machine :starts ?load FILTER(<{LIGHT}>(?load)) }}
}}"""

TRACEBACK = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "worker.py", line 7, in main
{}
Please check the environment."""


@pytest.fixture
def streams(tmp_path: Path) -> dict[str, Path]:
    for name, rows in (("N", NORTH), ("S", SOUTH)):
        (tmp_path / f"{name}.nq").write_text(nquads(rows, name))
    return {name: tmp_path / f"{name}.nq" for name in "NS"}


@pytest.fixture
def broken() -> Iterator[None]:
    """A function of queries that fails with what is no error of its data."""

    @spaseq.function(LIGHT)
    def light(_: str) -> bool:
        raise OSError("the scales are gone")

    yield
    unregister(LIGHT)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TRACEBACK.format("spaseq.errors.InputError: s.nq:3: bad"), InputError("s.nq:3: bad")),
        ("[X] from the worker: spaseq.errors.RunError: too many\n\tat a.B", RunError("too many")),
        (TRACEBACK.format("spaseq.errors.BadEvents: event 0: bad"), InputError("event 0: bad")),
        (TRACEBACK.format("spaseq.errors.QueryError: q:1:2: bad"), RunError("q:1:2: bad")),
        (TRACEBACK.format("ValueError: 7"), RunError("Spark failed: ValueError: 7")),
        ("No.\nCaused by: java.io.IOException: full", RunError("Spark failed: IOException: full")),
        ("", RunError("Spark failed: no reason given")),
    ],
)
def test_cause(text: str, expected: SpaseqError) -> None:
    found = cause(Exception(text))
    assert (type(found), str(found)) == (type(expected), str(expected))


def test_an_error_of_this_package_is_its_own_cause() -> None:
    error = InputError("here")
    assert cause(error) is error


@pytest.mark.spark
@pytest.mark.parametrize("rows", [10, 3_000_000])
def test_a_lost_worker_is_named(spark: Any, rows: int) -> None:
    """Spark may still be writing to the worker: then the cause of the loss is a closed pipe."""

    def die(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            os.kill(os.getpid(), signal.SIGKILL)
            yield batch

    with pytest.raises(RunError, match="Python worker exited unexpectedly"), spark_errors():
        spark.range(rows).mapInPandas(die, "id long").collect()


@pytest.mark.spark
@pytest.mark.parametrize(
    "act",
    [
        pytest.param(lambda frame, _: frame.collect(), id="collect"),
        pytest.param(
            lambda frame, _: list(frame.toLocalIterator()),
            id="toLocalIterator",
            marks=pytest.mark.thorough,
        ),
        pytest.param(
            lambda frame, path: frame.write.parquet(path), id="write", marks=pytest.mark.thorough
        ),
    ],
)
def test_a_file_that_vanishes_is_named_in_one_line(
    spark: Any, streams: Mapping[str, Path], tmp_path: Path, act: Callable[[Any, str], Any]
) -> None:
    """PySpark's message has it in one line, too, without the traceback of the worker."""
    from pyspark.errors import PySparkException

    frame = answers(spark, KEYED, streams)
    streams["S"].unlink()
    with pytest.raises(InputError) as error, errors():
        act(frame, str(tmp_path / "written"))
    assert str(error.value) == f"cannot read {streams['S']}: No such file or directory"
    if isinstance(error.value.__cause__, PySparkException):
        lines = str(error.value.__cause__).splitlines()
        assert lines[1:] == [f"spaseq.errors.InputError: {error.value}"]


@pytest.mark.spark
@pytest.mark.usefixtures("broken")
def test_a_function_that_raises_is_named(spark: Any, streams: Mapping[str, Path]) -> None:
    said = f"the function <{LIGHT}> failed: OSError: the scales are gone"
    with pytest.raises(RunError) as error, errors():
        answers(spark, CALLING, streams).collect()
    assert str(error.value) == said
    with pytest.raises(RunError) as error:
        list(spaseq.run(CALLING, streams, runtime="spark"))
    assert str(error.value) == said


@pytest.mark.spark
def test_errors_of_the_program_stay_as_they_are(spark: Any, streams: Mapping[str, Path]) -> None:
    from pyspark.errors import AnalysisException

    frame = answers(spark, KEYED, streams)
    with pytest.raises(AnalysisException), errors():
        frame.select("no_such_column")
    with pytest.raises(ZeroDivisionError), errors():
        print(1 // 0)
