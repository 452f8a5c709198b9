"""The engine, run in process on a streamset."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rdflib import Graph

from spaseq.algebra.answers import Answer as EngineAnswer
from spaseq.compile import compile_query
from spaseq.engine import Matcher, SequenceStage
from spaseq.kb.load import load_kb
from spaseq.rdf.batches import EventBatch
from spaseq.rdf.events import batch_from_events
from spaseq.rdf.instants import InstantCounter
from tests.oracle.model import Streamset
from tests.oracle.patterns import nt


def run_local(
    query: str,
    streams: Streamset,
    kb: Mapping[str, Graph] | None = None,
    cuts: int = 1,
    evaluator: str | None = None,
) -> list[EngineAnswer]:
    """The engine's answers.

    Args:
        query: its text.
        streams: as `tests.oracle.oracle.evaluate` takes them.
        kb: graph IRI to graph.
        cuts: in how many portions of time the events arrive.
        evaluator: force one.

    Raises:
        UsageError: that evaluator cannot run the query.
    """
    plan = compile_query(query, evaluator=evaluator)
    matcher = Matcher(plan, load_kb(list((kb or {}).items())))
    stage = SequenceStage(plan)
    answers: list[EngineAnswer] = []
    for watermark, batches in _portions(streams, cuts):
        for batch in batches:
            stage.push(matcher.match(batch))
        answers.extend(stage.advance(watermark))
    return answers + list(stage.close())


def _portions(streams: Streamset, cuts: int) -> Iterator[tuple[int, list[EventBatch]]]:
    """The events in order of time, in `cuts` portions; and the watermark after each."""
    times = sorted({time for events in streams.values() for time, _, _ in events})
    ends = [times[(i + 1) * len(times) // cuts - 1] for i in range(cuts) if times]
    counters = {stream: InstantCounter() for stream in streams}
    start = min(times, default=0) - 1
    for end in sorted(set(ends)):
        batches = []
        for stream, events in streams.items():
            rows = [
                (time, iri, [(nt(s), nt(p), nt(o)) for s, p, o in triples])
                for time, iri, triples in events
                if start < time <= end
            ]
            batches.append(batch_from_events(stream, rows, counters[stream]))
        yield end, batches
        start = end
