"""The server as a process of its own: the command `spaseq serve`, as users start it."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

NQUADS = {"Content-Type": "application/n-quads"}
TIME = "http://www.w3.org/ns/prov#generatedAtTime"
XSD = "http://www.w3.org/2001/XMLSchema#"


@contextmanager
def serve_command(directory: Path, streams: str, server: str = "") -> Iterator[str]:
    """The URL of a server of some streams, given by their tables, until the block ends."""
    path = directory / "spaseq.toml"
    path.write_text(
        f'[server]\nlisten = "127.0.0.1:0"\ndata = "state"\nsync = "1 MILLISECONDS"\n{server}\n'
        f'[queries]\ndirectory = "queries"\n{streams}'
    )
    command = [sys.executable, "-m", "spaseq", "serve", str(path)]
    with (directory / "log").open("w") as log:
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        try:
            for line in process.stderr:
                log.write(line)
                found = re.search(r"listening on (http://\S+)", line)
                if found:
                    break
            else:
                log.flush()
                raise AssertionError((directory / "log").read_text())
            yield found[1]
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=30)


def event(number: int, *triples: str) -> str:
    """An event as N-Quads, `number` seconds after the beginning of 2026."""
    graph = f"<http://e/g{number}>"
    lines = "".join(f"{triple} {graph} .\n" for triple in triples)
    hour, rest = divmod(number, 3600)
    time = f"2026-01-01T{hour:02}:{rest // 60:02}:{rest % 60:02}Z"
    return f'{lines}{graph} <{TIME}> "{time}"^^<{XSD}dateTime> .\n'


def post(url: str, stream: str, text: str, bad: int = 0) -> None:
    """Post events to a stream; so many of them are none."""
    reply = httpx.post(f"{url}/streams/{stream}", content=text, headers=NQUADS, timeout=30)
    assert reply.status_code == 200, reply.text
    assert len(reply.json()["bad"]) == bad, reply.text
