"""The archive of the package that travels to a cluster."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import pytest

from spaseq.runtime.spark.session import spark_session


def test_the_archive_holds_modules_and_compiled_kernels_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkout and an installation of it have one digest, so that executors know the package."""
    checkout, installed = tmp_path / "checkout" / "spaseq", tmp_path / "installed" / "spaseq"
    shutil.copytree(spark_session.PACKAGE, checkout, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(checkout, installed, ignore=shutil.ignore_patterns("*.md", "py.typed"))
    assert list(checkout.rglob("README.md"))
    digests = []
    for number, place in enumerate((checkout, installed)):
        directory = tmp_path / str(number)
        directory.mkdir()
        monkeypatch.setattr(spark_session, "PACKAGE", place)
        archive, digest = spark_session.package_archive(directory)
        digests.append(digest)
        names = zipfile.ZipFile(archive).namelist()
        assert "spaseq/runtime/spark/session/daemon.py" in names
        assert "spaseq/runtime/spark/session/python_start/sitecustomize.py" in names
        assert {Path(name).suffix for name in names} <= {".py", ".nbi", ".nbc"}
    assert digests[0] == digests[1]
