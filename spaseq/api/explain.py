"""`spaseq.explain`: the plan of a query and, after a run, the measures of each part."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Literal, Unpack

from spaseq.api.prepare import load_knowledge
from spaseq.api.queries import QueryInput, check_queries
from spaseq.api.run import answers_of
from spaseq.api.streams import StreamInput, bounded_sources
from spaseq.compiled import mode
from spaseq.compiled.warming import warm
from spaseq.errors import UsageError
from spaseq.lang import ast
from spaseq.lang.parser import parse as parse_text
from spaseq.measures import Measures, peak_memory
from spaseq.options import KbInput, RunKeywords, RunOptions, RuntimeOptions
from spaseq.records import record
from spaseq.render.explain import Explanation, explained
from spaseq.runtime.job.binding import bind_streams
from spaseq.runtime.job.job import Job

STAGES = ("ingest", "graph patterns", "sequence")
"""The stages that every runtime measures."""


def explain(
    query: QueryInput,
    streams: Mapping[str, StreamInput] | None = None,
    kb: Mapping[str, KbInput] | None = None,
    runtime: Literal["spark", "local"] = "local",
    *,
    full: bool = False,
    rate: float | None = None,
    **options: Unpack[RunKeywords],
) -> Explanation:
    """The plan of a query, with its automaton as a picture.

    Args:
        query: query text, the `Path` of a query file, or a parsed query.
        streams: if given, as for `spaseq.run`, the query runs over them, and the explanation has
            the rows, time and memory of each part.
        kb: as for `spaseq.run`.
        runtime: the runtime of that run. Spark measures whole stages only.
        full: whether text and JSON also have the canonical text, syntax tree and algebra.
        rate: solutions of the query's graph patterns per second, to estimate its memory.
        options: any of `spaseq.options.RunKeywords`.

    Raises:
        QueryError: the query has errors.
        InputError: a query file, stream or knowledge base cannot be read.
        UsageError: `kb` without `streams`, or an option is unknown.

    >>> found = explain("SELECT * WITHIN 1 HOURS FROM STREAM S <http://e/s> SEQ(A) {"
    ...                 "DEFINE GPM A ON S { ?s ?p ?o } }")
    >>> found.data["window"]["text"]
    '1 HOURS'
    """
    chosen = replace(
        RunOptions.of("explain", RunKeywords, options), runtime=RuntimeOptions(runtime)
    )
    shown = explained(next(check_queries(query, chosen.planning)), full, rate)
    if streams is None:
        if kb:
            raise UsageError("explain() runs the query only over streams; give them, too")
        return shown
    plans = (shown.plan,)
    bound = bounded_sources(bind_streams(plans, streams), chosen)
    knowledge = load_knowledge(plans, kb or {}, chosen.knowledge, bound)
    job = Job(plans, bound, knowledge, chosen.stages)
    return replace(shown, measures=measured(job, chosen.runtime))


def measured(job: Job, runtime: RuntimeOptions) -> Measures:
    """The measures of a job, which runs to its end.

    In this process all kernels are loaded or compiled before, so that no node's time includes this.
    Small input needs no kernels.
    """
    measures = Measures(runtime.name)
    if runtime.name == "local":
        job.measures = measures
        if not mode.interpreted():
            warm()
    start = time.perf_counter()
    for _ in answers_of(job, runtime):
        pass
    measures.seconds = time.perf_counter() - start
    measures.peak_bytes = peak_memory() if runtime.name == "local" else None
    if runtime.name != "local":
        rows = {"ingest": job.stats.events, "sequence": job.stats.matches}
        for stage in STAGES:
            measures.at(stage).rows = rows.get(stage, 0)
            measures.at(stage).seconds = job.stats.stages.get(stage, 0.0)
    return measures


_explain = explain


@record
class ParsedQuery(ast.Query):
    """The syntax tree of a query, which `spaseq.run` and the other calls accept instead of the
    text.
    """

    explain = _explain


def parse(text: str, name: str = "<query>") -> ParsedQuery:
    """The syntax tree of a query.

    Args:
        text: the query.
        name: the name of the query in messages, usually its path.

    Raises:
        QueryError: with every syntax error of the query.

    >>> query = parse("SELECT * WITHIN 1 HOURS FROM STREAM S <http://e/s> SEQ(A) {"
    ...               "DEFINE GPM A ON S { ?s ?p ?o } }")
    >>> query.gpms[0].name, query.explain().data["window"]["text"]
    ('A', '1 HOURS')
    """
    query = parse_text(text, name)
    return ParsedQuery(**{field.name: getattr(query, field.name) for field in fields(query)})
