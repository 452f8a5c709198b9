"""Groups of many partitions are kept together: the answers, a state, and what goes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from random import Random

import pytest
import rdflib

import spaseq
from spaseq.algebra.answers import Answer
from spaseq.compile import compile_query
from spaseq.gpm.pattern_stage import PatternStage
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.rdf.program_events import batch_of_event, triples_of
from spaseq.rdf.terms.term import Term
from spaseq.stages.sequence import SequenceStage
from spaseq.windows.group_keeper import GroupKeeper
from tests.oracle.comparison import comparable
from tests.sizes import first_of
from tests.thresholds import Force, forced
from tests.windows.test_kept_groups import (
    DECIMALS,
    EXTENTS,
    VALUES,
    XSD,
    answers,
    drawn_query,
)


def partitioned_query(draw: Random) -> str:
    while True:
        query = drawn_query(draw)
        if "PARTITION" in query:
            return query


COUNTED = """DEFINE GPM B ON W {
    { SELECT (COUNT(?y) AS ?k) { EVENT { ?z :v ?y } } HAVING (COUNT(?y) > 1) } } }"""


def counting_query(draw: Random) -> str:
    """A query of two GPMs whose sequence counts window events, also those without solutions."""
    query = drawn_query(draw).rpartition("}")[0] + COUNTED
    if draw.random() < 0.7:
        sequence = draw.choice(["A, B", "B, A", "B, B", "B, A, B", "A, B+", "A, B!, B"])
        strategy, within = "", draw.choice(["WITHIN 4 SECONDS", "WITHIN 1 HOURS"])
    else:
        sequence, strategy = draw.choice(["A; B", "B : A"]), draw.choice(["", "STRICT"])
        within = "WITHIN 9 SECONDS" if strategy else f"WITHIN {draw.choice([2, 3])} EVENTS"
    query = query.replace("SEQ(A)", f"SEQ({sequence})")
    return query.replace("SELECT * ", f"SELECT {strategy} * {within} ", 1)


def drawn_events(draw: Random) -> list[spaseq.Event]:
    """Events of none to three of some subjects; many have one time."""
    values = draw.choice([VALUES, VALUES[:2], VALUES[:6], DECIMALS])
    subjects, time, events = draw.choice([3, 10, 40]), 0, list[spaseq.Event]()
    for number in range(draw.randint(5, 80)):
        lines = []
        for _ in range(draw.choice([0, 1, 1, 1, 2, 3])):
            subject = f"<http://e/o{draw.randint(1, subjects)}>"
            lines.append(f"{subject} <http://e/v> {draw.choice(values)} .")
            if draw.random() < 0.5:
                lines.append(f"{subject} <http://e/w> {draw.choice(values)} .")
        events.append(spaseq.Event("\n".join(lines), time, f"http://e/g{number}"))
        time += draw.choice([0, 0, 500, 500, 1000, 2000, 9000])
    return events


def pushed(query: str, events: Sequence[spaseq.Event], draw: Random) -> list[object]:
    """The answers if some events are pushed at a time."""
    engine, found, at = spaseq.Engine(query), list[spaseq.Match](), 0
    while at < len(events):
        end = at + draw.choice([1, 1, 5, 20])
        found += engine.push_many([("S", event) for event in events[at:end]])
        at = end
    return [comparable(m.answer) for m in (*found, *engine.close())]


def stages_of(query: str) -> tuple[PatternStage, SequenceStage]:
    plan = compile_query(query)
    return PatternStage(plan, KnowledgeBase.empty()), SequenceStage(plan)


def restarted(query: str, events: Sequence[spaseq.Event], draw: Random) -> list[object]:
    """The answers of stages, each of which goes on from the state of the one before."""
    patterns, stage = stages_of(query)
    found, ties = list[Answer](), dict[int, int]()
    for number, event in enumerate(events):
        assert isinstance(event.time, int)
        k = ties[event.time] = ties.get(event.time, -1) + 1
        given = "http://e/s", event.time, k, f"http://e/g{number}", triples_of(event.graph)
        stage.push(patterns.match(batch_of_event(*given)))
        if draw.random() < 0.5:
            found += stage.advance(event.time - 1)
        if draw.random() < 0.3:
            state, (_, stage) = stage.snapshot(), stages_of(query)
            stage.restore(state)
    return [comparable(answer) for answer in (*found, *stage.close())]


def check(seed: int, drawn: Callable[[Random], str] = partitioned_query) -> int:
    draw = Random(seed)
    query, events = drawn(draw), drawn_events(draw)
    assert compile_query(query).patterns.kept, query
    wanted = answers(query, events, ["kept-groups"])
    for words in ("", "least"):
        with forced(words):
            assert answers(query, events) == wanted, (seed, words, query)
            assert pushed(query, events, Random(seed)) == wanted, (seed, words, query)
            assert restarted(query, events, Random(seed)) == wanted, (seed, words, query)
    return len(wanted)


def test_drawn_queries() -> None:
    assert sum(map(check, range(10))) > 100


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(1000, 1040), marks=pytest.mark.thorough),
        pytest.param(range(1040, 1400), marks=pytest.mark.slow),
    ],
)
def test_many_drawn_queries(seeds: range) -> None:
    assert sum(map(check, seeds)) > 5 * len(seeds)


@pytest.mark.parametrize(
    "seeds",
    [
        range(10),
        pytest.param(range(1000, 1040), marks=pytest.mark.thorough),
        pytest.param(range(1040, 1400), marks=pytest.mark.slow),
    ],
)
def test_sequences_that_count_window_events(seeds: range) -> None:
    assert sum(check(seed, counting_query) for seed in seeds) > 5 * len(seeds)


class Stages:
    """Both stages of a query with one keeper, and the answers so far."""

    def __init__(self, query: str) -> None:
        self._patterns, self._stage = stages_of(query)
        self.found: list[Answer] = []

    @property
    def keeper(self) -> GroupKeeper:
        assert self._stage._windows is not None
        keeper = self._stage._windows._keepers[0]
        assert isinstance(keeper, GroupKeeper)
        return keeper

    def push(self, graph: str, time: int) -> None:
        batch = batch_of_event("http://e/s", time, 0, None, triples_of(graph))
        self._stage.push(self._patterns.match(batch))
        self.found += self._stage.advance(time)

    def told(self, variables: str) -> list[tuple[str, ...]]:
        """The values of variables of one letter, at the end."""
        self.found += self._stage.close()
        terms = [dict(answer.bindings) for answer in self.found]
        return [tuple(str(Term(own[v]).to_python()) for v in variables) for own in terms]


def value(key: str, number: int) -> str:
    return f'<http://e/{key}> <http://e/v> "{number}"^^<{XSD}integer> .'


@pytest.mark.parametrize(("shown", "group"), [("", ""), ("?k", "GROUP BY ?k")])
def test_rows_that_left_go_although_an_older_one_stays(
    shown: str, group: str, force: Force
) -> None:
    """One key has a single row, another has 200, of which three are in a window."""
    force("kept_groups=0")
    stages = Stages(
        f"""PREFIX : <http://e/> SELECT * PARTITION BY (?r) FROM STREAM S <http://e/s>
        FROM WINDOW W ON S RANGE 3 EVENTS EACH EVENT KEY {{ ?r :v ?any }}
        WHERE {{ SEQ(A) DEFINE GPM A ON W {{ {{ SELECT {shown} (SUM(?v) AS ?s) (MAX(?v) AS ?m)
        (COUNT(DISTINCT ?v) AS ?n) (GROUP_CONCAT(?v) AS ?c) {{ EVENT {{ ?k :v ?v }} }} {group} }} }}
        }}"""
    )
    stages.push(value("still", 7), 0)
    last, wanted = deque[int](maxlen=3), [("7", "7", "1", "7")]
    for number in range(200):
        last.append(number * 7 % 5)
        listed = " ".join(map(str, last))
        wanted.append((str(sum(last)), str(max(last)), str(len({*last})), listed))
        stages.push(value("busy", last[-1]), 1 + number)
        assert len(stages.keeper.rows) < 12
    stages.push(value("still", 8), 1000)
    wanted.append(("15", "8", "2", "7 8"))
    assert stages.told("smnc") == wanted


@pytest.mark.parametrize(("shown", "group"), [("", ""), ("?k", "GROUP BY ?k")])
def test_partitions_without_rows_go(shown: str, group: str, force: Force) -> None:
    force("kept_groups=0")
    stages = Stages(
        f"""PREFIX : <http://e/> SELECT * PARTITION BY (?r) FROM STREAM S <http://e/s>
        FROM WINDOW W ON S RANGE 2 SECONDS KEY {{ ?r :v ?any }}
        WHERE {{ SEQ(A) DEFINE GPM A ON W {{ {{ SELECT {shown} (SUM(?v) AS ?s)
        {{ EVENT {{ ?k :v ?v }} }} {group} HAVING (COUNT(*) > 0) }} }} }}"""
    )
    wanted = list[tuple[str, str]]()
    for second in range(100):
        wanted += [(f"http://e/k{second}", str(second)), ("http://e/often", "1")][: 1 + second % 2]
        stages.push(value(f"k{second}", second), second * 1000)
        if second % 2:
            stages.push(value("often", 1), second * 1000 + 1)
        assert len(stages.keeper.rows.partitions) < 16
        assert len(stages.keeper._table) < 16
    assert sorted(stages.told("rs")) == sorted(wanted)


def limits(draw: Random) -> rdflib.Graph:
    """A graph with limits of some keys."""
    lines = [f":k{i} :lim {draw.randint(0, 9)} ." for i in range(1, 5) if draw.random() < 0.7]
    return rdflib.Graph().parse(data="@prefix : <http://e/> .\n" + "\n".join(lines))


def beside_changes(query: str, draw: Random, disable: Sequence[str]) -> list[object]:
    """The answers beside a knowledge base that changes now and then."""
    engine = spaseq.Engine(query, {"http://e/kb": limits(draw)}, disable=disable)
    found, time = list[spaseq.Match](), 0
    for _ in range(40):
        found += engine.push("S", value(f"k{draw.randint(1, 4)}", draw.randint(0, 9)), time)
        if draw.random() < 0.2:
            engine.update_kb("http://e/kb", limits(draw))
        time += draw.choice([1, 500, 1000, 3000, 9000])
    return [comparable(m.answer) for m in (*found, *engine.close())]


@pytest.mark.parametrize("seed", first_of(range(8), 3))
def test_a_change_of_the_knowledge_base_is_seen_in_all_partitions(seed: int) -> None:
    draw = Random(seed)
    shown, group = draw.choice([("", ""), ("?k", "GROUP BY ?k")])
    query = f"""PREFIX : <http://e/> SELECT * PARTITION BY (?k) FROM STREAM S <http://e/s>
        FROM NAMED :kb FROM WINDOW W ON S {draw.choice(EXTENTS)} KEY {{ ?k :v ?any }}
        WHERE {{ SEQ(A) DEFINE GPM A ON {draw.choice(["W", "NEW W, GONE W"])} {{
        {{ SELECT {shown} (AVG(?x) AS ?a) {{ EVENT {{ ?k :v ?x }} }} {group} }}
        GRAPH :kb {{ ?k :lim ?l }} FILTER(?a > ?l) }} }}"""
    wanted = beside_changes(query, Random(seed), ["kept-groups"])
    assert wanted
    assert beside_changes(query, Random(seed), []) == wanted
