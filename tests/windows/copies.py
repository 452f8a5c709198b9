"""Copies of a small case, thousands of them in one run: each must have the answers of the case.

    python -m tests.windows.copies --cases 40 --events 200000 [--first 0]

Copies lie after each other, so that panes come and go by the thousand, or have keys of their own at
the same times, so that groups and joins do. The answers of the case are those of brute force.
Thresholds are the usual ones, at their least, and never reached.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from rdflib import URIRef
from rdflib.term import Identifier

import spaseq
from spaseq.compile import compile_query
from tests.oracle.comparison import comparable
from tests.oracle.model import Streamset, TooBig
from tests.oracle.patterns import nt
from tests.thresholds import forced
from tests.windows.draw_cases import (
    KEYED,
    KNOWN,
    Triple,
    draw_case,
    draw_level,
    draw_streams,
    kb_of,
)
from tests.windows.window_oracle import Case, S, T, expected

APART = 4_000_000
"""Milliseconds between copies: more than an hour, the longest WITHIN, and a case's streams."""

MOST_ANSWERS = 400_000
"""Answers of all copies of a run: a case with many answers gets fewer copies."""

STEADY = 3
"""The first copy that has the answers of all later ones: a window of three events, and the one
before it, may reach into three copies."""

ALONE = 20
"""A GPM that reads what earlier steps bind looks at window events one by one: fewer copies."""

_TIME = "<http://www.w3.org/ns/prov#generatedAtTime>"
_LONG = "<http://www.w3.org/2001/XMLSchema#long>"
NAMES = {S: "S", T: "T"}

Row = tuple[Any, ...]


def write(path: Path, events: Iterable[tuple[int, str, Iterable[Sequence[Identifier]]]]) -> None:
    """Events as N-Quads; the time stands in the graph, as a graph without quads is no event."""
    with path.open("w", encoding="utf-8") as file:
        for time, name, graph in events:
            for triple in graph:
                file.write(f"{' '.join(map(nt, triple))} <{name}> .\n")  # type: ignore[arg-type]
            file.write(f'<{name}> {_TIME} "{time}"^^{_LONG} <{name}> .\n')


def run(
    query: str, files: Mapping[str, Path], force: str, known: Iterable[Triple] = KNOWN
) -> list[Row]:
    """The answers of a run, as `comparable` says."""
    given = {name: str(path) for name, path in files.items()}
    with forced(force) if force else nullcontext():
        matches = spaseq.run(query, given, kb_of(query, known), runtime="local")
        return [comparable(m.answer) for m in matches]


