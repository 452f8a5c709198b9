"""Hostile lines of N-Quads and N-Triples: each is one bad line, and the rest is read."""

from __future__ import annotations

import gzip
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.hostile import run_bounded

QUERY = """
SELECT ?x WITHIN 1 HOURS FROM STREAM S <http://example/s>
WHERE { SEQ(A) DEFINE GPM A ON S { ?x <http://e/p> ?y } }
"""
TIME = "<http://www.w3.org/ns/prov#generatedAtTime>"
LONG = "<http://www.w3.org/2001/XMLSchema#long>"
SECONDS = 240  # the first run compiles the kernels


def event(name: str, time: int) -> bytes:
    """An event that the query matches."""
    return (
        f"<http://e/{name}> <http://e/p> <http://e/o> <http://e/{name}> .\n"
        f'<http://e/{name}> {TIME} "{time}"^^{LONG} .\n'
    ).encode()


def answers(
    directory: Path, *options: str, memory: int = 1 << 30
) -> tuple[list[str], list[dict[str, Any]]]:
    """The values of ?x, and the bad inputs, of a run over all files in the directory."""
    (directory / "q.rq").write_text(QUERY)
    bad = directory / "bad.jsonl"
    args = ["run", "q.rq", "--stream", "S=in", "--runtime", "local", "--format", "csv"]
    done = run_bounded(
        [*args, "--bad", "bad.jsonl", *options], memory=memory, seconds=SECONDS, cwd=directory
    )
    assert done.returncode == 0, done.stderr[-2000:]
    lines = bad.read_text().splitlines() if bad.exists() else []
    return done.stdout.splitlines()[1:], [json.loads(line) for line in lines]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return tmp_path


NESTED = b"<<( <a:s> <a:p> " * 20_000 + b"<a:o>" + b" )>>" * 20_000


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"<a:s> <a:p> " + NESTED + b" <a:g> .", "triple terms are nested more than 200 deep"),
        (b"<< <a:s> <a:p> " * 20_000, "triple terms are nested more than 200 deep"),
        (b"<a:s> <a:p> x" + b"y" * (17 << 20), "a line over 16 MiB that is malformed"),
    ],
)
def test_a_line_without_a_readable_graph_costs_the_events_beside_it(
    directory: Path, line: bytes, reason: str
) -> None:
    found, bad = between_events(directory, line)
    assert found == ["http://e/one", "http://e/two"]
    assert sorted(b["line"] for b in bad) == [3, 5, 6]
    check_report([b for b in bad if b["line"] == 5], reason)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'<a:s> <a:p> "' + b"x" * (17 << 20) + b'" <a:g> .', "a literal of 17825792 bytes"),
        (b'<a:s> <http://e/p> "' + b"x" * (17 << 20) + b'" <a:g> .', "a literal of 17825792 byt"),
        (b'<a:s> <a:p> "\\u0009' + b"x" * (17 << 20) + b'" <a:g> .', "a literal of 17825793 byt"),
        (b'<a:s> <a:p> "x"@- <a:g> . #' + b"y" * (17 << 20), "a line over 16 MiB that is malfo"),
    ],
)
def test_a_line_of_another_graph_costs_no_event_beside_it(
    directory: Path, line: bytes, reason: str
) -> None:
    found, bad = between_events(directory, line)
    assert found == [f"http://e/{name}" for name in ("one", "lost", "lost2", "two")]
    check_report(bad, reason)


def between_events(directory: Path, line: bytes) -> tuple[list[str], list[dict[str, Any]]]:
    """The answers and the bad inputs of a bad line that is the fifth, between two events."""
    text = event("one", 1) + event("lost", 2) + line + b"\n" + event("lost2", 3) + event("two", 4)
    (directory / "in" / "a.nq").write_bytes(text)
    return answers(directory)


def check_report(bad: list[dict[str, Any]], reason: str) -> None:
    """Check that just the fifth line is reported, with its beginning."""
    assert [b["line"] for b in bad] == [5]
    assert bad[0]["reason"].startswith(reason)
    assert len(bad[0]["text"]) <= 300


EVENTS = b"".join(event(f"e{i}", i) for i in range(1000))
PACKED = gzip.compress(EVENTS)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("packed", "least", "reason"),
    [
        (PACKED[: len(PACKED) // 2], 400, "the .gz ends at byte "),
        (PACKED[:-8] + bytes(8), 999, "the .gz is damaged at about byte "),
    ],
    ids=["cut", "check sum"],
)
def test_events_before_damage_in_a_gzip_are_answered(
    directory: Path, packed: bytes, least: int, reason: str
) -> None:
    (directory / "in" / "a.nq.gz").write_bytes(packed)
    (directory / "in" / "b.nq").write_bytes(event("later", 2000))
    found, bad = answers(directory)
    assert len(found) > least
    assert found == [f"http://e/e{i}" for i in range(len(found) - 1)] + ["http://e/later"]
    assert len(bad) == 1
    assert bad[0]["file"].endswith("a.nq.gz")
    assert bad[0]["line"] >= 2 * len(found) - 1
    assert bad[0]["reason"].startswith("the rest of the file is not read: " + reason)


@pytest.mark.thorough
def test_engine_refuses_a_deeply_nested_triple_term() -> None:
    code = """
import spaseq
from spaseq.errors import InputError
query = '''SELECT ?x WITHIN 1 MINUTES FROM STREAM S <http://example/s>
  WHERE { SEQ(A) DEFINE GPM A ON S { ?x <a:p> ?y } }'''
engine = spaseq.Engine(query)
text = "<a:s> <a:p> " + "<<( <a:s> <a:p> " * 20_000 + "<a:o>" + " )>>" * 20_000 + " ."
for push in (
    lambda: engine.push("S", text, 1),
    lambda: engine.push("S", [("<a:s>", "<a:p>", text[12:-2])], 1),
    lambda: engine.push_many([("S", spaseq.Event(text, 1))] * 20),
    lambda: engine.push("S", '<a:s> <a:p> x' + 'y' * (17 << 20), 1),
    lambda: engine.push("S", '<a:s> <a:p> "' + 'y' * (17 << 20) + '" .', 1),
):
    try:
        push()
    except InputError as error:
        print(str(error)[:59])
"""
    done = run_bounded(code, seconds=SECONDS)
    assert done.returncode == 0, done.stderr[-2000:]
    nested = "not a graph: triple terms are nested more than 200 deep"
    assert done.stdout.splitlines() == [
        nested,
        nested,
        "event 0: not a graph: triple terms are nested more than 200",
        "not a graph: a line over 16 MiB that is malformed, or unusu",
        "not a graph: a literal of 17825792 bytes; the limit is 1677",
    ]


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="file names are UTF-8 there")
def test_file_names_that_are_not_utf8_are_read_and_reported(directory: Path) -> None:
    name = os.fsdecode(b"a\xff.nq")
    (directory / "in" / name).write_bytes(event("one", 1) + event("lost", 2) + b"wrong\n")
    found, bad = answers(directory)
    assert found == ["http://e/one"]
    assert sorted((b["file"], b["line"]) for b in bad) == [(f"in/{name}", 3), (f"in/{name}", 5)]
