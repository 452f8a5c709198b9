"""Events that exceed a limit in `spaseq run`: a line of --bad, or with --strict status 4."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.hostile import run_bounded
from tests.sizes import first_of

QUERY = """PREFIX : <http://e/> SELECT ?a WITHIN 1 HOURS FROM STREAM S <http://e/s>
WHERE { SEQ(A) DEFINE GPM A ON S { ?a :p ?b . ?c :p ?d . ?e :p ?f . ?g :p ?h } }"""
TIME = "<http://www.w3.org/ns/prov#generatedAtTime>"


def event(number: int, size: int) -> str:
    graph = f"<http://e/g{number}>"
    lines = [f"<http://e/s{i}> <http://e/p> <http://e/o> {graph} ." for i in range(size)]
    time = f'"2024-01-01T00:00:0{number}Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
    return "\n".join([*lines, f"{graph} {TIME} {time} {graph} ."]) + "\n"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "q.rq").write_text(QUERY)
    (tmp_path / "s.nq").write_text(event(1, 1) + event(2, 300) + event(3, 1))
    return tmp_path


def arguments(files: Path, runtime: str) -> list[str]:
    return [
        *("run", str(files / "q.rq"), "--stream", f"http://e/s={files / 's.nq'}"),
        *("--runtime", runtime, "--format", "csv"),
    ]


@pytest.mark.parametrize(
    ("runtime", "limit"),
    [
        ("local", ("--max-solutions", "1000")),
        pytest.param("local", (), marks=pytest.mark.thorough),
        pytest.param("spark", (), marks=pytest.mark.thorough),
    ],
)
def test_the_events_around_it_are_answered(
    files: Path, runtime: str, limit: tuple[str, ...]
) -> None:
    memory = 2**30 if runtime == "local" else 2**36
    bad = files / "bad.jsonl"
    words = [*arguments(files, runtime), "--bad", bad, *limit]
    done = run_bounded(words, memory=memory, seconds=200)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("http://e/s0") == 2
    (line,) = [json.loads(text) for text in bad.read_text().splitlines()]
    most = "1,000" if limit else "1,000,000"
    assert f"more than {most} intermediate solutions (--max-solutions)" in line["reason"]
    assert line["text"].startswith("http://e/g2 of <http://e/s> at 2024-01-01T00:00:02Z")


@pytest.mark.parametrize("limit", first_of(["1000", "1000000", "9000000000"], 1))
def test_strict_ends_the_run_with_status_4(files: Path, limit: str) -> None:
    """With more solutions than there is memory for, the event is bad all the same."""
    words = [*arguments(files, "local"), "--strict", "--max-solutions", limit]
    done = run_bounded(words, seconds=200)
    assert done.returncode == 4, done.stderr
    assert "Traceback" not in done.stderr
    assert "exceeds a limit" in done.stderr
