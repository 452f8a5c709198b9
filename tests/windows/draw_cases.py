"""Random queries over windows, and streams for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import reduce
from random import Random

from rdflib import XSD, Graph, Literal, URIRef
from rdflib.term import Identifier

from tests.oracle.model import Event, Streamset
from tests.oracle.patterns import date_time, nt
from tests.windows.window_oracle import KB, Case, Extent, Level, S, Solutions, T, WindowEvent

_V, _R, _TO = URIRef("http://e/v"), URIRef("http://e/r"), URIRef("http://e/to")
Terms = Mapping[str, Identifier]
Windows = Mapping[str, tuple[tuple[str, ...], Extent]]
Triple = tuple[Identifier, Identifier, Identifier]
Found = list[dict[str, Identifier]]


def _pairs(events: Iterable[Event]) -> list[tuple[Identifier, Identifier]]:
    """(?o, ?v) of `?o :v ?v` on each event, in order of events and then of terms."""
    return [
        (o, v)
        for event in events
        for o, v in sorted(
            {(s, x) for s, p, x in event.graph if p == _V},
            key=lambda pair: (nt(pair[0]), nt(pair[1])),
        )
    ]


def number_term(value: int) -> Literal:
    return Literal(str(value), datatype=XSD.integer)


def _number(v: Identifier) -> int:
    return int(str(v))


def _average(event: WindowEvent, mu: Terms) -> Found:
    values = [_number(v) for _, v in _pairs(event.content)]
    if not values:
        return [{"ea": number_term(0)}]
    text = f"{Decimal(sum(values)) / Decimal(len(values)):f}"
    return [{"ea": Literal(text, datatype=XSD.decimal)}]


def _grouped(event: WindowEvent, mu: Terms) -> Found:
    found: dict[Identifier, list[int]] = {}
    for o, v in _pairs(event.content):
        found.setdefault(o, []).append(_number(v))
    return [
        {"o": o, "c": number_term(len(vs)), "s": number_term(sum(vs))}
        for o, vs in found.items()
        if sum(vs) >= 3
    ]


def _union(event: WindowEvent, mu: Terms) -> Found:
    return [{"o": o, "v": v} for o, v in set(_pairs(event.content))]


def _each_of_s(event: WindowEvent, mu: Terms) -> Found:
    return [
        {"e": URIRef(own.iri), "t": date_time(own.instant[0]), "o": o}
        for own in event.content
        if own.stream == S and own.iri is not None
        for o, v in _pairs([own])
        if _number(v) >= 2
    ]


def _earliest(event: WindowEvent, mu: Terms) -> Found:
    """Things with a value, and the time of the first event of each that says one."""
    said = [(own.instant[0], o) for own in event.content for o, _ in _pairs([own])]
    first = {o: min(t for t, other in said if other == o) for _, o in said}
    return [{"o": o, "t": date_time(t)} for t, o in said if t == first[o]]


def _high(event: WindowEvent, mu: Terms) -> Found:
    high = any(
        _number(v) >= 3
        for o, v in _pairs(event.content)
        if mu.get("o", o) == o and mu.get("v", v) == v
    )
    return [{"b": Literal("high")}] if high else []


def _rise(event: WindowEvent, mu: Terms) -> Found:
    found = []
    for first in event.content:
        for second in event.content:
            if first.instant[0] >= second.instant[0]:
                continue
            for o, v in _pairs([first]):
                for p, w in _pairs([second]):
                    if o == p and _number(v) < _number(w):
                        found.append({"o": o, "v": v, "w": w})
    return found


def _extremes(event: WindowEvent, mu: Terms) -> Found:
    pairs = _pairs(event.content)
    if not pairs:
        return []
    values = [_number(v) for _, v in pairs]
    texts = " ".join(str(v) for _, v in pairs)
    return [
        {
            "m": number_term(min(values)),
            "n": number_term(max(values)),
            "g": Literal(texts),
            "z": pairs[0][1],
        }
    ]


def _optional(event: WindowEvent, mu: Terms) -> Found:
    """?o of the union with :v 1, and, if there is one, a value of 3 or more of an event."""
    found: Found = []
    for o in {o for o, v in _pairs(event.content) if _number(v) == 1}:
        high = [v for p, v in _pairs(event.content) if p == o and _number(v) >= 3]
        high = [v for v in high if mu.get("h", v) == v]
        found += [{"o": o, "h": v} for v in set(high)] or [{"o": o}]
    return found


def _missing(event: WindowEvent, mu: Terms) -> Found:
    """?o with a value, and no event that says 2 of it."""
    without = {o for o, v in _pairs(event.content) if _number(v) == 2}
    return [{"o": o} for o in {o for o, _ in _pairs(event.content)} - without]


def _partition(event: WindowEvent, mu: Terms) -> Found:
    """The partition's value in a FILTER, if there is one, and how many events say it."""
    if "r" not in mu:
        return []
    count = sum(any(p == _R and o == mu["r"] for _, p, o in e.graph) for e in event.content)
    return [{"c": number_term(count)}] if count else []


