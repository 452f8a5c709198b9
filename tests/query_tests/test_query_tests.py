"""`spaseq test`: statuses, the report, and what counts as the answer of a step."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from datetime import time
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pytest

from spaseq.cli import main
from spaseq.query_tests.case_nodes import same_value
from spaseq.rdf.terms.term import Term

SILENT = """PREFIX : <http://example/>
SELECT ?d WITHIN 4 SECONDS PARTITION BY (?d) FROM STREAM Beats <http://example/beats>
WHERE { SEQ(H; N!)
  DEFINE GPM H ON Beats { ?x :beat ?d }
  DEFINE GPM N ON Beats { ?y :beat ?d } }
"""

HEAD = 'query = "silent.rq"\n[[test]]\nname = "it"\n'

BEAT = '[[test.step]]\nstream = "Beats"\nat = 0\nevents = "[] :beat :d1"\n'


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "silent.rq").write_text(SILENT)
    return tmp_path


class Done(NamedTuple):
    """What `spaseq test` did."""

    status: int
    output: str
    stderr: str


def invoked(*arguments: str) -> Done:
    """Run `spaseq test` in this process."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
        main(["test", *arguments])
    return Done(int(ended.value.code or 0), out.getvalue(), err.getvalue())


def ran(place: Path, text: str, *more: str) -> Done:
    (place / "silent.test.toml").write_text(text)
    return invoked(str(place), *more)


def test_a_device_falls_silent(place: Path) -> None:
    steps = 'answers = []\n[[test.step]]\nwait = "5 SECONDS"\nanswers = [{ d = ":d1" }]\n'
    result = ran(place, HEAD + BEAT + steps)
    assert result.status == 0
    assert "1 passed" in result.output


def test_answers_that_differ_are_shown_with_line_and_values(place: Path) -> None:
    steps = '[[test.step]]\nwait = "5 SECONDS"\nanswers = [{ d = ":d2" }]\n'
    result = ran(place, HEAD + BEAT + steps)
    assert result.status == 1
    assert f"{place / 'silent.test.toml'}:8: wait 5 SECONDS" in result.output
    assert 'expected {d = ":d2"}, which did not come' in result.output
    assert "got      {d = <http://example/d1>}, which nothing expects" in result.output
    assert "1 failed" in result.output


def test_an_answer_that_comes_later_is_named(place: Path) -> None:
    result = ran(place, HEAD + BEAT + 'answers = [{ d = ":d1" }]\n')
    assert result.status == 1
    assert "It comes later" in result.output


def test_a_wait_makes_final_what_ends_with_it(place: Path) -> None:
    wait = '[[test.step]]\nwait = "4 SECONDS"\nanswers = [{ d = ":d1" }]\n'
    assert ran(place, HEAD + BEAT + wait).status == 0


def test_an_event_at_the_end_of_a_wait_comes_before_it_is_final(place: Path) -> None:
    """The beat at 4 seconds lies in the window, so the device was not silent."""
    steps = '[[test.step]]\nwait = "4 SECONDS"\nanswers = []\n'
    late = BEAT.replace("at = 0", "at = 4") + "answers = []\n"
    assert ran(place, HEAD + BEAT + steps + late).status == 0


def test_all_mistakes_of_a_file_are_told(place: Path) -> None:
    steps = (
        'tests = 3\n[[test.step]]\nstream = "Beat"\nat = "soon"\nevents = ""\n'
        "answers = [{ e = 1 }]\n[[test.step]]\nwait = 5\n[[test.step]]\n"
    )
    result = ran(place, HEAD + steps)
    assert result.status == 2
    for said in (
        ":4: unknown key tests; did you mean streams?",
        ":5: stream: the query has no stream Beat; did you mean Beats?",
        ":5: at: a time such as",
        ":5: answers: the query selects no e; it has d",
        ":10: wait: a duration such as",
        ":12: a step has events, or a wait",
    ):
        assert said in result.stderr


def test_a_lift_that_is_not_there_is_named_with_its_line(place: Path) -> None:
    result = ran(place, f'lift = {{ Beats = "no.rq" }}\n{HEAD}{BEAT}')
    assert result.status == 2
    assert ":1: there is no" in result.stderr
    result = ran(place, HEAD.replace("[[test]]", '[lift]\n\nBeats = "no.rq"\n[[test]]') + BEAT)
    assert ":4: there is no" in result.stderr


def test_a_query_with_a_mistake_is_a_mistake_of_its_tests(place: Path) -> None:
    (place / "silent.rq").write_text(SILENT.replace("SEQ(H; N!)", "SEQ(H; M!)"))
    result = ran(place, HEAD + BEAT)
    assert result.status == 2
    assert "silent.rq:3" in result.stderr


def test_statuses_without_tests(tmp_path: Path) -> None:
    assert invoked(str(tmp_path)).status == 5
    assert invoked(str(tmp_path / "no")).status == 4


def test_junit(place: Path) -> None:
    steps = '[[test.step]]\nwait = "5 SECONDS"\nanswers = []\n'
    ran(place, HEAD + BEAT + steps, "--junit", str(place / "report.xml"))
    suite = ElementTree.parse(place / "report.xml").getroot()[0]
    assert (suite.attrib["tests"], suite.attrib["failures"]) == ("1", "1")
    assert suite[0].attrib["name"] == "it"
    assert "which nothing expects" in (suite[0][0].text or "")


