"""RSP-QL as its definition has it: at each close, SPARQL over a dataset of windows.

pyoxigraph evaluates the SPARQL. This shares no code with the translation.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyoxigraph as ox

import spaseq
from spaseq.lang.parser import parse

Row = tuple[str | None, ...]
Triples = Sequence[tuple[str, str, str]]
Events = Mapping[str, Sequence[tuple[int, Triples]]]

PREFIX = "PREFIX : <http://e/>\n"
_SUBJECTS = [":a", ":b", ":c"]
_PREDICATES = [":v", ":r"]
_OBJECTS = ["1", "2", "3", ":a", ":b", ":x"]


@dataclass(frozen=True)
class Window:
    """A window (seconds) on a stream; both are named by prefixed names."""

    name: str
    stream: str
    length: int
    slide: int


@dataclass(frozen=True)
class Asked:
    """A query: SELECT and what follows, with WINDOW blocks, over windows and stored data."""

    select: str
    where: str
    windows: tuple[Window, ...]
    operator: str = "RSTREAM"
    tail: str = ""
    stored: Triples = ()

    def rspql(self) -> str:
        clauses = [
            f"FROM NAMED WINDOW {w.name} ON {w.stream} [RANGE PT{w.length}S STEP PT{w.slide}S]"
            for w in self.windows
        ]
        clauses += ["FROM :stored"] if self.stored else []
        head = f"REGISTER {self.operator} :out AS {self.select}"
        return f"{PREFIX}{head} {' '.join(clauses)} WHERE {{ {self.where} }} {self.tail}"

    def csparql(self) -> str:
        clauses = [
            f"FROM STREAM {w.stream} [RANGE {w.length}s STEP {w.slide}s]" for w in self.windows
        ]
        clauses += ["FROM :stored"] if self.stored else []
        head = f"REGISTER QUERY q AS {PREFIX} {self.select}"
        return f"{head} {' '.join(clauses)} WHERE {{ {self.where} }} {self.tail}"


def expected(asked: Asked, events: Events, merged: bool = False) -> set[tuple[int, Row]]:
    """(close in seconds, row) of all closes at which a window has events, or had some before."""
    found = set[tuple[int, Row]]()
    before = set[Row]()
    had_content = False
    for close in _closes(asked, events):
        store, content = _dataset(asked, events, close, merged)
        if not content and not had_content:
            continue
        rows = _rows(asked, store)
        given = {"RSTREAM": rows, "ISTREAM": rows - before, "DSTREAM": before - rows}
        found |= {(close, row) for row in given[asked.operator]}
        before, had_content = rows, content
    return found


def _closes(asked: Asked, events: Events) -> Iterable[int]:
    times = [time for own in events.values() for time, _ in own]
    slide = asked.windows[0].slide
    last = max(times) + max(w.length for w in asked.windows) + slide
    return range(slide, last + slide, slide)


def _dataset(asked: Asked, events: Events, close: int, merged: bool) -> tuple[ox.Store, bool]:
    store, content = ox.Store(), False
    for window in asked.windows:
        graph = ox.DefaultGraph() if merged else _term(window.name)
        for time, triples in events[window.stream]:
            if close - window.length <= time < close:
                content = True
                for triple in triples:
                    store.add(ox.Quad(*map(_term, triple), graph))
    for triple in asked.stored:
        store.add(ox.Quad(*map(_term, triple), ox.DefaultGraph()))
    return store, content


def _rows(asked: Asked, store: ox.Store) -> set[Row]:
    where = asked.where.replace("WINDOW", "GRAPH")
    found = store.query(f"{PREFIX}{asked.select} WHERE {{ {where} }} {asked.tail}")
    if isinstance(found, ox.QueryBoolean):
        truth = "true" if found else "false"
        return {(f'"{truth}"^^<http://www.w3.org/2001/XMLSchema#boolean>',)}
    names = [v.value for v in found.variables]
    return {tuple(None if s[n] is None else str(s[n]) for n in sorted(names)) for s in found}


def _term(text: str) -> ox.NamedNode | ox.Literal:
    return ox.NamedNode(f"http://e/{text[1:]}") if text[0] == ":" else ox.Literal(int(text))


def answered(
    query: str, events: Events, stored: Triples, variables: Sequence[str], directory: Path
) -> set[tuple[int, Row]]:
    """(close in seconds, row) of the answers of a translated query."""
    streams = {
        stream.name: [
            spaseq.Event(_lines(triples), time * 1000)
            for time, triples in events[stream.iri.value.replace("http://e/", ":")]
        ]
        for stream in parse(query).streams
    }
    file = directory / "stored.nt"
    file.write_text(_lines(stored))
    kb = {"http://e/stored": file} if stored else {}
    found = set[tuple[int, Row]]()
    for match in spaseq.run(query, streams, kb, runtime="local"):
        row = (match.bindings[v].n3() if v in match.bindings else None for v in variables)
        found.add((match.answer.end[0] // 1000, tuple(row)))
    return found


def _lines(triples: Triples) -> str:
    return "".join(f"{' '.join(str(_term(t)) for t in triple)} .\n" for triple in triples)


def drawn_events(seed: int, streams: Sequence[str]) -> Events:
    """Random events of streams, at times of 0 to 19 seconds."""
    draw = random.Random(seed)
    return {
        stream: sorted(
            (draw.randrange(20), [_triple(draw) for _ in range(draw.randint(1, 3))])
            for _ in range(12)
        )
        for stream in streams
    }


def _triple(draw: random.Random) -> tuple[str, str, str]:
    return draw.choice(_SUBJECTS), draw.choice(_PREDICATES), draw.choice(_OBJECTS)
