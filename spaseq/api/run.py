"""`spaseq.run`: queries over streams that end, matches out, on either runtime."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Literal, Unpack

from spaseq.algebra.answers import Answer, PartialAnswer
from spaseq.api.match import Match, PartialMatch
from spaseq.api.prepare import load_knowledge, plan_queries
from spaseq.api.queries import QueryInput
from spaseq.api.streams import StreamInput, bounded_sources
from spaseq.options import KbInput, RunKeywords, RunOptions, RuntimeOptions
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.inputs.bad_input import BadInput
from spaseq.runtime.job.binding import bind_streams
from spaseq.runtime.job.job import Job, Stats


def run(
    query: QueryInput | Sequence[QueryInput],
    streams: Mapping[str, StreamInput],
    kb: Mapping[str, KbInput] | None = None,
    runtime: Literal["spark", "local"] = "spark",
    *,
    on_bad: Callable[[BadInput], None] | None = None,
    stats: Stats | None = None,
    **options: Unpack[RunKeywords],
) -> Iterator[Match]:
    """Replay streams to their ends and yield the matches of one or several queries.

    Args:
        query: query text, or the `Path` of a query file; several in a list. The queries of one
            call can read the streams that others of them register.
        streams: by the query's name for a stream, or its IRI: a path (file, directory, glob),
            several paths, or an iterable of `Event`s in order of arrival.
        kb: by graph IRI: a path, an rdflib.Graph, or the URL of a SPARQL endpoint.
        runtime: "spark", or "local" for this process alone.
        on_bad: called for each piece of input that cannot become an event.
        stats: filled with counts while the run lasts.
        options: any of `spaseq.options.RunKeywords`: how streams are read (`time_predicate`,
            `triples_per_event`, `base`, `threads`), how the knowledge base is loaded (`kb_cache`,
            `services`), how queries are planned (`ontology`, `entailment`, `disable`), and how many
            matches one event may give (`limit_per_event`).

    Yields:
        Matches, query by query, each query's in order (docs/language.md#order-of-answers).
        A query that reads the stream of another comes after it.

    Raises:
        QueryError: the queries have errors; all are in it.
        InputError: a stream or knowledge base is missing or does not load.
        UsageError: a stream has no input, an input has no stream, queries read each other's
            streams in a circle, or an option is unknown or contradicts another.
    """
    chosen = RunOptions.of("run", RunKeywords, options)
    chosen = replace(chosen, runtime=RuntimeOptions(runtime))
    on_partial = options.get("on_partial")
    planning = replace(chosen.planning, partial=on_partial is not None)
    plans = plan_queries(query, planning)
    bound = bind_streams(plans, streams)
    job = Job(plans, (), load_knowledge(plans, kb or {}, chosen.knowledge), chosen.stages)
    job.on_bad = on_bad or job.on_bad
    if on_partial is not None:
        job.on_partial = _named(plans, on_partial)
    job.stats = stats or job.stats
    return _matches(job, bound, chosen)


def _named(
    plans: Sequence[QueryPlan], on_partial: Callable[[PartialMatch], None]
) -> Callable[[int, PartialAnswer], None]:
    """The function that a job calls, from the one that a user gives."""

    def take(query: int, partial: PartialAnswer) -> None:
        on_partial(PartialMatch.of(plans[query].identity.name, partial))

    return take


def _matches(job: Job, streams: Mapping[str, StreamInput], options: RunOptions) -> Iterator[Match]:
    job = replace(job, streams=bounded_sources(streams, options))
    with closing(answers_of(job, options.runtime)) as answers:
        for number, answer in answers:
            yield Match(job.plans[number].identity.name, answer)


def answers_of(job: Job, runtime: RuntimeOptions) -> Generator[tuple[int, Answer]]:
    """(number of the query, answer) of a job whose streams end."""
    if runtime.name == "local":
        from spaseq.runtime import local

        return local.run(job)
    from spaseq.runtime.spark import bounded

    return bounded.run(job, master=runtime.master, verbose=runtime.verbose)
