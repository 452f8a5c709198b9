"""Failures of Spark as errors of this package, in one line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from spaseq import errors as tree
from spaseq.errors import InputError, RunError, SpaseqError

SPARK_FAILED = "Spark failed: "

_LOST = re.compile("Python worker exited unexpectedly|ExecutorLostFailure")
"""Spark's name for the loss of a process. Its cause is a closed connection."""


@contextmanager
def spark_errors() -> Iterator[None]:
    """For runs of this package: raise every failure of Spark as `cause` names it."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped,unused-ignore]
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException, ConnectionError, EOFError) as error:
        raise cause(error) from error


@contextmanager
def errors() -> Iterator[None]:
    """Raise failures of Spark as errors of this package, each in one line.

    Spark evaluates a DataFrame when a program reads its rows, so a failure of `answers` comes then,
    within the message of a PySpark exception. In this context the error is `cause` of that
    exception, which is its `__cause__`. Errors of analysis (a column that does not exist) and wrong
    arguments do not come from tasks; they stay as they are.

    >>> with spaseq.spark.errors():  # doctest: +SKIP
    ...     rows = answers(spark, query, {"S1": "s1.nq"}).collect()
    spaseq.errors.InputError: cannot read s1.nq: No such file or directory

    Raises:
        SpaseqError: a task failed: the error that a worker raised, or a RunError.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import AnalysisException
    from pyspark.errors.exceptions.captured import CapturedException

    try:
        yield
    except AnalysisException:
        raise
    except (Py4JError, CapturedException) as error:
        raise cause(error) from error


def cause(error: BaseException) -> SpaseqError:
    """The error that caused a failure of Spark, in one line.

    An error of this package that a worker raised keeps its type. Any other failure is a RunError
    with the essential line of Spark's message: the last line of a Python traceback, else Java's
    cause. It also accepts exceptions that Spark keeps, such as `StreamingQuery.exception()`.
    """
    if isinstance(error, SpaseqError):
        return error
    gist = _gist(str(error))
    match = re.search(r"\bspaseq\.errors\.(\w+): (.*)", gist)
    if match is None:
        return RunError(f"{SPARK_FAILED}{gist}")
    return _kind(match[1])(match[2])


def _kind(name: str) -> type[SpaseqError]:
    """The class of an error with that name that a text alone can make."""
    kind = getattr(tree, name, RunError)
    if kind.__init__ is not Exception.__init__:
        return InputError if issubclass(kind, InputError) else RunError
    return kind


def _gist(text: str) -> str:
    """The essential line of a message.

    It is the last line of a Python traceback, else the cause in Java that names a lost process,
    else the last cause, else the message's first line.
    """
    some = re.findall(
        r"^(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Exit|BadEvents)\b: .*", text, re.MULTILINE
    )
    python = [line for line in some if not line.startswith(("org.", "java.", "py4j."))]
    causes = re.findall(r"^Caused by: [\w.$]*?(\w+: .*)", text, re.MULTILINE)
    lost = [line for line in causes if _LOST.search(line)]
    lines = text.strip().splitlines()
    candidates = (python, lost, causes)
    return next((some[-1] for some in candidates if some), [*lines, "no reason given"][0])
