"""Values of options: durations; graph, time and file of --kb-change and --dump-graph.

Also the options of requests to endpoints, and of the limits of input and queries.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import click

from spaseq.cli.option_groups import OptionGroup, PartOption, count
from spaseq.errors import UsageError
from spaseq.kb.versions import versions_given
from spaseq.limits import Limits
from spaseq.options import ServiceOptions, StageOptions, StateLimits
from spaseq.rdf.terms.term import is_absolute_iri
from spaseq.rdf.terms.times import milliseconds

_CHANGE = re.compile(r"<?(.+?)>?=(-?\d+(?:-\d\d-\d\dT[^=]*)?)=(.+)", re.DOTALL)


# The base classes have no type arguments: earlier versions of click do not know them.
class _Milliseconds(click.ParamType):  # type: ignore[type-arg]
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


class _Seconds(click.ParamType):  # type: ignore[type-arg]
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


ENDPOINTS = OptionGroup(
    "Endpoints",
    (
        PartOption(
            ServiceOptions,
            "--kb-required",
            field="required",
            is_flag=True,
            help="Stop if an endpoint does not answer; otherwise its part of a pattern has no "
            "solution for the events in question, which go to --bad.",
        ),
        PartOption(
            ServiceOptions,
            "--service-timeout",
            field="timeout_s",
            type=SECONDS,
            default="10 SECONDS",
            show_default=True,
            help="Maximum time of one request to an endpoint.",
        ),
        count(
            ServiceOptions,
            "--service-retries",
            field="retries",
            least=0,
            show_default=True,
            help="Maximum number of repetitions of a failed request, after 0.5 s, 1 s, 2 s ...",
        ),
        count(
            ServiceOptions,
            "--service-batch",
            field="batch",
            show_default=True,
            help="Maximum number of solutions that one request asks for.",
        ),
        count(
            ServiceOptions,
            "--service-cache",
            field="cache",
            least=0,
            show_default=True,
            help="Number of solutions for which a process keeps the answers of endpoints.",
        ),
        PartOption(
            ServiceOptions,
            "--service-ttl",
            field="ttl_s",
            type=SECONDS,
            default="5 MINUTES",
            show_default=True,
            help="Time for which a process keeps an answer.",
        ),
        count(
            ServiceOptions,
            "--service-max-bytes",
            field="max_bytes",
            show_default=True,
            help="Maximum bytes of an endpoint's answer, unpacked.",
        ),
        PartOption(
            ServiceOptions,
            "--service-allow",
            field="allow",
            multiple=True,
            metavar="HOST[:PORT]",
            help=(
                "A host allowed for SERVICE, besides the hosts of endpoints that --kb names; "
                "without a port, on all ports. Repeatable."
            ),
        ),
    ),
)

LIMITS = OptionGroup(
    "Limits",
    (
        count(
            StageOptions,
            "--limit-per-event",
            help="At most N answers of one query that end at the same instant (and lie in the same "
            "partition); the summary and --stats say how many others there are.",
        ),
        count(
            StateLimits,
            "--max-state-rows",
            field="rows",
            show_default=True,
            help=(
                "With --follow: maximum number of waiting partial matches in one of a query's "
                "buckets."
            ),
        ),
        count(
            StateLimits,
            "--max-state-bytes",
            field="bytes",
            show_default=True,
            help="With --follow: maximum bytes of state of one of a query's buckets.",
        ),
        count(
            Limits,
            "--max-nesting",
            field="nesting",
            show_default=True,
            help="Maximum depth of triple terms, lists, JSON-LD and RDF/XML.",
        ),
        count(
            Limits,
            "--max-line",
            field="line_bytes",
            show_default=True,
            help="Maximum bytes of a line of N-Quads or N-Triples.",
        ),
        count(
            Limits,
            "--max-event",
            field="event_bytes",
            show_default=True,
            help="Maximum bytes of an event, and of input in which no event ends.",
        ),
        count(
            Limits,
            "--max-literal",
            field="literal_bytes",
            show_default=True,
            help="Maximum bytes of a literal, read or computed.",
        ),
        count(
            Limits,
            "--max-inflation",
            field="inflation",
            show_default=True,
            help="Maximum ratio of the unpacked bytes of a .gz to its size.",
        ),
        count(
            Limits,
            "--max-solutions",
            field="solutions",
            show_default=True,
            help=(
                "Maximum number of solutions of a graph pattern for one event, intermediate ones "
                "included."
            ),
        ),
        PartOption(
            Limits,
            "--timeout",
            field="timeout_s",
            type=SECONDS,
            default="60 SECONDS",
            show_default=True,
            help="Maximum time of one query for one event.",
        ),
    ),
)
