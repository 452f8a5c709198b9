"""Joins that are kept from close to close give what nested loops over the windows' events give."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from random import Random

import pytest
from rdflib import Graph, URIRef
from rdflib.term import Identifier

import spaseq
from spaseq.compile import compile_query
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.kb.load import NO_CACHE
from spaseq.kb.watched_graphs import KbWatch
from spaseq.options import ServiceOptions
from spaseq.plan.changing_graphs import connected
from spaseq.plan.rules.kept_groups import reason_against
from spaseq.runtime.job.job import Job
from tests.oracle.model import Event, Streamset
from tests.windows.draw_cases import KNOWN, draw_extent, number_term
from tests.windows.test_against_oracle import check
from tests.windows.window_oracle import KB, Case, Level, S, T, WindowEvent

Triple = tuple[str, str, str]
Part = tuple[str | None, tuple[Triple, ...]]
"""A stream's name, `any`, None for the union graph, or KB; and triple patterns."""

Found = dict[str, Identifier]
WAYS = ["bounded", "anew", "least", "never", "pushed", "restarted"]
NODES = ["?a", "?b", "?c", ":o1"]
VALUES = ["?v", "?w", "?a", "1", "_:x"]


def term(text: str) -> Identifier:
    return number_term(int(text)) if text.isdigit() else URIRef(f"http://e/{text[1:]}")


def matched(triples: Sequence[Triple], graph: Iterable[tuple[Identifier, ...]]) -> Iterator[Found]:
    """The solutions of triple patterns on a graph."""
    if not triples:
        yield {}
        return
    for found in matched(triples[1:], graph):
        for triple in graph:
            own = dict(found)
            for text, value in zip(triples[0], triple, strict=True):
                wanted = own.setdefault(text, value) if text[0] in "?_" else term(text)
                if wanted != value:
                    break
            else:
                yield own


def of_part(part: Part, content: Sequence[Event]) -> list[Found]:
    stream, triples = part
    if stream == KB:
        return list(matched(triples, KNOWN))
    if stream is None:
        union = {triple for event in content for triple in event.graph}
        return list(matched(triples, union))
    iris = {"S": [S], "T": [T], "any": [S, T]}[stream]
    graphs = [event.graph for event in content if event.stream in iris]
    return [found for graph in graphs for found in matched(triples, graph)]


def draw_triple(draw: Random) -> Triple:
    predicate = draw.choice([":v", ":v", ":to"])
    return draw.choice(NODES), predicate, draw.choice(VALUES if predicate == ":v" else NODES)


def draw_part(draw: Random) -> Part:
    stream = draw.choice([None, None, "any", "S", "T", KB])
    most = 3 if stream is None else 2
    return stream, tuple(draw_triple(draw) for _ in range(draw.randint(1, most)))


def text_of(part: Part) -> str:
    stream, triples = part
    inner = " . ".join(map(" ".join, triples))
    if stream is None:
        return f"{inner} ."
    # a blank node of a group may stand in no other one
    inner = inner.replace("_:x", "?hidden")
    if stream == KB:
        return f"GRAPH <{KB}> {{ {inner} }}"
    return f"EVENT {{ {inner} }}" if stream == "any" else f"EVENT ON {stream} {{ {inner} }}"


def draw_level(draw: Random, own: Sequence[Part] = ()) -> Level:
    """A join of drawn parts and of its `own` ones, which may bind the partition's variable ?r."""
    parts = [*(draw_part(draw) for _ in range(draw.randint(1, 3))), *own]
    unions = tuple(t for stream, triples in parts if stream is None for t in triples)
    parts = [part for part in parts if part[0] is not None] + ([(None, unions)] if unions else [])
    parts = [
        (stream, tuple((a, p, "?hidden" if stream and b == "_:x" else b) for a, p, b in triples))
        for stream, triples in parts
    ]
    every = {text for _, triples in parts for triple in triples for text in triple}
    variables = sorted(text[1:] for text in every if text.startswith("?"))
    if own:
        variables.remove("r")
    shown = [v for v in variables if draw.random() < 0.7] or variables
    test = draw.choice(["", "", "v < w", "a != b", "v > 1"])
    names = [word for word in test.split() if word.isalpha()]
    test = test if all(name in variables for name in names) else ""
    condition = f"FILTER(?{test.replace(' w', ' ?w').replace(' b', ' ?b')})" if test else ""
    select = " ".join(f"?{v}" for v in [*shown, *(["r"] if own else [])])
    inner = " ".join(map(text_of, parts))
    text = f"{{ {{ SELECT {select or '*'} {{ {inner} {condition} }} }} }}"

    def solutions(event: WindowEvent, mu: Mapping[str, Identifier]) -> list[Found]:
        found = [Found()]
        for part in parts:
            more = of_part(part, event.content)
            found = [
                {**one, **two}
                for one in found
                for two in more
                if all(one.get(v, x) == x for v, x in two.items())
            ]
        there = [one for one in found if one.get("?r", mu.get("r")) == mu.get("r")]
        return [{v: one[f"?{v}"] for v in shown} for one in there if passes(test, one)]

    return Level("A", "W", draw.choice(["", "NEW", "GONE"]), text, tuple(shown), solutions)


