"""Drawn cases in live runs that are killed: each part of a run is a process that ends at once."""

from __future__ import annotations

import os
import random
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import spaseq
from spaseq.api.prepare import StandingPlanner, load_knowledge
from spaseq.errors import UsageError
from spaseq.kb.graph_updates import replacing
from spaseq.kb.watched_graphs import KeptGraph
from spaseq.logs.messages import UNNUMBERED, Message
from spaseq.logs.segment_log import SegmentLog
from spaseq.options import FileSourceSettings, KnowledgeOptions, PlanningOptions
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.runtime.job.job import Job
from spaseq.runtime.live import graph_log, live_loop
from spaseq.runtime.live.answer_records import LoggedAnswer
from spaseq.runtime.live.intakes import LiveStream
from spaseq.runtime.live.live_directory import StandingOptions
from spaseq.runtime.live.standing_run import StandingRun
from spaseq.sources.broker_stream import BrokerStream
from tests.knowledge.cases import Case, knowledge, nt, queries, shown
from tests.knowledge.reference import GRAPH, E, Given, Triple

STREAMS = "SMN"
_TIME = "http://www.w3.org/ns/prov#generatedAtTime"
_DATE = "http://www.w3.org/2001/XMLSchema#dateTime"
_END_MS, _LOST = 10**8, 3


def live(case: Case) -> Case:
    """The case as a live run can have it: a graph that a query keeps has no changes from outside.

    Of several changes at one time the last one stands.
    """
    changes = () if case.maintainers else case.replaced
    return replace(case, replaced=tuple(sorted(changes, key=lambda change: change[0])))


class Part:
    """A process's part of a run.

    Args:
        case: what is run.
        directory: of the run.
    """

    def __init__(self, case: Case, directory: Path) -> None:
        kb = load_knowledge((), knowledge(case), KnowledgeOptions())
        settings = FileSourceSettings(max_ahead_ms=10**15)
        streams = [
            LiveStream(name, BrokerStream(StreamOptions(f"{E}{name}", ()), ""), settings)
            for name in STREAMS
        ]
        kept = {GRAPH: KeptGraph(watched=False, writable=True)}
        planner = StandingPlanner(PlanningOptions(), kb)
        how = StandingOptions(retain_ms=0)
        self.case = case
        self.run = StandingRun(directory, streams, Job((), (), kb, graphs=kept), planner, {}, how)
        self.run.start()

    def begin(self) -> None:
        """Put the queries; those that keep the graph come before the one that reads it."""
        texts = [*enumerate(queries(self.case), 1)]
        for number, text in (*texts[1:], texts[0]):
            self.run.put(f"query{number}", text)

    def do(self, item: Given | tuple[int, frozenset[Triple]]) -> None:
        """Accept an event, or a change from outside; it is on disk then."""
        if isinstance(item, Given):
            name = f"<urn:e{id(item)}x{random.random()}>"
            lines = nt(item.triples).replace(" .\n", f" {name} .\n")
            at = f"1970-01-01T00:00:{item.time:02}Z"
            text = f'{lines}{name} <{_TIME}> "{at}"^^<{_DATE}> .\n'
            self.run.accept(item.stream, [Message(text.encode(), 0, UNNUMBERED)])
        else:
            at_ms, triples = item
            new = [tuple(f"<{E}{term}>" for term in triple) for triple in triples]
            self.run.graphs.change(
                GRAPH, lambda now: replacing(now.triples(), new), since=at_ms * 1000
            )

    def end(self) -> None:
        """Let all answers be final, and end as a run does."""
        for name in STREAMS:
            self.run.heartbeat(name, _END_MS)
        self.run.enable("query1", False)  # it takes effect after all that is logged
        self._check_graph()
        self.run.stop()

    def _check_graph(self) -> None:
        """What the graph is and was is known, if queries maintain it."""
        if self.case.maintainers:
            values = self.case.values()
            for time in {0, *(event.time for event in self.case.events)}:
                then = self.run.graphs.at(GRAPH, time * 1000, 0)
                found = {tuple(term[len(E) + 1 : -1] for term in t) for t in then.triples()}
                assert found == values.at(time), (time, self.case)


def items_of(case: Case) -> list[Given | tuple[int, frozenset[Triple]]]:
    """Events and changes in order of time; changes come first."""
    both = [(time, 0, (time, triples)) for time, triples in case.replaced]
    given = [(event.time, 1, event) for event in case.events]
    return [item for *_, item in sorted([*both, *given], key=lambda each: each[:2])]


def of_kills(
    case: Case, directory: Path, draw: random.Random
) -> Counter[tuple[tuple[int, ...], frozenset[tuple[str, str]]]]:
    """The answers of a live run that is killed now and then; old changes go into the base."""
    items = items_of(case)
    cuts = sorted(draw.sample(range(len(items) + 1), k=min(draw.randrange(1, 4), len(items))))
    begin = 0
    for number, end in enumerate([*cuts, len(items)]):
        is_last = number == len(cuts)
        wait = draw.choice((0.0, 0.0, 0.002, 0.01, 0.03))
        loses = draw.random() < 0.3
        part = case, directory, items[begin:end], number == 0, None if is_last else wait
        state, kept = directory / "state", directory.with_name("kept")
        if loses and state.exists():  # of another version, for instance
            state.rename(kept)
        code = _in_process(*part)
        if code == _LOST:
            kept.rename(state)
            code = _in_process(*part)
        assert code == 0, (case, number)
        begin = end
    log = SegmentLog(directory / "answers")
    logged = [LoggedAnswer.of_bytes(data) for _, data in log.records()]
    log.close()
    return shown([spaseq.Match(own.query, own.answer) for own in logged if own.query == "query1"])


def _in_process(
    case: Case,
    directory: Path,
    items: Sequence[Given | tuple[int, frozenset[Triple]]],
    is_first: bool,
    wait: float | None,
) -> int:
    """A part of a run in a process, which ends at once, some seconds after it has done its items.

    Without `wait` it is the last part. The result is 0, or _LOST if the state cannot be rebuilt.
    """
    child = os.fork()
    if not child:
        code = 1
        try:
            live_loop.SNAPSHOT_S, live_loop._SHARE = 0.0, 0  # type: ignore[misc]
            graph_log.FOLD_BYTES = 1  # type: ignore[misc]
            graph_log._worth = lambda base: 1  # type: ignore[assignment]
            part = Part(case, directory)
            if is_first:
                part.begin()
            for item in items:
                part.do(item)
            if wait is None:
                part.end()
            else:
                time.sleep(wait)
            code = 0
        except UsageError as error:
            code = _LOST if "MAINTAIN GRAPH" in str(error) else 1
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
