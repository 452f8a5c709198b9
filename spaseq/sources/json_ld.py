"""`spaseq.JsonLd`: JSON and its JSON-LD context as the input of a stream."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from os import PathLike, fspath

from spaseq.errors import InputError, UsageError
from spaseq.limits import Limits
from spaseq.rdf.documents.brackets import depths, syntax_of
from spaseq.rdf.inputs.contexts import NO_CONTEXTS, JsonLdContexts, NamedContexts
from spaseq.rdf.inputs.formats import Format
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.records import record
from spaseq.sources import source_of
from spaseq.sources.base import Source
from spaseq.storage.user_files import read_user_text


@record
class JsonLd:
    """JSON lines, or messages of a broker, each a JSON object, with their JSON-LD context.

    Attributes:
        data: a path (file, directory or glob) or several; a run that follows brokers takes a URL.
        context: the file with the context.
        named: files of contexts that a context or an object may name, by their IRIs.
    """

    data: str | PathLike[str] | Sequence[str | PathLike[str]]
    context: str | PathLike[str]
    named: Mapping[str, str | PathLike[str]] = field(default_factory=dict)


def named_contexts(files: Mapping[str, str | PathLike[str]], limits: Limits) -> JsonLdContexts:
    """The contexts in files that JSON-LD may name, by their IRIs.

    Raises:
        InputError: a file cannot be read, or is no JSON.
    """
    if not files:
        return NO_CONTEXTS
    texts = ((iri, context_text(fspath(file), limits.nesting)) for iri, file in files.items())
    return JsonLdContexts(None, tuple(texts))


def json_ld_source(given: JsonLd, options: StreamOptions) -> Source:
    """The source of a stream of JSON.

    Raises:
        InputError: a context cannot be read, is no JSON, or names one that is not known.
        UsageError: the data is no path.
    """
    nesting, most = options.limits.nesting, options.limits.event_bytes
    context = context_text(fspath(given.context), nesting)
    named = (*options.contexts.named, *named_contexts(given.named, options.limits).named)
    try:
        NamedContexts(dict(named), most).inlined({"@context": json.loads(context)})
    except ValueError as error:
        raise InputError(f"the context {fspath(given.context)}: {error}") from None
    data = given.data
    paths = [data] if isinstance(data, str | PathLike) else list(data)
    if not paths or not all(isinstance(path, str | PathLike) for path in paths):
        raise UsageError("JSON with a context comes from paths")
    contexts = JsonLdContexts(context, named)
    return source_of(paths, replace(options, format=Format.NDJSONLD.value, contexts=contexts))


# --- Files with a JSON-LD context -----------------------------------------------------------------


def context_text(path: str, most: int) -> str:
    """The context in a file, as JSON text: the value of its `@context`, or the whole.

    Raises:
        InputError: it cannot be read, is no JSON, or is nested more than `most` deep.
    """
    try:
        text = read_user_text(path)
        if text.count("{") + text.count("[") > most and _deep(text, most):
            raise InputError(f"the context {path} is nested more than {most} deep (--max-nesting)")
        value = json.loads(text)
    except OSError as error:
        raise InputError(f"cannot read the context {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"the context {path} is no JSON: {error}") from None
    if isinstance(value, dict) and "@context" in value:
        value = value["@context"]
    return json.dumps(value)


def _deep(text: str, most: int) -> bool:
    signs = syntax_of(Format.JSONLD).scanned(text.encode()).signs
    return depths(signs, 0).most > most
