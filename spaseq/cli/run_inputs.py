"""The streams and knowledge bases of `spaseq run`: from the texts of options to sources."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from spaseq.api.streams import bounded_sources, stream_source
from spaseq.cli.checked_options import check_messages
from spaseq.cli.json_streams import with_context_map, with_contexts
from spaseq.cli.lifted_streams import named_value, with_lifts
from spaseq.cli.option_groups import Chosen
from spaseq.cli.output_files import NamedPath
from spaseq.cli.queries import QueryOptions
from spaseq.cli.run_parts import InputTexts
from spaseq.errors import UsageError
from spaseq.kb.quads import keeps_graphs
from spaseq.kb.service_address import is_url
from spaseq.message_text import public_address
from spaseq.options import PlanningOptions, RunOptions, RuntimeOptions
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.terms.term import is_absolute_iri
from spaseq.runtime.job.binding import bind_streams, split_assignment, stream_names
from spaseq.sources.base import Source
from spaseq.sources.broker_stream import BrokerStream


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
    found: dict[str, BrokerStream] = {}
    for iri, paths in bound.items():
        source = stream_source(iri, paths, options)
        assert isinstance(source, BrokerStream)
        found[iri] = source
    return found


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
