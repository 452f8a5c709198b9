"""Random queries over windows, answered by every driver, against brute force."""

from __future__ import annotations

import os
import pickle
import signal
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest

import spaseq
from spaseq.algebra.answers import Answer, PartialAnswer
from spaseq.api.prepare import load_knowledge
from spaseq.compile import CompileOptions, compile_query
from spaseq.gpm.pattern_stage import PatternStage
from spaseq.options import KnowledgeOptions
from spaseq.rdf.program_events import batch_of_event, triples_of
from tests.oracle.comparison import comparable
from tests.oracle.model import Streamset, TooBig
from tests.oracle.patterns import nt
from tests.oracle.test_partial import told
from tests.stages.single_query import SingleQuery
from tests.thresholds import forced
from tests.windows.draw_cases import draw_case, draw_streams, kb_of
from tests.windows.window_oracle import Case, S, T, expected, expected_partials

NAMES = {S: "S", T: "T"}


def graph_text(triples: Sequence[Sequence[object]]) -> str:
    return "".join(f"{' '.join(nt(t) for t in triple)} .\n" for triple in triples)  # type: ignore[arg-type]


def stages_of(query: str, partial: bool = False) -> tuple[PatternStage, SingleQuery]:
    plan = compile_query(query, options=CompileOptions(partial=partial))
    knowledge = load_knowledge((plan,), kb_of(query), KnowledgeOptions(kb_cache="none"))
    return PatternStage(plan, knowledge), SingleQuery(plan, knowledge)


def given_to_runs(streams: Streamset) -> dict[str, list[spaseq.Event]]:
    """The events of streams, by name."""
    return {
        NAMES[iri]: [spaseq.Event(graph_text(g), time, name) for time, name, g in events]
        for iri, events in streams.items()
    }


def bounded(
    query: str, streams: Streamset, runtime: str = "local", disable: Sequence[str] = ()
) -> list[Answer]:
    given = given_to_runs(streams)
    matches = spaseq.run(query, given, runtime=runtime, disable=disable, kb=kb_of(query))  # type: ignore[arg-type]
    return [m.answer for m in matches]


def in_order(streams: Streamset) -> list[tuple[int, int, str, str | None, str]]:
    """(time, k, stream, name, graph) of all events, as they may arrive."""
    found = []
    for iri, events in streams.items():
        ties: dict[int, int] = {}
        for time, name, graph in events:
            ties[time] = ties.get(time, -1) + 1
            found.append((time, ties[time], iri, name, graph_text(graph)))
    return sorted(found, key=lambda e: e[:3])


def pushed(query: str, streams: Streamset) -> list[Answer]:
    engine, found = spaseq.Engine(query, kb_of(query)), []
    for time, _, iri, name, graph in in_order(streams):
        if name is None:
            found += engine.push(NAMES[iri], graph, time)
        else:
            found += engine.push_many([(NAMES[iri], spaseq.Event(graph, time, name))])
    return [m.answer for m in (*found, *engine.close())]


def restarted(query: str, streams: Streamset) -> list[Answer]:
    """Batches of a few events, after each of which another stage goes on."""
    patterns, stage = stages_of(query)
    found: list[Answer] = []
    for number, (time, k, iri, name, graph) in enumerate(in_order(streams)):
        stage.push(patterns.match(batch_of_event(iri, time, k, name, triples_of(graph))))
        if number % 3:
            continue
        found += stage.advance(time - 1)
        state, (_, stage) = stage.snapshot(), stages_of(query)
        stage.restore(state)
    return [*found, *stage.close()]


def killed(query: str, streams: Streamset) -> list[Answer]:
    """Processes that push event after event, and are killed; each goes on from the last state."""
    with TemporaryDirectory() as place:
        state = Path(place) / "state"
        state.write_bytes(pickle.dumps((0, [], None)))
        draw = Random(len(query))
        while True:
            die_at = draw.randint(0, 6)
            child = os.fork()
            if not child:
                try:
                    _push_on(query, in_order(streams), state, die_at)
                except BaseException:
                    traceback.print_exc()
                    os._exit(1)
                os._exit(0)
            _, status = os.waitpid(child, 0)
            if not os.WIFSIGNALED(status):
                assert status == 0
                found: list[Answer] = pickle.loads(state.read_bytes())[1]
                return found


def _push_on(
    query: str, events: Sequence[tuple[int, int, str, str | None, str]], state: Path, die_at: int
) -> None:
    """Push the events that the state does not have; the process kills itself before long."""
    done, found, snapshot = pickle.loads(state.read_bytes())
    patterns, stage = stages_of(query)
    if snapshot is not None:
        stage.restore(snapshot)
    for number in range(done, len(events) + 1):
        if number < len(events):
            time, k, iri, name, graph = events[number]
            stage.push(patterns.match(batch_of_event(iri, time, k, name, triples_of(graph))))
            found += stage.advance(time - 1)
        else:
            found += stage.close()
        written = state.with_suffix(".new")
        written.write_bytes(pickle.dumps((number + 1, found, stage.snapshot())))
        if number - done >= die_at:
            if die_at % 2:
                os.replace(written, state)
            os.kill(os.getpid(), signal.SIGKILL)
        os.replace(written, state)