def passes(test: str, found: Found) -> bool:
    match test.split():
        case ["v", "<", "w"]:
            return number(found["?v"]) < number(found["?w"])
        case ["v", ">", _]:
            return number(found["?v"]) > 1
        case ["a", *_]:
            return found["?a"] != found["?b"]
    return True


def number(value: Identifier) -> float:
    """A number; NaN, which passes nothing, for other terms."""
    return float(str(value)) if str(value).isdigit() else float("nan")


def draw_streams(draw: Random) -> Streamset:
    streams = {}
    for iri in (S, T):
        events, time = [], draw.choice([0, 500])
        for place in range(draw.randint(1, 6)):
            graph = {drawn_triple(draw) for _ in range(draw.choice([0, 1, 1, 2, 3]))}
            events.append((time, f"{iri}/{place}", sorted(graph)))
            time += draw.choice([0, 250, 500, 500, 1000, 3000])
        streams[iri] = events
    return streams  # type: ignore[return-value]


def drawn_triple(draw: Random) -> tuple[Identifier, ...]:
    one, other = (URIRef(f"http://e/o{draw.randint(1, 3)}") for _ in range(2))
    if draw.random() < 0.3:
        return one, URIRef("http://e/to"), other
    return one, URIRef("http://e/v"), number_term(draw.randint(1, 3))


def draw_case(draw: Random, partition: bool) -> Case:
    streams = draw.choice([("S",), ("S", "T"), ("S", "T")])
    windows = {"W": (streams, draw_extent(draw))}
    stream = draw.choice([None, "any", "S"]) if partition and draw.random() < 0.5 else ""
    own = [] if stream == "" else [(stream, (("?k", ":r", "?r"),))]
    level = draw_level(draw, own)
    return Case(windows, (level,), {}, "A", "WITHIN 1 SECONDS", partition)


def in_rooms(streams: Streamset, draw: Random) -> Streamset:
    """The events, each in none, one or two partitions."""
    key, room = URIRef("http://e/key"), URIRef("http://e/r")
    return {
        iri: [
            (time, name, [*graph, *((key, room, URIRef(f"http://e/r{i}")) for i in rooms)])
            for time, name, graph in events
            for rooms in [draw.choice([(), (1,), (1,), (2,), (1, 2)])]
        ]
        for iri, events in streams.items()
    }


def run(seeds: range, partition: bool = False) -> tuple[int, int]:
    """(cases with answers, cases whose join is kept)"""
    answered = kept = 0
    for seed in seeds:
        draw = Random(seed)
        case, streams = draw_case(draw, partition), draw_streams(draw)
        if partition:
            streams = in_rooms(streams, draw)
        if "ON T" in case.query() and case.windows["W"][0] == ("S",):
            continue
        kept += bool(compile_query(case.query()).patterns.kept)
        answered += check(case, streams, WAYS)
    return answered, kept


def test_drawn_joins() -> None:
    answered, kept = run(range(16))
    assert answered > 2
    assert kept > 6


def test_drawn_joins_of_partitions() -> None:
    answered, kept = run(range(16), partition=True)
    assert answered > 2
    assert kept > 6


SEEDS = [
    pytest.param(range(1000, 1040), marks=pytest.mark.thorough),
    pytest.param(range(1040, 1600), marks=pytest.mark.slow),
]


@pytest.mark.parametrize("partition", [False, True])
@pytest.mark.parametrize("seeds", SEEDS)
def test_many_drawn_joins(seeds: range, partition: bool) -> None:
    answered, kept = run(seeds, partition=partition)
    assert answered > len(seeds) // 8
    assert kept > len(seeds) * 2 // 5


