"""The Java that starts without Spark's launcher has the command that the launcher would give it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from spaseq.runtime.spark.session import spark_session
from spaseq.runtime.spark.session.java_process import (
    JavaProcess,
    command,
    needs_no_launcher,
    spark_home,
)
from spaseq.runtime.spark.session.java_runtime import find_java

SETTINGS = {
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": '-XX:+UseSerialGC "-Da=b c"',
    "spark.master": "local[2]",
}


@pytest.mark.spark
def test_the_command_is_the_one_of_the_launcher() -> None:
    home, java = spark_home(), find_java().executable
    given = [word for item in SETTINGS.items() for word in ("--conf", "=".join(item))]
    launcher = ["org.apache.spark.launcher.Main", "org.apache.spark.deploy.SparkSubmit"]
    variables = {
        "SPARK_HOME": str(home),
        "SPARK_CONF_DIR": str(home / "conf"),
        "SPARK_SCALA_VERSION": "2.13",
        "JAVA_HOME": str(java.parent.parent),
    }
    printed = subprocess.run(
        [java, "-cp", f"{home}/jars/*", *launcher, *given, "pyspark-shell"],
        env=variables,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    words = printed.strip("\0\n").split("\0")
    words.remove("--add-modules=jdk.incubator.vector")
    own = command(java, home, SETTINGS, ["-XX:+UseSerialGC", "-Da=b c"])
    java_ends = own.index("org.apache.spark.deploy.SparkSubmit")
    assert own[:java_ends] == words[:java_ends]
    assert sorted(own[java_ends:]) == sorted(words[java_ends:])


@pytest.mark.parametrize(
    "variable", ["SPARK_CONF_DIR", "SPARK_HOME", "PYSPARK_SUBMIT_ARGS", "HADOOP_CONF_DIR"]
)
def test_what_the_launcher_would_read_needs_it(
    variable: str, monkeypatch: pytest.MonkeyPatch, clean: None
) -> None:
    assert needs_no_launcher()
    monkeypatch.setenv(variable, "x")
    assert not needs_no_launcher()


def test_configuration_files_need_the_launcher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clean: None
) -> None:
    monkeypatch.setattr("spaseq.runtime.spark.session.java_process.spark_home", lambda: tmp_path)
    assert needs_no_launcher()
    (tmp_path / "conf").mkdir()
    assert not needs_no_launcher()


def test_another_version_of_spark_needs_the_launcher(
    monkeypatch: pytest.MonkeyPatch, clean: None
) -> None:
    monkeypatch.setattr("spaseq.runtime.spark.session.java_process.version", lambda _: "4.4.0")
    assert not needs_no_launcher()


@pytest.fixture
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable configures Spark; a session that ran has left some."""
    for name in ("SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE"):
        monkeypatch.delenv(name, raising=False)


def test_a_java_that_ends_is_an_error(tmp_path: Path) -> None:
    from pyspark.errors import PySparkRuntimeError

    with pytest.raises(PySparkRuntimeError, match="JAVA_GATEWAY_EXITED"):
        JavaProcess([sys.executable, "-c", ""], {}, None).gateway()


def test_a_java_that_nobody_needs_ends(monkeypatch: pytest.MonkeyPatch, clean: None) -> None:
    begun: list[subprocess.Popen[bytes]] = []
    real = subprocess.Popen

    def sleeping(_: object, **options: object) -> subprocess.Popen[bytes]:
        begun.append(real([sys.executable, "-c", "input()"], **options))  # type: ignore[call-overload]
        return begun[0]

    monkeypatch.setattr(subprocess, "Popen", sleeping)
    monkeypatch.setattr(spark_session, "has_gateway", lambda: False)
    monkeypatch.setenv(spark_session.CLASS_ARCHIVE, "never")
    with spark_session.java_starts(2):
        (process,) = begun
        assert process.poll() is None
    assert process.poll() is not None


RUN_TWICE = """
from pathlib import Path
from pyspark.sql import SparkSession
from spaseq.runtime.spark import bounded
from spaseq.runtime.spark.session.spark_session import session
from tests.runtime.machines import job_of

def run():
    return len(list(bounded.run(job_of([Path("north.nq"), Path("south.nq")]))))

print(run(), SparkSession.getActiveSession())
print(run(), session().range(3).count(), session().conf.get("spark.sql.shuffle.partitions"))
"""


@pytest.mark.spark
@pytest.mark.slow
def test_a_run_needs_no_session_and_one_can_follow(tmp_path: Path) -> None:
    from tests.runtime.machines import NORTH, SOUTH, nquads

    (tmp_path / "north.nq").write_text(nquads(NORTH, "n"))
    (tmp_path / "south.nq").write_text(nquads(SOUTH, "s"))
    checkout = str(Path(__file__).resolve().parents[4])
    done = subprocess.run(
        [sys.executable, "-c", RUN_TWICE],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": checkout, "SPASEQ_CLASS_ARCHIVE": "never"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.stdout.splitlines() == ["9 None", f"9 3 {os.cpu_count()}"], done.stderr


@pytest.mark.parametrize(
    ("master", "cores"),
    [
        (None, os.cpu_count()),
        ("local[*]", os.cpu_count()),
        ("local", 1),
        ("local[3]", 3),
        ("local[3,1]", None),
        ("local[0]", None),
        ("local-cluster[1,1,1024]", None),
        ("spark://localhost:7077", None),
    ],
)
def test_masters_of_this_machine_start_a_session_of_our_own(
    master: str | None, cores: int | None
) -> None:
    assert spark_session.local_cores(master) == cores