def how_many(streams: Streamset, events: int, answers: int) -> int:
    """The number of copies that have some events, and not too many answers."""
    return min(events // sum(map(len, streams.values())), MOST_ANSWERS // max(1, answers))


# --- one after the other --------------------------------------------------------------------------


def shifted(streams: Streamset, copies: int) -> Streamset:
    """The events of copies, each later than the one before."""
    return {
        iri: [
            (time + copy * APART, f"{iri}/{copy}-{place}", graph)
            for copy in range(copies)
            for place, (time, _, graph) in enumerate(events)
        ]
        for iri, events in streams.items()
    }


def of_copy(row: Row) -> tuple[int, Row]:
    """The copy of an answer, and the answer as if it were the first one, without names."""
    first, end, trace, *bindings = row
    copy = first[0] // APART
    back = -copy * APART
    items = tuple((time + back, k, gpm, stream) for time, k, gpm, stream, _ in trace)
    return copy, ((first[0] + back, first[1]), (end[0] + back, end[1]), items, *bindings)


def after_each_other(case: Case, streams: Streamset, events: int, force: str) -> int:
    """The number of answers of copies after each other."""
    most = Counter(map(of_copy, map(comparable, expected(case, shifted(streams, STEADY + 2)))))
    wanted = [[row for (c, row), _ in most.items() if c == copy] for copy in range(STEADY + 1)]
    copies = max(STEADY + 2, how_many(streams, events, len(wanted[STEADY])))
    with TemporaryDirectory() as place:
        files = {}
        for iri, own in shifted(streams, copies).items():
            files[NAMES[iri]] = Path(place) / f"{NAMES[iri]}.nq"
            write(files[NAMES[iri]], own)  # type: ignore[arg-type]
        found = run(case.query(), files, force)
    by_copy: dict[int, list[Row]] = {}
    for copy, row in map(of_copy, found):
        by_copy.setdefault(copy, []).append(row)
    for copy in range(copies):
        own = wanted[min(copy, STEADY)]
        assert by_copy.get(copy, []) == own, (case.query(), streams, copy)
    return len(found)


# --- with keys of their own -----------------------------------------------------------------------


def keyed(term: Identifier, copy: int) -> Identifier:
    return URIRef(f"{term}-{copy}") if str(term).startswith("http://e/o") else term


def beside_each_other(case: Case, streams: Streamset, events: int, force: str) -> int:
    """The number of answers of copies at the same times, each about its own things."""
    wanted = Counter(_told(comparable(a)) for a in expected(case, streams))
    copies = max(2, how_many(streams, events, wanted.total()))
    with TemporaryDirectory() as place:
        files = {}
        for iri, own in streams.items():
            files[NAMES[iri]] = Path(place) / f"{NAMES[iri]}.nq"
            every = (
                (time, f"{iri}/{copy}-{number}", [[keyed(t, copy) for t in tr] for tr in graph])
                for number, (time, _, graph) in enumerate(own)
                for copy in range(copies)
            )
            write(files[NAMES[iri]], every)
        known = ((keyed(s, i), p, keyed(o, i)) for i in range(copies) for s, p, o in KNOWN)
        found = run(case.query(), files, force, known)
    by_copy: dict[str, Counter[Row]] = {}
    for row in found:
        end, bindings = _told(row)
        (copy,) = {text.rpartition("-")[2] for _, text in bindings if "http://e/o" in text}
        plain = tuple((v, text.replace(f"-{copy}", ">")) for v, text in bindings)
        by_copy.setdefault(copy, Counter())[end, plain] += 1
    assert len(by_copy) == (copies if wanted else 0), case.query()
    for copy, own_rows in by_copy.items():
        assert own_rows == wanted, (case.query(), streams, copy)
    return len(found)


def _told(row: Row) -> tuple[Any, tuple[tuple[str, str], ...]]:
    """The end and the bindings of an answer."""
    return row[1], row[3]


# --- cases ----------------------------------------------------------------------------------------

Layout = Callable[[Case, Streamset, int, str], int]


def drawn(seed: int) -> tuple[Layout, Case, Streamset]:
    """How copies lie, and a case that fits."""
    draw = Random(seed)
    if draw.random() < 0.5:
        while True:
            case = draw_case(draw)
            if not any("?t" in level.text or "EVENTS" in case.within for level in case.levels):
                return after_each_other, case, draw_streams(draw)
    while True:
        case = draw_case(draw)
        windows = {"W": case.windows["W"]}
        if windows["W"][1].kind != "each":
            level = draw_level("A", "W", windows, draw, KEYED)
            alone = Case(windows, (level,), {}, "A", "", partition=False)
            return beside_each_other, alone, draw_streams(draw)


def check(seed: int, events: int, force: str) -> int:
    """The number of answers of a case's copies."""
    how, case, streams = drawn(seed)
    gpms = compile_query(case.query()).patterns.gpms
    if any(gpm.correlation is not None for gpm in gpms):
        events //= ALONE
    try:
        return how(case, streams, events, force)
    except TooBig:
        return 0


def main() -> None:
    """Run the cases."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--cases", type=int, default=40)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--events", type=int, default=200_000)
    options = parser.parse_args()
    total: Counter[str] = Counter()
    for seed in range(options.first, options.first + options.cases):
        force = ["", "least", "never"][seed % 3]
        try:
            # At their least, a run takes a hundred times as long.
            found = check(seed, options.events // (100 if force == "least" else 1), force)
        except Exception:
            print(f"case {seed} is wrong")
            raise
        total[drawn(seed)[0].__name__] += 1
        total["answers"] += found
        print(f"case {seed} {force}: {found} answers", flush=True)
    print(dict(total), "all right")


if __name__ == "__main__":
    main()
