"""The archive of Spark's classes: who lists them, who makes it, who uses it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from spaseq.runtime.spark.session import class_archive
from spaseq.runtime.spark.session.class_archive import ClassArchive, made, name_of

ENDED = 2**22 + 1  # no process has this number


def archive(directory: Path) -> ClassArchive:
    return ClassArchive(directory, Path("java"), "x")


def test_one_process_at_a_time_lists_classes(tmp_path: Path) -> None:
    first, second = archive(tmp_path), archive(tmp_path)
    assert first.options() == [f"-XX:DumpLoadedClassList={tmp_path / 'classes-x.list'}"]
    assert second.options() == []
    assert (first.lists, second.lists) == (True, False)


def test_a_list_of_a_killed_process_is_made_anew(tmp_path: Path) -> None:
    archive(tmp_path).options()
    long_ago = time.time() - class_archive.OLDEST_LIST_S - 1
    os.utime(tmp_path / "classes-x.list", (long_ago, long_ago))
    assert archive(tmp_path).options()


def test_a_list_that_is_not_needed_after_all_is_for_another_process(tmp_path: Path) -> None:
    first, second = archive(tmp_path), archive(tmp_path)
    first.options()
    second.options()
    second.forget()
    assert (tmp_path / "classes-x.list").exists()
    first.forget()
    assert archive(tmp_path).options()


def test_an_archive_is_used_and_known_to_be(tmp_path: Path) -> None:
    file = tmp_path / "classes-x.jsa"
    file.touch()
    os.utime(file, (1, 1))
    found = archive(tmp_path)
    assert found.options()[0] == f"-XX:SharedArchiveFile={file}"
    assert not found.lists
    assert file.stat().st_mtime > time.time() - 60


def java_that_copies_the_list(directory: Path) -> Path:
    java = directory / "java"
    java.write_text(
        "#!/bin/sh\n"
        'for a; do case "$a" in -XX:SharedClassListFile=*) l="${a#*=}";; '
        '-XX:SharedArchiveFile=*) f="${a#*=}";; esac; done\ncp "$l" "$f"\n'
    )
    java.chmod(0o755)
    return java


def test_an_archive_appears_whole_and_unused_ones_go(tmp_path: Path) -> None:
    java, listed = java_that_copies_the_list(tmp_path), tmp_path / "classes-x.list"
    listed.write_text(class_archive.TASK_CLASS)
    used, unused = tmp_path / "classes-used.jsa", tmp_path / "classes-unused.jsa"
    used.touch()
    unused.touch()
    long_ago = time.time() - class_archive.UNUSED_S - 1
    os.utime(unused, (long_ago, long_ago))
    assert made(str(java), str(listed), str(tmp_path / "classes-x.jsa"), "jars", ENDED)
    names = {path.name for path in tmp_path.glob("*.jsa*")}
    assert names == {"classes-x.jsa", "classes-used.jsa"}


def test_a_session_without_a_task_makes_none(tmp_path: Path) -> None:
    java, listed = java_that_copies_the_list(tmp_path), tmp_path / "classes-x.list"
    listed.write_text("java/lang/Object\n")
    assert not made(str(java), str(listed), str(tmp_path / "classes-x.jsa"), "jars", ENDED)
    assert not [*tmp_path.glob("*.jsa*")]


def test_a_java_that_fails_leaves_nothing(tmp_path: Path) -> None:
    java, listed = tmp_path / "java", tmp_path / "classes-x.list"
    java.write_text("#!/bin/sh\nexit 1\n")
    java.chmod(0o755)
    listed.write_text(class_archive.TASK_CLASS)
    assert not made(str(java), str(listed), str(tmp_path / "classes-x.jsa"), "jars", ENDED)
    assert not [*tmp_path.glob("*.jsa*")]


def test_another_version_of_a_file_needs_another_archive(tmp_path: Path) -> None:
    java, jar = tmp_path / "java", tmp_path / "spark.jar"
    java.touch()
    jar.write_text("1")
    name = name_of(java, [jar])
    assert name_of(java, [jar]) == name
    jar.write_text("22")
    assert name_of(java, [jar]) != name


SESSION = """
import sys
from pathlib import Path
from spaseq.runtime.spark.session.spark_session import session

spark = session(1)
assert spark.sparkContext.parallelize([1, 2]).map(lambda n: n + 1).sum() == 5
maps = Path(f"/proc/{spark.sparkContext._gateway.proc.pid}/maps").read_text()
print("classes-" in maps and ".jsa" in maps)
"""


@pytest.mark.thorough
@pytest.mark.spark(apart=True)
@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc")
def test_the_second_session_maps_the_archive_of_the_first(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    environment.pop("SPASEQ_CLASS_ARCHIVE", None)

    def maps_an_archive(**more: str) -> bool:
        done = subprocess.run(
            [sys.executable, "-c", SESSION],
            env={**environment, **more},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.split()[-1] == "True"

    assert not maps_an_archive(SPASEQ_CLASS_ARCHIVE="never")
    assert not (tmp_path / "spaseq" / "spark").exists()
    assert not maps_an_archive()
    end = time.monotonic() + 300
    while not [*tmp_path.glob("spaseq/spark/*.jsa")] and time.monotonic() < end:
        time.sleep(0.5)
    assert maps_an_archive()
