"""What the other queries of a call make for one of them: streams, as sources, and graphs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spaseq.algebra.answers import Answer
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.kb.versions import versions_of
from spaseq.options import StageOptions
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.inputs.stream_options import OnBad, StreamOptions
from spaseq.records import record
from spaseq.runtime import local
from spaseq.runtime.job.chaining import RegisteredStream, queries_read, reading_order
from spaseq.runtime.job.graph_dumps import GraphDumps
from spaseq.runtime.job.job import Job
from spaseq.sources.base import Source, Split


def registered_sources(
    plans: Sequence[QueryPlan],
    number: int,
    sources: Sequence[Source],
    knowledge: KnowledgeBase,
    options: StageOptions,
) -> list[Source]:
    """The streams that other queries make for one query, as sources.

    Each of the `sources` may be opened several times.
    """
    reads = queries_read(plans)
    feeding = set(reads[number])
    while more := {n for reader in feeding for n in reads[reader]} - feeding:
        feeding |= more
    if not feeding:
        return []
    ordered = reading_order([plans[n] for n in sorted(feeding)])
    needed = {iri for plan in ordered for iri in plan.inputs.streams}
    job = Job(ordered, tuple(s for s in sources if s.iri in needed), knowledge, options)
    answers: list[list[Answer]] = [[] for _ in ordered]
    for query, answer in local.run(job):
        answers[query].append(answer)
    return [
        RegisteredAnswers(plan.identity.register, tuple(of_plan))
        for plan, of_plan in zip(ordered, answers, strict=True)
        if plan.identity.register in plans[number].inputs.streams
        and plan.identity.register is not None
    ]


def with_maintained(
    plans: Sequence[QueryPlan],
    number: int,
    sources: Sequence[Source],
    knowledge: KnowledgeBase,
    options: StageOptions,
) -> KnowledgeBase:
    """The knowledge base with versions of the graphs that other queries maintain for one query.

    Each of the `sources` may be opened several times.

    Raises:
        RunError: there are too many versions.
    """
    read = {*plans[number].inputs.kbs} & {plan.maintained for plan in plans}
    if not read:
        return knowledge
    outside = [iri for iri in knowledge.graphs if any(versions_of(knowledge, iri))]
    connected = reading_order(plans, outside)
    reads = queries_read(connected)
    feeding = {n for n, plan in enumerate(connected) if plan.maintained in read}
    while more := {n for reader in feeding for n in reads[reader]} - feeding:
        feeding |= more
    ordered = tuple(connected[n] for n in sorted(feeding))
    needed = {iri for plan in ordered for iri in plan.inputs.streams}
    kept = GraphDumps({iri: f"{n}.nt" for n, iri in enumerate(sorted(filter(None, read)))}, ordered)
    given = tuple(s for s in sources if s.iri in needed)
    for _ in local.run(Job(ordered, given, knowledge, options, dumps=kept)):
        pass
    return kept.with_versions(knowledge)


# --- The answers of another query as the events of the stream that it registers -------------------

_ANSWERS = 4096
"""How many answers make a batch."""


@record
class RegisteredAnswers(Source):
    """A registered stream whose query has run; it may be opened several times."""

    stream: str  # IRI
    answers: tuple[Answer, ...]

    @property
    def iri(self) -> str:
        return self.stream

    @classmethod
    def of(cls, given: object, options: StreamOptions) -> Source | None:
        return None  # no user gives one

    def describe(self) -> str:
        return "answers of another query"

    def open(self, on_bad: OnBad, split: Split | None = None) -> Iterator[EventBatch]:
        stream = RegisteredStream(self.stream)
        for start in range(0, len(self.answers), _ANSWERS):
            yield stream.events(self.answers[start : start + _ANSWERS])
