"""A bounded run on a standalone cluster: the package and the KB travel with the application."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from spaseq.runtime.spark.session.spark_session import package_archive
from tests.runtime.spark.session.cluster import standalone_cluster

pytestmark = pytest.mark.spark(apart=True)

TRAFFIC = Path(__file__).parents[4] / "streams" / "traffic"


def run(directory: Path, *options: str) -> str:
    """The output of the worked example."""
    streams = [f"--stream=S{n}={TRAFFIC}/sensor-{n}.nq" for n in (1, 2, 3, 4)]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "spaseq", "run", str(TRAFFIC / "query.rq"), *streams),
            *("--kb", str(TRAFFIC / "kb.ttl"), *options),
        ],
        cwd=directory,
        stdout=subprocess.PIPE,
        check=True,
    )
    return done.stdout.decode()


@pytest.mark.thorough
def test_a_cluster_answers_as_this_process_and_compiles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cluster's machines lack the package: they receive it with its compiled kernels."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    expected = run(tmp_path, "--runtime", "local")
    assert expected
    _, digest = package_archive(tmp_path)
    with standalone_cluster(tmp_path) as cluster:
        assert run(tmp_path, "--master", cluster.url) == expected
    assert (temporary / f"spaseq-{os.getuid()}" / digest / "spaseq").is_dir()
    said = [log.read_text("utf-8") for log in tmp_path.glob("worker-*/app-*/*/stderr")]
    assert said
    assert not [text for text in said if "compiling kernels" in text]
