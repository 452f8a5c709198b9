"""What cannot be translated is named with its place."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import spaseq
from spaseq.cli.main import cli
from spaseq.compile import check_query
from spaseq.errors import QueryError

WINDOW = "FROM NAMED WINDOW :w ON :s [RANGE PT10S STEP PT5S]"
OTHER = "FROM NAMED WINDOW :v ON :t [RANGE PT10S STEP PT2S]"
BLOCK = "WINDOW :w { ?s :p ?o }"


def _query(clauses: str = WINDOW, where: str = BLOCK, head: str = "SELECT *") -> str:
    return f"PREFIX : <http://e/>\n{head}\n{clauses}\nWHERE {{ {where} }}"


REFUSED = [
    (_query(where="WINDOW :x { ?s :p ?o }"), 4, ":x", "no window has this name"),
    (_query(where=f"{BLOCK} ?s :q ?o"), 4, "?s :q ?o", "no FROM says what is in it"),
    (_query("FROM STREAM :s [RANGE TRIPLES 5]"), 3, "[RANGE TRIPLES 5]", "counts triples"),
    (_query("FROM NAMED WINDOW :w ON :s [ELEMENTS 5 STEP 5]"), 3, "[ELEMENTS 5 STEP 5]", "STEP 1"),
    (_query("FROM NAMED WINDOW :w ON :s [FROM NOW-PT2H TO NOW-PT1H STEP PT1H]"), 3,
     "[FROM NOW-PT2H TO NOW-PT1H STEP PT1H]", "ends at its close"),
    (_query("FROM NAMED WINDOW :w ON :s [RANGE PT0S]"), 3, "[RANGE PT0S]", "is 0"),
    (_query(f"{WINDOW} {OTHER}", f"{BLOCK} WINDOW :v {{ ?s :q ?o }}"), 3, "[RANGE PT10S STEP PT2S]",
     "equal STEPs"),
    (_query("FROM STREAM :s [RANGE 10s] FROM STREAM :t [RANGE 5s]", "?s :p ?o"), 3, "[RANGE 5s]",
     "need equal STEPs"),
    (_query(where=f"{BLOCK} SERVICE <http://e/x> {{ ?s :q ?o }}"), 4,
     "SERVICE <http://e/x> { ?s :q ?o }", "SERVICE"),
    (_query("FROM :g", "?s :p ?o"), 2, "SELECT", "there is no window"),
    (_query(f"{WINDOW} FROM :g", "?s :p ?o"), 4, "{ ?s :p ?o }", "no WINDOW block"),
    (_query("FROM STREAM :s [RANGE 9s] FROM :g", "?s :p+ ?o"), 4, "?s :p+ ?o", "property path"),
    (_query(where="STREAM :s [RANGE 3s] { ?s ?p ?o }"), 4, "STREAM :s", "CQELS"),
    (_query("FROM NAMED STREAM :s [NOW - 10 S]"), 3, "NAMED STREAM", "SPARQLStream"),
    (_query(f"{WINDOW} FROM NAMED :g", f"GRAPH :g {{ {BLOCK} }}"), 4, BLOCK, "inside GRAPH"),
    (_query(where="WINDOW ?w { ?s :p ?w }"), 4, "?w", "any window"),
    (_query(head="DESCRIBE ?s"), 2, "DESCRIBE ?s", "DESCRIBE"),
    (_query(head="SELECT COUNT(?s)"), 2, "COUNT", "write (COUNT(...) AS ?name)"),
    (_query(head="SELECT (COUNT(?s) AS ?n) ?o"), 2, "?o", "neither grouped by"),
    (_query(f"{WINDOW} FROM NAMED WINDOW :w ON :t [RANGE PT10S STEP PT5S]"), 3, ":w",
     "another window has this name"),
    (_query(where=f"{BLOCK} GRAPH :g {{ ?s :q ?o }}"), 4, ":g", "no FROM NAMED"),
    (_query(f"{WINDOW} FROM :g", f"{BLOCK} GRAPH ?g {{ ?s :q ?o }}"), 4, "?g", "FROM, too"),
    (_query(where="WINDOW :w { ?s e:p ?o }"), 4, "e:", "prefix e: is not declared"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_refused(number: int) -> None:
    text, line, place, reason = REFUSED[number]
    with pytest.raises(QueryError) as caught:
        spaseq.translate(text)
    found = caught.value.diagnostics[0]
    assert reason in found.message
    assert text[found.span.start : found.span.end] == place
    assert found.source.place(found.span.start)[0] == line


def test_what_the_check_refuses() -> None:
    with pytest.raises(QueryError, match=r"translation of <query>.*http://e/f"):
        spaseq.translate(_query(where="WINDOW :w { ?s :p ?o FILTER(:f(?o)) }"))


def test_all_errors_are_told() -> None:
    text = _query(where=f"WINDOW :x {{ ?s :p ?o }} {BLOCK} WINDOW :y {{ }}")
    with pytest.raises(QueryError) as caught:
        spaseq.translate(text)
    assert len(caught.value.diagnostics) == 2


HOSTILE = [
    _query(where="{" * 3000 + "}" * 3000),
    _query(where="{ " * 400 + "?s ?p ?o" + " }" * 400),
    _query(where=f"?s ?p ?o FILTER({'!' * 5000}true)"),
    _query(where=f"?s ?p ?o FILTER({'(' * 700}1{')' * 700})"),
    _query(where=" ".join(f"?s p{n}:x ?o ." for n in range(200))),
    "x " * 2**19 + "y",
    "\ud800",
]


@pytest.mark.parametrize("text", ["", "# nothing", "SELECT", "REGISTER RSTREAM", *HOSTILE])
def test_what_is_no_query(text: str) -> None:
    raised = sys.getrecursionlimit()  # deep queries of other tests raise it for good
    sys.setrecursionlimit(1000)
    try:
        with pytest.raises(QueryError):
            spaseq.translate(text)
    finally:
        sys.setrecursionlimit(max(raised, sys.getrecursionlimit()))


def test_the_command(tmp_path: Path) -> None:
    file = tmp_path / "q.rspql"
    file.write_text(_query())
    from_file = CliRunner().invoke(cli, ["translate", str(file)])
    from_stdin = CliRunner().invoke(cli, ["translate", "-"], input=_query())
    assert from_file.exit_code == from_stdin.exit_code == 0
    assert from_file.output == from_stdin.output == spaseq.translate(file)
    assert "FROM WINDOW w ON s RANGE 10 SECONDS SLIDE 5 SECONDS" in from_file.output


def test_base() -> None:
    text = "SELECT * FROM STREAM <s> [RANGE 1s] WHERE { ?s ?p ?o }"
    assert "<http://e/s>" in spaseq.translate(text, base="http://e/")
    assert "<http://example.org/s>" in spaseq.translate(text)
    assert "<http://b/s>" in spaseq.translate(f"BASE <http://b/> {text}", base="http://e/")


@pytest.mark.parametrize("text", [_query(), _query("FROM STREAM :s [RANGE 5s STEP 1s]")])
def test_the_check_says_what_translates(text: str) -> None:
    (found,) = check_query(text).errors
    assert "spaseq translate" in found.message
    assert found.source.place(found.span.start)[0] == 3
