"""The log of graphs: old changes go into its base, whenever the process is killed."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import rdflib

from spaseq.algebra.graph_changes import GraphChange
from spaseq.errors import RunError
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.kb.knowledge_versions import KnowledgeVersions, TimedChange
from spaseq.kb.load import load_kb
from spaseq.rdf.terms.term import Triple
from spaseq.runtime.live import graph_log
from spaseq.runtime.live.graph_log import GraphLog, LoggedChange, first_graphs, first_hash
from tests.sizes import SLOW, first_of

OWNERS, LIMITS = "http://e/owners", "http://e/limits"
GRAPHS = (OWNERS, LIMITS)


def triple(subject: int, value: int) -> Triple:
    return f"<http://e/d{subject}>", "<http://e/is>", f'"{value}"'


def given() -> KnowledgeBase:
    """Two graphs with one triple each."""
    graph = rdflib.Graph().parse(data=" ".join(triple(0, 0)) + " .", format="nt")
    return load_kb([(iri, graph) for iri in GRAPHS])


@contextmanager
def opened(directory: Path, knowledge: KnowledgeBase | None = None) -> Iterator[GraphLog]:
    log = GraphLog(
        directory, given() if knowledge is None else knowledge, lambda: {OWNERS: "first"}
    )
    try:
        yield log
    finally:
        log.close()


class History:
    """What graphs are after each of some random changes, kept as sets."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self.values = [{iri: {triple(0, 0)} for iri in GRAPHS}]
        self.changes: list[LoggedChange] = []
        self.files = [{OWNERS: "first"}]

    def change(self) -> LoggedChange:
        """Another change: a triple comes, and most often one goes. It has the next second."""
        number, iri = len(self.changes), self._draw.choice(GRAPHS)
        now = {own: {*triples} for own, triples in self.values[-1].items()}
        gone = sorted(self._draw.sample(sorted(now[iri]), k=min(len(now[iri]), 1)))
        new = triple(self._draw.randrange(4), number)
        now[iri] = (now[iri] - {*gone}) | {new}
        checksum = f"sum{number}" if self._draw.random() < 0.3 else None
        timed = TimedChange(1000 * (number + 1), iri, GraphChange(tuple(gone), (new,)))
        own = LoggedChange(timed, 1000 * number, checksum)
        self.values.append(now)
        self.files.append({**self.files[-1], **({iri: checksum} if checksum else {})})
        self.changes.append(own)
        return own

    def is_old(self, number: int, until: int, before: int) -> bool:
        own = self.changes[number]
        return own.timed.time <= until and own.accepted < before

    def agrees(self, log: GraphLog, count: int | None = None) -> None:
        """The log has the first changes, all unless `count` says how many."""
        count = len(self.changes) if count is None else count
        folded = log.folded.count
        assert [own.number for own in log.changes] == [*range(folded, count)]
        assert log.files == self.files[count]
        for iri in GRAPHS:
            own = [n for n in range(count) if self.changes[n].timed.graph == iri]
            found = log.last_of(iri)
            assert (found and (found.number, found.timed.time)) == (
                (own[-1], self.changes[own[-1]].timed.time) if own else None
            )
        for upto in range(folded, count + 1):
            versions = KnowledgeVersions(log.base, (c.timed for c in log.changes[: upto - folded]))
            assert {iri: of(versions, iri) for iri in GRAPHS} == self.values[upto], upto


def of(versions: KnowledgeVersions, iri: str) -> set[Triple]:
    graph, terms = versions.last(iri)
    return {
        (terms.text(s), terms.text(p), terms.text(o))
        for p, relation in graph.items()
        for s, o in zip(relation.s.tolist(), relation.o.tolist(), strict=True)
    }


