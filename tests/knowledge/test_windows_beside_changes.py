"""Windows beside graphs that change: a window event sees the graphs as they are at its close."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spaseq
from spaseq.compile import CompileOptions, compile_query
from spaseq.plan.rules.kept_groups import keeping_lasting
from tests.knowledge.cases import ZONE_TRIPLES, Case, cases, graph_of, nt
from tests.knowledge.reference import GRAPH, PROLOGUE, ZONES, E, Given, Values, solutions
from tests.knowledge.test_changing_graphs import of_local, of_pushes, of_restarts
from tests.sizes import sizes

GROUPED = (
    "{{ SELECT ?d (COUNT(*) AS ?n) {{ EVENT {{ ?d :alarm ?x }} }} GROUP BY ?d }}",
    "{{ SELECT ?d (COUNT(?x) AS ?n) {{ EVENT {{ ?d :alarm ?x }} }} GROUP BY ?d "
    "HAVING (COUNT(?x) > 1) }} GRAPH <{g}> {{ ?d :owner ?o0 }}",
    "{{ SELECT ?d (COUNT(*) AS ?n) {{ EVENT {{ ?d :alarm ?x }} }} GROUP BY ?d }} "
    "OPTIONAL {{ GRAPH <{g}> {{ ?d :owner ?o0 }} }}",
    "{{ SELECT ?d (COUNT(*) AS ?n) {{ EVENT {{ ?d :alarm ?x }} }} GROUP BY ?d }} "
    "MINUS {{ GRAPH <{g}> {{ ?d :owner ?o1 }} }}",
    "{{ SELECT ?o0 (COUNT(*) AS ?n) {{ EVENT {{ ?d :alarm ?x GRAPH <{g}> {{ ?d :owner ?o0 }} }} }} "
    "GROUP BY ?o0 }}",
    "{{ SELECT ?d (COUNT(*) AS ?n) {{ EVENT {{ ?d :alarm ?x "
    "FILTER NOT EXISTS {{ GRAPH <{g}> {{ ?d :owner ?y }} }} }} }} GROUP BY ?d }}",
)
"""Patterns of which groups may be kept from close to close."""


@dataclass(frozen=True)
class Extent:
    """How a window cuts a stream: its clause, and (close, content) in seconds."""

    kind: Literal["panes", "each", "session"]
    length: int
    slide: int = 0

    def clause(self) -> str:
        match self.kind:
            case "panes":
                return f"RANGE {self.length} SECONDS SLIDE {self.slide} SECONDS"
            case "each":
                return f"RANGE {self.length} SECONDS EACH EVENT"
            case "session":
                return f"SESSION {self.length} SECONDS"

    def events(self, events: tuple[Given, ...]) -> Iterator[tuple[int, tuple[Given, ...]]]:
        match self.kind:
            case "panes":
                last = max((e.time for e in events), default=0) + self.length
                for close in range(0, last + self.slide + 1, self.slide):
                    yield close, tuple(e for e in events if close - self.length <= e.time < close)
            case "each":
                for i, own in enumerate(events):
                    yield own.time, tuple(e for e in events[: i + 1]
                                          if own.time - e.time <= self.length)  # fmt: skip
            case "session":
                piece: list[Given] = []
                for event in events:
                    if piece and event.time - piece[-1].time >= self.length:
                        yield piece[-1].time + self.length, tuple(piece)
                        piece = []
                    piece.append(event)
                if piece:
                    yield piece[-1].time + self.length, tuple(piece)


@dataclass(frozen=True)
class WindowCase(Case):
    """A case whose first step stands on a window of S, and whose second one on S itself.

    If there is no second one, the first may ask for what is new or gone: `change`.
    """

    extent: Extent = Extent("panes", 4, 2)
    change: Literal["", "NEW", "GONE"] = ""

    def query(self) -> str:
        second = f"DEFINE GPM B ON S {{ {self.patterns[1]} }}" if len(self.patterns) > 1 else ""
        steps = "A : B" if second else "A"
        return (
            f"{PROLOGUE}SELECT * WITHIN 10 SECONDS FROM STREAM S :S\n"
            f"FROM WINDOW W ON S {self.extent.clause()} FROM NAMED <{GRAPH}> FROM NAMED <{ZONES}>\n"
            f"WHERE {{ SEQ({steps}) DEFINE GPM A ON {self.change} W {{ {self.patterns[0]} }}\n"
            f"{second} }}"
        )

    def expected(self) -> Counter[tuple[tuple[int, ...], frozenset[tuple[str, str]]]]:
        named = [replace(m, name=f"query{n}") for n, m in enumerate(self.maintainers, 2)]
        values = Values(self.before, self.replaced, named, self.events)
        own = tuple(e for e in self.events if e.stream == "S")
        first = [*self._on_windows(values, own)]
        if len(self.patterns) == 1:
            return Counter(((close,), found) for close, found in first)
        both: Counter[tuple[tuple[int, ...], frozenset[tuple[str, str]]]] = Counter()
        for close, one in first:
            for event in own:
                for other in self._found(1, values, event.time, set(event.triples)):
                    a, b = dict(one), dict(other)
                    after = 0 <= event.time - close <= 10
                    if after and all(a[v] == b[v] for v in a.keys() & b):
                        both[(close, event.time), one | other] += 1
        return both

    def _on_windows(
        self, values: Values, events: tuple[Given, ...]
    ) -> Iterator[tuple[int, frozenset[tuple[str, str]]]]:
        """(close, solution)."""
        before = set[frozenset[tuple[str, str]]]()
        for close, content in self.extent.events(events):
            now = self._on_window(values, close, content)
            given = {"": now, "NEW": now - before, "GONE": before - now}[self.change]
            yield from ((close, found) for found in given)
            before = now

    def _on_window(
        self, values: Values, close: int, content: tuple[Given, ...]
    ) -> set[frozenset[tuple[str, str]]]:
        if "EVENT" not in self.patterns[0]:
            return self._found(0, values, close, {t for e in content for t in e.triples})
        store = ox.Store()
        for triples, graph in ((values.at(close), GRAPH), (ZONE_TRIPLES, ZONES)):
            store.load(nt(triples).encode(), ox.RdfFormat.N_TRIPLES, to_graph=ox.NamedNode(graph))
        for number, event in enumerate(content):
            graph = ox.NamedNode(f"urn:event{number}")
            store.load(nt(event.triples).encode(), ox.RdfFormat.N_TRIPLES, to_graph=graph)
        pattern = self.patterns[0].replace(
            "EVENT {", 'GRAPH ?event { FILTER(STRSTARTS(STR(?event), "urn:event")) '
        )
        found = store.query(f"{PROLOGUE}SELECT * WHERE {{ {pattern} }}")
        assert isinstance(found, ox.QuerySolutions)
        names = [variable.value for variable in found.variables]
        return {frozenset((n, str(row[n])) for n in names if row[n] is not None) for row in found}

    def _found(
        self, step: int, values: Values, time: int, triples: set[tuple[str, str, str]]
    ) -> set[frozenset[tuple[str, str]]]:
        event = Given("S", time, tuple(sorted(triples)))
        return solutions(self.patterns[step], event, values.at(time), ZONE_TRIPLES)


@st.composite
def window_cases(draw: st.DrawFn) -> WindowCase:
    case = draw(cases())
    kind: Literal["panes", "each", "session"] = draw(st.sampled_from(("panes", "each", "session")))
    extent = Extent(kind, draw(st.integers(1, 6)), draw(st.integers(1, 4)))
    patterns = case.patterns[:1] if kind == "each" else case.patterns
    if draw(st.booleans()):
        text = draw(st.sampled_from(GROUPED)).format(g=GRAPH)
        patterns = (text, *patterns[1:])
    given = (case.events, case.before, case.replaced, case.maintainers, patterns, False)
    changes: tuple[Literal["", "NEW", "GONE"], ...] = ("", "NEW", "GONE")
    return WindowCase(*given, extent, draw(st.sampled_from(changes[: 1 if patterns[1:] else 3])))


@sizes(4, 16, 40)
def test_runs_agree_with_an_evaluation_close_by_close(examples: int) -> None:
    @settings(max_examples=examples, deadline=None)
    @given(window_cases())
    def check(case: WindowCase) -> None:
        expected = case.expected()
        assert of_local(case) == expected, case.query()
        assert of_pushes(case) == expected, case.query()

    check()


@sizes(4, 10, 20)
def test_restarts_change_nothing(examples: int) -> None:
    @settings(max_examples=examples, deadline=None)
    @given(window_cases())
    def check(case: WindowCase) -> None:
        assert of_restarts(case) == case.expected(), case.query()

    check()


OWNERS = f"""PREFIX : <{E}>
MAINTAIN GRAPH :owners AS DELETE {{ ?d :owner ?any }} INSERT {{ ?d :owner ?o }}
FROM STREAM Moves :moves WHERE {{ SEQ(A) DEFINE GPM A ON Moves {{ ?d :handedTo ?o }} }}"""
ALARMS = f"""PREFIX : <{E}>
SELECT ?o ?n FROM STREAM S :s FROM NAMED :owners FROM WINDOW W ON S RANGE 10 SECONDS
WHERE {{ SEQ(A) DEFINE GPM A ON {{}} {{
  {{ SELECT ?o (COUNT(*) AS ?n) {{
    EVENT {{ ?d :alarm ?x GRAPH :owners {{ ?d :owner ?o }} }} }} GROUP BY ?o }} }} }}"""


@pytest.mark.parametrize("runtime", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def test_a_close_sees_the_changes_of_its_time(runtime: Literal["local", "spark"]) -> None:
    """Alarms count for who owns the device at the close, inside EVENT, too; NEW compares."""
    given = {
        f"{E}moves": [
            spaseq.Event(nt([("d", "handedTo", name)]), time * 1000)
            for time, name in [(1, "ann"), (20, "bob")]
        ],
        f"{E}s": [spaseq.Event(nt([("d", "alarm", '"x"')]), t * 1000) for t in (2, 3, 12, 21, 32)],
    }
    wanted = {
        "W": [(10, "ann", 2), (20, "bob", 1), (30, "bob", 1), (40, "bob", 1)],
        "NEW W": [(10, "ann", 2), (20, "bob", 1)],
        "GONE W": [(20, "ann", 2), (50, "bob", 1)],
    }
    queries = [*(ALARMS.replace("{}", source, 1) for source in wanted), OWNERS]
    found: dict[str, list[tuple[int, str, int]]] = {f"query{n}": [] for n in (1, 2, 3)}
    for m in spaseq.run(queries, given, runtime=runtime):
        owner, number = m.bindings["o"].n3()[len(E) + 1 : -1], m.bindings["n"].to_python()
        found[m.query].append((m.answer.end[0] // 1000, owner, number))
    assert [*found.values()] == [*wanted.values()]


TOTALS = f"""PREFIX : <{E}>
SELECT ?d ?o ?n FROM STREAM S :s FROM NAMED :owners
FROM WINDOW W ON S RANGE 10 SECONDS SLIDE 5 SECONDS
WHERE {{ SEQ(A) DEFINE GPM A ON NEW W {{
  {{ SELECT ?d (COUNT(*) AS ?n) {{ EVENT {{ ?d :alarm ?x }} }} GROUP BY ?d }}
  GRAPH :owners {{ ?d :owner ?o }} }} }}"""


@pytest.mark.parametrize("disable", [(), ("kept-groups",)])
def test_an_edit_is_seen_by_groups_that_no_event_changes(disable: tuple[str, ...]) -> None:
    """The device d has an alarm at second 1 only; at 7 it gets another owner, e is as it was."""
    plan = compile_query(TOTALS, options=CompileOptions(disable=disable))
    assert bool(keeping_lasting(plan, plan.inputs.kbs).patterns.kept) == (not disable)
    kb = {f"{E}owners": graph_of([("d", "owner", "ann"), ("e", "owner", "eve")])}
    engine = spaseq.Engine([TOTALS], kb, disable=disable)
    alarms = [(1, "d"), (2, "e"), (4, "f")]
    found = list[spaseq.Match]()
    for second, who in (*alarms, (6, "f")):
        found += engine.push(f"{E}s", nt([(who, "alarm", '"x"')]), second * 1000)
    change = "DELETE { :d :owner ?o } INSERT { :d :owner :bob } WHERE { :d :owner ?o }"
    engine.update_kb(f"{E}owners", f"PREFIX : <{E}>\n{change}", 7_000)
    found += engine.push(f"{E}s", nt([("f", "alarm", '"x"')]), 11_000)
    shown = [
        (m.answer.end[0] // 1000, *(m.bindings[v].n3()[len(E) + 1 : -1] for v in "do"))
        for m in found
    ]
    assert shown == [(5, "d", "ann"), (5, "e", "eve"), (10, "d", "bob")]
