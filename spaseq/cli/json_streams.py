"""JSON-LD contexts of a run: the texts of --context and --context-map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from spaseq.api.streams import StreamInput
from spaseq.cli.lifted_streams import named_value
from spaseq.errors import UsageError
from spaseq.options import RunOptions
from spaseq.rdf.terms.term import is_absolute_iri
from spaseq.runtime.job.binding import split_assignment
from spaseq.sources.json_ld import JsonLd


def with_contexts(
    bound: Mapping[str, StreamInput],
    contexts: Sequence[str],
    names: Mapping[str, str],
) -> dict[str, StreamInput]:
    """The inputs by stream IRI; those of JSON streams with their context.

    Raises:
        UsageError: a text is no assignment, or a stream has a lift or another context.
    """
    found = dict(bound)
    for text in contexts:
        iri, file = named_value(text, names)
        if iri is None:
            raise UsageError(f"--context {text}: expected NAME=FILE, NAME being a stream's")
        given = found.get(iri)
        if not isinstance(given, list):
            raise UsageError(f"--context {text}: the stream has a lift or a context already")
        found[iri] = JsonLd(given, file)
    return found


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