def _alike(event: WindowEvent, mu: Terms) -> Found:
    """Two things with one value, in the union."""
    pairs = _pairs(event.content)
    return [{"o": o, "p": p, "v": v} for o, v in pairs for p, w in pairs if v == w and o != p]


def _both(event: WindowEvent, mu: Terms) -> Found:
    """A value that S says of a thing of which T says one, too."""
    of_s, of_t = (
        _pairs([own for own in event.content if own.stream == stream]) for stream in (S, T)
    )
    return [{"o": o, "v": v} for o, v in of_s for p, _ in of_t if o == p]


def _counted(event: WindowEvent, mu: Terms) -> Found:
    return [{"q": number_term(len(_pairs(event.content)))}]


def _different(event: WindowEvent, mu: Terms) -> Found:
    """The least and the greatest value of each thing, its number of different ones, their sum."""
    found: dict[Identifier, set[int]] = {}
    for o, v in _pairs(event.content):
        found.setdefault(o, set()).add(_number(v))
    return [
        {
            "o": o,
            "m": number_term(min(vs)),
            "n": number_term(max(vs)),
            "d": number_term(len(vs)),
            "s": number_term(sum(vs)),
        }
        for o, vs in found.items()
        if len(vs) < 3 and max(vs) > 1
    ]


def _thing(number: int) -> URIRef:
    return URIRef(f"http://e/o{number}")


KNOWN: list[Triple] = [
    *(
        (URIRef(f"http://e/o{i}"), _TO, URIRef(f"http://e/o{j}"))
        for i, j in [(1, 2), (1, 3), (3, 3)]
    ),
    *((URIRef(f"http://e/o{i}"), _V, number_term(v)) for i, v in [(1, 1), (2, 1), (3, 2)]),
]
"""The triples of the graph KB."""


def kb_of(query: str, triples: Iterable[Triple] = KNOWN) -> dict[str, Graph]:
    """The knowledge base for a query."""
    return {KB: reduce(Graph.add, triples, Graph())} if KB in query else {}


def _of_neighbours(event: WindowEvent, mu: Terms) -> Found:
    """The number and the sum of the values of all things from which KB leads to one."""
    found: dict[Identifier, list[int]] = {}
    for o, v in _pairs(event.content):
        for p in [p for s, to, p in KNOWN if (s, to) == (o, _TO)]:
            found.setdefault(p, []).append(_number(v))
    return [
        {"o": p, "c": number_term(len(vs)), "s": number_term(sum(vs))} for p, vs in found.items()
    ]


def _led_to(event: WindowEvent, mu: Terms) -> Found:
    """Two things with values, from one of which KB leads to the other."""
    pairs = _pairs(event.content)
    return [
        {"o": o, "v": v, "w": w}
        for o, v in pairs
        for p, w in pairs
        if (o, _TO, p) in KNOWN and _number(v) <= _number(w)
    ]


def _of_known(event: WindowEvent, mu: Terms) -> Found:
    """The sum of the values of each thing from which KB leads to ?o."""
    found: dict[Identifier, int] = {}
    for p, v in _pairs(event.content):
        found[p] = found.get(p, 0) + _number(v)
    return [
        {"p": p, "s": number_term(total), "o": o}
        for p, total in found.items()
        if total >= 3
        for s, to, o in KNOWN
        if (s, to) == (p, _TO)
    ]


def _perhaps_led_to(event: WindowEvent, mu: Terms) -> Found:
    """The values in the union, and to what KB leads from their things."""
    found: Found = []
    for o, v in set(_pairs(event.content)):
        to = [h for s, p, h in KNOWN if (s, p) == (o, _TO)]
        found += [{"v": v, "h": h} for h in to] or [{"v": v}]
    return found


def _led_nowhere(event: WindowEvent, mu: Terms) -> Found:
    """Two things with a value in common, of which KB leads from the first one nowhere."""
    return [found for found in _alike(event, mu) if not _leads(found["o"])]


def _leads(thing: Identifier) -> bool:
    return any((s, p) == (thing, _TO) for s, p, _ in KNOWN)


_SUMS = "{ SELECT ?p (SUM(?v) AS ?s) { EVENT { ?p :v ?v } } GROUP BY ?p HAVING (SUM(?v) >= 3) }"