HEAD = """PREFIX : <http://e/> SELECT * FROM STREAM S <http://e/s> FROM NAMED :kb
    FROM WINDOW W ON S RANGE 1 HOURS"""


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("?o :v ?v", "keeps    the solutions of A"),
        ("?o :v ?v ; :w ?w", "keeps    the join of A, of 2 parts"),
        ("EVENT { ?o :v ?v ; :w ?w } ?o :x ?x . ?x :y ?y", "keeps    the join of A, of 3 parts"),
        ("?o :v ?v . ?p :v ?v GRAPH :kb { ?o :to ?p }", "keeps    the join of A, of 2 parts with"),
        ("EVENT { ?o :v ?v } GRAPH ?g { ?o :to ?p }", "keeps    the solutions of A with graphs"),
        ("?o :v ?v OPTIONAL { GRAPH :kb { ?o :to ?p } }", "keeps    the solutions of A with"),
        ("?o :v ?v MINUS { GRAPH :kb { ?o :to ?p } }", "keeps    the solutions of A with graphs"),
        ("?o :v ?v OPTIONAL { ?o :w ?w GRAPH :kb { ?o :to ?p } }", "anew     A: its pattern is"),
        ("GRAPH :kb { ?o :to ?p }", "anew     A: its pattern is neither"),
        ("?a :v ?b . ?b :v ?c . ?c :v ?a", "anew     A: its join is cyclic"),
        ("?a :v ?b OPTIONAL { ?b :v ?c }", "anew     A: its pattern is neither"),
        ("EVENT { ?o :v ?v OPTIONAL { ?o :w ?w } } ?x :w ?w", "of its join may be unbound"),
    ],
)  # fmt: skip
def test_explain_says_which_joins_are_kept(pattern: str, words: str) -> None:
    query = f"{HEAD} WHERE {{ SEQ(A) DEFINE GPM A ON W {{ {pattern} }} }}"
    assert words in str(spaseq.explain(query))


@pytest.mark.parametrize("disable", [[], ["kept-groups"]])
def test_equal_parts_with_unbound_variables_are_joined(disable: list[str]) -> None:
    """One event has ?c, the other ?d: the join of both with both has a solution with the two."""
    block = "EVENT { ?a :v ?b OPTIONAL { ?a :c ?c } OPTIONAL { ?a :d ?d } }"
    query = f"{HEAD} WHERE {{ SEQ(A) DEFINE GPM A ON W {{ {block} {block} }} }}"
    x, y = "<http://e/x>", "<http://e/y>"
    events = [
        spaseq.Event(f"{x} <http://e/v> {y} .\n{x} <http://e/{other}> {y} .", time)
        for time, other in enumerate("cd")
    ]
    given = {"S": events}, {KB: Graph()}
    found = spaseq.run(query, *given, runtime="local", disable=disable)
    assert sorted("".join(sorted(m.bindings)) for m in found) == ["abc", "abcd", "abd"]


def test_a_join_beyond_the_limit_has_no_solutions_until_it_is_small_again() -> None:
    """30 events of a second make 900 pairs, 5 make 25."""
    query = """PREFIX : <http://e/> SELECT * FROM STREAM S <http://e/s>
        FROM WINDOW W ON S RANGE 1 SECONDS WHERE { SEQ(A) DEFINE GPM A ON NEW W, GONE W
        { EVENT { ?k :v ?x } EVENT { ?k :v ?y } } }"""
    sizes = [5, 30, 5]
    events = [
        spaseq.Event(f"<http://e/k> <http://e/v> \"{place}\" .", second * 1000, f"http://e/{second}-{place}")
        for second, size in enumerate(sizes)
        for place in range(size)
    ]  # fmt: skip
    bad: list[spaseq.BadInput] = []
    limits = spaseq.Limits(solutions=100)
    run = spaseq.run(query, {"S": events}, runtime="local", limits=limits, on_bad=bad.append)
    times = [match.answer.end[0] for match in run]
    assert [times.count(second * 1000) for second in (1, 2, 3, 4)] == [25, 25, 25, 25]
    assert len(bad) == 1


@pytest.mark.parametrize(
    "pattern",
    [
        "?o :v ?v . ?p :w ?v GRAPH :kb { ?o :to ?p }",
        "{ SELECT ?p (SUM(?v) AS ?s) { EVENT { ?o :v ?v } GRAPH ?g { ?o :to ?p } } GROUP BY ?p }",
    ],
)
def test_nothing_is_kept_of_graphs_that_may_change(pattern: str) -> None:
    """A window event sees the graphs as they are at its close."""
    query = f"{HEAD} WHERE {{ SEQ(A) DEFINE GPM A ON W {{ {pattern} }} }}"
    plan = compile_query(query)
    assert plan.patterns.kept
    [changing] = connected([plan], [KB])
    assert not changing.patterns.kept
    assert changing.inputs.windows[0].content == 0
    assert reason_against(changing, changing.patterns.gpms[0]) == "it reads a graph that changes"
    watched = Job((plan,), (), KnowledgeBase.empty(), watch=KbWatch([], ServiceOptions(), NO_CACHE))
    assert not watched.plans[0].patterns.kept
