"""The workers' Python: chosen in a local session, checked on a cluster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spaseq.errors import RunError, UsageError
from spaseq.runtime.spark.session import worker_python as module
from spaseq.runtime.spark.session.java_runtime import find_java, java_home
from spaseq.runtime.spark.session.worker_python import worker_problem, worker_python
from spaseq.spark import answers
from tests.runtime.machines import KEYED, NORTH, SOUTH, nquads
from tests.runtime.spark.session.other_pythons import (
    OTHER_VERSION,
    WITHOUT_THE_PACKAGE,
    python_that_begins_with,
)

CHECKOUT = Path(__file__).resolve().parents[4]


@pytest.fixture
def streams(tmp_path: Path) -> dict[str, str]:
    for name, rows in (("N", NORTH), ("S", SOUTH)):
        (tmp_path / f"{name}.nq").write_text(nquads(rows, name))
    return {name: str(tmp_path / f"{name}.nq") for name in "NS"}


def fake_session(**context: Any) -> Any:
    return SimpleNamespace(sparkContext=SimpleNamespace(**context))


def test_what_is_no_session_that_runs_is_refused() -> None:
    remote = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    for given, message in (
        (5, "a SparkSession, and not 5"),
        (fake_session(_jsc=None), "was stopped: make a new one"),
        (remote, "of Spark Connect"),
    ):
        with pytest.raises(UsageError, match=message), worker_python(given):
            pass


@pytest.mark.spark
def test_a_local_session_answers_whatever_its_python(
    spark: Any, streams: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    context = spark.sparkContext
    environment = dict(context.environment)
    monkeypatch.setattr(context, "pythonExec", "no-such-python")
    assert len(answers(spark, KEYED, streams).collect()) == 5
    assert context.pythonExec == "no-such-python"  # of the user's own functions
    assert context.environment == environment


@pytest.mark.spark
def test_a_cluster_is_checked_once_and_the_error_names_the_setting(
    spark: Any, streams: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    context = spark.sparkContext
    with monkeypatch.context() as patch:
        patch.setattr(context, "master", "spark://host:7077")
        assert len(answers(spark, KEYED, streams).collect()) == 5
        patch.setattr(module, "worker_problem", lambda _: pytest.fail("checked again"))
        answers(spark, KEYED, streams)
    monkeypatch.setattr(context, "master", "spark://host:7077")
    monkeypatch.setattr(context, "pythonExec", "no-such-python")
    with pytest.raises(UsageError) as error:
        answers(spark, KEYED, streams)
    said = str(error.value)
    assert said.startswith("the workers' Python does not start: ")
    assert 'Cannot run program "no-such-python"' in said
    assert "PYSPARK_PYTHON was no-such-python when the session started" in said
    assert f"PYSPARK_PYTHON={sys.executable}" in said
    assert "\n" not in said
    assert context.pythonExec == "no-such-python"


@pytest.mark.spark
def test_a_cluster_runs_the_python_of_its_setting(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark reads `spark.pyspark.python` only if `spark-submit` starts the program."""
    context = spark.sparkContext
    configured = {"spark.pyspark.python": "configured-python"}
    monkeypatch.setattr(context, "getConf", lambda: configured)
    monkeypatch.setattr(context, "master", "spark://host:7077")
    monkeypatch.setattr(context, "pythonExec", "python3")
    monkeypatch.setattr(module, "worker_problem", lambda _: None)
    with worker_python(spark):
        assert context.pythonExec == "configured-python"
    monkeypatch.setattr(module, "_checked", set())
    monkeypatch.setattr(module, "worker_problem", lambda _: "no")
    with (
        pytest.raises(UsageError, match=r"no\. spark\.pyspark\.python is configured-python\. Set"),
        worker_python(spark),
    ):
        pass


PLAIN = """
import json, sys
from pyspark.sql import SparkSession
settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1"}
spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
sys.path.insert(0, sys.argv[1])  # the package is on no path that workers inherit
from spaseq.errors import RunError, UsageError
from spaseq.runtime.spark.session.worker_python import worker_problem
from spaseq.spark import answers
from tests.runtime.machines import KEYED
context = spark.sparkContext
found = {"python": context.pythonExec}
found["answers"] = answers(spark, KEYED, {"N": "N.nq", "S": "S.nq"}).count()
for name in ("python3", "bare/python"):
    context.pythonExec = name
    found[name] = worker_problem(context)
context.master = "spark://host:7077"
context.pythonExec = "python3"
try:
    answers(spark, KEYED, {"N": "N.nq", "S": "S.nq"})
except UsageError as error:
    found["error"] = str(error)
print(json.dumps(found))
"""


@pytest.mark.spark(apart=True)
@pytest.mark.thorough
def test_a_plain_session_with_another_python_on_path(
    tmp_path: Path, streams: Mapping[str, str]
) -> None:
    python_that_begins_with(OTHER_VERSION, tmp_path / "other")
    python_that_begins_with(WITHOUT_THE_PACKAGE, tmp_path / "bare", "python")
    path = os.pathsep.join([str(tmp_path / "other"), os.environ["PATH"]])
    left_out = ("PYTHONPATH", "PYSPARK_PYTHON")
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    with java_home(find_java()) as java:  # a plain session finds no Java by itself
        done = subprocess.run(
            [sys.executable, "-c", PLAIN, str(CHECKOUT)],
            cwd=tmp_path,
            env={**environment, "PATH": path, **java},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-3000:]
    here = f"{sys.version_info[0]}.{sys.version_info[1]}"
    found = json.loads(done.stdout)
    other = f"the workers' Python is 3.99, and this process has Python {here}"
    assert found["python"] == "python3"
    assert found["answers"] == 5
    assert found["python3"] == other
    assert "cannot import spaseq (ModuleNotFoundError: " in found["bare/python"]
    assert found["error"].startswith(
        f"{other}. PYSPARK_PYTHON is not set, so they run python3. Set PYSPARK_PYTHON before"
    )


def test_other_failures_of_the_check_are_errors_of_the_run() -> None:
    from py4j.protocol import Py4JError

    class Failing:
        def parallelize(self, *_: object) -> Any:
            raise Py4JError("the disk is full")

    with pytest.raises(RunError, match="Spark failed: the disk is full"):
        worker_problem(Failing())
