"""Starts a quiet Spark session, local or on a cluster, with the Java that the machine has."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import site
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any

from spaseq.compiled.cache import user_cache
from spaseq.compiled.mode import interpreted
from spaseq.compiled.warming import compile_all, compiled
from spaseq.errors import RunError, SpaseqError
from spaseq.records import record
from spaseq.runtime.spark.session import KERNELS_NAME, SHIPPED
from spaseq.runtime.spark.session.class_archive import ClassArchive, name_of
from spaseq.runtime.spark.session.java_process import (
    JavaProcess,
    command,
    environment,
    needs_no_launcher,
    spark_home,
)
from spaseq.runtime.spark.session.java_runtime import find_java, java_home
from spaseq.scratch import ScratchDirectory
from spaseq.storage.directories import private_directory

PACKAGE = Path(__file__).absolute().parents[3]

CLASS_ARCHIVE = "SPASEQ_CLASS_ARCHIVE"
"""The environment variable that turns the archive of Spark's classes off by the value "never"."""

ARCHIVE_NAME = "spaseq-package"
"""The directory of the unpacked archive on an executor."""


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
        cores: threads of a local session. By default the number in `master`, else one for each
            core.
        master: a cluster's URL; its executors get this package with the application. A local
            session if not given, or if it is `local`, `local[2]` or `local[*]`.
        config: Spark settings that add to, or replace, this module's settings.
        verbose: let Spark and its workers write to stderr; otherwise that text goes to a temporary
            file, and is shown only if Spark fails to start.

    Raises:
        RunError: there is no usable Java, or Spark does not start.
    """
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    warm_kernels()
    running = running_session()
    if running is not None:
        return running
    threads = cores or local_cores(master)
    master_settings = cluster_settings(str(master)) if threads is None else _local(threads)
    settings = {**_SETTINGS, **master_settings, **(config or {})}
    if _begun and threads is not None and not (config or verbose):
        _context(_begun.pop())
    else:
        plain = threads is not None and not any(name.startswith(_FOR_JAVA) for name in config or {})
        _context(_Start("sessions" if plain else None, settings, verbose))
    spark = _session_here()
    if threads is None and "spark.sql.shuffle.partitions" not in (config or {}):
        spark.conf.set("spark.sql.shuffle.partitions", spark.sparkContext.defaultParallelism)
    return spark


def local_cores(master: str | None) -> int | None:
    """Threads of the local session that a master's URL names; None if it names a cluster.

    Spark's other forms of local masters are treated like a cluster's URL.

    >>> local_cores("local"), local_cores("local[2]"), local_cores("spark://host:7077")
    (1, 2, None)
    """
    if master is None or master == "local[*]":
        return os.cpu_count() or 1
    if master == "local":
        return 1
    match = re.fullmatch(r"local\[([1-9][0-9]*)\]", master)
    return None if match is None else int(match[1])


class _Start:
    """A new context before it exists; its Java starts at once, if it needs no launcher.

    Args:
        use: names the archive of classes for Java; without it, Java has none, and Spark's launcher
            starts it.
        settings: Spark's settings.
        verbose: as in `session`.
    """

    def __init__(self, use: str | None, settings: Mapping[str, str], verbose: bool) -> None:
        self.archive = None if use is None else _class_archive(use)
        self.settings, self.verbose = settings, verbose
        self.log = None if verbose else tempfile.TemporaryFile("w+b")  # noqa: SIM115 - `_context`
        self.java: JavaProcess | None = None
        options = [] if self.archive is None else self.archive.options()
        if options:
            quoted = (f'"{option}"' for option in options)
            self.settings = {
                **settings,
                _JAVA_OPTIONS: " ".join([settings[_JAVA_OPTIONS], *quoted]),
            }
        if use is not None and not has_gateway() and needs_no_launcher():
            options = [*_SETTINGS[_JAVA_OPTIONS].split(), *options]
            java = command(find_java().executable, spark_home(), self.settings, options)
            self.java = JavaProcess(java, _worker_variables(), self.log)

    def end(self) -> None:
        """End Java, which was not needed."""
        if self.java is not None:
            self.java.end()
        if self.archive is not None:
            self.archive.forget()


@record
class TasksOnly:
    """Stands for a session where only tasks run."""

    sparkContext: Any


def tasks_only(cores: int, *, verbose: bool = False) -> TasksOnly:
    """The context of the process; a new local one has no session, which would take Java a second.

    Args:
        cores: threads of a new one.
        verbose: as in `session`.

    Raises:
        RunError: as `session`.
    """
    from pyspark import SparkContext

    warm_kernels()
    context = SparkContext._active_spark_context
    if context is None:
        context = _context(_begun.pop() if _begun else _tasks_start(cores, verbose))
    return TasksOnly(context)


@contextmanager
def java_starts(cores: int) -> Iterator[None]:
    """Start Java for `tasks_only` during this context, if that is possible alone.

    Args:
        cores: as for `tasks_only`.
    """
    if not (_begun or has_gateway()) and needs_no_launcher():
        _begun.append(_tasks_start(cores, verbose=False))
    try:
        yield
    finally:
        if _begun:
            _begun.pop().end()


_begun: list[_Start] = []
"""The start of `java_starts`, until a context takes it."""


def _tasks_start(cores: int, verbose: bool) -> _Start:
    return _Start("tasks", {**_SETTINGS, **_local(cores)}, verbose)


def _class_archive(use: str) -> ClassArchive | None:
    """The archive of this machine's Java and Spark for a use, if possible."""
    users = user_cache()
    if users is None or os.environ.get(CLASS_ARCHIVE) == "never" or has_gateway():
        return None
    java = find_java().executable
    try:
        name = name_of(java, (spark_home() / "jars").glob("*.jar"))
        directory = private_directory(users / "spaseq" / "spark", 2)
        return ClassArchive(directory, java, f"{use}-{name}")
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

    return None if SparkContext._active_spark_context is None else _session_here()


