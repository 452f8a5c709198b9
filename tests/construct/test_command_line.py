"""CONSTRUCT and registered streams on the command line and in texts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spaseq.api.explain import explain
from spaseq.cli import main
from spaseq.compile import check_query
from spaseq.lang.format import format_query
from spaseq.lang.parser import parse
from tests.construct.test_chains import DOUBLE_FALLS, FALLS, RISES, VALUES
from tests.language.tables import nquads


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.nq").write_text(nquads(VALUES))
    for name, text in (("falls", FALLS), ("double", DOUBLE_FALLS), ("rises", RISES)):
        (tmp_path / f"{name}.rq").write_text(text)
    return tmp_path


def spaseq(*arguments: str) -> object:
    with pytest.raises(SystemExit) as done:
        main([*arguments])
    return done.value.code


def run(*arguments: str) -> object:
    return spaseq("run", *arguments, "--runtime", "local")


def test_jsonl_tells_the_queries_apart(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("rises.rq", "double.rq", "falls.rq", "--stream", "S=s.nq") == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    names = ["http://example/falls"] * 5 + ["http://example/double-falls"] * 2 + ["rises"] * 2
    assert [line["query"] for line in lines] == names
    assert all(("graph" in line) != ("bindings" in line) for line in lines)
    assert lines[7]["trace"][0]["event"] == lines[5]["event"]


@pytest.mark.parametrize("form", ["nquads", "trig", "rdfm"])
def test_several_construct_queries_fill_one_file(files: Path, form: str) -> None:
    assert run("falls.rq", "double.rq", "--stream", "S=s.nq", "--format", form, "--out", "o") == 0
    assert (files / "o").read_text().count("generatedAtTime") == 7


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["falls.rq", "--format", "csv"], "the answers of falls are graphs"),
        (["falls.rq", "--format", "json"], "use jsonl, nquads, trig, rdfm"),
        (["rises.rq", "double.rq", "falls.rq", "--format", "nquads"], "answers of rises are sol"),
        (["double.rq", "falls.rq", "--format", "tsv"], "the answers of one query"),
        (["double.rq", "falls.rq", "--stream", "F=s.nq"], "takes no input: query falls"),
        (["falls.rq", "other.rq"], "two queries register the stream <http://example/falls>"),
        (["circle.rq", "falls.rq"], "in a circle: circle reads <http://example/falls> of falls"),
        (["double.rq", "select.rq"], "use CONSTRUCT there instead of SELECT"),
    ],
)
def test_what_makes_no_sense_is_told_at_the_start(
    files: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    (files / "other.rq").write_text(FALLS)
    select = FALLS.replace("CONSTRUCT { [] :from ?a ; :to ?b }", "SELECT *")
    (files / "select.rq").write_text(select)
    circle = DOUBLE_FALLS.replace("<http://example/double-falls>", "<http://example/s>")
    (files / "circle.rq").write_text(circle)
    assert run(*arguments, "--stream", "S=s.nq") == 2
    out, err = capsys.readouterr()
    assert words in err
    assert out == ""


@pytest.mark.parametrize(
    ("text", "code", "marked"),
    [
        (FALLS.replace("/falls>", "/s>"), "own-stream", "S <http://example/s>"),
        (FALLS.replace("<http://example/falls>", "<falls>"), "relative-stream", "<falls>"),
    ],
)
def test_refused_with_the_place(text: str, code: str, marked: str) -> None:
    (error,) = check_query(text).errors
    assert error.code == code
    assert marked in text[error.span.start : error.span.end]


@pytest.mark.parametrize(
    ("template", "code"),
    [
        ("{ ?x :p ?nobody }", "unbound-variable"),
        ("{ 7 :p ?x }", "literal-subject"),
        ("{ }", "empty-template"),
    ],
)
def test_templates_that_give_nothing_have_a_warning(template: str, code: str) -> None:
    text = FALLS.replace("{ [] :from ?a ; :to ?b }", template)
    checked = check_query(text)
    assert [w.code for w in checked.warnings] == [code]
    assert checked.plan is not None


def test_the_canonical_text_is_the_same_query() -> None:
    text = FALLS.replace("[] :from ?a ; :to ?b", "?x :list (?a [ :n ?b ]) . _:n a :T ; :q _:n, 1.0")
    query = parse(text)
    canonical = format_query(query)
    assert canonical.splitlines()[2] == "REGISTER STREAM :falls AS"
    assert parse(canonical) == query
    assert format_query(parse(canonical)) == canonical


def test_explain_shows_the_template_and_the_stream() -> None:
    text = str(explain(FALLS))
    assert "answers    http://example/falls, a stream that other queries" in text
    assert "  _:b0 :from ?a\n" in text
    assert "project" not in text
