"""What a run refuses at its start, and how its queries are called."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import spaseq
from spaseq.errors import RunError, UsageError
from spaseq.expr.extension import unregister
from spaseq.sources.iterables import Event
from tests.hostile import run_bounded

QUERY = """SELECT ?x WITHIN 1 MINUTES FROM STREAM S <http://example/s>
WHERE { SEQ(A) DEFINE GPM A ON S { ?x <http://example/is> ?y } }"""
EVENT = (
    '<http://example/a> <http://example/is> "b" <http://example/e> .\n'
    '<http://example/e> <http://www.w3.org/ns/prov#generatedAtTime> "1000"'
    "^^<http://www.w3.org/2001/XMLSchema#long> .\n"
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "q.rq").write_text(QUERY)
    (tmp_path / "s.nq").write_text(EVENT)
    (tmp_path / "kb.ttl").write_text("<http://example/k> <http://example/is> 1 .")
    return tmp_path


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--time-predicate", "<bad"], "the time predicate <bad is not an absolute IRI"),
        (["--time-predicate", "at"], "the time predicate at is not an absolute IRI"),
        (["--base", "<bad"], "the base <bad is not an absolute IRI"),
        (["--kb", "<no iri>=kb.ttl"], "no iri is not an absolute IRI"),
        (["--stream", "<http://bad iri>=s.nq"], "no query reads a stream called http://bad iri"),
    ],
)
def test_what_is_no_iri_is_refused(place: Path, arguments: list[str], message: str) -> None:
    base = ["run", "q.rq", "--runtime", "local", "--stream", "S=s.nq"]
    done = run_bounded([*base, *arguments], cwd=place, seconds=300)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


@pytest.mark.thorough
def test_query_files_with_one_stem_are_told_apart_by_their_directories(place: Path) -> None:
    for directory in ("north", "south"):
        (place / directory).mkdir()
        (place / directory / "q.rq").write_text(QUERY)
    files = ["q.rq", "north/q.rq", "south/q.rq"]
    given = ["--runtime", "local", "--stream", "S=s.nq"]
    done = run_bounded(["run", *files, *given], cwd=place, seconds=300)
    assert done.returncode == 0, done.stderr
    names = [json.loads(line)["query"] for line in done.stdout.splitlines()]
    assert names == [f"{place.name}/q", "north/q", "south/q"]
    twice = run_bounded(
        ["run", "north/q.rq", "./north/../north/q.rq", *given], cwd=place, seconds=300
    )
    assert twice.returncode == 2
    assert "give each one once" in twice.stderr


LEAVING = """
import spaseq, sys
{before}
@spaseq.function("http://example/leave", vectorised={vectorised})
def leave(x):
    sys.exit(0)
"""


@pytest.mark.thorough
@pytest.mark.parametrize("vectorised", [False, True])
def test_a_function_cannot_end_the_process(place: Path, vectorised: bool) -> None:
    (place / "f.py").write_text(LEAVING.format(before="", vectorised=vectorised))
    (place / "q.rq").write_text(QUERY.replace("?y }", "?y FILTER(<http://example/leave>(?y)) }"))
    given = ["--runtime", "local", "--stream", "S=s.nq", "--functions", "f.py"]
    done = run_bounded(["run", "q.rq", *given], cwd=place, seconds=300)
    assert done.returncode == 4
    assert "the function <http://example/leave> failed: SystemExit: 0" in done.stderr
    (place / "f.py").write_text(LEAVING.format(before="sys.exit(0)", vectorised=vectorised))
    done = run_bounded(["run", "q.rq", *given], cwd=place, seconds=300)
    assert done.returncode == 2
    assert "cannot load functions from f.py: SystemExit: 0" in done.stderr


def test_in_python_too() -> None:
    @spaseq.function("http://example/leave")
    def leave(x: object) -> object:
        raise SystemExit(3)

    query = QUERY.replace("?y }", "?y FILTER(<http://example/leave>(?y)) }")
    event = Event('<http://example/a> <http://example/is> "b" .', 0)
    try:
        with pytest.raises(RunError, match="SystemExit: 3"):
            list(spaseq.run(query, {"S": [event]}, runtime="local"))
        with pytest.raises(UsageError, match="time predicate"):
            spaseq.run(query, {"S": "s.nq"}, runtime="local", time_predicate="<")
            list(spaseq.run(query, {"S": "s.nq"}, runtime="local", time_predicate="<"))
    finally:
        unregister("http://example/leave")
