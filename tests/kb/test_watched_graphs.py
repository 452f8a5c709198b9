"""Files of graphs that are watched. Knowledge bases whose files change: when a change counts, and
what is loaded.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from spaseq.errors import InputError
from spaseq.kb.load import NO_CACHE
from spaseq.kb.watched_graphs import KbWatch, WatchedGraph
from spaseq.limits import DEFAULT_LIMITS
from spaseq.options import ServiceOptions

TRIPLE = "<http://e/d> <http://e/owner> <http://e/bob>"

GRAPH = "http://e/g"


def test_a_problem_stays_until_the_triples_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "owners.ttl"
    path.write_text("<http://e/d> <")
    graph = WatchedGraph("http://e/owners", [str(path)], None, 1000, DEFAULT_LIMITS)
    assert graph.changed(at_once=True) is None
    assert "stays as it was" in graph.problem
    path.write_text(f"{TRIPLE} .")
    found = graph.changed(at_once=True)
    assert found is not None and found[1] == [tuple(TRIPLE.split())]
    assert "stays as it was" in graph.problem


def test_a_file_that_is_as_it_was_is_no_problem(tmp_path: Path) -> None:
    path = tmp_path / "owners.ttl"
    path.write_text(f"{TRIPLE} .")
    graph = WatchedGraph("http://e/owners", [str(path)], None, 1000, DEFAULT_LIMITS)
    assert graph.changed(at_once=True) is not None
    path.write_text("oops")
    assert graph.changed(at_once=True) is None and graph.problem
    path.write_text(f"{TRIPLE} .")
    assert graph.changed(at_once=True) is None and not graph.problem


class Watched:
    """A KB file, and a watch on it with a manual clock."""

    def __init__(self, file: Path) -> None:
        self.file, self.now, self.writes = file, 0.0, 0
        self.write("<a> <p> <b> .")
        self.watch = KbWatch(
            [(GRAPH, file), ("http://e/h", "http://127.0.0.1:9/")],
            ServiceOptions(), NO_CACHE, 1.0, lambda: self.now,
        )  # fmt: skip

    def write(self, text: str) -> None:
        self.file.write_text(text)
        self.writes += 1  # file times are too coarse for tests
        os.utime(self.file, ns=(self.writes, self.writes))

    def triples_after(self, seconds: float) -> int | None:
        self.now += seconds
        found = self.watch.poll()
        return None if found is None else len(found)


@pytest.fixture
def kb(tmp_path: Path) -> Watched:
    return Watched(tmp_path / "kb.ttl")


def test_a_change_counts_when_the_file_has_stayed_as_it_is(kb: Watched) -> None:
    assert kb.triples_after(1) is None
    kb.write("<a> <p> <b> , <c> .")
    assert kb.triples_after(1) is None  # seen
    kb.write("<a> <p> <b> , <c> , <d> .")
    assert kb.triples_after(1) is None  # still being written
    assert kb.triples_after(1) == 3
    assert kb.triples_after(1) is None


def test_files_are_looked_at_now_and_then_only(kb: Watched) -> None:
    kb.write("<a> <p> <b> , <c> .")
    assert [kb.triples_after(0.5) for _ in range(6)] == [None, None, None, 2, None, None]


def test_a_change_that_does_not_load_is_said_once(kb: Watched) -> None:
    kb.write("<a> <p> .")
    assert kb.triples_after(1) is None
    with pytest.raises(InputError, match=r"kb\.ttl:1: "):
        kb.triples_after(1)
    assert kb.triples_after(1) is None
    kb.write("<a> <p> <b> , <c> .")
    assert [kb.triples_after(1) for _ in range(2)] == [None, 2]


def test_a_file_that_is_taken_away_does_not_load(kb: Watched) -> None:
    kb.file.unlink()
    assert kb.triples_after(1) is None
    with pytest.raises(InputError, match="no such file"):
        kb.triples_after(1)


def test_a_new_file_in_a_directory_is_a_change(tmp_path: Path) -> None:
    (tmp_path / "1.nt").write_text("<http://a> <http://p> <http://b> .\n")
    now = 0.0
    watch = KbWatch([(GRAPH, tmp_path)], ServiceOptions(), NO_CACHE, 1.0, lambda: now)
    (tmp_path / "2.nt").write_text("<http://a> <http://p> <http://c> .\n")
    now = 1.0
    assert watch.poll() is None
    now = 2.0
    found = watch.poll()
    assert found is not None
    assert len(found) == 2