PATTERNS: list[tuple[str, tuple[str, ...], Solutions]] = [
    ("{ { SELECT (AVG(?v) AS ?ea) { EVENT { ?o :v ?v } } } }", ("ea",), _average),
    (
        "{ { SELECT ?o (COUNT(?v) AS ?c) (SUM(?v) AS ?s) { EVENT { ?o :v ?v } } GROUP BY ?o "
        "HAVING (SUM(?v) >= 3) } }",
        ("o", "c", "s"),
        _grouped,
    ),
    ("{ ?o :v ?v }", ("o", "v"), _union),
    (
        "{ { SELECT ?e ?t ?o { EVENT ON S ?e AT ?t { ?o :v ?v FILTER(?v >= 2) } } } }",
        ("e", "t", "o"),
        _each_of_s,
    ),
    (
        "{ { SELECT ?o ?t { EVENT AT ?t { ?o :v ?v } "
        "FILTER NOT EXISTS { EVENT AT ?u { ?o :v ?w FILTER(?u < ?t) } } } } }",
        ("o", "t"),
        _earliest,
    ),
    ('{ FILTER EXISTS { EVENT { ?o :v ?v FILTER(?v >= 3) } } BIND("high" AS ?b) }', ("b",), _high),
    (
        "{ { SELECT ?o ?v ?w { EVENT AT ?t1 { ?o :v ?v } EVENT AT ?t2 { ?o :v ?w } "
        "FILTER(?t1 < ?t2 && ?v < ?w) } } }",
        ("o", "v", "w"),
        _rise,
    ),
    (
        "{ { SELECT (MIN(?v) AS ?m) (MAX(?v) AS ?n) (GROUP_CONCAT(?v) AS ?g) (SAMPLE(?v) AS ?z) "
        "{ EVENT { ?o :v ?v } } HAVING (COUNT(*) > 0) } }",
        ("m", "n", "g", "z"),
        _extremes,
    ),
    (
        "{ ?o :v 1 OPTIONAL { { SELECT DISTINCT ?o ?h { EVENT { ?o :v ?h FILTER(?h >= 3) } } } } }",
        ("o", "h"),
        _optional,
    ),
    ("{ { SELECT ?o { ?o :v ?any MINUS { EVENT { ?o :v 2 } } } } }", ("o",), _missing),
    ("{ { SELECT (COUNT(*) AS ?q) { EVENT { ?o :v ?v } } } }", ("q",), _counted),
    (
        "{ { SELECT ?o (MIN(?v) AS ?m) (MAX(?v) AS ?n) (COUNT(DISTINCT ?v) AS ?d) "
        "(SUM(DISTINCT ?v) AS ?s) { EVENT { ?o :v ?v } } GROUP BY ?o "
        "HAVING (COUNT(DISTINCT ?v) < 3 && MAX(?v) > 1) } }",
        ("o", "m", "n", "d", "s"),
        _different,
    ),
    ("{ ?o :v ?v . ?p :v ?v FILTER(?o != ?p) }", ("o", "p", "v"), _alike),
    ("{ { SELECT ?o ?v { EVENT ON S { ?o :v ?v } EVENT ON T { ?o :v ?w } } } }", ("o", "v"), _both),
    *(
        (
            "{ { SELECT ?o (COUNT(*) AS ?c) (SUM(?v) AS ?s) { " + inner + " } GROUP BY ?o } }",
            ("o", "c", "s"),
            _of_neighbours,
        )
        for inner in (
            "EVENT { ?p :v ?v GRAPH :kb { ?p :to ?o } }",
            "GRAPH ?g { ?p :to ?o } EVENT { ?p :v ?v }",
        )
    ),
    (
        "{ { SELECT ?o ?v ?w { ?o :v ?v GRAPH :kb { ?o :to ?p } ?p :v ?w FILTER(?v <= ?w) } } }",
        ("o", "v", "w"),
        _led_to,
    ),
    (f"{{ {_SUMS} GRAPH :kb {{ ?p :to ?o }} }}", ("p", "s", "o"), _of_known),
    (f"{{ GRAPH :kb {{ ?p :to ?o }} {_SUMS} }}", ("p", "s", "o"), _of_known),
    (
        "{ { SELECT ?v ?h { ?o :v ?v OPTIONAL { GRAPH :kb { ?o :to ?h } } } } }",
        ("v", "h"),
        _perhaps_led_to,
    ),
    (
        "{ ?o :v ?v . ?p :v ?v MINUS { GRAPH :kb { ?o :to ?to } } FILTER(?o != ?p) }",
        ("o", "p", "v"),
        _led_nowhere,
    ),
]

KEYED = [
    own
    for own in PATTERNS
    if own[2]
    in (
        _grouped,
        _union,
        _rise,
        _optional,
        _missing,
        _both,
        _different,
        _of_neighbours,
        _led_to,
    )
]
"""Patterns whose solutions are about one ?o each."""

