"""An archive of Spark's classes (class data sharing, JEP 310), which halves the start of its Java.

Until the first task has run, Java reads, checks and links some 15,000 classes of 250 files. With an
archive it maps them into memory instead. Java makes an archive from a list of classes and a class
path. It uses the archive while its version, the class path and the files stay the same. So a local
session without an archive lists its classes. When it has ended, a process of low priority makes the
archive. That takes some 20 seconds of processor time, and 130 to 190 MB in the user's cache
directory. `SPASEQ_CLASS_ARCHIVE=never` in the environment turns it off.

  python class_archive.py PLAN

makes an archive. The file imports nothing of this package, so that it can run by itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from pathlib import Path

OLDEST_LIST_S = 600
"""Seconds without growth after which a list is taken for the remains of a killed process."""

UNUSED_S = 30 * 24 * 3600
"""Time without use after which the next archive replaces an archive."""

TASK_CLASS = "org/apache/spark/api/python/PythonRunner"
"""A list without this class is of a session that ran no task: too small for an archive."""

_WAIT_S = 60
"""Maximum time in which the Java that lists its classes ends."""


class ClassArchive:
    """The archive of one Java and one class path, which may not exist yet.

    Args:
        directory: the directory of archives; only this user can write to it.
        java: the Java's executable.
        name: identifies this Java and the files of its class path.

    Attributes:
        lists: whether a Java with these options lists its classes, so that the archive can be made.
    """

    def __init__(self, directory: Path, java: Path, name: str) -> None:
        self._java = java
        self.file = directory / f"classes-{name}.jsa"
        self._list = directory / f"classes-{name}.list"
        self.lists = False

    def options(self) -> list[str]:
        """Java options that use the archive, or that list the classes for it.

        One process at a time lists classes: the others start without an archive.
        """
        try:
            os.utime(self.file)
        except FileNotFoundError:
            self.lists = self._begin_list()
            return [f"-XX:DumpLoadedClassList={self._list}"] if self.lists else []
        # A Java that cannot use the archive after all starts without it, silently.
        return [f"-XX:SharedArchiveFile={self.file}", "-Xlog:disable"]

    def _begin_list(self) -> bool:
        try:
            if time.time() - self._list.stat().st_mtime > OLDEST_LIST_S:
                self._list.unlink()
        except FileNotFoundError:
            pass
        try:
            self._list.touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def forget(self) -> None:
        """Cancel the listing of classes."""
        if self.lists:
            self._list.unlink(missing_ok=True)

    def make(self, class_path: str, process: int) -> None:
        """Make the archive from the classes that a Java lists, as soon as it ends.

        Args:
            class_path: the Java's whole class path.
            process: the number of the Java's process.
        """
        plan = [str(self._java), str(self._list), str(self.file), class_path, process]
        subprocess.Popen(
            [sys.executable, "-I", str(Path(__file__).absolute()), json.dumps(plan)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )


def name_of(java: Path, jars: Iterable[Path]) -> str:
    """A name for an archive: it changes with the Java and with any of the files."""
    digest = blake2b(digest_size=8)
    for file in (java, *sorted(jars)):
        facts = file.stat()
        digest.update(f"{file} {facts.st_size} {facts.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def made(java: str, listed: str, archive: str, class_path: str, process: int) -> bool:
    """Make an archive after a process has ended; return whether that succeeded and is of use."""
    end = time.monotonic() + _WAIT_S
    while _is_alive(process):
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    if TASK_CLASS not in Path(listed).read_text("utf-8", "replace"):
        return False
    unfinished = f"{archive}.{os.getpid()}"
    options = [
        "-Xshare:dump",
        "-XX:+UseSerialGC",
        f"-XX:SharedClassListFile={listed}",
        f"-XX:SharedArchiveFile={unfinished}",
        "-Xlog:disable",
    ]
    try:
        done = subprocess.run([java, *options, "-cp", class_path], check=False)
        if done.returncode:
            return False
        os.replace(unfinished, archive)
        _remove_unused(Path(archive))
        return True
    finally:
        Path(unfinished).unlink(missing_ok=True)


def _remove_unused(archive: Path) -> None:
    for other in archive.parent.glob("classes-*.jsa"):
        if time.time() - other.stat().st_mtime > UNUSED_S:
            other.unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except OSError:
        return False
    return True


def main(arguments: Sequence[str]) -> int:
    """Make the archive that the only argument, JSON, describes."""
    java, listed, archive, class_path, process = json.loads(arguments[0])
    if hasattr(os, "nice"):
        os.nice(19)
    try:
        return 0 if made(java, listed, archive, class_path, process) else 1
    finally:
        Path(listed).unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
