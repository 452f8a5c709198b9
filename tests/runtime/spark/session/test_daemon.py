"""The lasting copy of a package that came with an application, on an executor."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from spaseq.runtime.spark.session import SHIPPED, daemon
from spaseq.storage.directories import NotPrivate


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of temporary files, which everybody can write to."""
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp").chmod(0o1777)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    package = tmp_path / "spaseq"
    package.mkdir()
    (package / "__init__.py").write_text("")
    monkeypatch.setattr(daemon, "_PACKAGE", package)
    return tmp_path / "tmp"


def test_the_copy_is_made_once_and_for_its_owner_alone(temporary: Path) -> None:
    place = daemon.lasting_copy("d1")
    assert place == temporary / f"spaseq-{os.getuid()}" / "d1"
    assert (place / "spaseq" / "__init__.py").exists()
    assert {p.stat().st_mode & 0o777 for p in (place, place.parent)} == {0o700}
    (place / "mark").touch()
    assert (daemon.lasting_copy("d1") / "mark").exists()
    assert [p.name for p in place.parent.iterdir()] == ["d1"]


def test_the_directory_of_somebody_else_is_not_used(temporary: Path) -> None:
    """They would choose the code that runs."""
    own = temporary / f"spaseq-{os.getuid()}"
    (own / "d1" / "spaseq").mkdir(parents=True)
    for above, inner in ((0o777, 0o700), (0o700, 0o770)):
        (own / "d1").chmod(inner)
        own.chmod(above)
        with pytest.raises(NotPrivate, match="can be written by other users"):
            daemon.lasting_copy("d1")
    own.rename(temporary / "elsewhere")
    (temporary / "elsewhere" / "d1").chmod(0o700)
    own.symlink_to(temporary / "elsewhere")
    with pytest.raises(NotPrivate, match="is a link"):
        daemon.lasting_copy("d1")


def test_a_planted_package_does_not_run_and_the_daemon_goes_on(tmp_path: Path) -> None:
    planted = tmp_path / f"spaseq-{os.getuid()}" / "d1" / "spaseq"
    planted.mkdir(parents=True)
    (planted / "__init__.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    (tmp_path / f"spaseq-{os.getuid()}").chmod(0o777)
    code = "import sys; from spaseq.runtime.spark.session import daemon; daemon._settle('d1')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"TMPDIR": str(tmp_path), SHIPPED: "d1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "the package is not kept there" in done.stderr
    assert not (tmp_path / "ran").exists()
