"""The tables of docs/cli.md under "What goes together": each cell is a run, or a refusal."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.test_run import main_of
from tests.docs.pages import ROOT

HEAD = """PREFIX : <http://example/>
SELECT ?x WITHIN 10 SECONDS FROM STREAM S <http://example/s> WHERE { SEQ(A; B) """
QUERY = HEAD + ('DEFINE GPM A ON S { ?x :is "hot" } DEFINE GPM B ON S { ?x :is "cold" } }')
MAKER = """PREFIX : <http://example/>
REGISTER STREAM <http://example/s> AS CONSTRUCT { ?x :is ?state }
FROM STREAM T <http://example/t> WHERE { SEQ(A) DEFINE GPM A ON T { ?x :is ?state } }"""
LIFT = """PREFIX : <http://example/> PREFIX prov: <http://www.w3.org/ns/prov#>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
CONSTRUCT { GRAPH ?g { ?x :is ?state } ?g prov:generatedAtTime ?at }
WHERE { BIND (IRI(CONCAT("http://example/g", STR(?id))) AS ?g)
  BIND (IRI(CONCAT("http://example/", ?thing)) AS ?x) BIND (xsd:dateTime(?time) AS ?at) }"""
CONTEXT = """{"@context": {"@vocab": "http://example/", "id": "@id", "@base": "http://example/",
"at": {"@id": "http://www.w3.org/ns/prov#generatedAtTime",
"@type": "http://www.w3.org/2001/XMLSchema#dateTime"}}}"""
ROWS = [
    (number, "a", state, f"2026-01-01T00:00:{number:02}Z")
    for number, state in enumerate(["hot", "cold", "other"])
]

INPUTS = {
    "files, directories and globs of RDF": ["--stream", "S=rdf"],
    "RDF on standard input": ["--stream", "S=-"],
    "CSV, TSV or JSON lines with a lift": ["--stream", "S=tables", "--lift", "S=lift.rq"],
    "Parquet or Arrow with a lift": ["--stream", "S=a.parquet", "--lift", "S=lift.rq"],
    "JSON lines with a context": ["--stream", "S=lines", "--context", "S=context.json"],
    "pages of an LDES in files": ["--stream", "S=ldes+file:feed"],
    "a topic at Kafka": ["--stream", "S=kafka://127.0.0.1:1/x"],
    "another broker, an LDES feed": ["--stream", "S=nats://127.0.0.1:1/x?stream=S"],
    "a stream that another query registers": ["--stream", "T=rdf"],
    "the logs of a server (`--logs`)": ["--logs", "data"],
}
OUTPUTS = {
    "a file or standard output as `jsonl`, `csv`, `tsv`, `nquads`, `trig` or `rdfm`": "out.csv",
    "a file as `json`, `jsonld`, `parquet` or `arrow`": "out.json",
    "a compressed file": "out.jsonl.gz",
    "a broker, database, webhook or mail": "http://127.0.0.1:1/hook",
}
ELSEWHERE = {
    "a topic at Kafka": "tests/runtime/live/test_kafka_to_kafka.py",
    "another broker, an LDES feed": "tests/runtime/live/test_live_run.py",
    "the logs of a server (`--logs`)": "tests/serve/test_history.py",
    "a broker, database, webhook or mail": "tests/runtime/live/test_deliveries.py",
}
"""What needs a server is tested there."""


def cells() -> Iterator[tuple[str, str, str]]:
    """The cells of both tables: the input or output, the runtime, and what the page says."""
    page = (ROOT / "docs" / "cli.md").read_text("utf-8")
    section = page.partition("### What goes together\n")[2].partition("\n#")[0]
    head: list[str] = []
    for line in section.splitlines():
        row = [cell.strip() for cell in line.strip("|").split(" | ")]
        if row[0] in ("input", "output"):
            head = [name.strip("` ") for name in row]
        elif line.startswith("| "):
            yield from ((row[0], name, cell) for name, cell in zip(head[1:], row[1:], strict=True))


CELLS = [*cells()]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same three events in all forms."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    place = tmp_path_factory.mktemp("together")
    for name in ("rdf", "tables", "lines", "feed"):
        (place / name).mkdir()
    for name, text in (("q", QUERY), ("maker", MAKER), ("lift", LIFT)):
        (place / f"{name}.rq").write_text(text)
    (place / "context.json").write_text(CONTEXT)
    names = ("id", "thing", "state", "time")
    pq.write_table(
        pa.table({n: pa.array([r[at] for r in ROWS]) for at, n in enumerate(names)}),
        place / "a.parquet",
    )
    table = "".join(",".join(map(str, row)) + "\n" for row in [names, *ROWS])
    (place / "tables" / "a.csv").write_text(table)
    dated = '"{}"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
    prov = "<http://www.w3.org/ns/prov#generatedAtTime>"
    quads, lines = list[str](), list[str]()
    for number, thing, state, time_ in ROWS:
        graph, at = f"<http://example/g{number}>", dated.format(time_)
        triple = f'<http://example/{thing}> <http://example/is> "{state}"'
        quads.append(f"{triple} {graph} .\n{graph} {prov} {at} .\n")
        value = {"@id": f"g{number}", "at": time_, "@graph": {"id": thing, "is": state}}
        lines.append(json.dumps(value) + "\n")
    (place / "rdf" / "a.nq").write_text("".join(quads))
    (place / "lines" / "a.ndjsonld").write_text("".join(lines))
    (place / "feed" / "a.trig").write_text(feed_page())
    return place


