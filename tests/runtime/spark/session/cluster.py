"""A standalone Spark cluster on the loopback interface: a master and workers, each a process."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from spaseq.runtime.spark.session.java_runtime import find_java, java_home

JARS = Path(pyspark.__file__).parent / "jars"
_START_SECONDS = 60


@dataclass
class Cluster:
    """A cluster's address and processes."""

    url: str
    directory: Path
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def executors(self) -> list[int]:
        """The ids of the processes that run tasks."""
        return sorted(self._descendants("CoarseGrainedExecutorBackend"))

    def pythons(self) -> list[int]:
        """The ids of executors' Python processes: daemons and workers."""
        return sorted(self._pythons())

    def daemons(self) -> list[int]:
        """The ids of the processes from which Python workers are forked."""
        found = self._pythons()
        return sorted(pid for pid, parent in found.items() if parent not in found)

    def python_workers(self) -> list[int]:
        """The ids of the Python processes that take part in tasks."""
        found = self._pythons()
        return sorted(pid for pid, parent in found.items() if parent in found)

    def _pythons(self) -> dict[int, int]:
        return self._descendants("spaseq.runtime.spark.session.daemon")

    def _descendants(self, what: str) -> dict[int, int]:
        """The processes below the cluster's workers with a text in their command: id to parent."""
        found: dict[int, int] = {}
        waiting = [(worker.pid, 0) for worker in self.workers]
        children: dict[int, list[int]] = {}
        for process in Path("/proc").iterdir():
            if process.name.isdigit():
                try:
                    above = (process / "stat").read_text().rsplit(")", 1)[1].split()[1]
                except OSError:
                    continue
                children.setdefault(int(above), []).append(int(process.name))
        while waiting:
            pid, parent = waiting.pop()
            waiting += [(child, pid) for child in children.get(pid, [])]
            try:
                command = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if what in command:
                found[pid] = parent
        return found


@contextmanager
def standalone_cluster(directory: Path, workers: int = 2, cores: int = 1) -> Iterator[Cluster]:
    """A master and workers, which end with the context. Their files are in `directory`."""
    with ExitStack() as stack:
        environment = {**os.environ, **stack.enter_context(java_home(find_java()))}
        # Spark's scripts would set these variables.
        environment |= {"SPARK_HOME": str(JARS.parent), "SPARK_SCALA_VERSION": "2.13"}
        base = [f"{environment['JAVA_HOME']}/bin/java", "-cp", f"{JARS}/*"]

        def start(name: str, *arguments: str, memory: str) -> subprocess.Popen[bytes]:
            log = stack.enter_context((directory / f"{name}.log").open("wb"))
            process = subprocess.Popen(
                [*base, f"-Xmx{memory}", "-XX:+UseSerialGC", *arguments],
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=directory,
                start_new_session=True,
            )
            stack.callback(_end, process)
            return process

        deploy = "org.apache.spark.deploy"
        start(
            "master",
            f"{deploy}.master.Master",
            "--host",
            "127.0.0.1",
            "--port",
            "0",
            "--webui-port",
            "0",
            memory="512m",
        )
        cluster = Cluster(
            _said(directory / "master.log", r"Starting Spark master at (\S+)"), directory
        )
        for number in range(workers):
            name = f"worker-{number}"
            cluster.workers.append(
                start(
                    name,
                    f"{deploy}.worker.Worker",
                    cluster.url,
                    "--host",
                    "127.0.0.1",
                    "--cores",
                    str(cores),
                    "--memory",
                    "1500m",
                    "--webui-port",
                    "0",
                    "--work-dir",
                    str(directory / name),
                    memory="512m",
                )
            )
        for number in range(workers):
            _said(directory / f"worker-{number}.log", r"(Successfully registered) with master")
        yield cluster


def _said(log: Path, pattern: str) -> str:
    """Wait for a pattern in a process's log, and return the match."""
    for _ in range(_START_SECONDS * 10):
        found = re.search(pattern, log.read_text(errors="replace"))
        if found:
            return found[1]
        time.sleep(0.1)
    raise TimeoutError(f"{log.name}: {log.read_text(errors='replace')[-2000:]}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and its children."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