def _session_here() -> Any:
    """The session of the context that runs, which may have none yet."""
    from pyspark.sql import SparkSession

    # Another thread than the one that started the session has no active session.
    return SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()


DAEMON = "spaseq.runtime.spark.session.daemon"
"""The module from which the sessions of this package fork their workers."""

_JAVA_OPTIONS = "spark.driver.extraJavaOptions"

_FOR_JAVA = ("spark.driver.extra", "spark.driver.default")
"""Settings with these prefixes change the command of Java."""

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
        _CHECKPOINTS: _LOCAL_CHECKPOINTS,
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

_CHECKPOINTS = "spark.sql.streaming.checkpointFileManagerClass"

# Spark's default starts several processes for every renamed file on a local disk.
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


def _context(start: _Start) -> Any:
    """A new context."""
    from pyspark import SparkConf, SparkContext

    with start.log or nullcontext():
        try:
            conf = SparkConf().setAll(list(start.settings.items()))
            with java_gateway(conf, start.log, start.java) as gateway:
                context = SparkContext(conf=conf, gateway=gateway)
        except SpaseqError:
            raise
        except Exception as error:
            raise RunError(f"Spark does not start: {error}{_tail(start.log)}") from error
    if start.archive is not None:
        _make_at_exit(start.archive, context)
    if _CHECKPOINTS in start.settings:
        _without_checksum_files(context)
    context.setLogLevel("WARN" if start.verbose else "OFF")
    return context


@contextmanager
def java_gateway(
    conf: Any, log: IO[bytes] | None = None, java: JavaProcess | None = None
) -> Iterator[Any]:
    """The process's Java for Spark, started if necessary; a context started within uses this
    Python.

    The workers run the Python of PYSPARK_PYTHON, if it is set. `java` is starting.
    """
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    changes = _worker_variables()
    with ExitStack() as stack:
        if java is None and not has_gateway():
            changes |= stack.enter_context(java_home(find_java()))
        stack.enter_context(environment(changes))
        streams = {} if log is None else {"stdout": log, "stderr": log}
        if java is None:
            yield SparkContext._gateway or launch_gateway(conf, streams)
        else:
            yield java.gateway()


def has_gateway() -> bool:
    """Whether this process has a Java for Spark, from an earlier session or `spark-submit`."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        return True
    spark = sys.modules.get("pyspark")
    return spark is not None and spark.SparkContext._gateway is not None


def _tail(log: IO[bytes] | None) -> str:
    if log is None:
        return ""
    log.seek(0)
    text = log.read().decode("utf-8", "replace").strip()
    return f"\n{text[-_TAIL:]}" if text else ""


def _worker_variables() -> dict[str, str]:
    """Variables for every Python that Spark starts: with `sitecustomize`, and `package_roots`."""
    paths = [
        str(_PYTHON_START),
        *package_roots(),
        *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)),
    ]
    return {
        "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable),
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)),
    }


def package_roots() -> list[str]:
    """The directories that another process of this Python interpreter needs on its path.

    There are none if the package is installed: its directory, in front of the standard library,
    could hide modules.
    """
    root = str(PACKAGE.parent)
    installed = {*site.getsitepackages(), site.getusersitepackages()}
    return [] if root in installed else [root]


def warm_kernels() -> None:
    """Compile the kernels before workers start, unless kernels are interpreted."""
    if not interpreted():
        compile_all()
