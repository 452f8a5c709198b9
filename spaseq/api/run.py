"""`spaseq.run`: queries over streams, matches out, on either runtime."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Literal, TypeAlias

from spaseq.algebra.answers import Answer
from spaseq.algebra.schema import Schema
from spaseq.api.match import Match, to_ms
from spaseq.api.push import Event, check_limit
from spaseq.compile import check_query
from spaseq.errors import Diagnostic, InputError, QueryError, UsageError
from spaseq.kb.cache import cache_at
from spaseq.kb.endpoint import ServiceOptions
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.kb.load import load_kb
from spaseq.kb.ontology import OntologyInput, entailing_schema
from spaseq.kb.sources import KbInput
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.in_memory.program_events import Triple, triples_of
from spaseq.rdf.in_memory.spool import write_spool
from spaseq.rdf.inputs.bad_input import BadInput
from spaseq.rdf.readers import StreamOptions, reading_threads, resolve_paths
from spaseq.rdf.terms.vocabulary import GENERATED_AT_TIME
from spaseq.runtime.job.binding import bind_streams, check_kbs
from spaseq.runtime.job.chaining import reading_order
from spaseq.runtime.job.job import Job, Stats

QueryInput: TypeAlias = str | Path
StreamInput: TypeAlias = str | Path | Sequence[str | Path] | Iterable[Event]


def run(
    query: QueryInput | Sequence[QueryInput],
    streams: Mapping[str, StreamInput],
    kb: Mapping[str, KbInput] | None = None,
    runtime: Literal["spark", "local"] = "spark",
    *,
    time_predicate: str = GENERATED_AT_TIME,
    triples_per_event: int | None = None,
    base: str | None = None,
    on_bad: Callable[[BadInput], None] | None = None,
    stats: Stats | None = None,
    threads: int | None = None,
    limit_per_event: int | None = None,
    services: ServiceOptions = ServiceOptions(),  # noqa: B008 - frozen
    ontology: OntologyInput | None = None,
    entailment: str | None = None,
    kb_cache: str | PathLike[str] | None = None,
    disable: Iterable[str] = (),
) -> Iterator[Match]:
    """Replay streams to their ends and yield the matches of one or several queries.

    Args:
        query: query text, or the path of a query file; several in a list. A stream that one of
            them registers can be read by the others.
        streams: by the query's name for a stream, or its IRI: a path (file, directory, glob),
            several paths, or an iterable of `Event`s in order of arrival.
        kb: by graph IRI: a path, an rdflib.Graph, or the URL of a SPARQL endpoint.
        runtime: "spark", or "local" for this process alone.
        time_predicate: IRI whose object is an event's time in the formats with graphs.
        triples_per_event: n of the formats without graphs.
        base: IRI that relative IRIs of Turtle, TriG, RDF/XML and JSON-LD streams are relative to.
        on_bad: called for each piece of input that could not become an event.
        stats: filled with counts as the run goes.
        threads: how many read N-Quads and N-Triples in the local runtime; by default two, or one
            where there is one core.
        limit_per_event: at most so many matches of one query that end at the same instant (and lie
            in the same partition); `stats.suppressed` counts the others.
        services: how SPARQL endpoints are asked.
        ontology: a path or an rdflib.Graph, or several, whose schema patterns are entailed by.
        entailment: "rdfs", with an ontology; by default patterns match what is said.
        kb_cache: the directory in which compiled knowledge bases are kept for the next run; the
            user's cache if None, none if "none".
        disable: names of rules of the planner to do without; answers stay the same.

    Yields:
        Matches, query by query (one that reads another's stream comes after it), in the order of
        LANGUAGE section 3.

    Raises:
        QueryError: the query has errors; all are in it.
        InputError: a stream or KB is not there or does not load.
        UsageError: a stream has no input, or an input no stream; queries read each other's
            streams in a circle; the limit is less than one; an ontology without entailment, or
            the other way round.
    """
    check_limit(limit_per_event)
    plans = _plans(query, entailing_schema(ontology, entailment), disable)
    bound = bind_streams(plans, streams)
    knowledge = load_kb(list((kb or {}).items()), services, cache_at(kb_cache))
    check_kbs(plans, knowledge)
    if runtime not in ("spark", "local"):
        raise UsageError(f"unknown runtime {runtime!r}: spark or local")
    return _matches(
        plans,
        bound,
        knowledge,
        runtime,
        time_predicate,
        triples_per_event,
        base,
        on_bad,
        stats,
        threads,
        limit_per_event,
    )


def _matches(
    plans: tuple[QueryPlan, ...],
    streams: Mapping[str, StreamInput],
    knowledge: KnowledgeBase,
    runtime: str,
    time_predicate: str,
    triples_per_event: int | None,
    base: str | None,
    on_bad: Callable[[BadInput], None] | None,
    stats: Stats | None,
    threads: int | None,
    limit_per_event: int | None,
) -> Iterator[Match]:
    with tempfile.TemporaryDirectory(prefix="spaseq-events-") as spool:
        options = []
        for number, (iri, given) in enumerate(streams.items()):
            paths, form = _paths(given, iri, Path(spool) / f"{number}.spool")
            option = StreamOptions(
                iri,
                paths,
                time_predicate=time_predicate,
                triples_per_event=triples_per_event,
                base=base,
                format=form,
                threads=(threads or reading_threads()) if runtime == "local" else 1,
            )
            resolve_paths(option)
            options.append(option)
        job = Job(plans, tuple(options), knowledge, limit_per_event)
        job.on_bad = on_bad or job.on_bad
        job.stats = stats or job.stats
        with closing(_answers(job, runtime)) as answers:
            for number, answer in answers:
                yield Match(plans[number].name, answer)


def _answers(job: Job, runtime: str) -> Generator[tuple[int, Answer]]:
    if runtime == "local":
        from spaseq.runtime import local

        return local.run(job)
    from spaseq.runtime.spark import bounded

    return bounded.run(job)


def _plans(
    query: QueryInput | Sequence[QueryInput], schema: Schema | None, disable: Iterable[str]
) -> tuple[QueryPlan, ...]:
    queries = [query] if isinstance(query, str | Path) else list(query)
    checked = []
    for number, item in enumerate(queries):
        if isinstance(item, Path):
            text, name, file = read_query(item), item.stem, str(item)
            checked.append(check_query(text, name, file, schema=schema, disable=disable))
        else:
            name = "query" if len(queries) == 1 else f"query{number + 1}"
            checked.append(check_query(item, name, schema=schema, disable=disable))
    errors: list[Diagnostic] = [d for c in checked for d in c.errors]
    if errors:
        raise QueryError(errors)
    return reading_order([c.plan for c in checked if c.plan is not None])


def read_query(path: Path) -> str:
    """The text of a query file.

    Raises:
        InputError: it cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot read the query {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"the query {path} is not UTF-8: {error}") from None


def _paths(given: StreamInput, iri: str, spool: Path) -> tuple[tuple[str, ...], str | None]:
    """A stream input as paths and their forced format; events of the program are spooled."""
    if isinstance(given, str | Path):
        return (str(given),), None
    items = iter(given)
    first = next(items, None)
    if isinstance(first, str | Path):
        return (str(first), *map(str, items)), None
    write_spool(spool, iri, _events(first, items))
    return (str(spool),), "spool"


def _events(
    first: object, rest: Iterable[object]
) -> Iterator[tuple[int, str | None, list[Triple]]]:
    for event in chain((first,), rest) if first is not None else ():
        if not isinstance(event, Event):
            kind = type(event).__name__
            raise UsageError(f"a stream is paths or spaseq.Event objects, not {kind}")
        yield to_ms(event.time), event.iri, triples_of(event.graph)
