"""A server that is killed while graphs change: what was acknowledged is there, once, as a whole."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest

from tests.serve.processes import Command
from tests.serve.test_graphs import OWNERS, TURTLE, UPDATE, alarm, query

FILED, NQUADS = "http://e/filed", {"Content-Type": "application/n-quads"}
CONFIGURATION = f"""
[server]
data = "state"
[queries]
directory = "queries"
[streams.S]
iri = "http://e/s"
[kb."{OWNERS}"]
writable = true
[kb]
"{FILED}" = "filed.ttl"
"""


def owner(number: int) -> str:
    return f"<http://e/d> <http://e/owner> <http://e/n{number}> ."


class Writer:
    """Changes a graph again and again, in one way; `known` and `sent` are the last numbers."""

    def __init__(self, url: str, how: str, file: Path, first: int) -> None:
        self._url, self._how, self._file = url, how, file
        self.known = self.sent = first
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def _write(self) -> None:
        with httpx.Client(base_url=self._url, timeout=30) as http:
            while not self._stop.is_set():
                self.sent += 1
                try:
                    self._change(http, self.sent)
                except (httpx.HTTPError, AssertionError):
                    return
                self.known = self.sent

    def _change(self, http: httpx.Client, number: int) -> None:
        if self._how == "file":
            unfinished = self._file.with_suffix(".new")
            unfinished.write_text(owner(number))
            unfinished.replace(self._file)
            time.sleep(0.01)
            return
        given = {"params": {"graph": OWNERS}}
        if self._how == "PATCH":
            text = f"DELETE {{ ?s ?p ?o }} INSERT {{ {owner(number)} }} WHERE {{ ?s ?p ?o }}"
            reply = http.patch("/kb", content=text, headers=UPDATE, **given)
        elif self._how == "PUT":
            reply = http.put("/kb", content=owner(number), headers=TURTLE, **given)
        else:
            http.delete("/kb", **given)
            reply = http.post("/kb", content=owner(number), headers=TURTLE, **given)
        assert reply.status_code in (201, 204), reply.text

    def wait(self) -> None:
        self._stop.set()
        self._thread.join(30)


@pytest.mark.thorough
@pytest.mark.parametrize("how", ["PUT", "POST", "PATCH", "file"])
def test_kills_while_a_graph_changes(tmp_path: Path, how: str) -> None:
    draw = random.Random(how)
    (tmp_path / "queries").mkdir()
    for name, graph in (("owned", OWNERS), ("filed", FILED)):
        (tmp_path / "queries" / f"{name}.rq").write_text(query(graph))
    file, configuration = tmp_path / "filed.ttl", tmp_path / "spaseq.toml"
    file.write_text(owner(0))
    configuration.write_text(CONFIGURATION)
    graph, number, first = (FILED if how == "file" else OWNERS), 0, 0
    for _ in range(2):
        server = Command(configuration)
        with server.client() as http:
            http.put("/kb", params={"graph": OWNERS}, content=owner(first), headers=TURTLE)
        writer = Writer(server.url, how, file, first)
        end = time.monotonic() + draw.uniform(0.3, 1.5)
        with server.client() as http:
            while time.monotonic() < end:
                number += 1
                http.post(
                    "/streams/S",
                    content=alarm(number),
                    headers=NQUADS,
                )
        server.kill()
        writer.wait()
        server = Command(configuration)
        with server.client() as http:
            found = http.get(
                "/kb", params={"graph": graph}, headers={"Accept": "application/n-triples"}
            )
            lines = found.text.splitlines()
        server.end()
        possible = {owner(n) for n in range(writer.known, writer.sent + 1)}
        if how == "file":
            possible = {file.read_text()}
        assert len(lines) <= 1
        assert {*lines} <= possible
        if how != "POST":
            assert lines, "a change is whole"
        first = writer.sent
    answers = _answers(tmp_path)
    assert answers
    assert answers == _replayed(tmp_path)


KEEPER = f"""MAINTAIN GRAPH <{OWNERS}> AS
DELETE {{ ?d <http://e/owner> ?any }} INSERT {{ ?d <http://e/owner> ?o }}
FROM STREAM S <http://e/s> WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?d <http://e/to> ?o }} }}"""


@pytest.mark.thorough
def test_kills_while_a_query_maintains_a_graph(tmp_path: Path) -> None:
    """Every third event hands the device on, the others ask for its owner."""
    draw = random.Random("maintained")
    (tmp_path / "queries").mkdir()
    for name, text in (("filed", query(FILED)), ("owned", query(OWNERS)), ("keeper", KEEPER)):
        (tmp_path / "queries" / f"{name}.rq").write_text(text)
    (tmp_path / "filed.ttl").write_text(owner(0))
    configuration = tmp_path / "spaseq.toml"
    configuration.write_text(CONFIGURATION.replace(f'[kb."{OWNERS}"]\nwritable = true\n', ""))
    known, number = set[int](), 0
    for _ in range(3):
        server = Command(configuration)
        with server.client() as http:  # a busy server may listen before its queries have come
            while len(http.get("/queries").json()) < 3:
                time.sleep(0.1)
        killer = threading.Timer(draw.uniform(0.3, 1.5), server.kill)
        killer.start()
        with server.client() as http:
            try:
                while number < 3_000:
                    number += 1
                    text = alarm(number)
                    if number % 3 == 0:
                        text = text.replace('alarm> "x"', f"to> <http://e/n{number}>")
                    reply = http.post("/streams/S", content=text, headers=NQUADS)
                    assert reply.json()["accepted"] == 1
                    known.add(number)
            except httpx.HTTPError:
                pass
        killer.join()
    server = Command(configuration)
    with server.client() as http:
        http.post("/streams/S", content=alarm(number + 100), headers=NQUADS)
        end, asked = time.monotonic() + 60, {n for n in known if n % 3 and n > 3}
        found: dict[int, int] = {}
        while time.monotonic() < end and not asked <= found.keys():
            lines = http.get("/queries/owned/answers?limit=100000").text.splitlines()
            found = dict(map(_owner_at, lines))
            assert len(found) == len(lines), "an answer comes once"
            time.sleep(0.2)
    server.end()
    assert asked <= found.keys()
    assert len(asked) > 20
    for second, given in found.items():
        least = max((n for n in known if n % 3 == 0 and n < second), default=0)
        assert least <= given < second, (second, given, least)
        assert given % 3 == 0
    assert _answers(tmp_path) == _replayed(tmp_path)


def _owner_at(line: str) -> tuple[int, int]:
    """The second and the owner of an answer."""
    answer = json.loads(line)
    minute, second = answer["end"][14:19].split(":")
    value = answer["bindings"]["o"]["value"]
    return 60 * int(minute) + int(second), int(value.removeprefix("http://e/n"))


def _answers(directory: Path) -> list[str]:
    server = Command(directory / "spaseq.toml")
    with server.client() as http:
        found = [
            line
            for name in ("filed", "owned")
            for line in http.get(f"/queries/{name}/answers?limit=100000").text.splitlines()
        ]
    server.end()
    return sorted(map(_shown, found))


def _replayed(directory: Path) -> list[str]:
    command = [sys.executable, "-m", "spaseq", "run", "--logs", str(directory / "state")]
    given = [*command, "--runtime", "local", "--format", "jsonl"]
    found = subprocess.run(given, capture_output=True, text=True, check=True)
    return sorted(map(_shown, found.stdout.splitlines()))


def _shown(line: str) -> str:
    answer = json.loads(line)
    return f"{answer['query']} {answer['start']} {answer['bindings']}"


@pytest.mark.thorough
def test_graphs_change_while_spark_evaluates(tmp_path: Path) -> None:
    """A change reaches the workers, also for events whose time the driver gives them."""
    (tmp_path / "queries").mkdir()
    for name, stream in (("owned", "S"), ("arrived", "T")):
        text = query(OWNERS).replace(
            "STREAM S <http://e/s>", f"STREAM {stream} <http://e/{stream}>"
        )
        (tmp_path / "queries" / f"{name}.rq").write_text(text.replace("ON S", f"ON {stream}"))
    (tmp_path / "filed.ttl").write_text(owner(0))
    configuration = tmp_path / "spaseq.toml"
    streams = '[streams.S]\niri = "http://e/S"\n[streams.T]\niri = "http://e/T"\ntime = "arrival"'
    configuration.write_text(CONFIGURATION.replace('[streams.S]\niri = "http://e/s"', streams))
    server = Command(configuration, "--runtime", "spark")

    def put(number: int, time: str | None = None) -> None:
        given = {"graph": OWNERS} if time is None else {"graph": OWNERS, "from": time}
        reply = http.put("/kb", params=given, content=owner(number), headers=TURTLE)
        assert reply.status_code in (201, 204), reply.text

    def post(stream: str, text: str) -> None:
        assert http.post(f"/streams/{stream}", content=text, headers=NQUADS).json()["accepted"]

    def owners(name: str, count: int) -> list[str]:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            lines = http.get(f"/queries/{name}/answers").text.splitlines()
            if len(lines) == count:
                break
            time.sleep(0.2)
        return [json.loads(line)["bindings"]["o"]["value"][len("http://e/n") :] for line in lines]

    with server.client() as http:
        put(1, "2026-01-01T00:00:00Z")
        post("S", alarm(5))
        put(2, "2026-01-01T00:00:10Z")
        put(3, "2026-01-01T00:00:20Z")
        post("S", alarm(15) + alarm(19) + alarm(20) + alarm(60))
        assert owners("owned", 4) == ["1", "2", "2", "3"]
        untimed = '<http://e/d> <http://e/alarm> "x" <http://e/t{}> .\n'
        post("T", untimed.format(1))
        assert owners("arrived", 1) == ["3"]
        put(4)
        post("T", untimed.format(2))
        assert owners("arrived", 2) == ["3", "4"]
    assert server.end() == 0