def feed_page() -> str:
    """The events as members of a feed, each with the graph that it names."""
    head = "PREFIX : <http://example/> PREFIX ldes: <https://w3id.org/ldes#>\n" + (
        "PREFIX tree: <https://w3id.org/tree#> PREFIX dct: <http://purl.org/dc/terms/>\n"
        "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"
        ":f a ldes:EventStream ; tree:view <> ; ldes:timestampPath dct:created .\n"
    )
    return head + "".join(
        f':f tree:member :g{number} . :g{number} dct:created "{at}"^^xsd:dateTime .\n'
        f'GRAPH :g{number} {{ :{thing} :is "{state}" }}\n'
        for number, thing, state, at in ROWS
    )


def command(what: str, runtime: str, place: Path) -> list[str]:
    """The command line of a run, without where answers go."""
    queries = ["q.rq", *(["maker.rq"] if "registers" in what else [])]
    given = INPUTS.get(what, INPUTS["files, directories and globs of RDF"])
    name, *follow = runtime.split()
    if follow:
        follow += ["--checkpoint", str(place / "state"), "--idle", "1 SECONDS"]
    return ["run", *queries, *given, "--runtime", name, *follow]


REFUSED = [(what, runtime, cell) for what, runtime, cell in CELLS if cell.startswith("no: ")]
MARKS = {"local": [], "spark --follow": [pytest.mark.slow]}  # half a minute each
RUN = [
    pytest.param(what, runtime, marks=MARKS.get(runtime, [pytest.mark.thorough]))
    for what, runtime, cell in CELLS
    if cell.startswith("yes") and what not in ELSEWHERE
]


def test_the_page_names_what_is_tested() -> None:
    assert {what for what, *_ in CELLS} == INPUTS.keys() | OUTPUTS.keys()
    assert {runtime for _, runtime, _ in CELLS} == {
        *("local", "spark", "local --follow", "spark --follow")
    }
    assert all(re.match(r"yes$|yes, |no: ", cell) for *_, cell in CELLS)
    assert all((ROOT / file).exists() for file in ELSEWHERE.values())


@pytest.mark.parametrize(("what", "runtime", "cell"), REFUSED)
def test_a_refusal_says_why(
    what: str,
    runtime: str,
    cell: str,
    directory: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(directory)
    done = main_of(capsys, *command(what, runtime, tmp_path), "--out", OUTPUTS.get(what, "-"))
    assert done.status in (2, 3), done.err
    assert cell.removeprefix("no: ") in done.err


def is_answered(out: Path) -> bool:
    """Whether the query q has an answer, below what may be a head."""
    lines = out.read_text().splitlines(keepends=True) if out.exists() else []
    return any(line.endswith("\n") and "http://example/a" in line for line in lines)


@pytest.mark.parametrize(("what", "runtime"), RUN)
def test_a_run_answers(
    what: str,
    runtime: str,
    directory: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / OUTPUTS.get(what, "out.jsonl")
    arguments = [*command(what, runtime, tmp_path), "--out", str(out)]
    if runtime == "local" and "standard input" not in what:
        monkeypatch.chdir(directory)
        done = main_of(capsys, *arguments)
        assert done.status == 0, done.err
    else:
        run_process(arguments, out, directory, tmp_path)
    assert out.stat().st_size > 0
    if out.suffix == ".jsonl":
        (answer,) = (a for a in map(json.loads, out.read_text().splitlines()) if a["query"] == "q")
        assert answer["bindings"]["x"]["value"] == "http://example/a"
        assert answer["end"] == "2026-01-01T00:00:01Z"


def run_process(arguments: list[str], out: Path, directory: Path, place: Path) -> None:
    """Run the command in a process of its own, with a stream as its standard input.

    A run that follows its input is interrupted when it has answered.
    """
    line, follows = [sys.executable, "-m", "spaseq", *arguments], "--follow" in arguments
    with (directory / "rdf" / "a.nq").open() as given, (place / "err").open("w") as told:
        process = subprocess.Popen(
            line, cwd=directory, stdin=given, stderr=told, env=os.environ, start_new_session=True
        )
        if follows:
            end = time.monotonic() + 120
            while not is_answered(out):
                assert process.poll() is None and time.monotonic() < end, told
                time.sleep(0.1)
            process.send_signal(signal.SIGINT)
        process.wait(120)
    text = (place / "err").read_text()
    assert process.returncode in ((0, 130) if follows else (0,)), text
