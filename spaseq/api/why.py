"""`spaseq.why`: the reason why a query has no answers.

The other queries of the call give it streams, as sources, and graphs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias, Unpack

from spaseq.algebra.answers import Answer
from spaseq.api.prepare import load_knowledge
from spaseq.api.queries import QueryInput, check_queries, plans_of
from spaseq.api.streams import StreamInput, bounded_sources, sources_if_any
from spaseq.compile import Checked, CompileOptions
from spaseq.diagnosis.diagnose import Diagnosis
from spaseq.diagnosis.question import Question
from spaseq.diagnosis.report import Report
from spaseq.diagnosis.watched_event import AskedEvent
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.kb.versions import versions_of
from spaseq.lang.resolve import resolve
from spaseq.options import KbInput, RunOptions, RuntimeOptions, StageOptions, StreamKeywords
from spaseq.plan.planner import plan_query
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.inputs.stream_options import OnBad
from spaseq.records import record
from spaseq.runtime import local
from spaseq.runtime.job.binding import bind_streams
from spaseq.runtime.job.graph_dumps import GraphDumps
from spaseq.runtime.job.job import Job
from spaseq.runtime.job.unit_graph import RegisteredStream, queries_read, reading_order, registered
from spaseq.scratch import ScratchDirectory
from spaseq.sources.base import Source, Split

Sources: TypeAlias = Sequence[Source]


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
"""Number of answers in a batch."""


@record
class RegisteredAnswers(Source):
    """A registered stream whose query has run; it can be opened several times."""

    stream: str  # IRI
    answers: tuple[Answer, ...]

    @property
    def iri(self) -> str:
        return self.stream

    def describe(self) -> str:
        return "answers of another query"

    def open(self, on_bad: OnBad, split: Split | None = None) -> Iterator[EventBatch]:
        stream = RegisteredStream(self.stream)
        for start in range(0, len(self.answers), _ANSWERS):
            yield stream.events(self.answers[start : start + _ANSWERS])


def why(
    query: QueryInput | Sequence[QueryInput],
    streams: Mapping[str, StreamInput],
    kb: Mapping[str, KbInput] | None = None,
    *,
    event: str | None = None,
    watermark_ms: int = 0,
    **options: Unpack[StreamKeywords],
) -> Report:
    """Find the step at which a query loses its answers, from the events of streams on.

    Args:
        query: query text, or the `Path` of a query file. Of several, the report is about the first;
            the others make the streams that it reads.
        streams: as for `spaseq.run`. They are read to their ends, in this process.
        kb: as for `spaseq.run`.
        event: an event, by its IRI or a prefixed name of the query (`:e1`); the report is then
            about the answers that contain it.
        watermark_ms: with `event`, the watermark delay of the followed run that may lack its
            answers.
        options: any of `spaseq.options.StreamKeywords`.

    Returns:
        The counts, and the causes if there are no answers. `print(report.as_text())` shows them.

    Raises:
        QueryError, InputError, UsageError: as `spaseq.run`.
    """
    chosen = RunOptions.of("why", StreamKeywords, options)
    chosen = replace(chosen, runtime=RuntimeOptions("local"))
    checked = list(check_queries(query, chosen.planning))
    plans = reading_order(plans_of(checked), chosen.knowledge.kb_changes)
    bound = bind_streams(plans, streams)
    knowledge = load_knowledge(plans, kb or {}, chosen.knowledge, sources_if_any(bound, chosen))
    with ScratchDirectory("why") as directory:
        given = bounded_sources(bound, chosen)
        sources = [source.shared(Path(directory)) for source in given]
        asked = None if event is None else AskedEvent(event, watermark_ms)
        return report_on(checked, 0, sources, knowledge, chosen.stages, asked)


def report_on(
    checked: Sequence[Checked],
    number: int,
    sources: Sources,
    knowledge: KnowledgeBase,
    options: StageOptions,
    event: AskedEvent | None = None,
    until: int | None = None,
) -> Report:
    """The report on one of several checked queries without errors, or on an event of its streams.

    The others make the streams that it reads. Each source may be opened several times. `until` is
    as for `Diagnosis`.
    """
    asked = checked[number]
    assert asked.query is not None and asked.plan is not None
    plans = [each.plan for each in checked if each.plan is not None]
    made = {iri: n for iri, n in registered(plans).items() if iri in asked.plan.inputs.streams}
    read_sources = [s for s in sources if s.iri in asked.plan.inputs.streams]
    read_sources += registered_sources(plans, number, sources, knowledge, options)
    knowledge = with_maintained(plans, number, sources, knowledge, options)
    resolved, plan, schema = (
        resolve(asked.query, asked.source),
        asked.plan,
        asked.plan.expressions.schema,
    )
    if plan.patterns.kept:  # the question concerns events of windows
        anew = CompileOptions(disable=[*plan.disabled, "kept-groups"], schema=schema)
        plan = plan_query(resolved, plan.identity.title, anew)
    question = Question.of(resolved, plan, schema)
    by_iri = {source.iri: source for source in read_sources}
    return Diagnosis(question, by_iri, knowledge, options, made, event, until).report()
