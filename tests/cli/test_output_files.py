"""No output overwrites an input or another output: such runs are refused before anything opens."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hostile import run_bounded

QUERY = """SELECT ?x WITHIN 1 MINUTES FROM STREAM S <http://example/s>
WHERE { SEQ(A) DEFINE GPM A ON S { ?x <http://example/is> ?y } }"""
EVENT = (
    '<http://example/a> <http://example/is> "b" <http://example/e> .\n'
    '<http://example/e> <http://www.w3.org/ns/prov#generatedAtTime> "2020-01-01T00:00:00Z"'
    "^^<http://www.w3.org/2001/XMLSchema#dateTime> .\n"
)
KB = "<http://example/k> <http://example/is> 1 ."
ONTOLOGY = """@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
<http://example/is> rdfs:subPropertyOf <http://example/was> ."""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name, text in (("q.rq", QUERY), ("s.nq", EVENT), ("kb.ttl", KB), ("o.ttl", ONTOLOGY)):
        (tmp_path / name).write_text(text)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.nq").write_text(EVENT)
    (tmp_path / "empty").mkdir()
    (tmp_path / "f.py").write_text(
        "import spaseq\n@spaseq.function('http://example/f')\ndef f(x):\n    return x\n"
    )
    return tmp_path


def _texts(place: Path) -> dict[Path, bytes]:
    files = (path for path in place.rglob("*") if path.is_file())
    return {path: path.read_bytes() for path in files if path.suffix != ".pyc"}


def _run(place: Path, *arguments: str, stream: str = "S=s.nq") -> tuple[int, str]:
    done = run_bounded(
        ["run", "q.rq", "--runtime", "local", "--stream", stream, *arguments],
        cwd=place,
        seconds=300,  # kernels may have to be compiled
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("stream", "arguments", "named"),
    [
        ("S=s.nq", ["--out", "s.nq"], ["--out s.nq", "--stream S=s.nq"]),
        ("S=s.nq", ["--out", "./in/../s.nq"], ["--out", "--stream S=s.nq"]),
        ("S=in", ["--bad", "in/1.nq"], ["--bad in/1.nq", "--stream S=in"]),
        ("S=in", ["--stats", "in/counts.json"], ["--stats", "--stream S=in"]),
        ("S=in/*.nq", ["--out", "in/1.nq"], ["--out in/1.nq", "--stream S=in/*.nq"]),
        ("S=in/*.nq", ["--out", "in/2.nq"], ["--out in/2.nq", "--stream S=in/*.nq"]),
        ("S=**/*.nq", ["--out", "in/2.nq"], ["--out in/2.nq", "--stream S=**/*.nq"]),
        ("S=s.nq", ["--kb", "<http://example/kb>=kb.ttl", "--late", "kb.ttl"], ["--late", "--kb"]),
        ("S=s.nq", ["--out", "q.rq"], ["--out q.rq", "the query q.rq"]),
        ("S=s.nq", ["--functions", "f.py", "--bad", "f.py"], ["--bad", "--functions f.py"]),
        (
            "S=s.nq",
            ["--ontology", "o.ttl", "--entailment", "rdfs", "--stats", "o.ttl"],
            ["--stats o.ttl", "--ontology o.ttl"],
        ),
        ("S=s.nq", ["--out", "new", "--bad", "new"], ["--out new", "--bad new"]),
        ("S=s.nq", ["--bad", "new", "--stats", "./new"], ["--bad new", "--stats ./new"]),
        ("S=s.nq", ["--bad", "-"], ["--bad -"]),
    ],
)
def test_an_output_that_is_an_input_or_another_output_is_refused(
    place: Path, stream: str, arguments: list[str], named: list[str]
) -> None:
    before = _texts(place)
    status, message = _run(place, *arguments, stream=stream)
    assert status == 2, message
    assert all(text in message for text in named), message
    assert _texts(place) == before


@pytest.mark.thorough
@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_links_count_as_the_file_that_they_lead_to(
    place: Path, link: Callable[[str, str], None]
) -> None:
    link(str(place / "s.nq"), str(place / "other.jsonl"))
    link(str(place / "s.nq"), str(place / "in" / "link.nq"))
    before = _texts(place)
    assert _run(place, "--out", "other.jsonl")[0] == 2
    assert _run(place, "--out", "s.nq", stream="S=in")[0] == 2
    assert _run(place, "--out", "s.nq", "--bad", "other.jsonl", stream="S=empty")[0] == 2
    assert _texts(place) == before


@pytest.mark.thorough
def test_a_dangling_link_and_its_target_are_the_same_file(place: Path) -> None:
    (place / "link").symlink_to(place / "target")
    assert _run(place, "--out", "link", "--bad", "target")[0] == 2
    assert not (place / "target").exists()


@pytest.mark.thorough
def test_a_pipe_is_not_read_and_written(place: Path) -> None:
    os.mkfifo(place / "pipe.nq")
    status, message = _run(place, "--out", "pipe.nq", stream="S=pipe.nq")
    assert status == 2, message


@pytest.mark.thorough
def test_standard_input_from_a_file_is_that_file(place: Path) -> None:
    with (place / "s.nq").open("rb") as file:
        done = run_bounded(
            ["run", "q.rq", "--runtime", "local", "--stream", "S=-", "--out", "s.nq"],
            cwd=place,
            stdin=file,
        )
    assert done.returncode == 2, done.stderr
    assert (place / "s.nq").read_text() == EVENT


@pytest.mark.thorough
def test_standard_output_into_a_file_is_that_file(place: Path) -> None:
    arguments = ["--out", "-", "--stats", "/dev/stdout"]
    assert _run(place, *arguments)[0] == 2


@pytest.mark.thorough
def test_the_null_device_may_be_given_many_times(place: Path) -> None:
    null = "/dev/null"
    status, message = _run(place, "--out", null, "--bad", null, "--late", null, "--stats", null)
    assert status == 0, message


@pytest.mark.thorough
def test_other_files_in_the_directory_of_a_stream_are_fine(place: Path) -> None:
    for name in ("answers.jsonl", ".hidden.nq"):
        output = ["--out", f"in/{name}", "--format", "jsonl"]
        status, message = _run(place, *output, stream="S=in")
        assert status == 0, message
        assert len((place / "in" / name).read_text().splitlines()) == 1


@pytest.mark.thorough
def test_the_checkpoint_is_no_stream_and_holds_no_output(place: Path) -> None:
    def follow(checkpoint: str, out: str) -> str:
        given = ["--stream", "S=empty", "--follow", "--checkpoint", checkpoint, "--out", out]
        done = run_bounded(["run", "q.rq", *given], cwd=place)
        assert done.returncode == 2
        return done.stderr

    before = _texts(place)
    assert "--checkpoint ./empty and --stream S=empty" in follow("./empty", "out")
    assert "--out state/out lies in --checkpoint state" in follow("state", "state/out")
    assert _texts(place) == before
