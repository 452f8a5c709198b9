"""The streams and knowledge bases of `spaseq run`: from the texts of options, such as --lift,
--types and --context, to sources.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from spaseq.api.streams import StreamInput, bounded_sources, stream_source
from spaseq.cli.checked_options import check_messages
from spaseq.cli.option_groups import Chosen, InputTexts
from spaseq.cli.output_files import NamedPath
from spaseq.cli.queries import QueryOptions
from spaseq.errors import UsageError
from spaseq.kb.quads import keeps_graphs
from spaseq.kb.service_address import is_url
from spaseq.lift.lifted import Lifted, text_of
from spaseq.message_text import public_address
from spaseq.options import PlanningOptions, ReadingOptions, RunOptions, RuntimeOptions
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.terms.term import is_absolute_iri
from spaseq.runtime.job.binding import bind_streams, split_assignment, stream_names
from spaseq.sources.base import Source
from spaseq.sources.broker_stream import BrokerStream
from spaseq.sources.json_ld import JsonLd

if TYPE_CHECKING:
    from spaseq.lift.lift_plan import LiftPlan


def with_contexts(
    bound: Mapping[str, StreamInput],
    contexts: Sequence[str],
    names: Mapping[str, str],
) -> dict[str, StreamInput]:
    """The inputs by stream IRI. An input of JSON has its context.

    Raises:
        UsageError: a text is no assignment, or a stream has a lift or another context.
    """
    inputs = dict(bound)
    for text in contexts:
        iri, file = named_value(text, names)
        if iri is None:
            raise UsageError(f"--context {text}: expected NAME=FILE, NAME being a stream's")
        given = inputs.get(iri)
        if not isinstance(given, list):
            raise UsageError(f"--context {text}: the stream has a lift or a context already")
        inputs[iri] = JsonLd(given, file)
    return inputs


def with_context_map(options: RunOptions, named: Sequence[str]) -> RunOptions:
    """The options of a run whose JSON-LD may name contexts.

    Raises:
        UsageError: a text is no assignment.
    """
    files = dict(_named(text) for text in named)
    return replace(options, reading=replace(options.reading, context_map=files))


def _named(text: str) -> tuple[str, str]:
    pair = split_assignment(text, ())
    if pair is None or not is_absolute_iri(pair[0]):
        raise UsageError(f"--context-map {text}: expected IRI=FILE")
    return pair


def named_value(text: str, names: Mapping[str, str]) -> tuple[str | None, str]:
    """(stream IRI or None, value) of `NAME=VALUE`, `<IRI>=VALUE` or `VALUE`.

    >>> named_value("S=a.rq", {"S": "http://e/s"}), named_value("a=b.rq", {"S": "http://e/s"})
    (('http://e/s', 'a.rq'), (None, 'a=b.rq'))
    """
    for name in sorted(names, key=len, reverse=True):
        for written in (f"{name}=", f"<{name}>="):
            if text.startswith(written):
                return names[name], text[len(written) :]
    return None, text


def lift_plans(plans: Sequence[QueryPlan], chosen: Chosen) -> Iterator[tuple[str, LiftPlan]]:
    """(stream IRI, its lift) of the --lift options; one without NAME is for the other streams.

    Raises:
        InputError: a lift cannot be read.
        QueryError: a lift has errors.
    """
    from spaseq.lift.lift_checks import compiled_lift  # runs without lifts need not wait for it

    names = stream_names(plans)
    given = [named_value(text, names) for text in chosen[InputTexts].lifts]
    named = {iri for iri, _ in given}
    others = [iri for plan in plans for iri in plan.inputs.streams if iri not in named]
    for iri, file in given:
        text, name = text_of(Path(file))
        reading = chosen[ReadingOptions]
        lift = compiled_lift(text, name, reading.time_predicate, reading.time_unit)
        yield from ((each, lift) for each in ([*dict.fromkeys(others)] if iri is None else [iri]))


def with_lifts(
    paths: Mapping[str, Sequence[str]],
    texts: InputTexts,
    names: Mapping[str, str],
) -> dict[str, StreamInput]:
    """The inputs by stream IRI. An input of rows has its lift.

    Raises:
        UsageError: --types without a lift, two lifts of one stream, or a lift without a stream.
    """
    lift_of: dict[str | None, str] = {}
    for text in texts.lifts:
        iri, file = named_value(text, names)
        if iri in lift_of:
            raise UsageError(f"--lift {text}: the stream has a lift already")
        lift_of[iri] = file
    for option, given_texts in (("--types", texts.types), ("--csv", texts.csv)):
        if given_texts and not lift_of:
            raise UsageError(f"{option} goes with --lift")
    if not lift_of:
        return {iri: list(given) for iri, given in paths.items()}
    # Runs without lifts need not wait for these imports.
    from spaseq.lift.cells import field_types
    from spaseq.lift.table_files import is_table_input

    typed = [(iri, field_types(text)) for iri, text in (named_value(t, names) for t in texts.types)]
    dialects = dict(named_value(t, names) for t in texts.csv)
    bound: dict[str, StreamInput] = {}
    for iri, given in paths.items():
        lift = lift_of.get(iri) or (lift_of.get(None) if all(map(is_table_input, given)) else None)
        if lift is None:
            bound[iri] = list(given)
            continue
        fields = {field: kind for of, pairs in typed if of in (iri, None) for field, kind in pairs}
        csv = dialects.get(iri, dialects.get(None))
        bound[iri] = Lifted(list(given), Path(lift), fields, csv)
    if None in lift_of and not any(isinstance(given, Lifted) for given in bound.values()):
        raise UsageError(f"--lift {lift_of[None]}: no stream is CSV, TSV, JSON, Parquet or Arrow")
    return bound


def stream_sources(
    plans: Sequence[QueryPlan], texts: InputTexts, options: RunOptions
) -> tuple[Source, ...]:
    """The sources of the streams that --stream options give, lifted as --lift says.

    Raises:
        UsageError: a text is no assignment, or a stream of the queries has no input.
        InputError: a path of a bounded run leads to no file.
    """
    options = with_context_map(options, texts.context_map)
    paths_of = bind_streams(plans, _stream_paths(plans, texts.streams))
    names = stream_names(plans)
    bound = with_lifts(paths_of, texts, names)
    bound = with_contexts(bound, texts.contexts, names)
    if options.follow is None:
        return bounded_sources(bound, options)
    if any("-" in paths for paths in paths_of.values()):
        raise UsageError("--follow watches files; standard input has an end")
    sources = tuple(stream_source(iri, paths, options) for iri, paths in bound.items())
    if through_logs(sources):
        here = replace(options, runtime=RuntimeOptions("local"))
        return tuple(stream_source(iri, paths, here) for iri, paths in bound.items())
    if not any(isinstance(s, BrokerStream) for s in sources):
        check_messages(
            options.follow.messages, "on Spark it is for streams at Kafka, and there is none"
        )
    return sources


def standing_streams(
    plans: Sequence[QueryPlan], texts: InputTexts, options: RunOptions
) -> dict[str, BrokerStream]:
    """The streams of a set of queries that changes, by the names or IRIs that --stream gives.

    Raises:
        UsageError: a text is no assignment, no query knows a name, or something has an end.
    """
    names = stream_names(plans)
    given = _stream_paths(plans, texts.streams)
    for name in given:
        if not is_absolute_iri(name):
            raise UsageError(
                f"--stream {name}: no query that is there now has a stream of this name; give the "
                f"stream's IRI, or one of {', '.join(sorted(names))}"
            )
    options = with_context_map(options, texts.context_map)
    bound = with_lifts(given, texts, names)
    bound = with_contexts(bound, texts.contexts, names)
    streams: dict[str, BrokerStream] = {}
    for iri, paths in bound.items():
        source = stream_source(iri, paths, options)
        assert isinstance(source, BrokerStream)
        streams[iri] = source
    return streams


def through_logs(sources: Sequence[Source]) -> bool:
    """Whether a run that follows these streams has logs, and saves its state beside them."""
    return any(isinstance(source, BrokerStream) and source.needs_log for source in sources)


def given_inputs(
    plans: Sequence[QueryPlan], queries: Sequence[Path], chosen: Chosen
) -> Iterator[NamedPath]:
    """The paths that a run reads, each with its option.

    Raises:
        UsageError: a text of --stream or --kb is no assignment.
    """
    for query in queries:
        yield NamedPath(f"the query {query}", str(query))
    names = stream_names(plans)
    for text in chosen[InputTexts].streams:
        pair = split_assignment(text, names)
        if pair is not None:  # `stream_sources` refuses other texts
            yield NamedPath(f"--stream {text}", pair[1])
    for text in chosen[InputTexts].lifts:
        yield NamedPath(f"--lift {text}", named_value(text, names)[1])
    for text in chosen[InputTexts].contexts:
        yield NamedPath(f"--context {text}", named_value(text, names)[1])
    for text in chosen[InputTexts].context_map:
        pair = split_assignment(text, ())
        if pair is not None:
            yield NamedPath(f"--context-map {text}", pair[1])
    for text in chosen[InputTexts].kbs:
        path = kb_source(text, plans)[1]
        if not is_url(path):
            yield NamedPath(f"--kb {text}", path)
    ontology = chosen[PlanningOptions].ontology
    for path in ontology if isinstance(ontology, tuple) else ():
        yield NamedPath(f"--ontology {path}", str(path))
    for path in chosen[QueryOptions].functions:
        if path.endswith(".py"):
            yield NamedPath(f"--functions {path}", path)


def _stream_paths(plans: Sequence[QueryPlan], texts: Sequence[str]) -> dict[str, list[str]]:
    """The paths of each stream, by the name or IRI that was given."""
    names = stream_names(plans)
    paths: dict[str, list[str]] = {}
    for text in texts:
        pair = split_assignment(text, names)
        if pair is None:
            raise UsageError(f"--stream {text}: expected NAME=PATH")
        name, path = pair
        paths.setdefault(names.get(name, name), []).append(path)
    if sum(path == "-" for given in paths.values() for path in given) > 1:
        raise UsageError("only one stream can be read from standard input")
    return paths


def kb_source(text: str, plans: Sequence[QueryPlan]) -> tuple[str | None, str]:
    """(graph IRI, path or URL) of a --kb option; the IRI is None for files that name their graphs.

    Raises:
        UsageError: the text does not say which graph it is, and the queries do not decide it.
    """
    iris = sorted({iri for plan in plans for iri in plan.inputs.kbs})
    pair = _named_source(text, iris)
    if pair is not None:
        if not is_absolute_iri(pair[0]):
            raise UsageError(f"--kb {text}: {pair[0]} is not an absolute IRI")
        return pair
    if not is_url(text) and keeps_graphs(text):
        return None, text
    if len(iris) == 1:
        return iris[0], text
    shown = public_address(text) if is_url(text) else text
    if not iris:
        raise UsageError(f"--kb {shown}: no query names a graph with FROM NAMED")
    raise UsageError(
        f"--kb {shown}: say which graph it is, --kb IRI={shown} (the queries name "
        f"{', '.join(f'<{iri}>' for iri in iris)})"
    )


def _named_source(text: str, iris: Sequence[str]) -> tuple[str, str] | None:
    """(graph IRI, path or URL) of a text that names its graph; None if it does not."""
    pair = None if os.path.exists(text) else split_assignment(text, iris)
    known = text.startswith("<") or any(text.startswith(f"{iri}=") for iri in iris)
    if pair is None or known or not is_url(text):
        return pair
    # Both the graph's IRI and an endpoint's address may hold an `=`.
    parts = re.fullmatch("(.+?)=(https?://.*)", text)
    return None if parts is None else (parts[1], parts[2])
