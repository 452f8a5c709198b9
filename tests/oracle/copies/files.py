"""The copies of a case as files, and the place of each event in its stream."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rdflib import Graph

from tests.oracle.copies.layouts import Layout
from tests.oracle.draw_events import NS, term
from tests.oracle.model import Triple
from tests.oracle.patterns import nt
from tests.oracle.strategies import Case

KEYS = (term("k1"), term("k2"))
STAMP = "<http://www.w3.org/ns/prov#generatedAtTime>"
LONG = "<http://www.w3.org/2001/XMLSchema#long>"


@dataclass(frozen=True)
class Written:
    """The files of a run, and the time and k of each event that they have."""

    streams: dict[str, Path]  # by IRI: a file or a directory
    kb: dict[str, Path]
    places: dict[str, tuple[int, int]]  # by the event's IRI


def written(case: Case, layout: Layout, directory: Path, parts: int, in_order: bool) -> Written:
    """Write all copies: in `parts` files a stream, in order of time or copy by copy."""
    places: dict[str, tuple[int, int]] = {}
    streams = {}
    for number, iri in enumerate(case.streams, 1):
        texts = [_template(*event, layout.own_keys) for event in case.streams[iri]]
        events = _arrivals(case, iri, layout, in_order)
        ties: Counter[int] = Counter()
        for time, copy, index in events:
            places[_named(texts[index][0], copy)] = time, ties[time]
            ties[time] += 1
        streams[iri] = directory / f"s{number}{'' if parts > 1 else '.nq'}"
        _write(streams[iri], texts, events, parts)
    kb = {}
    for number, (iri, graph) in enumerate(case.kb.items(), 1):
        kb[iri] = directory / f"kb{number}.nt"
        kb[iri].write_text(_knowledge(graph, layout), encoding="utf-8")
    return Written(streams, kb, places)


def _arrivals(case: Case, iri: str, layout: Layout, in_order: bool) -> list[tuple[int, int, int]]:
    """(time, copy, index in the case) of each event of a stream."""
    times = [time for time, _, _ in case.streams[iri]]
    events = [
        (time + layout.offset(copy), copy, index)
        for copy in range(layout.count)
        for index, time in enumerate(times)
    ]
    return sorted(events, key=lambda event: event[0]) if in_order else events


def _template(time: int, iri: str | None, triples: Sequence[Triple], own: bool) -> tuple[str, str]:
    """The event's IRI, and its N-Quads: `@c` stands for the copy, `@t` for the time in ms."""
    assert iri is not None
    graph = f"<{_named(iri, '@c')}>"
    lines = []
    for s, p, o in triples or [(term("nothing"),) * 3]:
        thing = f"<{o}-@c>" if own and o in KEYS else nt(o)
        lines.append(f"{nt(s)} {nt(p)} {thing} {graph} .\n")
    lines.append(f'{graph} {STAMP} "@t"^^{LONG} .\n')
    return iri, "".join(lines)


def _named(iri: str, copy: int | str) -> str:
    return f"{iri}-{copy}"


def _write(
    path: Path,
    texts: Sequence[tuple[str, str]],
    events: Sequence[tuple[int, int, int]],
    parts: int,
) -> None:
    """Write events as a file, or as `parts` files of a directory."""
    if parts > 1:
        path.mkdir()
    size = -(-len(events) // parts) or 1
    for part in range(parts):
        place = path / f"{part}.nq" if parts > 1 else path
        with place.open("w", encoding="utf-8") as file:
            file.writelines(
                texts[index][1].replace("@c", str(copy)).replace("@t", str(time))
                for time, copy, index in events[part * size : (part + 1) * size]
            )


def _knowledge(graph: Graph, layout: Layout) -> str:
    """The knowledge base as N-Triples; keys of their own have what the case's keys have."""
    lines = [f"{nt(s)} {nt(p)} {nt(o)} .\n" for s, p, o in graph]
    own = [line for line in lines if line.startswith(tuple(f"<{key}>" for key in KEYS))]
    if layout.own_keys:
        for copy in range(layout.count):
            lines += [line.replace("> ", f"-{copy}> ", 1) for line in own]
    return "".join(lines)


def copy_of(iri: str) -> tuple[str, int]:
    """The event of the case, and the copy, that an event's IRI names."""
    name, _, copy = iri.rpartition("-")
    return name.removeprefix(NS), int(copy)
