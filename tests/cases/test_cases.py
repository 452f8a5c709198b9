"""The use cases in `streams/`: their files are valid, and both runtimes give their answers."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import generate
import pyoxigraph
import pytest
import rdflib

from spaseq.cli import main
from spaseq.lang.parser import parse

from .engine import Runtime, inputs, run
from .expected import LOOPS, ONTOLOGIES, ROOT, STREAMS, expected, queries
from .raw import Answer

QUERIES = [query for case in LOOPS for query in queries(case)]
RUNTIMES = ["local", pytest.param("spark", marks=pytest.mark.spark)]


def name_of(query: Path) -> str:
    return f"{query.parent.name}/{query.stem}"


def checked_in(query: Path) -> list[Answer]:
    """The answers stored beside a query, in order."""
    text = (query.parent / "answers.jsonl").read_text(encoding="utf-8")
    return [a for a in map(json.loads, text.splitlines()) if a["query"] == query.stem]


@pytest.mark.filterwarnings("ignore:Dataset.default_context")
@pytest.mark.parametrize("case", LOOPS)
def test_rdf_files_parse_alike_with_two_parsers(case: str) -> None:
    for path in sorted((STREAMS / case).glob("*.nq")):
        data = rdflib.Dataset()
        data.parse(path, format="nquads")
        quads = set(pyoxigraph.parse(path=str(path)))
        assert len(quads) == sum(1 for _ in data.quads()) > 0
    knowledge = set(pyoxigraph.parse(path=str(STREAMS / case / "kb.ttl")))
    assert len(knowledge) == len(rdflib.Graph().parse(STREAMS / case / "kb.ttl")) > 0


@pytest.mark.parametrize("query", QUERIES, ids=name_of)
def test_queries_name_the_files_beside_them(query: Path) -> None:
    tree = parse(query.read_text(encoding="utf-8"), str(query))
    streams, kb = inputs(query)
    assert {stream.iri.value for stream in tree.streams} == set(streams)
    assert {graph.iri.value for graph in tree.kbs} == set(kb)
    assert set(streams.values()) == set(query.parent.glob("*.nq"))
    assert all(path.exists() for path in kb.values())


@pytest.mark.parametrize("case", LOOPS)
def test_answers_are_those_of_the_loop(case: str) -> None:
    text = (STREAMS / case / "answers.jsonl").read_text(encoding="utf-8")
    assert [json.loads(line) for line in text.splitlines()] == expected(case)


@pytest.mark.parametrize("query", QUERIES, ids=name_of)
def test_a_person_can_verify_the_answers(query: Path) -> None:
    assert 5 <= len(checked_in(query)) <= 30


@pytest.mark.parametrize("case", LOOPS)
def test_readmes_are_about_their_case(case: str) -> None:
    folder = STREAMS / case
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert text.count("\n") <= 20
    for path in [*queries(case), *folder.glob("*.nq"), folder / "kb.ttl"]:
        assert path.name in text, path


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("query", QUERIES, ids=name_of)
def test_the_engine_gives_the_answers(query: Path, runtime: Runtime) -> None:
    streams, kb = inputs(query)
    ontology = ONTOLOGIES.get(name_of(query))
    assert run(query, streams, kb, runtime, ontology) == checked_in(query)


@pytest.mark.parametrize("case", LOOPS)
def test_the_engine_agrees_with_the_loop_on_other_streams(case: str, tmp_path: Path) -> None:
    """Uses more keys than the files; with several towns, traffic has ties within its streams."""
    keys = {"traffic": 5}.get(case, 20)
    arguments = ["--seed", "7", "--events", "2500", "--keys", str(keys), "--out", str(tmp_path)]
    assert generate.main([case, *arguments]) == 0
    answers = expected(case, tmp_path)
    assert len(answers) > 10
    for query in queries(case):
        streams, kb = ({i: tmp_path / p.name for i, p in d.items()} for d in inputs(query))
        wanted = [a for a in answers if a["query"] == query.stem]
        assert run(query, streams, kb, "local", ONTOLOGIES.get(name_of(query))) == wanted


@pytest.mark.parametrize("case", LOOPS)
def test_the_command_in_the_readme_prints_the_answers(
    case: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    text = (STREAMS / case / "README.md").read_text(encoding="utf-8").replace("\\\n", "")
    (command,) = [line for line in text.splitlines() if line.startswith("    spaseq run ")]
    monkeypatch.chdir(ROOT)
    with pytest.raises(SystemExit) as done:
        main([*shlex.split(command)[1:], "--runtime", "local"])
    assert done.value.code == 0
    kept = (STREAMS / case / "answers.jsonl").read_text(encoding="utf-8").splitlines()
    assert capfd.readouterr().out.splitlines() == [x for x in kept if '"query": "query"' in x]
