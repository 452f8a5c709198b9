"""`spaseq serve` as its users start and end it."""

from __future__ import annotations

import json
import random
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest

import spaseq as package
from tests.cli.test_run import Done, main_of
from tests.serve.processes import Command, spaseq
from tests.serve.servers import CONFIGURATION, NQUADS, event, subscribed, wait
from tests.sizes import first_rows_of

PAIRS = (
    "SELECT ?v ?w WITHIN 10 SECONDS FROM STREAM S <http://e/s> WHERE { SEQ(A; B) "
    "DEFINE GPM A ON S { ?x <http://e/p> ?v } DEFINE GPM B ON S { ?x <http://e/p> ?w } }"
)
TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (INFO|WARNING|ERROR) +\S")


@pytest.fixture
def configuration(tmp_path: Path) -> Path:
    path = tmp_path / "spaseq.toml"
    path.write_text(CONFIGURATION.format(more=""))
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "pairs.rq").write_text(PAIRS)
    return path


@contextmanager
def running(configuration: Path, *options: str) -> Iterator[Command]:
    command = Command(configuration, *options)
    try:
        yield command
    finally:
        with suppress(ProcessLookupError):
            command.kill()


def all_answers(client: httpx.Client, query: str = "pairs") -> list[dict[str, object]]:
    text = client.get(f"/queries/{query}/answers?limit=1000000").text
    return [json.loads(line) for line in text.splitlines()]


def expected(texts: list[str], directory: Path) -> list[dict[str, object]]:
    """The answers of a bounded run over the same events."""
    (directory / "all.nq").write_text("".join(texts))
    found = spaseq(
        *("run", str(directory / "queries" / "pairs.rq"), "--runtime", "local"),
        *("--stream", f"S={directory / 'all.nq'}"),
    )
    assert found.returncode == 0, found.stderr
    return [json.loads(line) for line in found.stdout.splitlines()]


def test_sigterm_saves_the_state_and_the_next_server_goes_on(configuration: Path) -> None:
    texts = [event(n) for n in range(40)]
    with running(configuration) as server, server.client() as client:
        for text in texts[:20]:
            client.post("/streams/S", content=text, headers=NQUADS)
        with subscribed(server.url, "pairs"):
            assert server.end() == 0
    assert all(TIME.match(line) for line in server.lines), server.lines
    with running(configuration) as server, server.client() as client:
        assert client.get("/streams").json()[0]["accepted"] == 20
        for text in texts[20:]:
            client.post("/streams/S", content=text, headers=NQUADS)
        # The last event's answers are not final: another event may follow at its time.
        wanted = [
            a for a in expected(texts, configuration.parent) if a["end"] < "2026-01-01T00:00:39"
        ]
        wait(lambda: len(all_answers(client)) == len(wanted))
        found = all_answers(client)
        assert len({answer.pop("id") for answer in found}) == len(wanted)
        assert found == wanted
        assert server.end(signal.SIGINT) == 0


@pytest.mark.parametrize(
    ("runtime", "pause", "longest", "most"),
    [
        pytest.param("local", 0.02, 1.5, 12, marks=pytest.mark.thorough),
        pytest.param("spark", 0.3, 8.0, 3, marks=[pytest.mark.spark(apart=True), pytest.mark.slow]),
    ],
)
def test_kills_lose_no_event_and_repeat_no_answer(
    configuration: Path, runtime: str, pause: float, longest: float, most: int
) -> None:
    """Posts with an Idempotency-Key are sent until they are answered, whatever is killed.

    They pause, and servers live up to `longest` seconds; at most some servers are killed.
    """
    chance, texts = random.Random(20), [event(n) for n in range(160)]
    server = Command(configuration, "--runtime", runtime)
    now, done = [server], threading.Event()

    def feed() -> None:
        for number in range(0, len(texts), 4):
            body = "".join(texts[number : number + 4])
            headers = {**NQUADS, "Idempotency-Key": str(number)}
            while True:
                try:
                    reply = httpx.post(
                        f"{now[0].url}/streams/S", content=body, headers=headers, timeout=5
                    )
                    if reply.status_code == 200:
                        assert reply.json() == {"accepted": 4, "bad": [], "late": 0}
                        break
                except httpx.TransportError:
                    pass
                time.sleep(0.02)
            time.sleep(pause)
        done.set()

    feeder = threading.Thread(target=feed, daemon=True)
    feeder.start()
    while not done.is_set() and most:
        done.wait(chance.uniform(0.05, longest))
        now[0].kill()
        now[0] = Command(configuration, "--runtime", runtime)
        most -= 1
    assert done.wait(300)
    wanted = [a for a in expected(texts, configuration.parent) if a["end"] < "2026-01-01T00:02:39"]
    with now[0].client() as client:
        wait(lambda: len(all_answers(client)) >= len(wanted))
        found = all_answers(client)
        assert client.get("/streams").json()[0]["accepted"] == 160
    assert now[0].end() == 0
    assert len({answer.pop("id") for answer in found}) == len(found)
    assert found == wanted


