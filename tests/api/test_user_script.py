"""A user's program that has every public name runs, and passes `mypy --strict`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import spaseq

SCRIPT = Path(__file__).with_name("user_script.py")
PACKAGE = Path(spaseq.__file__).parents[1]

pytestmark = pytest.mark.thorough


def run(*arguments: str, place: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE)}
    return subprocess.run(
        [sys.executable, *arguments], cwd=place, env=environment, capture_output=True, text=True
    )


def test_it_has_every_public_name() -> None:
    text = SCRIPT.read_text("utf-8")
    names = [*spaseq.__all__, *(f"spark.{name}" for name in spaseq.spark.__all__)]
    assert [name for name in names if f"spaseq.{name}" not in text] == []


def test_it_runs(tmp_path: Path) -> None:
    done = run(str(SCRIPT), place=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "RuntimeWarning" not in done.stderr


def test_its_types_are_right(tmp_path: Path) -> None:
    """The copy lies outside the checkout, so the project's settings do not count."""
    copy = tmp_path / "user_script.py"
    copy.write_text(SCRIPT.read_text("utf-8"))
    done = run("-m", "mypy", "--strict", "--cache-dir", ".types", copy.name, place=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_wrong_types_are_found(tmp_path: Path) -> None:
    """So the types are not all Any."""
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "import spaseq\n"
        "spaseq.run('', {'S': 5})\n"
        "spaseq.Engine('').push('S', '', 1.5)\n"
        "number: int = next(spaseq.run('', {}))\n"
        "spaseq.run('', {}, thread=1)\n"
        "spaseq.spark.session(5)\n"
        "spaseq.spark.answers(spaseq.spark.session(), '', {}, side=True)\n"
    )
    done = run("-m", "mypy", "--strict", "--cache-dir", ".types", wrong.name, place=tmp_path)
    lines = {line.split(":")[1] for line in done.stdout.splitlines() if ": error:" in line}
    assert lines == {"2", "3", "4", "5", "6", "7"}, done.stdout
