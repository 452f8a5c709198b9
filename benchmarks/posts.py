"""How long a POST of one event takes, by the number of clients that post at the same time.

    python benchmarks/posts.py [--clients 1 64] [--seconds 5] [--time clock|event]

Each client has a connection and sends its next event when it has the reply to the last one. A
server is started on loopback with a query by key. The first second does not count. The table has
the requests per second and percentiles in ms. A lone client takes turns with the disk: after each
reply it appends 400 bytes to a file and calls fdatasync, whose times are the line `disk`, so both
see the same load. The server is killed at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import time
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from served import served

WARM_UP_S = 1.0
_QUERY = """PREFIX : <http://e/>
SELECT ?d WITHIN 10 SECONDS PARTITION BY ?d FROM STREAM S <http://e/S>
WHERE { SEQ(A; B)
  DEFINE GPM A ON S { ?d :state "begun" }
  DEFINE GPM B ON S { ?d :state "done" } }"""
_STREAM = '[queries]\ndirectory = "queries"\n[streams.S]\niri = "http://e/S"\n'


def _event(client: int, number: int, timed: bool) -> bytes:
    name, state = f"<http://e/c{client}-{number}>", "done" if number % 50 == 49 else "begun"
    text = f'<http://e/d{client}> <http://e/state> "{state}" {name} .\n'
    if timed:
        at = f'"{int(time.time() * 1000)}"^^<http://www.w3.org/2001/XMLSchema#integer>'
        text += f"{name} <http://www.w3.org/ns/prov#generatedAtTime> {at} .\n"
    return text.encode()


@dataclass(slots=True)
class _Load:
    """Clients of a server, and how long (ms) their requests took, and a lone one's appends."""

    port: int
    timed: bool
    folder: Path
    seconds: float
    count: int = 1
    taken: list[float] = field(default_factory=list)
    disk: list[float] = field(default_factory=list)

    async def run(self) -> None:
        end = time.perf_counter() + WARM_UP_S + self.seconds
        await asyncio.gather(*(_client(n, self, end) for n in range(self.count)))


async def _client(number: int, load: _Load, end: float) -> None:
    port = load.port
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    count, begin = 0, time.perf_counter() + WARM_UP_S
    while (before := time.perf_counter()) < end:
        body = _event(number, count, load.timed)
        head = f"POST /streams/S HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
        head += f"Content-Type: application/n-quads\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        found = await reader.readuntil(b"\r\n\r\n")
        size = re.search(rb"content-length: (\d+)", found, re.IGNORECASE)
        assert found.startswith(b"HTTP/1.1 200") and size is not None, found
        await reader.readexactly(int(size[1]))
        count += 1
        if before > begin:
            load.taken.append((time.perf_counter() - before) * 1000)
            if load.count == 1:
                load.disk.append(_append(load.folder / "disk"))
    writer.close()


def _append(path: Path) -> float:
    """How long (ms) an append and its fdatasync take."""
    with path.open("ab", buffering=0) as file:
        before = time.perf_counter()
        file.write(b"x" * 400)
        os.fdatasync(file.fileno())
        return (time.perf_counter() - before) * 1000


def _shown(taken: list[float]) -> str:
    return "ms: " + " ".join(f"p{p} {np.percentile(taken, p):.2f}" for p in (50, 90, 99))


def main() -> None:
    """Measure what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, nargs="*", default=[1, 64])
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--time", choices=["clock", "event"], default="event")
    given = parser.parse_args()
    with TemporaryDirectory() as name:
        folder, timed = Path(name), given.time == "event"
        (folder / "queries").mkdir()
        (folder / "queries" / "pair.rq").write_text(_QUERY)
        more = "" if timed else 'time = "arrival"\n'
        (folder / "c.toml").write_text(_STREAM + more)
        with served(folder / "c.toml") as (_, url):
            port = int(url.rpartition(":")[2])
            for count in given.clients:
                load = _Load(port, timed, folder, given.seconds, count)
                asyncio.run(load.run())
                rate = len(load.taken) / given.seconds
                print(f"{count} clients: {rate:.0f} requests/s; {_shown(load.taken)}")
                if load.disk:
                    print(f"disk: {_shown(load.disk)}")


if __name__ == "__main__":
    main()
