"""A PostgreSQL server on loopback, as a test needs it."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.connectors.nats_server import free_port

PASSWORD = "se:cret"


def program(name: str) -> str:
    """The path of one of the server's programs; skips the test if it is missing."""
    found = shutil.which(name)
    for directory in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):
        found = found or shutil.which(str(directory / name))
    if found is None:
        pytest.skip(f"{name} is missing: apt-get install postgresql")
    pytest.importorskip("asyncpg", reason="asyncpg is missing: pip install '.[postgres]'")
    return found


class PostgresqlServer:
    """A server with the database `road` and the user `me`, which can be killed and started."""

    def __init__(self, settings: str = "") -> None:
        """The server refuses to run as root, so root runs it as somebody else."""
        self._postgres, initdb = program("postgres"), program("initdb")
        self._user = _ordinary_user() if os.getuid() == 0 else None
        self.directory = Path(tempfile.mkdtemp(prefix="postgresql"))
        self._data, self.port = self.directory / "data", free_port()
        password = self.directory / "password"
        password.write_text(PASSWORD)
        if self._user is not None:
            shutil.chown(self.directory, self._user)
        password.chmod(0o644)
        command = [initdb, "-D", str(self._data), "-U", "me", "--pwfile", str(password)]
        command += ["-A", "scram-sha-256", "-E", "UTF8", "--no-sync"]
        subprocess.run(command, check=True, user=self._user, capture_output=True)
        with (self._data / "postgresql.conf").open("a") as file:
            file.write(
                f"port = {self.port}\nlisten_addresses = '127.0.0.1'\nfsync = off\n"
                f"unix_socket_directories = '{self.directory}'\n{settings}\n"
            )
        self.start()
        self.ask("create database road", database="postgres")

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def url(self, rest: str, password: str = PASSWORD) -> str:
        return f"postgresql://me:{password.replace(':', '%3A')}@{self.host}/{rest}"

    def start(self) -> None:
        """Start the server, again if parts of a killed one are still there."""
        self._launch()
        end = time.monotonic() + 30
        while time.monotonic() < end:
            if self._process.poll() is not None:
                self._launch()
            try:
                self.ask("select 1", database="postgres")
                return
            except OSError:
                time.sleep(0.05)
            except Exception as error:  # the server says that it starts, or closes the connection
                if not (getattr(error, "sqlstate", None) or "").startswith(("57P03", "08")):
                    raise
                time.sleep(0.05)
        raise AssertionError((self.directory / "log").read_text())

    def _launch(self) -> None:
        with (self.directory / "log").open("a") as log:
            self._process = subprocess.Popen(
                [self._postgres, "-D", str(self._data)],
                user=self._user,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self) -> None:
        """End the server and all that it has started, at once."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        (self._data / "postmaster.pid").unlink(missing_ok=True)
        while True:  # until the last one has closed the port
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)):
                    return
            time.sleep(0.01)

    def use_tls(self, chain: Path, key: Path) -> None:
        """Let clients use TLS from now on."""
        for name, path in (("ssl_cert_file", chain), ("ssl_key_file", key)):
            copied = shutil.copy(path, self.directory)
            Path(copied).chmod(0o600)
            if self._user is not None:
                shutil.chown(copied, self._user)
            self.ask(f"alter system set {name} = '{copied}'")
        self.ask("alter system set ssl = on")
        self.ask("select pg_reload_conf()")

    def end(self) -> None:
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def ask(self, query: str, *given: Any, database: str = "road") -> list[tuple[Any, ...]]:
        """The rows of a query's result."""
        import asyncpg

        async def asked() -> list[tuple[Any, ...]]:
            connection = await asyncpg.connect(
                host="127.0.0.1",
                port=self.port,
                database=database,
                user="me",
                password=PASSWORD,
                ssl=False,
            )
            try:
                return [tuple(row) for row in await connection.fetch(query, *given)]
            finally:
                await connection.close()

        return asyncio.run(asked())


def _ordinary_user() -> str:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    pytest.skip("there is no user besides root, and PostgreSQL does not run as root")


def serving(settings: str = "") -> Iterator[PostgresqlServer]:
    """For fixtures: a server that ends with the tests."""
    server = PostgresqlServer(settings)
    try:
        yield server
    finally:
        server.end()
