"""Files of graphs that are watched."""

from __future__ import annotations

from pathlib import Path

from spaseq.kb.watched_graphs import WatchedGraph
from spaseq.limits import DEFAULT_LIMITS

TRIPLE = "<http://e/d> <http://e/owner> <http://e/bob>"


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
