"""The options of `spaseq run`, by group of its help; each is a field of a part."""

from __future__ import annotations

import click

from spaseq.cli.option_groups import (
    FollowFlags,
    InputTexts,
    OptionGroup,
    OutputOptions,
    PartOption,
    QuerySet,
    SideOptions,
    count,
)
from spaseq.cli.option_values import DURATION, ENDPOINTS, INTERVAL, LIMITS, graph_dumps, kb_changes
from spaseq.cli.queries import DISABLE, ENTAILMENT, FUNCTIONS, ONTOLOGY
from spaseq.options import (
    RUNTIMES,
    FileSourceSettings,
    KnowledgeOptions,
    ReadingOptions,
    RuntimeOptions,
    StageOptions,
    StateLimits,
)
from spaseq.rdf.inputs.stream_options import TIME_RULES, MessageOptions
from spaseq.rdf.terms.times import TIME_UNITS
from spaseq.sinks import SINKS


def _formats() -> str:
    """The description of each format, with formats of the same kind together."""
    kinds: dict[str, list[str]] = {}
    for form, sink in SINKS.items():
        kinds.setdefault(sink.about, []).append(form)
    return "; ".join(f"{', '.join(forms)}: {about}" for about, forms in kinds.items()) + "."


def _endings() -> str:
    """The endings of files of all formats, in words."""
    *others, last = (f".{sink.suffix}" for sink in SINKS.values())
    return f"{', '.join(others)} or {last}"


_QUERIES = PartOption(
    QuerySet,
    "--queries",
    "directory",
    metavar="DIR",
    help="All query files (*.rq) of a directory. With --follow it is watched: a file that "
    "comes, changes or goes takes effect between two batches.",
)