@pytest.mark.thorough
def test_the_first_queries_see_all_that_sources_bring(configuration: Path) -> None:
    texts = [event(n) for n in range(20)]
    (configuration.parent / "events.nq").write_text("".join(texts))
    text = configuration.read_text().replace('"http://e/s"', '"http://e/s"\nsource = "events.nq"')
    configuration.write_text(text)
    wanted = [a for a in expected(texts, configuration.parent) if a["end"] < "2026-01-01T00:00:19"]
    with running(configuration) as server, server.client() as client:
        wait(lambda: len(all_answers(client)) >= len(wanted))
        assert [{**answer, "id": 0} for answer in all_answers(client)] == [
            {**answer, "id": 0} for answer in wanted
        ]
        posted = client.post("/streams/S", content=event(30), headers=NQUADS)
        assert posted.status_code == 409


@pytest.mark.thorough
def test_one_server_at_a_time_uses_a_directory(configuration: Path) -> None:
    with running(configuration):
        second = Command(configuration, wait=False)
        assert second.status() == 4
        assert "another" in "".join(second.lines)


def test_log_lines_may_be_json(configuration: Path) -> None:
    (configuration.parent / "queries" / "wrong.rq").write_text("SELECT ?x")
    with running(configuration, "--log-format", "json") as server:
        assert server.end() == 0
    found = [json.loads(line) for line in server.lines]
    assert all(each.keys() == {"time", "level", "message"} for each in found)
    assert any(each["level"] == "error" and "wrong.rq" in each["message"] for each in found)


@pytest.mark.thorough
def test_addresses_that_cannot_be_served(configuration: Path) -> None:
    found = spaseq("serve", str(configuration), "--listen", "0.0.0.0:0")
    assert (found.returncode, "token_file" in found.stderr) == (2, True)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        found = spaseq("serve", str(configuration), "--listen", address)
    assert (found.returncode, address in found.stderr) == (2, True)
    assert spaseq("serve", str(configuration), "--listen", "nowhere").returncode == 2
    assert spaseq("serve", str(configuration), "--master", "local[1]").returncode == 2
    assert spaseq("serve").returncode == 2


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is missing")
def test_tls(configuration: Path) -> None:
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-keyout",
            "k.pem",
            "-out",
            "c.pem",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
        ],
        cwd=configuration.parent,
        check=True,
        capture_output=True,
    )
    text = CONFIGURATION.format(more='tls = { cert = "c.pem", key = "k.pem" }')
    configuration.write_text(text)
    with running(configuration) as server:
        assert server.url.startswith("https://")
        found = httpx.get(
            f"{server.url}/live",
            verify=ssl.create_default_context(cafile=configuration.parent / "c.pem"),
        )
        assert found.status_code == 200
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{server.url}/live")
    (configuration.parent / "k.pem").write_text("no key")
    found = spaseq("serve", str(configuration))
    assert (found.returncode, "k.pem" in found.stderr) == (3, True)


def check(configuration: Path, capsys: pytest.CaptureFixture[str]) -> Done:
    return main_of(capsys, "serve", "--check", configuration)


def test_check_reports_what_is_wrong(
    configuration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = check(configuration, capsys)
    assert (found.status, found.err) == (0, "")
    assert "1 query" in found.out
    (configuration.parent / "queries" / "wrong.rq").write_text("SELECT ?x WITHIN 1 HUORS")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]  # nobody listens there afterwards
    more = f'[sinks.hook]\nto = "http://me:secret@127.0.0.1:{port}/x"\n'
    configuration.write_text(configuration.read_text() + more)
    found = check(configuration, capsys)
    assert found.status == 3
    assert "wrong.rq" in found.err
    assert f"127.0.0.1:{port}" in found.err
    assert "secret" not in found.err
    assert not (configuration.parent / "state").exists()


