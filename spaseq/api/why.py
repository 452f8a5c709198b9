"""`spaseq.why`: why a query has no answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias, Unpack

from spaseq.api.prepare import load_knowledge
from spaseq.api.queries import QueryInput, check_queries, plans_of
from spaseq.api.registered import registered_sources, with_maintained
from spaseq.api.streams import StreamInput, bounded_sources, sources_if_any
from spaseq.compile import Checked, CompileOptions
from spaseq.diagnosis.diagnose import Diagnosis
from spaseq.diagnosis.question import Question
from spaseq.diagnosis.report import Report
from spaseq.diagnosis.watched_event import AskedEvent
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.lang.resolve import resolve
from spaseq.options import KbInput, RunOptions, RuntimeOptions, StageOptions, StreamKeywords
from spaseq.plan.planner import plan_query
from spaseq.runtime.job.binding import bind_streams
from spaseq.runtime.job.chaining import reading_order, registered
from spaseq.scratch import ScratchDirectory
from spaseq.sources.base import Source

Sources: TypeAlias = Sequence[Source]


def why(
    query: QueryInput | Sequence[QueryInput],
    streams: Mapping[str, StreamInput],
    kb: Mapping[str, KbInput] | None = None,
    *,
    event: str | None = None,
    watermark_ms: int = 0,
    **options: Unpack[StreamKeywords],
) -> Report:
    """Say where the way from the events of streams to the answers of a query ends.

    Args:
        query: query text, or the `Path` of a query file; of several the first one is asked about,
            and the others make the streams that it reads.
        streams: as for `spaseq.run`. They are read to their ends, in this process.
        kb: as for `spaseq.run`.
        event: an event, by its IRI or as the query would write it (`:e1`); the report is then about
            the answers that hold it.
        watermark_ms: with `event`, the watermark of the followed run that may lack its answers.
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
    if plan.patterns.kept:  # the question looks at the events of windows
        anew = CompileOptions(disable=[*plan.disabled, "kept-groups"], schema=schema)
        plan = plan_query(resolved, plan.identity.title, anew)
    question = Question.of(resolved, plan, schema)
    by_iri = {source.iri: source for source in read_sources}
    return Diagnosis(question, by_iri, knowledge, options, made, event, until).report()
