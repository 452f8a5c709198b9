"""Streams that cannot be read, wholly or in part: said once, with the cause and what to do."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from tests.cli.test_run import STREAM, Done, Place, line, place

__all__ = ["place"]

TIME = "http://www.w3.org/ns/prov#generatedAtTime"
OTHER = "http://www.w3.org/ns/sosa/resultTime"
TURTLE = "@prefix : <http://example/> .\n" + ":m :price 3 .\n" * 9


def written(place: Place, name: str, text: str) -> str:
    if name.endswith(".gz"):
        packed = gzip.compress(text.encode())
        (place.directory / name).write_bytes(packed[: len(packed) // 3])
    else:
        place.write(name, text)
    return f"S1={name}"


ALL_BAD = [
    ("turtle.nq", TURTLE, "turtle.nq looks like Turtle or TriG, whatever its name says: name it "
     ".trig if it has named graphs, else .ttl, and say --triples-per-event N"),
    ("untimed.nq", STREAM.replace(TIME, OTHER),
     f"no event of untimed.nq has a time: write --time-predicate {OTHER}, if that is it"),
    ("none.nq", "".join(STREAM.splitlines(keepends=True)[::2]),
     "no event of none.nq has a time: name the predicate of the times with --time-predicate IRI"),
    ("table.nq", "a,b\n1,2\n" * 9, "the first reason: table.nq: The subject of a triple must be"),
    ("cut.nq.gz", STREAM[:20], "the first reason: cut.nq.gz: the rest of the file is not read"),
]  # fmt: skip


def assert_unusable(done: Done, remedy: str) -> None:
    assert (done.status, done.out) == (3, ""), done.err
    last = done.err.splitlines()[-1]
    assert last.startswith("spaseq: all input is bad, so no event was read; ")
    assert remedy in last


@pytest.mark.parametrize(("name", "text", "remedy"), ALL_BAD, ids=[row[0] for row in ALL_BAD])
def test_input_that_is_all_bad_is_unusable(place: Place, name: str, text: str, remedy: str) -> None:
    assert_unusable(place.run(stream=written(place, name, text)), remedy)


@pytest.mark.spark
@pytest.mark.parametrize(("name", "text", "remedy"), ALL_BAD, ids=[row[0] for row in ALL_BAD])
def test_input_that_is_all_bad_is_unusable_on_spark(
    place: Place, name: str, text: str, remedy: str
) -> None:
    stream = written(place, name, text)
    given = ["query.rq", "--runtime", "spark", "--stream", stream, "--kb", "kb.ttl"]
    assert_unusable(place.spaseq("run", *given), remedy)


def test_bad_lines_of_one_kind_are_shown_once(place: Place) -> None:
    done = place.run(
        stream=written(place, "mixed.nq", STREAM + "<http://e/s> no quad <http://e/lost> .\n" * 9)
    )
    assert done.status == 0
    assert done.err.count("mixed.nq:") == 1
    assert "... and 8 more" in done.err


def test_turtle_beside_good_events_is_named_and_the_run_goes_on(place: Place) -> None:
    mixed = STREAM + line(3, 20) + TURTLE + line(8, 8) + line(9, 9)
    done = place.run(stream=written(place, "mixed.nq", mixed))
    assert done.status == 0
    assert "2 answers" in done.err or "3 answers" in done.err or "4 answers" in done.err
    assert "mixed.nq looks like Turtle or TriG" in done.err


def test_a_stream_without_events_is_not_bad(place: Place) -> None:
    assert place.run(stream=written(place, "empty.nq", "")).status == 0


@pytest.mark.parametrize("stream", ["closed", "closed/s.nq"])
def test_a_directory_that_cannot_be_read(
    place: Place, monkeypatch: pytest.MonkeyPatch, stream: str
) -> None:
    """The superuser may read all directories, so the test replaces what asks the system."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", "closed")

    (place.directory / "closed").mkdir()
    monkeypatch.setattr(os, "scandir", refuse)
    monkeypatch.setattr(Path, "iterdir", refuse)
    if "/" in stream:
        monkeypatch.setattr(Path, "is_dir", refuse)
    done = place.run(stream=f"S1={stream}")
    assert done.status == 3
    assert "Permission denied" in done.err
    assert "Traceback" not in done.err


def test_a_stray_triple_that_no_query_reads_is_not_shown_with_another_term(place: Place) -> None:
    text = STREAM.replace(TIME, OTHER, 1)
    place.run("--bad", "bad.jsonl", stream=written(place, "one.nq", text))
    assert f"<{OTHER}> ..." in (place.directory / "bad.jsonl").read_text()
