"""Shared test setup: Hypothesis, a Spark session, and the division of tests among processes.

Hypothesis draws the same examples in every run, so results are repeatable. If `SPASEQ_FRESH` is
set, it draws different examples each time.

pytest-xdist runs the tests in four processes. All tests on Spark go to one process, which starts
one session and often waits for it; but those that start a session in another process, with the mark
`spark(apart=True)`, go to a second one. They run first because they take longest; the rooms with
the longest files follow. The tests of any other file stay together. The kernels are compiled while
the processes collect the tests, and no test begins before; otherwise each process would compile
them. Tests that start the command line in a process of its own run it as users do: small input
needs no compiled kernels.

All these processes keep bytecode, also if `PYTHONDONTWRITEBYTECODE` is set: else each of some 300
would compile the package again. A test that starts a Spark session must have the mark `spark`.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from spaseq.compiled.cache import all_compiled
from spaseq.compiled.mode import compile_from_now_on
from spaseq.memory import collection_paused, keep_for_good
from tests.sizes import left_to_larger_runs
from tests.thresholds import Force, forced

sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
compile_from_now_on()  # in this process; small runs of others interpret them

settings.register_profile(
    "spaseq",
    deadline=None,  # the first call of a kernel compiles it
    derandomize="SPASEQ_FRESH" not in os.environ,
)
settings.load_profile("spaseq")

_WARMING = pytest.StashKey[subprocess.Popen[bytes]]()

_LONG = ("tests/oracle/", "tests/runtime/", "tests/serve/")
"""Rooms with long files: one that begins last is waited for by the other processes."""


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Begin to compile the kernels, once, in the process that starts the workers."""
    config = session.config
    divided = getattr(config.option, "numprocesses", None) and not config.option.collectonly
    if not divided:
        return
    if not all_compiled().exists():
        command = [sys.executable, "-m", "spaseq", "warm"]
        config.stash[_WARMING] = subprocess.Popen(command, stdout=sys.stderr)


@pytest.hookimpl(tryfirst=True, optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any) -> None:
    """Wait for the kernels: the tests begin when all workers have collected them."""
    warming = node.config.stash.get(_WARMING, None)
    if warming is None:
        return
    if warming.wait():
        pytest.exit("the kernels were not compiled", returncode=pytest.ExitCode.INTERNAL_ERROR)
    del node.config.stash[_WARMING]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Stop compiling if no tests ran."""
    warming = session.config.stash.get(_WARMING, None)
    if warming is not None:
        warming.kill()
        warming.wait()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """No cyclic garbage is looked for: almost all objects that are made here stay.

    They are frozen, so that later looks, and five at the end of pytest, do not visit them again.
    """
    import_module("spaseq.cli")  # when it is imported, it lets the collector go on
    with _bytecode_made_once(), collection_paused():
        collected = yield
        keep_for_good()
        return collected


@contextmanager
def _bytecode_made_once() -> Iterator[None]:
    """In a fresh checkout the other processes wait for the first one, which makes the bytecode."""
    made_last = cache_from_source(str(Path(__file__).parent / "windows" / "__init__.py"))
    if "PYTEST_XDIST_WORKER" not in os.environ or os.path.exists(made_last):
        yield
        return
    with open(__file__) as locked:
        try:
            fcntl.flock(locked, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(locked, fcntl.LOCK_SH)
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave combinations to larger runs, and divide the tests among the processes.

    The tests on Spark come first, in two groups; the tests of each other file are another group.
    """
    for item, mark in left_to_larger_runs(items):
        item.add_marker(mark)
    items.sort(
        key=lambda item: (
            item.get_closest_marker("spark") is None,
            not item.nodeid.startswith(_LONG),
        )
    )
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_group(item)))


def _group(item: pytest.Item) -> str:
    """The name of a test's group."""
    spark = item.get_closest_marker("spark")
    if spark is None:
        return item.nodeid.partition("::")[0]
    return "spark apart" if "apart" in spark.kwargs else "spark"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Only a test of the group `spark` may start a Spark session in this process."""
    before = _spark_context()
    result = yield
    if _spark_context() is not before and _group(item) != "spark":
        pytest.fail("this test starts a Spark session: give it the mark `spark`", pytrace=False)
    return result


def _spark_context() -> object:
    """This process's Spark context, without importing Spark."""
    pyspark = sys.modules.get("pyspark")
    return getattr(getattr(pyspark, "SparkContext", None), "_active_spark_context", None)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """A short id for a long text: the id is in the environment of processes that a test starts."""
    if isinstance(val, str | bytes) and len(val) > 500:
        return f"{argname} of {len(val)}"
    return None


@pytest.fixture
def interruptible() -> Iterator[None]:
    """SIGINT interrupts, also in a shell that ignores it for its background processes."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """The process's Spark session; `spaseq.run(..., runtime="spark")` uses the same one."""
    from spaseq.runtime.spark.session.spark_session import session

    running = session()
    yield running
    running.stop()


@pytest.fixture
def force() -> Iterator[Force]:
    """Forces thresholds until the end of the test, as `tests.thresholds.forced` does."""
    with ExitStack() as stack:
        yield lambda words: stack.enter_context(forced(words))
