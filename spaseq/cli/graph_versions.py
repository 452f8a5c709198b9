"""The values of --kb-change and --dump-graph: which graph, when, and from or to which file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import click

from spaseq.errors import UsageError
from spaseq.kb.versions import versions_given
from spaseq.rdf.terms.term import is_absolute_iri

_CHANGE = re.compile(r"<?(.+?)>?=(-?\d+(?:-\d\d-\d\dT[^=]*)?)=(.+)", re.DOTALL)


def kb_changes(
    context: click.Context, parameter: click.Parameter, texts: Sequence[str]
) -> Mapping[str, Sequence[tuple[str, str]]]:
    """(time, path) of each version, by graph IRI; a callback of click.

    Raises:
        UsageError: a text has another form, or its time is none.
    """
    versions: dict[str, list[tuple[str, str]]] = {}
    for text in texts:
        match = _CHANGE.fullmatch(text)
        if match is None or not is_absolute_iri(match[1]):
            raise UsageError(
                f"--kb-change {text}: say IRI=TIME=FILE, such as "
                "http://example/owners=2026-01-31T10:00:00Z=owners.ttl"
            )
        versions.setdefault(match[1], []).append((match[2], match[3]))
    versions_given(versions)
    return versions


def graph_dumps(
    context: click.Context, parameter: click.Parameter, texts: Sequence[str]
) -> Mapping[str, str]:
    """The file of each graph, by IRI; a callback of click.

    Raises:
        UsageError: a text has another form, or two name one graph.
    """
    dumps: dict[str, str] = {}
    for text in texts:
        iri, _, path = text.rpartition("=")
        iri = iri.removeprefix("<").removesuffix(">")
        if not is_absolute_iri(iri) or not path:
            raise UsageError(
                f"--dump-graph {text}: say IRI=FILE, such as http://example/owners=owners.ttl"
            )
        if dumps.setdefault(iri, path) != path:
            raise UsageError(f"--dump-graph names <{iri}> twice")
    return dumps