OF_PARTITION = (
    "{ { SELECT ?r (COUNT(*) AS ?c) { EVENT { ?x :r ?y FILTER(?y = ?r) } } GROUP BY ?r } }",
    ("c",),
    _partition,
)

SEQUENCES = ["A; B", "B; A", "A, B", "B, A", "A: B", "A; C", "A, C", "B; A; C", "A; N!; B"]
SEQUENCES += ["B; A!; B", "A+; B", "B; A+", "B, A+, B", "(A & B)", "(A AND C)", "(A | B)", "A?; B"]
SEQUENCES += ["B; A!", "A!; B", "A{2}", "A, A", "C; A"]


def draw_extent(draw: Random) -> Extent:
    match draw.choice(["panes", "panes", "panes", "each", "each", "session"]):
        case "panes":
            slide = draw.choice([500, 1000, 1000, 2000])
            length = slide * draw.choice([1, 1, 2, 3]) if draw.random() < 0.8 else 700
            return Extent("panes", length, slide, draw.choice([0, 0, 500]))
        case "session":
            return Extent("session", draw.choice([500, 1000, 1500]))
        case _ if draw.random() < 0.5:
            return Extent("each", count=draw.choice([1, 2, 3]))
        case _:
            return Extent("each", draw.choice([500, 1000, 2000]))


def draw_case(draw: Random) -> Case:
    partition = draw.random() < 0.35
    names = ["W", "X"][: draw.choice([1, 1, 2])]
    windows: Windows = {
        name: (draw.choice([("S",), ("S",), ("S", "T")]), draw_extent(draw)) for name in names
    }
    single = draw.random() < 0.3
    sequence = "A" if single else draw.choice(SEQUENCES)
    levels = [draw_level("A", names[0], windows, draw)]
    if len(names) > 1:
        levels.append(draw_level("C", names[1], windows, draw))
    room = ":x :r ?r . " if partition else ""
    plain: dict[str, tuple[str, str]] = {}
    if "B" in sequence:
        text = draw.choice(["?p :v ?x", "?p :v ?x FILTER(?x >= 2)", "?o :v ?x"])
        plain["B"] = draw.choice("ST"), f"{{ {room}{text} }}"
    if "N!" in sequence:
        plain["N"] = draw.choice("ST"), f"{{ {room}?n :v 4 }}"
    if "C" in sequence and len(names) < 2:
        sequence = sequence.replace("C", "A")
    if "C" not in sequence and len(names) > 1:
        sequence = f"{sequence}; C" if "!" not in sequence else sequence
        if "C" not in sequence:
            windows = {names[0]: windows[names[0]]}
            levels = levels[:1]
    within = (
        ""
        if sequence == "A" and draw.random() < 0.5
        else draw.choice(
            ["WITHIN 2 SECONDS", "WITHIN 3 SECONDS", "WITHIN 1 HOURS", "WITHIN 0 SECONDS"]
        )
    )
    if "!" not in sequence and draw.random() < 0.15:
        within = f"WITHIN {draw.choice([3, 4, 6])} EVENTS"
    return Case(windows, tuple(levels), plain, sequence, within, partition)


def draw_level(
    name: str,
    window: str,
    windows: Windows,
    draw: Random,
    patterns: Sequence[tuple[str, tuple[str, ...], Solutions]] = PATTERNS,
) -> Level:
    """A GPM on a window with one of some patterns."""
    both = "T" in windows[window][0]
    fitting = [own for own in patterns if both or "ON T" not in own[0]]
    text, variables, solutions = draw.choice(fitting)
    change = draw.choice(["", "", "NEW", "GONE"])
    return Level(name, window, change, text, variables, solutions)


def draw_streams(draw: Random) -> Streamset:
    streams: dict[str, Sequence[tuple[int, str | None, list[tuple[Identifier, ...]]]]] = {}
    number = 0
    for iri in (S, T):
        events = []
        time = draw.choice([0, 500, 1000])
        for _ in range(draw.randint(2, 6)):
            number += 1
            graph: set[tuple[Identifier, ...]] = set()
            for _ in range(draw.choice([0, 1, 1, 1, 2])):
                subject = URIRef(f"http://e/o{draw.randint(1, 2)}")
                graph.add((subject, _V, number_term(draw.randint(1, 4))))
            for _ in range(draw.choice([0, 1, 1, 1, 2])):
                graph.add((URIRef("http://e/x"), _R, URIRef(f"http://e/r{draw.randint(1, 2)}")))
            name = None if draw.random() < 0.2 else f"http://e/g{number}"
            events.append((time, name, sorted(graph)))
            time += draw.choice([0, 250, 500, 500, 1000, 3000])
        streams[iri] = events
    return streams  # type: ignore[return-value]
