"""The Python that runs this package's functions on the workers of a session.

PySpark runs every Python function with the command that the session had in PYSPARK_PYTHON when it
started, or with `python3`. That may be another Python than the driver's: one of another version, or
one without this package. PySpark records the command in each function when it makes it. So this
module can choose another command for the functions of this package, and change no others.

The workers of a local session run on this machine, so they can always use this Python. The workers
of a cluster may not have it. There a job of one task checks the workers' Python, once for each
session.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from threading import RLock, Thread
from typing import Any, TypeAlias

from spaseq.compiled import mode
from spaseq.errors import UsageError
from spaseq.runtime.spark.session import FILE_TASKS
from spaseq.runtime.spark.session.failures import cause
from spaseq.runtime.spark.session.spark_session import DAEMON, package_roots

_VARIABLE = "PYSPARK_PYTHON"
_SETTING = "spark.pyspark.python"
_UNSET = "python3"
"""The command that PySpark takes if PYSPARK_PYTHON is not set."""

_HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"

_choosing = RLock()
_checked: set[tuple[str, str]] = set()
"""(application, command) whose workers have a suitable Python."""

Facts: TypeAlias = tuple[str, str | None, str]
"""A worker's executable, its version of this package or None, and the reason for None."""


@contextmanager
def worker_python(spark: Any) -> Iterator[None]:
    """Functions that are made in this context run on a Python with this package.

    Raises:
        UsageError: there is no suitable session, or its workers' Python is unsuitable; the message
            names the setting, its present value and the right one.
    """
    context = _context(spark)
    with _choosing:
        command, environment = context.pythonExec, dict(context.environment)
        try:
            if context.master.startswith("local") and sys.executable:
                _take_this_python(context)
            else:
                _take_configured_python(context)
            yield
        finally:
            context.pythonExec = command
            context.environment.clear()
            context.environment.update(environment)


def _context(spark: Any) -> Any:
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        raise UsageError(
            "spaseq needs a Spark session in this process, and this one is of Spark Connect: "
            "make it with spaseq.spark.session(), or without remote()"
        )
    context = getattr(spark, "sparkContext", None)
    if context is None:
        raise UsageError(f"the first argument is a SparkSession, and not {spark!r}")
    if context._jsc is None:
        raise UsageError("the Spark session was stopped: make a new one")
    return context


def _take_this_python(context: Any) -> None:
    """For the workers of a local session."""
    if not _is_this_python(context.pythonExec):
        context.pythonExec = sys.executable
    if context.getConf().get("spark.python.daemon.module") != DAEMON:
        roots = package_roots()
        if roots:
            known = context.environment.get("PYTHONPATH")
            context.environment["PYTHONPATH"] = os.pathsep.join([*roots, *filter(None, [known])])


def _is_this_python(command: str) -> bool:
    """Whether a command runs the interpreter and the environment of this process."""
    program = shutil.which(command)
    return (
        program is not None
        and os.path.realpath(program) == os.path.realpath(sys.executable)
        and os.path.realpath(os.path.dirname(program))
        == os.path.realpath(os.path.dirname(sys.executable))
    )


def _take_configured_python(context: Any) -> None:
    """For the workers of a cluster: check and use the Python of the session's settings.

    Spark reads `spark.pyspark.python` only in programs that `spark-submit` starts.
    """
    if context.pythonExec == _UNSET:
        context.pythonExec = context.getConf().get(_SETTING) or _UNSET
    key = (context.applicationId, context.pythonExec)
    if key not in _checked:
        problem = worker_problem(context)
        if problem is not None:
            raise UsageError(f"{problem}. {_remedy(context)}")
        _checked.add(key)


def worker_problem(context: Any) -> str | None:
    """The reason why the workers' Python cannot run this package's functions; None if it can.

    Raises:
        RunError: Spark fails for another reason.
    """
    from py4j.protocol import Py4JError  # type: ignore[import-untyped,unused-ignore]
    from pyspark.errors import PySparkException

    try:
        executable, version, reason = context.parallelize([0], 1).map(_probe()).first()
    except (Py4JError, PySparkException) as error:
        return _start_problem(error)
    if version is None:
        return f"the workers' Python {executable} cannot import spaseq ({reason})"
    if version != _version():
        return f"the workers have spaseq {version}, and this process has spaseq {_version()}"
    return None


def _probe() -> Callable[[int], Facts]:
    """A function that pickles by value, so that a worker without this package can run it."""

    def facts(_: int) -> Facts:
        import sys
        from importlib import import_module

        try:
            import_module("spaseq.runtime.spark.stages.sequence_stage")
        except Exception as error:
            return sys.executable, None, f"{type(error).__name__}: {error}"
        return sys.executable, str(import_module("spaseq").__version__), ""

    return facts


def _version() -> str:
    return str(import_module("spaseq").__version__)


def _start_problem(error: Exception) -> str:
    text = str(error)
    version = re.search(r"Python in worker has different version: ([\d.]+)", text)
    if version is not None:
        return f"the workers' Python is {version[1]}, and this process has Python {_HERE}"
    start = re.search(r'Cannot run program "[^\n]*', text)
    if start is not None:
        return f"the workers' Python does not start: {start[0].rstrip()}"
    raise cause(error) from error


def _remedy(context: Any) -> str:
    command = context.pythonExec
    if context.getConf().get(_SETTING) == command:
        has = f"{_SETTING} is {command}"
    elif command == _UNSET and _VARIABLE not in os.environ:
        has = f"{_VARIABLE} is not set, so they run {command}"
    else:
        has = f"{_VARIABLE} was {command} when the session started"
    return (
        f"{has}. Set {_VARIABLE} before the session starts, to a Python {_HERE} with spaseq "
        f"{_version()} that every worker has ({_VARIABLE}={sys.executable} if they have this one)"
        "; spaseq.spark.session(master) sends the package itself to the workers"
    )


LIKE_DATAFRAMES = {"SPARK_SIMPLIFIED_TRACEBACK": "1"}
"""The variable that separates workers of `mapInArrow` from workers of RDDs and of stateful
processors. Spark shares workers among functions with equal variables.
"""


def task_variables() -> dict[str, str]:
    """Variables of workers that run `FileTasks`, by the input that this process expects."""
    return {**LIKE_DATAFRAMES, FILE_TASKS: mode.current().name}


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

    Nothing happens on a cluster, whose machines for tasks are unknown. Call it where functions are
    made, that is in `worker_python`.
    """
    context = spark.sparkContext
    if not context.master.startswith("local"):
        return
    with worker_variables(context, variables):
        task = context.parallelize([0], 1).map(_nothing)
        task.id()  # records the variables
    Thread(target=_run, args=(task,), daemon=True).start()


def _nothing(number: int) -> int:
    return number


def _run(task: Any) -> None:
    with suppress(Exception):  # the run that needs the workers will report the error
        task.collect()
