"""Classes, properties and labels of files; settings of a client."""

from __future__ import annotations

from pathlib import Path

import pytest

from spaseq.editor.protocol import EditorSettings, path_in, settings_of
from spaseq.editor.vocabulary import Vocabulary, add_source, loaded

TURTLE = """\
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix : <http://example/> .
:Room a owl:Class ; rdfs:label "Zimmer"@de, "room"@en ; rdfs:comment "A \\"room\\"" .
:celsius a owl:DatatypeProperty ; rdfs:domain :Reading .
:hall a :Room .
"""
NQUADS = """\
<http://example/r1> <http://example/celsius> "18" <http://example/g1> .
<http://example/r1> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://example/Reading> <http://example/g1> .
this line is broken
<http://example/r1> <http://www.w3.org/2000/01/rdf-schema#label> "a\\tb"@en-GB <http://example/g1> .
"""  # noqa: E501


def test_turtle(tmp_path: Path) -> None:
    file = tmp_path / "kb.ttl"
    file.write_text(TURTLE, "utf-8")
    vocabulary = Vocabulary()
    add_source(vocabulary, str(file))
    assert {"http://example/Room", "http://example/Reading"} <= vocabulary.classes
    assert "http://example/celsius" in vocabulary.properties
    assert vocabulary.labels == {"http://example/Room": "room"}
    assert vocabulary.comments == {"http://example/Room": 'A "room"'}
    assert vocabulary.kind("http://example/Room") == "class"
    assert vocabulary.kind("http://example/hall") is None


def test_lines(tmp_path: Path) -> None:
    file = tmp_path / "events.nq"
    file.write_text(NQUADS, "utf-8")
    vocabulary = Vocabulary()
    add_source(vocabulary, str(file))
    assert vocabulary.classes == {"http://example/Reading"}
    assert "http://example/celsius" in vocabulary.properties
    assert vocabulary.labels == {"http://example/r1": "a\tb"}


def test_only_the_begin_of_a_stream_is_read(tmp_path: Path) -> None:
    file = tmp_path / "events.nq"
    file.write_text(NQUADS, "utf-8")
    vocabulary = Vocabulary()
    add_source(vocabulary, str(file), 1)
    assert vocabulary.properties == {"http://example/celsius"}
    assert not vocabulary.classes


@pytest.mark.parametrize(
    ("name", "content"),
    [("kb.ttl", b"\xff\xfe broken"), ("kb.ttl.gz", b"\x1f\x8b cut"), ("kb.unknown", b"")],
)
def test_what_does_not_load_is_said(tmp_path: Path, name: str, content: bytes) -> None:
    bad, good = tmp_path / name, tmp_path / "good.ttl"
    bad.write_bytes(content)
    good.write_text(TURTLE, "utf-8")
    said: list[str] = []
    sources = dict.fromkeys([str(bad), str(tmp_path / "none.ttl"), str(good)], 100)
    vocabulary = loaded(sources, lambda path, error: said.append(f"{path}: {error}"))
    assert len(said) == 2
    assert str(bad) in said[0]
    assert "http://example/Room" in vocabulary.classes


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("kb.ttl", "kb.ttl"),
        ("S=a/b.nq", "a/b.nq"),
        ("http://example/kb=kb.ttl", "kb.ttl"),
        ("<http://example/?a=b>=kb.ttl", "kb.ttl"),
        ("http://example/kb=http://host/sparql", "http://host/sparql"),
    ],
)
def test_paths(text: str, path: str) -> None:
    assert path_in(text) == path


def test_settings() -> None:
    given = {"kb": "a.ttl", "stream": ["S=b.nq", "T=/c.nq"], "entailment": "rdfs", "ontology": []}
    settings, problems = settings_of(given, "/work")
    assert problems == []
    assert settings == EditorSettings(
        kbs=("/work/a.ttl",), streams=("S=/work/b.nq", "T=/c.nq"), entailment="rdfs"
    )
    assert set(settings.sources()) == {"/work/a.ttl", "/work/b.nq", "/c.nq"}


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (3, "no object"),
        ({"kb": 3}, "text or a list of texts"),
        ({"entailment": "owl"}, "unknown entailment 'owl'"),
        ({"functions": "evil.py"}, "unknown setting 'functions'"),
    ],
)
def test_wrong_settings(value: object, problem: str) -> None:
    settings, problems = settings_of(value, None)
    assert settings == EditorSettings()
    assert problem in problems[0]
