"""Wide queries: lists of any length work in linear time, and what is too deep is an error."""

from __future__ import annotations

import pytest

from spaseq.compile import check_query
from spaseq.lang.depth import DEEPEST
from tests.hostile import run_bounded

HEAD = "PREFIX : <http://e/> SELECT * WITHIN 1 HOURS FROM STREAM S <http://e/s> "


def query(body: str, sequence: str = "A") -> str:
    return f"{HEAD} WHERE {{ SEQ({sequence}) DEFINE GPM A ON S {{ {body} }} }}"


def many(sign: str, part: str, count: int) -> str:
    return sign.join(part.replace("#", str(i)) for i in range(count))


EVENT = """<http://e/a> <http://e/p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> <http://e/1> .
<http://e/a> <http://e/p7> <http://e/b> <http://e/1> .
<http://e/1> <http://www.w3.org/ns/prov#generatedAtTime> \
"1970-01-01T00:00:01Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .
"""

WIDE = {
    "UNION": lambda n: query(many(" UNION ", "{ ?x :p# ?y }", n)),
    "groups": lambda n: query(many(" ", "{ ?x :p# ?y }", n)),
    "triples": lambda n: query(many(" . ", "?x :p# ?y#", n)),
    "FILTER": lambda n: query("?x :p ?y " + many(" ", "FILTER(?y != #)", n)),
    "and": lambda n: query(f"?x :p ?y FILTER({many(' && ', '?y != #', n)})"),
    "or": lambda n: query(f"?x :p ?y FILTER({many(' || ', '?y = #', n)})"),
    "VALUES": lambda n: query(f"?x :p ?y VALUES ?y {{ {many(' ', '#', n)} }}"),
    "alternatives": lambda n: query(f"?x {many('|', ':p#', n)} ?y"),
    "repetition": lambda n: query(f"?x ({many('|', ':p#', n)})+ ?y"),
    "path": lambda n: query(f"?x {many('/', ':p#', n)} ?y"),
    "sequence": lambda n: query("?x :p ?y", many(" ; ", "A", n)),
}
DEEP = {
    "OPTIONAL": lambda n: query("?x :p ?y " + many(" ", "OPTIONAL { ?x :p# ?y# }", n)),
    "MINUS": lambda n: query("?x :p ?y " + many(" ", "MINUS { ?x :p# ?y }", n)),
    "BIND": lambda n: query("?x :p ?y " + many(" ", "BIND(?y AS ?z#)", n)),
    "sum": lambda n: query(f"?x :p ?y FILTER({many(' + ', '?y', n)} > 1)"),
}


@pytest.mark.thorough
@pytest.mark.parametrize("kind", WIDE)
def test_a_list_may_have_5000_members(kind, tmp_path):
    path = tmp_path / "wide.rq"
    path.write_text(WIDE[kind](5000))
    found = run_bounded(["check", path], seconds=120, memory=2 << 30)
    assert (found.returncode, "0 error(s)" in found.stderr + found.stdout) == (0, True), (
        found.stderr
    )


@pytest.mark.parametrize("kind", DEEP)
def test_too_many_levels_are_an_error_with_its_place(kind):
    (error,) = check_query(DEEP[kind](DEEPEST + 100)).errors
    assert error.code == "too-deep"
    assert "levels deep" in error.message and error.span.start > len(HEAD)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", DEEP)
def test_far_too_many_levels_are_an_error(kind, tmp_path):
    path = tmp_path / "deep.rq"
    path.write_text(DEEP[kind](5000))
    found = run_bounded(["check", path], seconds=120)
    assert (found.returncode, "levels deep" in found.stderr + found.stdout) == (1, True)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", DEEP)
def test_1000_levels_are_formatted_explained_and_answered(kind, tmp_path):
    path, events = tmp_path / "deep.rq", tmp_path / "s.nq"
    path.write_text(DEEP[kind](1000))
    events.write_text(EVENT)
    formatted = run_bounded(["fmt", path], seconds=120)
    assert (formatted.returncode, formatted.stderr) == (0, "")
    explained = run_bounded(["explain", path], seconds=120, memory=2 << 30)
    assert (explained.returncode, "automaton" in explained.stdout) == (0, True)
    run = ["run", path, "--runtime", "local", "--stream", f"S={events}"]
    found = run_bounded(run, seconds=240, memory=2 << 30)
    assert (found.returncode, len(found.stdout.splitlines())) == (0, 1), found.stderr