INPUT = OptionGroup(
    "Input",
    (
        _QUERIES,
        PartOption(
            QuerySet,
            "--logs",
            metavar="DIR",
            help="The data directory of spaseq serve: its logs are the streams, by IRI. Without "
            "queries those of the server run again, each from where it came to where it went. "
            "The ends of the logs close no window.",
        ),
        PartOption(
            InputTexts,
            "--stream",
            "streams",
            multiple=True,
            metavar="NAME=PATH",
            help="A stream's input: file, directory, glob, or - for N-Quads on stdin; .gz is "
            "unpacked. With --follow also a URL: kafka://, nats://, mqtt[s]://, "
            "ws[s]://, sse+http[s]:// or ldes+http[s]://; ldes+file:PATH. "
            "NAME is the query's name for it, its IRI, or <IRI>. Repeatable, also for "
            "several paths of one stream.",
        ),
        PartOption(
            StageOptions,
            "--open-end",
            is_flag=True,
            help="The end of the input closes no window: what had not happened by then is no "
            "absence. By default the input is all that ever happens.",
        ),
        PartOption(
            InputTexts,
            "--lift",
            "lifts",
            multiple=True,
            metavar="[NAME=]FILE",
            help="The lift that makes events of the rows of a stream's CSV, TSV, JSON lines, "
            "Parquet or Arrow files, or of a broker's JSON messages; without NAME of all streams "
            "that are such files. Repeatable.",
        ),
        PartOption(
            InputTexts,
            "--types",
            multiple=True,
            metavar="[NAME=]FIELD=TYPE,...",
            help="XSD types of fields of lifted CSV and TSV, such as volume=integer,price=decimal; "
            "without NAME of all lifted streams. A time may have a format: "
            "at=dateTime(%d.%m.%Y %H:%M). Repeatable.",
        ),
        PartOption(
            InputTexts,
            "--csv",
            multiple=True,
            metavar="[NAME=]KEY=VALUE,...",
            help="How lifted CSV and TSV are written: delimiter (found unless given), quote, "
            "header=false or header=a,b,c for files without one, decimal=, for numbers such as "
            "7,5, encoding. Repeatable.",
        ),
        PartOption(
            InputTexts,
            "--context",
            "contexts",
            multiple=True,
            metavar="NAME=FILE",
            help="The JSON-LD context with which a stream's JSON lines, or the JSON messages of "
            "its broker, are read. Repeatable, for several streams.",
        ),
        PartOption(
            InputTexts,
            "--context-map",
            multiple=True,
            metavar="IRI=FILE",
            help="The file of a context that JSON-LD names by its IRI; nothing is fetched. "
            "Repeatable.",
        ),
        PartOption(
            ReadingOptions,
            "--time-predicate",
            show_default=True,
            metavar="IRI",
            help="The predicate whose object is an event's time.",
        ),
        PartOption(
            ReadingOptions,
            "--time-unit",
            type=click.Choice(list(TIME_UNITS)),
            show_default=True,
            help="The unit of integer times: milliseconds or seconds since 1970.",
        ),
        count(
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
        count(
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
            "--kb-change",
            field="kb_changes",
            multiple=True,
            callback=kb_changes,
            metavar="IRI=TIME=FILE",
            help="What replaces the graph IRI at a time of the streams, an xsd:dateTime or "
            "milliseconds since 1970. Events see the graph as it is at their time. Repeatable.",
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

OUTPUT = OptionGroup(
    "Output",
    (
        PartOption(
            OutputOptions,
            "--out",
            show_default=True,
            metavar="FILE|-",
            help=f"Where answers go. The ending says the format: {_endings()}, also with .gz "
            "behind it. With --follow also a URL: kafka://, mqtt://, nats://, postgresql:// or "
            "http[s]://.",
        ),
        PartOption(
            OutputOptions,
            "--format",
            field="given_form",
            type=click.Choice(tuple(SINKS)),
            help=f"{_formats()}  [default: what the ending of --out says; else jsonl]",
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
            "--dump-graph",
            field="dumps",
            multiple=True,
            callback=graph_dumps,
            metavar="IRI=FILE",
            help=(
                "The final value of a graph that a query maintains; the extension of FILE says "
                "the format. Not with --follow. Repeatable."
            ),
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
            "directories, or (local) that grow, or with the messages of brokers (local).",
        ),
        PartOption(
            FollowFlags,
            "--checkpoint",
            metavar="DIR",
            help="Where --follow keeps its state; a later run with the same directory resumes.",
        ),
        PartOption(
            FollowFlags,
            "--rebuild",
            is_flag=True,
            help="Rebuild the state of --checkpoint from its logs, as they are.",
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
            "--heartbeat",
            field="heartbeat_ms",
            type=INTERVAL,
            default="1 SECONDS",
            show_default=True,
            help="With --follow: how often the time of a silent stream goes on while something "
            "waits for it. It does if its times are those of arrival, or if it is idle.",
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
            MessageOptions,
            "--message-format",
            field="format",
            metavar="NAME",
            help="With --follow: the format of all messages of brokers, such as json, trig or a "
            "media type, whatever their own media types say.",
        ),
        PartOption(
            MessageOptions,
            "--message-time",
            field="time",
            type=click.Choice(TIME_RULES),
            help="With --follow: the time of an event of a message whose graph has none: the "
            "message's, as the broker gives it, or that of its arrival. By default it is bad "
            "input.",
        ),
        count(
            MessageOptions,
            "--max-message",
            field="max_bytes",
            help="With --follow: the bytes that a message of a broker may have; a larger one is "
            "bad input.",
        ),
        PartOption(
            MessageOptions,
            "--dedup",
            field="dedup_ms",
            type=DURATION,
            help="With --follow: an event of a broker whose graph's IRI was seen so long ago, "
            "or later, is dropped, for example '10 MINUTES'. Off by default.",
        ),
        PartOption(
            FileSourceSettings,
            "--growing",
            is_flag=True,
            help="With --follow: files may be appended to. The last event of a file is read when "
            "something follows it, or after 10 seconds without a change.",
        ),
        count(
            FileSourceSettings,
            "--max-bytes-per-batch",
            field="max_bytes",
            show_default=True,
            help="With --follow: about how many bytes of each stream a batch reads at most. It "
            "reads fewer where that keeps it below some seconds.",
        ),
        count(
            FollowFlags,
            "--buckets",
            help="With --follow: into how many parts, at most, a query with a key is split "
            "[default: 8]. A checkpoint fixes it.",
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