def check(case: Case, streams: Streamset, ways: Sequence[str]) -> bool:
    try:
        wanted = [comparable(a) for a in expected(case, streams)]
    except TooBig:
        return False
    for way in ways:
        answers = WAYS[way](case.query(), streams)
        assert [comparable(a) for a in answers] == wanted, (way, case.query(), streams)
    return bool(wanted)


def forced_to(words: str) -> Callable[[str, Streamset], list[Answer]]:
    def run(query: str, streams: Streamset) -> list[Answer]:
        with forced(words):
            return bounded(query, streams)

    return run


WAYS = {
    "bounded": bounded,
    "anew": lambda query, streams: bounded(query, streams, disable=["kept-groups"]),
    "least": forced_to("least"),
    "never": forced_to("never"),
    "pushed": pushed,
    "restarted": restarted,
    "killed": killed,
    "spark": lambda query, streams: bounded(query, streams, "spark"),
}


def run_cases(seeds: range, ways: Sequence[str]) -> int:
    found = 0
    for seed in seeds:
        draw = Random(seed)
        found += check(draw_case(draw), draw_streams(draw), ways)
    return found


def test_random_queries() -> None:
    assert run_cases(range(15, 27), [way for way in WAYS if way not in ("spark", "killed")]) > 4


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(1000, 1030), marks=pytest.mark.thorough),
        pytest.param(range(1030, 1200), marks=pytest.mark.slow),
    ],
)
def test_many_random_queries(seeds: range) -> None:
    assert run_cases(seeds, ["bounded", "pushed", "restarted"]) > len(seeds) // 3


def test_random_queries_in_processes_that_are_killed() -> None:
    assert run_cases(range(46, 50), ["killed"]) > 0


@pytest.mark.thorough
@pytest.mark.spark
def test_random_queries_on_spark() -> None:
    assert run_cases(range(3000, 3010), ["spark"]) > 3


# --- partial matches ------------------------------------------------------------------------------


def bounded_partials(query: str, streams: Streamset, runtime: str = "local") -> list[PartialAnswer]:
    found: list[spaseq.PartialMatch] = []
    options: dict[str, Any] = {"kb": kb_of(query), "on_partial": found.append}
    list(spaseq.run(query, given_to_runs(streams), runtime=runtime, **options))
    return [each.partial for each in found]


def pushed_partials(query: str, streams: Streamset) -> list[PartialAnswer]:
    engine = spaseq.Engine(query, kb_of(query), partial=True)
    found = []
    for time, _, iri, name, graph in in_order(streams):
        engine.push_many([(NAMES[iri], spaseq.Event(graph, time, name))])
        found += engine.partials()
    engine.close()
    return [each.partial for each in (*found, *engine.partials())]


def restarted_partials(query: str, streams: Streamset) -> list[PartialAnswer]:
    patterns, stage = stages_of(query, partial=True)
    found: list[PartialAnswer] = []
    for number, (time, k, iri, name, graph) in enumerate(in_order(streams)):
        stage.push(patterns.match(batch_of_event(iri, time, k, name, triples_of(graph))))
        if number % 3:
            continue
        stage.advance(time - 1)
        found += stage.partials()
        state, (_, stage) = stage.snapshot(), stages_of(query, partial=True)
        stage.restore(state)
    stage.close()
    return [*found, *stage.partials()]


PARTIAL_WAYS = {
    "bounded": bounded_partials,
    "pushed": pushed_partials,
    "restarted": restarted_partials,
    "spark": lambda query, streams: bounded_partials(query, streams, "spark"),
}


def run_partial_cases(seeds: Sequence[int], ways: Sequence[str]) -> int:
    """How many cases have partial matches, which are the oracle's, in their order."""
    count = 0
    for seed in seeds:
        draw = Random(seed)
        case, streams = draw_case(draw), draw_streams(draw)
        try:
            wanted = [told(each) for each in expected_partials(case, streams)]
        except TooBig:
            continue
        count += bool(wanted)
        for way in ways:
            found = [told(each) for each in PARTIAL_WAYS[way](case.query(), streams)]
            assert found == wanted, (way, case.query(), streams)
    return count


OF_PARTITIONS = (186, 298, 539, 949)
"""Seeds of cases with window events of several partitions that have one instant."""


@pytest.mark.parametrize(
    "seeds",
    [(*range(8), *OF_PARTITIONS), pytest.param(range(8, 120), marks=pytest.mark.thorough)],
    ids=["few", "many"],
)
def test_partial_matches_of_random_queries(seeds: Sequence[int]) -> None:
    assert run_partial_cases(seeds, ["bounded", "pushed", "restarted"]) > len(seeds) // 3


@pytest.mark.thorough
@pytest.mark.spark
def test_partial_matches_of_random_queries_on_spark() -> None:
    assert run_partial_cases(range(4000, 4010), ["spark"]) > 3
