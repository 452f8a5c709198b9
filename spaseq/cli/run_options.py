"""The options of `spaseq run`, by group of its help; each is a field of a part.

The parts of `spaseq.options` go to the runtimes. The parts that only the command line has stand
here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click

from spaseq.cli.durations import DURATION, SECONDS
from spaseq.cli.option_groups import OptionGroup, PartOption
from spaseq.cli.queries import DISABLE, ENTAILMENT, FUNCTIONS, ONTOLOGY
from spaseq.limits import Limits
from spaseq.options import (
    RUNTIMES,
    FileSourceSettings,
    KnowledgeOptions,
    ReadingOptions,
    RuntimeOptions,
    ServiceOptions,
    StageOptions,
    StateLimits,
)
from spaseq.sinks import SINKS


@dataclass(frozen=True, slots=True)
class InputTexts:
    """The values of --stream, --kb, --lift and --types."""

    streams: tuple[str, ...] = ()
    kbs: tuple[str, ...] = ()
    lifts: tuple[str, ...] = ()
    types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """Where answers and counts go."""

    out: str = "-"
    form: str = "jsonl"
    columns: str | None = None
    stats: str | None = None
    why: str | None = None
    metrics_port: int | None = None


@dataclass(frozen=True, slots=True)
class SideOptions:
    """Where bad input, late events and partial matches go."""

    bad: str | None = None
    late: str | None = None
    partial: str | None = None
    strict: bool = False


@dataclass(frozen=True, slots=True)
class FollowFlags:
    """The options of a followed run."""

    follow: bool = False
    checkpoint: str | None = None
    buckets: int | None = None


def _count(part: type, *names: str, least: int = 1, **attributes: Any) -> PartOption:
    """An option whose value is a number of things, `least` or more."""
    return PartOption(part, *names, type=click.IntRange(least), metavar="N", **attributes)


def _formats() -> str:
    """The description of each format, with formats of the same kind together."""
    kinds: dict[str, list[str]] = {}
    for form, sink in SINKS.items():
        kinds.setdefault(sink.about, []).append(form)
    return "; ".join(f"{', '.join(forms)}: {about}" for about, forms in kinds.items()) + "."


INPUT = OptionGroup(
    "Input",
    (
        PartOption(
            InputTexts,
            "--stream",
            "streams",
            multiple=True,
            metavar="NAME=PATH",
            help="A stream's input: file, directory, glob, or - for N-Quads on stdin; .gz is "
            "unpacked. A broker's URL, such as kafka://HOST/TOPIC, with --runtime local --follow. "
            "NAME is the query's name for it, its IRI, or <IRI>. Repeatable, also for "
            "several paths of one stream.",
        ),
        PartOption(
            InputTexts,
            "--lift",
            "lifts",
            multiple=True,
            metavar="[NAME=]FILE",
            help="The lift that makes events of the rows of a stream's CSV, TSV, JSON lines, "
            "Parquet or Arrow files; without NAME of all streams that are such files. Repeatable.",
        ),
        PartOption(
            InputTexts,
            "--types",
            multiple=True,
            metavar="[NAME=]FIELD=TYPE,...",
            help="XSD types of fields of lifted CSV and TSV, such as volume=integer,price=decimal; "
            "without NAME of all lifted streams. Repeatable.",
        ),
        PartOption(
            ReadingOptions,
            "--time-predicate",
            show_default=True,
            metavar="IRI",
            help="The predicate whose object is an event's time.",
        ),
        _count(
            ReadingOptions,
            "--triples-per-event",
            help="For N-Triples and Turtle, which have no graphs: N triples are one event.",
        ),
        PartOption(
            ReadingOptions,
            "--base",
            metavar="IRI",
            help="The IRI that relative IRIs in Turtle, TriG, RDF/XML and JSON-LD streams are "
            "relative to.",
        ),
        _count(
            ReadingOptions,
            "--threads",
            help="Threads that read N-Quads and N-Triples in the local runtime; by default two, or "
            "one where there is one core.",
        ),
    ),
)

KNOWLEDGE = OptionGroup(
    "Knowledge",
    (
        PartOption(
            InputTexts,
            "--kb",
            "kbs",
            multiple=True,
            metavar="[IRI=]PATH|URL",
            help="Background knowledge: a file loaded as the graph IRI, or the address of a SPARQL "
            "endpoint that holds it; a quad format without IRI keeps its graph names; with one "
            "FROM NAMED in the queries IRI may be left out.",
        ),
        PartOption(
            KnowledgeOptions,
            "--kb-cache",
            metavar="DIR",
            help="Where compiled knowledge bases are kept for the next run, or 'none'.  [default: "
            "the user's cache, for files of 1 MiB and more]",
        ),
        PartOption(
            KnowledgeOptions,
            "--kb-refresh",
            is_flag=True,
            help="With --follow: load changed files of the knowledge base between batches; if they "
            "do not load, the last ones stay in use.",
        ),
        ONTOLOGY,
        ENTAILMENT,
    ),
)

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
            help="How long an endpoint may take for one request.",
        ),
        _count(
            ServiceOptions,
            "--service-retries",
            field="retries",
            least=0,
            show_default=True,
            help="How often a request that failed is sent again, after 0.5 s, 1 s, 2 s ...",
        ),
        _count(
            ServiceOptions,
            "--service-batch",
            field="batch",
            show_default=True,
            help="How many solutions one request asks for at most.",
        ),
        _count(
            ServiceOptions,
            "--service-cache",
            field="cache",
            least=0,
            show_default=True,
            help="For how many solutions a process keeps what endpoints answered.",
        ),
        PartOption(
            ServiceOptions,
            "--service-ttl",
            field="ttl_s",
            type=SECONDS,
            default="5 MINUTES",
            show_default=True,
            help="How long a process keeps an answer.",
        ),
        _count(
            ServiceOptions,
            "--service-max-bytes",
            field="max_bytes",
            show_default=True,
            help="The bytes that an endpoint's answer may have, unpacked.",
        ),
        PartOption(
            ServiceOptions,
            "--service-allow",
            field="allow",
            multiple=True,
            metavar="HOST[:PORT]",
            help="A host that SERVICE may ask, besides the hosts of endpoints that --kb names; "
            "without a port, on all ports. Repeatable.",
        ),
    ),
)

OUTPUT = OptionGroup(
    "Output",
    (
        PartOption(
            OutputOptions,
            "--out",
            show_default=True,
            metavar="FILE|-",
            help="Where answers go; with --runtime local --follow also the URL of a broker or a "
            "webhook.",
        ),
        PartOption(
            OutputOptions,
            "--format",
            "form",
            type=click.Choice(tuple(SINKS)),
            show_default=True,
            help=_formats(),
        ),
        PartOption(
            OutputOptions,
            "--columns",
            metavar="LIST",
            help="Columns of csv, tsv and json, as road,+start,+end: variables, and times of an "
            "answer. With times alone, all variables stand before them.",
        ),
        PartOption(
            SideOptions,
            "--bad",
            metavar="FILE",
            help="Bad input, as JSON lines (file, line, reason).",
        ),
        PartOption(
            SideOptions,
            "--late",
            metavar="FILE",
            help="With --follow: events behind their stream's watermark, as JSON lines. A bounded "
            "run sorts everything and has none.",
        ),
        PartOption(
            SideOptions,
            "--partial",
            metavar="FILE",
            help="Partial matches, as JSON lines: first steps of a query whose window has closed "
            "without the rest, how far they came, and what they waited for.",
        ),
        PartOption(
            SideOptions,
            "--strict",
            is_flag=True,
            help="Stop with status 3 at the first bad or late event.",
        ),
        PartOption(
            OutputOptions, "--stats", metavar="FILE", help="Counts and seconds per stage, as JSON."
        ),
        PartOption(
            OutputOptions,
            "--why",
            metavar="FILE",
            help="Why the queries have no answers, as spaseq why says it; JSON if the file's name "
            "ends in .json. The streams are read again in this process; not with --follow.",
        ),
        PartOption(
            OutputOptions,
            "--metrics-port",
            type=click.IntRange(0, 65535),
            metavar="PORT",
            help="Serve counts as Prometheus text at http://127.0.0.1:PORT/metrics while the run "
            "lasts.",
        ),
    ),
)

FOLLOW = OptionGroup(
    "Streams that go on",
    (
        PartOption(
            FollowFlags,
            "--follow",
            is_flag=True,
            help="Go on until interrupted: with files that keep arriving in the streams' "
            "directories (Spark), or with the messages of brokers (local).",
        ),
        PartOption(
            FollowFlags,
            "--checkpoint",
            metavar="DIR",
            help="Where --follow keeps its state; a later run with the same directory resumes.",
        ),
        PartOption(
            FileSourceSettings,
            "--watermark",
            field="delay_ms",
            type=DURATION,
            default="0 SECONDS",
            show_default=True,
            help="How late an event may be with --follow, for example '5 SECONDS'.",
        ),
        PartOption(
            FileSourceSettings,
            "--idle",
            field="idle_ms",
            type=DURATION,
            help="With --follow: a stream without new input for so long no longer holds the others "
            "back; what it brings later counts as late behind them. Off by default.",
        ),
        PartOption(
            FileSourceSettings,
            "--max-ahead",
            field="max_ahead_ms",
            type=DURATION,
            default="1 DAYS",
            show_default=True,
            help="With --follow: an event that is further ahead of its arrival, and of all events "
            "before it, is bad input.",
        ),
        PartOption(
            FileSourceSettings,
            "--growing",
            is_flag=True,
            help="With --follow: files may be appended to. The last event of a file is read when "
            "something follows it, or after 10 seconds without a change.",
        ),
        _count(
            FileSourceSettings,
            "--max-bytes-per-batch",
            field="max_bytes",
            show_default=True,
            help="With --follow: about how many bytes of each stream a batch reads at most. It "
            "reads fewer where that keeps it below some seconds.",
        ),
        _count(
            FollowFlags,
            "--buckets",
            help="With --follow: into how many parts, at most, a query with a key is split "
            "[default: 8]. A checkpoint fixes it.",
        ),
    ),
)

LIMITS = OptionGroup(
    "Limits",
    (
        _count(
            StageOptions,
            "--limit-per-event",
            help="At most N answers of one query that end at the same instant (and lie in the same "
            "partition); the summary and --stats say how many others there are.",
        ),
        _count(
            StateLimits,
            "--max-state-rows",
            field="rows",
            show_default=True,
            help="With --follow: the partial matches that one of a query's buckets may keep "
            "waiting.",
        ),
        _count(
            StateLimits,
            "--max-state-bytes",
            field="bytes",
            show_default=True,
            help="With --follow: the bytes of state that one of a query's buckets may have.",
        ),
        _count(
            Limits,
            "--max-nesting",
            field="nesting",
            show_default=True,
            help="How deep triple terms, lists, JSON-LD and RDF/XML may be nested.",
        ),
        _count(
            Limits,
            "--max-line",
            field="line_bytes",
            show_default=True,
            help="The bytes that a line of N-Quads or N-Triples may have.",
        ),
        _count(
            Limits,
            "--max-event",
            field="event_bytes",
            show_default=True,
            help="The bytes that an event may have, and input in which no event ends.",
        ),
        _count(
            Limits,
            "--max-literal",
            field="literal_bytes",
            show_default=True,
            help="The bytes that a literal may have, read or computed.",
        ),
        _count(
            Limits,
            "--max-inflation",
            field="inflation",
            show_default=True,
            help="How many times as large as its file a .gz may be when unpacked.",
        ),
        _count(
            Limits,
            "--max-solutions",
            field="solutions",
            show_default=True,
            help="The solutions that a graph pattern may have for one event, on the way too.",
        ),
        PartOption(
            Limits,
            "--timeout",
            field="timeout_s",
            type=SECONDS,
            default="60 SECONDS",
            show_default=True,
            help="How long one query may take for one event.",
        ),
    ),
)

RUNTIME = OptionGroup(
    "Runtime",
    (
        PartOption(
            RuntimeOptions,
            "--runtime",
            field="name",
            type=click.Choice(RUNTIMES),
            show_default=True,
            help="spark: PySpark, no Java needed; local: in this process.",
        ),
        PartOption(
            RuntimeOptions,
            "--master",
            metavar="URL",
            help="The Spark cluster to run on, such as spark://host:7077; this package travels "
            "with the run. A local session if not given.",
        ),
        FUNCTIONS,
        DISABLE,
        PartOption(
            RuntimeOptions,
            "-v",
            "--verbose",
            is_flag=True,
            help="Show Spark's own log and warnings.",
        ),
    ),
)

RUN_OPTIONS = (INPUT, KNOWLEDGE, ENDPOINTS, OUTPUT, FOLLOW, LIMITS, RUNTIME)


def _bounded(group: OptionGroup, *left_out: str) -> OptionGroup:
    """The options of a group that a command takes that only reads streams to their ends."""
    options = tuple(
        o for o in group.options if o.part is not StateLimits and o.opts[0] not in left_out
    )
    return OptionGroup(group.title, options)


WHY_OPTIONS = (
    INPUT,
    _bounded(KNOWLEDGE, "--kb-refresh"),
    ENDPOINTS,
    _bounded(LIMITS),
    OptionGroup("Planning", (FUNCTIONS, DISABLE)),
)
"""The options of `spaseq why`, and of `spaseq explain --analyze`."""
