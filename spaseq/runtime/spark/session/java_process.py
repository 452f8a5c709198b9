"""The Java of a local session, started directly instead of by Spark's launcher.

`spark-submit` starts a Java that only prints the command of the second one, which takes half a
second where the Java has no archive of its classes. Without configuration for `spark-submit`, the
command is known.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

KNOWN_SPARK = "4.3."
"""The version of Spark whose command this module knows."""

_CONFIGURED = ("SPARK_", "PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY", "HADOOP_CONF", "YARN_CONF")
"""Environment variables with these prefixes configure Spark or its launcher."""

_OPENED = (
    *(f"java.base/java.{name}" for name in ("lang", "lang.invoke", "lang.reflect", "io", "net")),
    *(f"java.base/java.{name}" for name in ("nio", "util", "util.concurrent")),
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.ref",
    *(f"java.base/sun.{name}" for name in ("nio.ch", "nio.cs", "security.action", "util.calendar")),
    "java.security.jgss/sun.security.krb5",
)

OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED),
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
    "-Dderby.connection.requireAuthentication=false",
)
"""Options that Spark's launcher adds to every command, without a module that few Javas have."""

_ADDRESS_VARIABLE = "_PYSPARK_DRIVER_CONN_INFO_PATH"
"""The environment variable with the file in which Java reports its port."""

_POLL_S = 0.005


def spark_home() -> Path:
    """The directory of Spark: SPARK_HOME, or the installed one, found without importing it."""
    if "SPARK_HOME" in os.environ:
        return Path(os.environ["SPARK_HOME"])
    spec = find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent


def needs_no_launcher() -> bool:
    """Whether Java's command is known: no configuration for Spark's launcher exists."""
    return (
        os.name == "posix"
        and version("pyspark").startswith(KNOWN_SPARK)
        and not any(name.startswith(_CONFIGURED) for name in os.environ)
        and not (spark_home() / "conf").exists()
    )


def command(
    java: Path, home: Path, settings: Mapping[str, str], options: Sequence[str]
) -> list[str]:
    """The command that Spark's launcher would make from some settings.

    Args:
        java: the executable.
        home: Spark's directory.
        settings: Spark's settings, with the driver's memory.
        options: the driver's Java options, which are one text in the settings.
    """
    jars = home / "jars"
    first = sorted(map(str, jars.glob("slf4j-api-*.jar")))
    path = [str(home / "conf"), *first, f"{jars}/*"]
    given = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    return [
        str(java),
        "-cp",
        os.pathsep.join(path),
        f"-Xmx{settings['spark.driver.memory']}",
        *options,
        *OPTIONS,
        "org.apache.spark.deploy.SparkSubmit",
        *given,
        "pyspark-shell",
    ]


class JavaProcess:
    """A Java that begins to run; it ends with this process, or by `end`.

    Args:
        command: the whole command.
        variables: the environment variables that differ from this process.
        log: gets Java's output; this process's streams if not given.
    """

    def __init__(
        self, command: Sequence[str], variables: Mapping[str, str], log: IO[bytes] | None
    ) -> None:
        self._place = Path(tempfile.mkdtemp(prefix="spaseq-java-"))
        self._address = self._place / "address"
        fixed = {"SPARK_CONNECT_MODE": "0", "PYTHONHASHSEED": "0", "SPARK_HOME": str(spark_home())}
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,  # Java ends when this is closed
            stdout=log,
            stderr=log,
            env={**os.environ, **variables, **fixed, _ADDRESS_VARIABLE: str(self._address)},
            preexec_fn=_ignore_signals,
        )

    def gateway(self) -> Any:
        """PySpark's connection to this Java, as soon as it listens.

        Raises:
            PySparkRuntimeError: Java has ended.
        """
        from pyspark.errors import PySparkRuntimeError
        from pyspark.java_gateway import launch_gateway

        try:
            while not self._address.exists():
                if self._process.poll() is not None:
                    raise PySparkRuntimeError(
                        errorClass="JAVA_GATEWAY_EXITED", messageParameters={}
                    )
                time.sleep(_POLL_S)
            address = self._address.read_bytes()  # the port; the length of the secret; the secret
        finally:
            shutil.rmtree(self._place, ignore_errors=True)
        port, secret = str(int.from_bytes(address[:4], "big")), address[8:].decode()
        with environment({"PYSPARK_GATEWAY_PORT": port, "PYSPARK_GATEWAY_SECRET": secret}):
            gateway = launch_gateway()
        gateway.proc = self._process
        return gateway

    def end(self) -> None:
        """End a Java that no session uses."""
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._place, ignore_errors=True)


def _ignore_signals() -> None:
    """Leave the end to this process: a terminal, or a service manager, signals the whole group."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def environment(changes: Mapping[str, str]) -> Iterator[None]:
    """Environment variables of this process, within the context."""
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