def test_rows_of_a_lift_bring_their_times(place: Path) -> None:
    (place / "beats.lift.rq").write_text(
        "PREFIX : <http://example/>\nPREFIX prov: <http://www.w3.org/ns/prov#>\n"
        "CONSTRUCT { [] :beat ?d ; prov:generatedAtTime ?at }\n"
        'WHERE { BIND(IRI(CONCAT("http://example/", ?id)) AS ?d) }'
    )
    text = (
        'query = "silent.rq"\nlift = { Beats = "beats.lift.rq" }\n[[test]]\nname = "rows"\n'
        '[[test.step]]\nstream = "Beats"\nevents = [{ id = "d1", at = 1000 }, \'{"id": "d2", '
        '"at": 2000}\']\n[[test.step]]\nwait = "3 SECONDS"\nanswers = [{ d = ":d1" }]\n'
        '[[test.step]]\nwait = "1 SECONDS"\nanswers = [{ d = ":d2" }]\n'
    )
    result = ran(place, text)
    assert result.status == 0, result.output


def test_graphs_of_construct_are_compared_up_to_blank_nodes(tmp_path: Path) -> None:
    (tmp_path / "q.rq").write_text(
        "PREFIX : <http://example/>\nCONSTRUCT { ?d :alert [ :of ?d ] } WITHIN 1 SECONDS\n"
        "FROM STREAM S <http://example/s> WHERE { SEQ(A) DEFINE GPM A ON S { ?x :beat ?d } }"
    )
    (tmp_path / "q.test.toml").write_text(
        'query = "q.rq"\n[[test]]\n[[test.step]]\nstream = "S"\nevents = "[] :beat :d1"\n'
        '[[test.step]]\nwait = "1 SECONDS"\nanswers = [":d1 :alert [ :of :d1 ]"]\n'
    )
    result = invoked(str(tmp_path))
    assert result.status == 0, result.output


@pytest.mark.parametrize(
    ("want", "got", "same"),
    [
        (1, '"1.0"^^<http://www.w3.org/2001/XMLSchema#decimal>', True),
        (0.1, '"0.1"^^<http://www.w3.org/2001/XMLSchema#decimal>', True),
        (0.1, '"1.0E-1"^^<http://www.w3.org/2001/XMLSchema#double>', True),
        (True, '"1"^^<http://www.w3.org/2001/XMLSchema#integer>', False),
        (True, '"true"^^<http://www.w3.org/2001/XMLSchema#boolean>', True),
        ("1", '"1"^^<http://www.w3.org/2001/XMLSchema#integer>', True),
        ("Mill Street", '"Mill Street"@en', True),
        ("http://example/d1", "<http://example/d1>", True),
        ("<http://example/d1>", "<http://example/d1>", True),
        ("d1", "<http://example/d1>", False),
        (1, '"1"', False),
        (time(10, 0), '"10:00:00"^^<http://www.w3.org/2001/XMLSchema#time>', True),
        (time(10, 1), '"10:00:00"^^<http://www.w3.org/2001/XMLSchema#time>', False),
    ],
)
def test_values(want: object, got: str, same: bool) -> None:
    assert same_value(want, Term(got), {"": "http://example/"}) is same


def test_each_answer_stands_for_one_expected_answer(place: Path) -> None:
    """`{}` fits both answers; it must not take the only one that `d = ":d1"` fits."""
    two = BEAT.replace('"[] :beat :d1"', '["[] :beat :d1", "[] :beat :d2"]')
    steps = '[[test.step]]\nwait = "5 SECONDS"\nanswers = [{}, { d = ":d1" }]\n'
    assert ran(place, HEAD + two + steps).status == 0


def test_thousands_of_answers_that_fit_each_other(place: Path) -> None:
    events = ", ".join(f'"[] :beat :d{n}"' for n in range(1500))
    many = BEAT.replace('"[] :beat :d1"', f"[{events}]")
    for more, status in ((", {}" * 1498, 0), (", {}" * 1499, 1)):
        answers = f'[{{ d = ":d1" }}, {{ d = ":d0" }}{more}]'
        steps = f'[[test.step]]\nwait = "5 SECONDS"\nanswers = {answers}\n'
        assert ran(place, HEAD + many + steps).status == status


@pytest.mark.parametrize("end", ["", " .", " # of d1", " . # of d1", "\\n. # \\u002e"])
def test_an_event_may_end_in_a_comment(place: Path, end: str) -> None:
    steps = '[[test.step]]\nwait = "5 SECONDS"\nanswers = [{ d = ":d1" }]\n'
    assert ran(place, HEAD + BEAT.replace(":d1", f":d1{end}") + steps).status == 0


def test_a_mistake_in_an_event_has_the_line_of_its_own_text(place: Path) -> None:
    result = ran(place, HEAD + BEAT.replace(":d1", "\\n :a :b :c"))
    assert "not a graph: Parser error at line 2 between columns" in result.output


def test_the_cases_of_the_project() -> None:
    streams = Path(__file__).parents[2] / "streams"
    result = invoked(str(streams))
    assert result.status == 0, result.output
    assert "8 passed" in result.output
