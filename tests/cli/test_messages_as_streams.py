"""Streams of messages on the command line: in files, on standard input, and written again."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from spaseq.cli import main
from tests.cli.test_run import QUERY, line

LOG = 'VERSION "1.2-messages"\n' + "MESSAGE\n".join(
    [line(0, 14), "oops\n", line(1, 16), line(2, 12)]
)
CONSTRUCT = """PREFIX : <http://example/>
REGISTER STREAM <http://example/falls> AS CONSTRUCT { ?s :fell ?p2 } WITHIN 1 MINUTES
FROM STREAM S1 <http://example/stream>
WHERE {
  SEQ(A; B)
  DEFINE GPM A ON S1 { ?s :price ?p1 }
  DEFINE GPM B ON S1 { ?s :price ?p2 FILTER(?p2 < ?p1) }
}"""
SECOND = """PREFIX : <http://example/>
SELECT ?p WITHIN 1 MINUTES FROM STREAM S <http://example/falls>
WHERE { SEQ(A) DEFINE GPM A ON S { ?s :fell ?p } }"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "falls.rq").write_text(CONSTRUCT)
    (tmp_path / "second.rq").write_text(SECOND)
    (tmp_path / "log.nq").write_text(LOG)
    return tmp_path


def spaseq(*arguments: str) -> object:
    with pytest.raises(SystemExit) as done:
        main([*arguments])
    return done.value.code


@pytest.mark.parametrize(
    "runtime", ["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.thorough])]
)
def test_answers_as_messages_are_a_stream_again(
    runtime: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["--format", "rdfm", "--out", "falls.rdfm", "--bad", "bad.jsonl", "--runtime", runtime]
    assert spaseq("run", "falls.rq", "--stream", "S1=log.nq", *out) == 0
    (bad,) = (json.loads(text) for text in (place / "bad.jsonl").read_text().splitlines())
    assert (bad["file"], bad["line"], bad["text"]) == ("log.nq", 5, "oops")
    written = (place / "falls.rdfm").read_text()
    assert written.startswith('VERSION "1.2-messages"\n')
    assert written.count("\nMESSAGE\n") == 2
    capsys.readouterr()
    again = ["--stream", "S=falls.rdfm", "--format", "csv", "--runtime", runtime]
    assert spaseq("run", "second.rq", *again) == 0
    assert capsys.readouterr().out.splitlines() == ["p", "12", "12"]


def test_standard_input_announces_messages(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(LOG.encode())))
    run = ["run", "falls.rq", "--stream", "S1=-", "--runtime", "local", "--format", "nquads"]
    assert spaseq(*run) == 0
    done = capsys.readouterr()
    assert done.out.count("/fell>") == 2
    assert "oops" in done.err or "line 5" in done.err or ":5" in done.err


def test_messages_are_no_knowledge_base(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "query.rq").write_text(QUERY.replace("?a=1", ""))
    (place / "kb.rdfm").write_text(LOG)
    run = ["run", "query.rq", "--stream", "S1=log.nq", "--kb", "kb.rdfm", "--runtime", "local"]
    assert spaseq(*run) == 3
    assert "a knowledge base has graphs" in capsys.readouterr().err