def test_check_names_the_mistakes_of_all_parts_at_once(
    configuration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a part needs that is missing or wrong, and not only the first one."""
    more = """
[streams.A]
iri = "http://e/a"
source = "mqt://host/topic"
[streams.B]
iri = "http://e/b"
format = "jsn"
[streams.C]
iri = "http://e/c"
context = "missing.jsonld"
[kb]
"http://e/kb" = "missing.ttl"
[sinks.one]
to = "htp://host/x"
[sinks.two]
to = "out.jsonl"
[sinks.three]
to = "out.jsonl"
"""
    configuration.write_text(configuration.read_text() + more)
    found = check(configuration, capsys)
    assert found.status == 3
    for told in (
        "[streams.A] source: mqt:// is no source; did you mean mqtt://?",
        "[streams.B] unknown format 'jsn', did you mean 'json'?",
        "[streams.C] cannot read the context",
        "no such file or directory",
        "[sinks.one] htp:// is no output",
        "sinks two and three are one file",
    ):
        assert told in found.err


def test_check_looks_for_the_paths_of_sources_and_sinks(
    configuration: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    more = """
[streams.A]
iri = "http://e/a"
source = "incoming"
[sinks.one]
to = "answers/out.jsonl"
"""
    configuration.write_text(configuration.read_text() + more)
    found = check(configuration, capsys)
    assert found.status == 3
    assert "incoming: no such file or directory" in found.err
    assert "answers/out.jsonl: there is no directory" in found.err
    for name in ("incoming", "answers"):
        (configuration.parent / name).mkdir()
    assert check(configuration, capsys).status == 0
    configuration.write_text(configuration.read_text() + '[sinks.two]\nto = "out.jsonl"\n')
    monkeypatch.chdir(configuration.parent)
    assert check(Path(configuration.name), capsys).status == 0


def test_check_takes_a_reader_before_the_query_that_maintains_its_graph(
    configuration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    queries = configuration.parent / "queries"
    stream = "FROM STREAM S <http://e/s>"
    pattern = "SEQ(A) DEFINE GPM A ON S { ?x <http://e/p> 1"
    reads = "GRAPH <http://e/kept> { ?x <http://e/q> 2 } } }"
    keeps = "MAINTAIN GRAPH <http://e/kept> AS INSERT { ?x <http://e/q> 2 }"
    reader = f"SELECT ?x {stream} FROM NAMED <http://e/kept> WHERE {{ {pattern} {reads}"
    (queries / "a.rq").write_text(reader)
    (queries / "z.rq").write_text(f"{keeps} {stream} WHERE {{ {pattern} }} }}")
    found = check(configuration, capsys)
    assert (found.status, found.err) == (0, "")


def test_check_names_streams_that_nobody_gives(
    configuration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    query = next((configuration.parent / "queries").glob("*.rq"))
    (iri,) = re.findall("FROM STREAM [A-Z]+ <([^>]+)>", query.read_text())
    query.write_text(query.read_text().replace(f"<{iri}>", f"<{iri}z>"))
    found = check(configuration, capsys)
    assert found.status == 0
    assert f"no stream and no query gives <{iri}z>" in found.out
    assert f"did you mean: {iri}\n" in found.out and found.out.endswith(": 1 warning\n")


def test_check_counts_graphs_that_begin_empty(
    configuration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with configuration.open("a") as file:
        file.write('\n[kb."http://example/one"]\nwritable = true\n')
        file.write('[kb."http://example/two"]\nwritable = true\n')
    assert ", 2 knowledge bases, " in check(configuration, capsys).out


def test_check_runs_the_tests_beside_the_queries(
    configuration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A query that has an answer for each event, and a test that expects none."""
    directory = configuration.parent / "queries"
    query = next(directory.glob("*.rq"))
    (directory / "it.test.toml").write_text(
        f'query = "{query.name}"\n[[test]]\nname = "quiet"\n[[test.step]]\n'
        'wait = "1 SECONDS"\nanswers = []\n'
    )
    found = check(configuration, capsys)
    assert (found.status, "1 test: all is well" in found.out) == (0, True), found
    text = (directory / "it.test.toml").read_text().replace("answers = []", "answers = [{}]")
    (directory / "it.test.toml").write_text(text)
    found = check(configuration, capsys)
    assert found.status == 3
    assert "it.test.toml:4: test 'quiet'" in found.err


@pytest.mark.parametrize(
    ("sink", "reason"),
    first_rows_of(
        [
            ('[sinks.ops]\nto = "kafka://me:secret@h"', "give a topic"),
            ('[sinks.ops]\nto = "out.txt"', "[sinks.ops]"),
            ('[sinks."a/b"]\nto = "out.jsonl"', "a name has letters"),
        ],
        1,
    ),
)
def test_a_wrong_sink_is_named(
    configuration: Path, sink: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    configuration.write_text(f"{configuration.read_text()}\n{sink}\n")
    found = check(configuration, capsys)
    assert (found.status, reason in found.err) == (2, True), found.err
    assert "secret" not in found.err


@pytest.mark.thorough
def test_passwords_are_not_shown(configuration: Path) -> None:
    more = '[sinks.hook]\nto = "http://me:secret@127.0.0.1:1/x?key=hidden"\n'
    more += '[streams.T]\niri = "http://e/t"\nsource = "nats://me:secret@127.0.0.1:1/x?stream=Y"\n'
    configuration.write_text(configuration.read_text() + more)
    shown = []
    with running(configuration) as server, server.client() as client:
        for number in range(3):
            client.post("/streams/S", content=event(number), headers=NQUADS)
        wait(lambda: client.get("/health").status_code == 503)
        for path in ("/health", "/streams", "/metrics", "/queries", "/queries/pairs"):
            shown.append(client.get(path).text)
        server.end()
    assert "127.0.0.1:1" in shown[1]
    text = "\n".join([*shown, *server.lines])
    assert "secret" not in text
    assert "hidden" not in text


def test_an_example_runs_as_it_is_without_compiled_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kernels"))
    demo = tmp_path / "demo"
    found = spaseq("serve", "--init", str(demo))
    assert (found.returncode, found.stdout) == (0, f"spaseq serve {demo / 'spaseq.toml'}\n")
    assert spaseq("serve", "--init", str(demo)).returncode == 2
    start = time.monotonic()
    with running(demo / "spaseq.toml") as server, server.client() as client:
        wait(lambda: all_answers(client, "jam"))
        assert time.monotonic() - start < 30
        assert_first_jam(client)


@pytest.mark.spark(apart=True)
@pytest.mark.thorough
def test_an_example_runs_on_spark(tmp_path: Path) -> None:
    demo = tmp_path / "demo"
    spaseq("serve", "--init", str(demo))
    found = spaseq("serve", str(demo / "spaseq.toml"), "--runtime", "spark", "--check")
    assert found.returncode == 0, found.stderr
    assert re.search(r"Spark [\d.]+ at local\[.*: all is well", found.stdout)
    with running(demo / "spaseq.toml", "--runtime", "spark") as server, server.client() as client:
        wait(lambda: all_answers(client, "jam"))
        assert_first_jam(client)
        assert client.get("/health").status_code == 200
        assert server.end() == 0


def assert_first_jam(client: httpx.Client) -> None:
    """The first jam of the traffic case is there, as its README tells it."""
    (first, *_) = all_answers(client, "jam")
    bindings = first["bindings"]
    assert isinstance(bindings, dict)
    assert [bindings[name]["value"] for name in ("name1", "name2", "name3")] == [
        "Station Road",
        "Mill Street",
        "Bridge Road",
    ]


def test_the_package_has_the_example_and_the_page() -> None:
    serve = Path(package.__file__).parent / "serve"
    assert (serve / "example" / "spaseq.toml").is_file()
    assert (serve / "page" / "index.html").is_file()


FAULTY = """
import sys
from spaseq.cli.main import main
from spaseq.runtime.live.live_engine import LiveEngine

def take(*_):
    raise RuntimeError("a bolt from the blue")

LiveEngine.take = take
main(["serve", sys.argv[1], "--listen", "127.0.0.1:0"])
"""


def test_a_run_that_ends_ends_the_server_with_a_status(configuration: Path) -> None:
    command = [sys.executable, "-c", FAULTY, str(configuration)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        for line in server.stderr:
            if listening := re.search(r"listening on (\S+)", line):
                httpx.post(f"{listening[1]}/streams/S", content=event(1), headers=NQUADS)
                break
        rest = server.stderr.read()
        assert server.wait(60) not in (0, -signal.SIGKILL)
    assert "a bolt from the blue" in rest