@pytest.fixture(autouse=True)
def _small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments of one change, and bases that are worth nothing."""
    monkeypatch.setattr(graph_log, "FOLD_BYTES", 1)
    monkeypatch.setattr(graph_log, "_worth", lambda path: 1)


@pytest.mark.parametrize("seed", first_of(range(20), 6))
def test_changes_that_are_folded_count_as_before(tmp_path: Path, seed: int) -> None:
    """In this process and in the next, whatever the bounds are."""
    draw, history = random.Random(seed), History(seed)
    first = given().hash
    for _ in range(6):
        with opened(tmp_path) as log:
            history.agrees(log)
            for _ in range(draw.randrange(6)):
                log.append(history.change())
            n, old = len(history.changes), log.folded.count
            until, before = (1000 * draw.randrange(n + 2) for _ in range(2))
            while old < n and history.is_old(old, until, before):
                old += 1
            log.fold(until, before)
            history.agrees(log)
            assert log.folded.count in (old, max(old, 1) - 1)  # the last segment stays
        assert first_hash(tmp_path) == first
        assert first_graphs(tmp_path) == {*GRAPHS}
    assert log.base.hash == first


def test_as_much_as_can_be_is_folded(tmp_path: Path) -> None:
    history = History(1)
    with opened(tmp_path) as log:
        for _ in range(9):
            log.append(history.change())
        assert log.fold(5_000, 10**6)
        assert (log.folded.count, log.folded.until) == (5, 5_000)
        assert log.fold(10**6, 7_000)  # what was accepted at 7 s stays
        assert log.folded.count == 7
        assert not log.fold(10**6, 7_000)
        assert len([*(tmp_path / "changes").iterdir()]) <= 3
        assert [p.name for p in tmp_path.iterdir() if "base" in p.name] == ["base-7"]


def test_few_changes_beside_a_large_base_are_not_folded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(graph_log, "FOLD_BYTES", 100)
    large = rdflib.Graph()
    for number in range(2_000):
        large.parse(data=" ".join(triple(number, number)) + " .", format="nt")
    few = rdflib.Graph().parse(data=" ".join(triple(0, 0)) + " .", format="nt")
    history = History(1)
    knowledge = load_kb([*((iri, few) for iri in GRAPHS), ("http://e/large", large)])
    with opened(tmp_path, knowledge) as log:
        size = (tmp_path / "base").stat().st_size
        written = 0
        while not log.fold(10**9, 10**9):
            written += len(log.append(history.change()).to_bytes())
        assert size / 16 < written < size / 4
        assert len(log.base.graphs["http://e/large"]) == 1
        history.agrees(log)


def test_the_log_is_bounded(tmp_path: Path) -> None:
    history = History(2)
    with opened(tmp_path) as log:
        for _ in range(200):
            log.append(history.change())
            log.fold(history.changes[-1].timed.time - 3_000, 10**9)
            assert len(log.changes) <= 5
            assert len([*(tmp_path / "changes").iterdir()]) <= 6
        history.agrees(log)


def test_a_kill_at_any_step_loses_nothing(tmp_path: Path) -> None:
    """Whatever is on disk after each call that changes a file is as good as the end."""
    history, place, copies = History(3), tmp_path / "log", list[Path]()

    def then_copied(real: Any) -> Any:
        def called(*given: Any, **more: Any) -> Any:
            found = real(*given, **more)
            copies.append(tmp_path / f"copy{len(copies)}")
            shutil.copytree(place, copies[-1])
            return found

        return called

    with opened(place) as log:
        for _ in range(8):
            log.append(history.change())
        log.fold(4_000, 10**9)
        for _ in range(4):
            log.append(history.change())
        steps = [(os, "fsync"), (os, "fdatasync"), (Path, "replace"), (Path, "unlink")]
        patches = [mock.patch.object(o, n, then_copied(getattr(o, n))) for o, n in steps]
        real_save = KnowledgeBase.save
        patches.append(mock.patch.object(KnowledgeBase, "save", then_copied(real_save)))
        for patch in patches:
            patch.start()
        try:
            assert log.fold(9_000, 10**9)
        finally:
            mock.patch.stopall()
    assert len(copies) > 10
    counts = set()
    for copy in copies:
        with opened(copy) as log:
            history.agrees(log)
            counts.add(log.folded.count)
            log.append(history.change())
            history.agrees(log)
            assert len([path for path in copy.iterdir() if "base" in path.name]) == 1
        history.changes.pop(), history.values.pop(), history.files.pop()
    assert counts == {4, 9}


@pytest.mark.parametrize("step", ["save", "replace", "write_durably"])
def test_a_full_disk_changes_nothing(tmp_path: Path, step: str) -> None:
    history = History(4)

    def full(*given: Any, **more: Any) -> None:
        raise OSError(28, "No space left on device")

    with opened(tmp_path) as log:
        for _ in range(8):
            log.append(history.change())
        of = {"save": KnowledgeBase, "replace": Path, "write_durably": graph_log}[step]
        with mock.patch.object(of, step, full), pytest.raises(RunError, match="No space left"):
            log.fold(10**9, 10**9)
        history.agrees(log)
        log.append(history.change())
        assert log.fold(10**9, 10**9)
        history.agrees(log)
    with opened(tmp_path) as log:
        history.agrees(log)


def test_a_graph_that_is_not_configured_for_a_while_keeps_its_triples(tmp_path: Path) -> None:
    history = History(5)
    with opened(tmp_path) as log:
        for _ in range(8):
            log.append(history.change())
    with opened(tmp_path, load_kb([(OWNERS, rdflib.Graph())])) as log:
        assert log.fold(10**9, 10**9)
        assert [*log.base.graphs] == [OWNERS]
    with opened(tmp_path) as log:
        history.agrees(log)


WRITER = """
import sys
from pathlib import Path
from spaseq.runtime.live import graph_log
from tests.runtime.live.test_graph_log import History, opened

graph_log.FOLD_BYTES, graph_log._worth = 1, lambda path: 1
history = History(int(sys.argv[2]))
with opened(Path(sys.argv[1])) as log:
    for number in range(10_000):
        change = history.change()
        if number < log.folded.count + len(log.changes):
            continue
        log.append(change)
        print(number, flush=True)
        log.fold(change.timed.time - 2_000, 10**9)
"""


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=SLOW) for seed in (1, 2))])
def test_a_killed_writer_keeps_what_it_has_said(tmp_path: Path, seed: int) -> None:
    draw, said = random.Random(seed), -1
    for _ in range(8):
        command = [sys.executable, "-c", WRITER, str(tmp_path / "log"), str(seed)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        wanted = said + draw.randrange(5, 60)
        for line in process.stdout:
            said = int(line)
            if said >= wanted and draw.random() < 0.5:
                process.send_signal(signal.SIGKILL)
                break
        said = max([said, *map(int, process.stdout.read().split())])
        process.wait()
        history = History(seed)
        with opened(tmp_path / "log") as log:
            count = log.folded.count + len(log.changes)
            assert said + 1 <= count <= said + 2
            assert log.folded.count >= count - 8
            for _ in range(count):
                history.change()
            history.agrees(log)
