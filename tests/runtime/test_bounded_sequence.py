"""Graphs that are made and matched in threads: the answers and reports of one thread, in order."""

from __future__ import annotations

import os
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

import spaseq
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.inputs.stream_options import BadInput
from spaseq.stages.changing_knowledge import ChangingKnowledge
from tests.thresholds import Force

E = "http://e/"
HEAD = f"PREFIX : <{E}>\n"

EVENTS = 3_000
KEYS = 40

SMALL = "columnar_matches=1 memory_rows=512 sorted_rows=64 chunk_rows=64"
"""Batches of few rows, so that there are many."""


def keeper(graph: str, predicate: str) -> str:
    """A query that keeps the last value of each key."""
    return (
        f"{HEAD}MAINTAIN GRAPH :{graph} AS DELETE {{ ?v :has ?any }} INSERT {{ ?v :has ?p }}\n"
        f"FROM STREAM S :s WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?v :{predicate} ?p }} }}"
    )


def copier(source: str, graph: str) -> str:
    """A query that keeps, for each key, the last value that it was asked for."""
    return (
        f"{HEAD}MAINTAIN GRAPH :{graph} AS DELETE {{ ?v :has ?any }} INSERT {{ ?v :has ?p }}\n"
        f"FROM STREAM S :s FROM NAMED :{source} WHERE {{ SEQ(A)\n"
        f"DEFINE GPM A ON S {{ ?v :asks ?x GRAPH :{source} {{ ?v :has ?p }} }} }}"
    )


def reader(graph: str) -> str:
    """A query that asks for the value of a key."""
    return (
        f"{HEAD}SELECT ?v ?p FROM STREAM S :s FROM NAMED :{graph} WHERE {{ SEQ(A)\n"
        f"DEFINE GPM A ON S {{ ?v :asks ?x GRAPH :{graph} {{ ?v :has ?p }} }} }}"
    )


def key(number: int) -> str:
    return f"k{number * 7 % KEYS}"


def triples(number: int) -> Iterator[tuple[str, str, str]]:
    if number % 2:
        yield key(number), "told", f"p{number % 11}"
    if number % 3 == 0:
        yield key(number), "heard", f"q{number % 13}"
    if number % 5 < 3:
        yield key(number), "asks", "x"


def events() -> list[spaseq.Event]:
    return [
        spaseq.Event(
            "".join(f"<{E}{s}> <{E}{p}> <{E}{o}> .\n" for s, p, o in triples(number)),
            number * 10,
            f"{E}g{number}",
        )
        for number in range(EVENTS)
    ]


def expected(chain: bool) -> list[tuple[str, str]]:
    """What the reader finds: a plain loop. A change is seen by the event of its time."""
    now, later, found = dict[str, str](), dict[str, str](), list[tuple[str, str]]()
    for number in range(EVENTS):
        asked = None
        for subject, predicate, value in sorted(triples(number), key=lambda t: t[1] == "asks"):
            if predicate == "told":
                now[subject] = value
            if predicate == "asks":
                asked = subject
        if asked in now and asked is not None:
            later[asked] = now[asked]
        known = later if chain else now
        if asked in known and asked is not None:
            found.append((asked, known[asked]))
    return found


def answers(queries: list[str], **options: Any) -> dict[str, list[tuple[str, str]]]:
    found = defaultdict[str, list[tuple[str, str]]](list)
    for match in spaseq.run(queries, {f"{E}s": events()}, runtime="local", **options):
        v, p = (match.bindings[name].n3()[len(E) + 1 : -1] for name in "vp")
        found[match.query].append((v, p))
    return dict(found)


@pytest.fixture(params=[1, 2])
def cores(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """So many cores: with one there are no threads."""
    monkeypatch.setattr(os, "cpu_count", lambda: request.param)
    number: int = request.param
    return number


@pytest.mark.usefixtures("cores")
@pytest.mark.parametrize("chain", [False, True])
def test_a_graph_is_the_one_that_a_plain_loop_has(chain: bool, force: Force) -> None:
    force(SMALL)
    queries = [reader("b" if chain else "a"), keeper("a", "told")]
    if chain:
        queries.append(copier("a", "b"))
    found = answers(queries)
    assert found == {"query1": expected(chain)}
    assert len(found["query1"]) > EVENTS // 4


@pytest.mark.usefixtures("cores")
@pytest.mark.parametrize("several", ["readers", "keepers", "copies"])
def test_several_readers_and_keepers(several: str, force: Force) -> None:
    force(SMALL)
    queries = [reader("a"), keeper("a", "told")]
    if several == "readers":
        queries.append(reader("a"))
    if several == "keepers":  # the second one changes no key that is told
        queries.append(keeper("a", "never"))
    if several == "copies":
        queries += [copier("a", "b"), reader("b")]
    found = answers(queries)
    assert found["query1"] == expected(chain=False)
    if several == "readers":
        assert found["query3"] == found["query1"]
    if several == "copies":
        assert found["query4"] == expected(chain=True)


def run_with_bad(cores: int, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """Bad events, by whether they are reported in this thread. Each key gets more values."""
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    bad, me = list[tuple[str, bool]](), threading.get_ident()

    def on_bad(own: BadInput) -> None:
        bad.append((own.text, threading.get_ident() == me))

    growing = keeper("a", "told").replace("DELETE { ?v :has ?any } ", "")
    found = spaseq.run(
        [reader("a"), growing, copier("a", "b"), reader("b")],
        {f"{E}s": events()[: EVENTS // 4]},
        runtime="local",
        limits=spaseq.Limits(solutions=8),
        on_bad=on_bad,
    )
    assert sum(1 for _ in found) > 100
    return bad


def test_reports_come_in_one_thread_and_in_one_order(
    monkeypatch: pytest.MonkeyPatch, force: Force
) -> None:
    force(SMALL)
    one, two = (run_with_bad(cores, monkeypatch) for cores in (1, 2))
    assert one == two
    assert len(one) > 100
    assert all(here for _, here in one)


def threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name in ("spaseq-graphs", "spaseq-changes")]


def test_a_run_that_is_left_leaves_no_thread(monkeypatch: pytest.MonkeyPatch, force: Force) -> None:
    force(SMALL)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    found = spaseq.run([reader("a"), keeper("a", "told")], {f"{E}s": events()}, runtime="local")
    assert next(iter(found)) is not None
    assert threads()
    found.close()
    del found
    until = time.monotonic() + 10
    while threads() and time.monotonic() < until:
        time.sleep(0.01)
    assert not threads()


@pytest.mark.usefixtures("cores")
def test_what_fails_in_a_thread_fails_the_run(
    monkeypatch: pytest.MonkeyPatch, force: Force
) -> None:
    force(SMALL)
    plain, calls = ChangingKnowledge.matched, list[int]()

    def failing(self: ChangingKnowledge, rows: SolutionBatch) -> SolutionBatch:
        calls.append(len(rows))
        if len(calls) == 5:
            raise RuntimeError("no more")
        return plain(self, rows)

    monkeypatch.setattr(ChangingKnowledge, "matched", failing)
    given = list[object]()
    with pytest.raises(RuntimeError, match="no more"):
        given.extend(
            spaseq.run([reader("a"), keeper("a", "told")], {f"{E}s": events()}, runtime="local")
        )
    assert len(calls) == 5
