"""The streams that the other queries of a call make for one of them, as sources."""

from __future__ import annotations

from collections.abc import Sequence

from spaseq.algebra.answers import Answer
from spaseq.diagnosis.registered_answers import RegisteredAnswers
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.options import StageOptions
from spaseq.plan.query_plan import QueryPlan
from spaseq.runtime import local
from spaseq.runtime.job.chaining import queries_read, reading_order
from spaseq.runtime.job.job import Job
from spaseq.sources.base import Source


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
        RegisteredAnswers(plan.identity.register, tuple(own))
        for plan, own in zip(ordered, answers, strict=True)
        if plan.identity.register in plans[number].inputs.streams
        and plan.identity.register is not None
    ]
