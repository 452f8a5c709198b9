"""A bounded run on a standalone cluster: the package and the KB travel with the application."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from spaseq.runtime.shipping import package_archive
from tests.runtime.cluster import standalone_cluster

pytestmark = pytest.mark.spark

TRAFFIC = Path(__file__).parents[2] / "streams" / "traffic"


def run(directory: Path, *options: str) -> str:
    """What the worked example answers."""
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


def test_a_cluster_answers_as_this_process(tmp_path: Path) -> None:
    expected = run(tmp_path, "--runtime", "local")
    assert expected
    _, digest = package_archive(tmp_path)
    with standalone_cluster(tmp_path) as cluster:
        assert run(tmp_path, "--master", cluster.url) == expected
    assert Path(tempfile.gettempdir(), f"spaseq-{os.getuid()}", digest, "spaseq").is_dir()
