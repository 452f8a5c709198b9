"""Values of options: durations in the language's form; graph, time and file of --kb-change and
--dump-graph.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import click

from spaseq.errors import UsageError
from spaseq.kb.versions import versions_given
from spaseq.rdf.terms.term import is_absolute_iri
from spaseq.runtime.job.durations import milliseconds

_CHANGE = re.compile(r"<?(.+?)>?=(-?\d+(?:-\d\d-\d\dT[^=]*)?)=(.+)", re.DOTALL)


class _Milliseconds(click.ParamType[int]):
    """A duration; its value is milliseconds."""

    name = "duration"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        if isinstance(value, int):
            return value
        try:
            return milliseconds(str(value))
        except UsageError as error:
            self.fail(str(error), param, ctx)


class _Interval(_Milliseconds):
    """A duration above 0, in milliseconds."""

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        duration = super().convert(value, param, ctx)
        if duration <= 0:
            self.fail("a duration above 0 is expected", param, ctx)
        return duration


class _Seconds(click.ParamType[float]):
    """A duration; its value is seconds."""

    name = "duration"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        return value if isinstance(value, float) else DURATION.convert(value, param, ctx) / 1000


DURATION = _Milliseconds()
INTERVAL = _Interval()
SECONDS = _Seconds()


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
