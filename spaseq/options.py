"""The options of a run: frozen parts that travel unchanged from the caller to the place of use.

A new option is a field of its part, a keyword in the table of the calls that accept it (at the end
of this file), an entry in `spaseq.cli.run_options` (or `option_values` beside it), and the code
that reads the field. No code in between names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, fields, replace
from difflib import get_close_matches
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, TypeVar

from spaseq.errors import UsageError
from spaseq.limits import DEFAULT_LIMITS, Limits
from spaseq.rdf.inputs.stream_options import DEFAULT_MESSAGES, MessageOptions
from spaseq.rdf.terms.term import GENERATED_AT_TIME
from spaseq.records import record

if TYPE_CHECKING:
    from datetime import datetime

    import rdflib

KbInput: TypeAlias = "str | PathLike[str] | rdflib.Graph"
"""RDF as users give it: a path, the URL of a SPARQL endpoint, or a graph in memory."""

KbChanges: TypeAlias = "Mapping[str, Sequence[tuple[int | str | datetime, KbInput]]]"
"""By graph IRI: pairs of the time of a change and the new contents of the graph."""

OntologyInput: TypeAlias = "KbInput | Sequence[KbInput]"
"""One ontology, or several."""

MAX_BATCH_BYTES = 2**30
RANGE_BYTES = 32 * 2**20

RUNTIMES = ("spark", "local")

REGIMES = ("rdfs",)
"""The entailment regimes."""

P = TypeVar("P")


def _check_count(name: str, count: int | None) -> None:
    """Raise UsageError for a number that is not a whole one from 1 on."""
    if count is not None and (not isinstance(count, Integral) or count < 1):
        raise UsageError(f"{name} is {count!r}; it must be a whole number of at least 1")


def check_callback(name: str, given: object) -> None:
    """Raise UsageError unless a callback is a function, or not given."""
    if given is not None and not callable(given):
        raise UsageError(f"{name} is {given!r}; it must be a function")


@record
class PlanningOptions:
    """How a query is planned.

    `ontology` and `entailment` belong together: patterns then match what the ontology entails.
    `disable` names rules of the planner (`spaseq.plan.rules`) to leave out; answers stay the same.
    `limits` are the limits of the run. With `partial` the run also returns partial matches.
    """

    ontology: OntologyInput | None = None
    entailment: str | None = None
    disable: Iterable[str] = ()
    partial: bool = False
    limits: Limits = DEFAULT_LIMITS


@record
class ServiceOptions:
    """How SPARQL endpoints are queried.

    `timeout_s` limits one request, from its start to the last byte of its answer. A request that
    fails for a passing reason is sent again up to `retries` times: after `backoff_s` seconds, then
    twice that, and so on. One request asks for at most `batch` solutions. A cache holds the answers
    for `cache` solutions for `ttl_s` seconds; `refresh` has other times (s) by address. With
    `required`, a request that fails for good ends the run. An answer has at most `max_bytes`,
    unpacked. A run sends requests only to the hosts in `allow` (HOST or HOST:PORT) and to the
    endpoints in `kb`. `limits` are the limits of the run.

    Raises:
        UsageError: `allow` is one text instead of several.
    """

    timeout_s: float = 10.0
    retries: int = 3
    backoff_s: float = 0.5
    batch: int = 200
    cache: int = 10_000
    ttl_s: float = 300.0
    refresh: Mapping[str, float] | tuple[tuple[str, float], ...] = ()
    required: bool = False
    max_bytes: int = 64 * 2**20
    allow: Iterable[str] = ()
    limits: Limits = DEFAULT_LIMITS

    def __post_init__(self) -> None:
        if isinstance(self.allow, str):
            raise UsageError(f"allow is the text {self.allow!r}; it must be a list of hosts")
        object.__setattr__(self, "allow", tuple(self.allow))
        object.__setattr__(self, "refresh", tuple(dict(self.refresh).items()))

    def kept_s(self, address: str) -> float:
        """Seconds for which the cache keeps an answer of this address."""
        return dict(self.refresh).get(address, self.ttl_s)


@record
class KnowledgeOptions:
    """How a knowledge base is loaded.

    `kb_cache` is the directory of compiled knowledge bases, for later runs: None is the user's
    cache directory, "none" turns the cache off. With `kb_refresh` a followed run loads changed
    files again. `kb_changes` has, by graph IRI, pairs of a time (ms since 1970, a datetime, or the
    text of an xsd:dateTime) and the new contents, as `kb` takes them; of equal times the last
    counts.
    """

    services: ServiceOptions = ServiceOptions()
    kb_cache: str | PathLike[str] | None = None
    kb_refresh: bool = False
    kb_changes: KbChanges = field(default_factory=dict)


@record
class ReadingOptions:
    """How the bytes of streams become events.

    `time_predicate` is the IRI whose object is an event's time. Integer times count milliseconds
    since 1970, or seconds if `time_unit` is `s`. `triples_per_event` is the number
    of triples of an event in formats without graphs. `base` is the base IRI of Turtle, TriG,
    RDF/XML and JSON-LD. `context_map` maps the IRIs of JSON-LD contexts to files; no context is
    fetched. `threads` is the number of threads that read N-Quads and N-Triples in the local
    runtime; None: the runtime chooses.

    Raises:
        UsageError: a number is less than one.
    """

    time_predicate: str = GENERATED_AT_TIME
    time_unit: str = "ms"
    triples_per_event: int | None = None
    base: str | None = None
    context_map: Mapping[str, str | PathLike[str]] = field(default_factory=dict)
    threads: int | None = None

    def __post_init__(self) -> None:
        _check_count("triples_per_event", self.triples_per_event)
        _check_count("threads", self.threads)


@record
class StageOptions:
    """The options of a query's stages.

    `limit_per_event` is the maximum number of answers of one query that end at the same instant
    (and are in the same partition). `limits` bound the cost of one event. At most `most_waiting`
    partial matches of a query wait after an instant, in each part of its stage 2. With `open_end`
    the end of the streams closes no window: the absence of an event is not certain then.

    Raises:
        UsageError: the limit is less than one.
    """

    limit_per_event: int | None = None
    limits: Limits = DEFAULT_LIMITS
    most_waiting: int | None = None
    open_end: bool = False

    def __post_init__(self) -> None:
        _check_count("limit_per_event", self.limit_per_event)

    @property
    def is_unlimited(self) -> bool:
        """Whether the query has no limit on answers or on partial matches."""
        return self.limit_per_event is None and self.most_waiting is None


@record
class FileSourceSettings:
    """How a followed run reads files that arrive.

    `max_bytes` bounds a batch, per stream; a file that cannot be divided is still read whole.
    `range_bytes` is the size of the ranges that large files are divided into. `delay_ms` is the
    maximum delay of an event behind the greatest time of its stream. A stream without new input for
    `idle_ms` no longer holds back the watermark of the others. With `growing`, files may be
    appended to; their last event is read when something follows it, or after `settle_ms` without a
    change. An event that is more than `max_ahead_ms` ahead of its arrival and of all streams is bad
    input. While answers wait for a silent stream, its watermark advances every `heartbeat_ms`.
    Where Spark plans the batches, this holds while a window of `horizon_ms`, the longest one of all
    queries, may be open.
    """

    max_bytes: int = MAX_BATCH_BYTES
    range_bytes: int = RANGE_BYTES
    delay_ms: int = 0
    idle_ms: int | None = None
    growing: bool = False
    settle_ms: int = 10_000
    max_ahead_ms: int = 86_400_000
    heartbeat_ms: int = 1000
    horizon_ms: int = 0


@record
class StateLimits:
    """Limits of each bucket of each followed query.

    `rows` bounds the partial matches that wait after an instant, `bytes` its size in the state
    store, checked at each write.
    """

    rows: int = 10_000_000
    bytes: int = 2**30

    def times(self, queries: int) -> StateLimits:
        """The limits of a family of some queries, which share the bytes of a bucket."""
        return StateLimits(self.rows, self.bytes * queries)

    def stages(self, options: StageOptions) -> StageOptions:
        """The options of the stages, with this limit on partial matches."""
        return replace(options, most_waiting=self.rows)


@record
class FollowOptions:
    """How a run follows files that keep arriving.

    `checkpoint` is the directory that keeps the run's state. With `until_done` the run ends when it
    has processed all files that were there at its start. The run lists the directories every
    `trigger_ms`. Stage 2 of a query with a key is split into `buckets`; the checkpoint keeps this
    number. `rebuild` rebuilds the state from the logs, if the run keeps logs. `messages` says how
    the messages of brokers become events.
    """

    checkpoint: Path
    arrivals: FileSourceSettings = field(default_factory=FileSourceSettings)
    until_done: bool = False
    trigger_ms: int = 200
    limits: StateLimits = field(default_factory=StateLimits)
    buckets: int | None = None
    rebuild: bool = False
    messages: MessageOptions = DEFAULT_MESSAGES


@record
class RuntimeOptions:
    """The runtime of a run.

    `name` is "spark", or "local" for this process alone. `master` is the URL of a Spark cluster, or
    `local[2]` for two threads here; None starts a session on this machine. `verbose` shows Spark's
    own messages.

    Raises:
        UsageError: there is no such runtime, or the local one has a cluster.
    """

    name: str = "spark"
    master: str | None = None
    verbose: bool = False

    def __post_init__(self) -> None:
        if self.name not in RUNTIMES:
            raise UsageError(f"unknown runtime {self.name!r}: expected {' or '.join(RUNTIMES)}")
        if self.name == "local" and self.master is not None:
            raise UsageError("a cluster (--master) goes with the runtime spark")


@record
class RunOptions:
    """All options of a run, in parts; `follow` is None for streams that are read to their ends."""

    planning: PlanningOptions = PlanningOptions()
    knowledge: KnowledgeOptions = KnowledgeOptions()
    reading: ReadingOptions = ReadingOptions()
    stages: StageOptions = StageOptions()
    runtime: RuntimeOptions = RuntimeOptions()
    limits: Limits = DEFAULT_LIMITS
    follow: FollowOptions | None = None

    def __post_init__(self) -> None:
        services = replace(self.knowledge.services, limits=self.limits)
        object.__setattr__(self, "knowledge", replace(self.knowledge, services=services))
        object.__setattr__(self, "planning", replace(self.planning, limits=self.limits))

    @classmethod
    def of(cls, call: str, allowed: type, keywords: Mapping[str, Any]) -> RunOptions:
        """The options from the keywords of a Python call.

        Args:
            call: the name of the called function, for messages.
            allowed: the table of its keywords, such as `RunKeywords`.
            keywords: the keywords of the call; each is the name of a field of a part.

        Raises:
            UsageError: the call does not accept a keyword or its value.

        >>> RunOptions.of("run", RunKeywords, {"limit_per_event": 3}).stages.limit_per_event
        3
        >>> RunOptions.of("run", RunKeywords, {"thread": 3})
        Traceback (most recent call last):
            ...
        spaseq.errors.UsageError: run() has no option 'thread', did you mean threads? Options: \
base, context_map, disable, dump_graphs, entailment, kb_cache, kb_changes, lifts, limit_per_event, \
limits, on_partial, ontology, open_end, services, threads, time_predicate, time_unit, \
triples_per_event, watermark_ms
        """
        names = sorted(allowed.__annotations__)
        for name in keywords:
            if name not in names:
                near = get_close_matches(name, names, 1)
                meant = f", did you mean {near[0]}?" if near else "."
                raise UsageError(
                    f"{call}() has no option {name!r}{meant} Options: {', '.join(names)}"
                )
        return cls(
            _part(PlanningOptions, keywords),
            _part(KnowledgeOptions, keywords),
            _part(ReadingOptions, keywords),
            _part(StageOptions, keywords),
            limits=keywords.get("limits", DEFAULT_LIMITS),
        )


def _part(kind: type[P], keywords: Mapping[str, Any]) -> P:
    """Make one part from the keywords that are its fields."""
    names = [f.name for f in fields(kind)]  # type: ignore[arg-type]
    return kind(**{name: keywords[name] for name in names if name in keywords})


class EngineKeywords(TypedDict, total=False):
    """The options that every call of the Python API accepts as keywords.

    With `time_unit="s"` integer times count seconds since 1970, not milliseconds.
    """

    limit_per_event: int | None
    limits: Limits
    services: ServiceOptions
    kb_cache: str | PathLike[str] | None
    kb_changes: KbChanges
    ontology: OntologyInput | None
    entailment: str | None
    disable: Iterable[str]
    time_unit: Literal["s", "ms"]


class PushKeywords(EngineKeywords, total=False):
    """The options of `spaseq.Engine`; with `partial` its `partials` returns partial matches."""

    partial: bool


class StreamKeywords(EngineKeywords, total=False):
    """The options of calls that read streams."""

    time_predicate: str
    triples_per_event: int | None
    base: str | None
    context_map: Mapping[str, str | PathLike[str]]


class RunKeywords(StreamKeywords, total=False):
    """The options of `spaseq.run`.

    `on_partial` is called for each `PartialMatch`: the first steps of a query, when their window
    has closed without the rest. Without it the run computes no partial matches. `watermark_ms` is
    the maximum delay of an event of a generator behind the greatest time of its stream. With
    `open_end` the end of the streams closes no window. `lifts` has the lift of each stream of rows:
    its text, or the `Path` of its file; `spaseq.Lifted` has more options. `dump_graphs` maps the
    IRIs of graphs that queries maintain to files; the run writes the final graphs there.
    """

    open_end: bool
    lifts: Mapping[str, str | Path]
    threads: int | None
    on_partial: Callable[[Any], None] | None
    watermark_ms: int
    dump_graphs: Mapping[str, str | PathLike[str]]


class AnswersKeywords(StreamKeywords, total=False):
    """The options of `spaseq.spark.answers`.

    `checkpoint` is a directory that every worker can write: the DataFrame is then a streaming one,
    over files that keep arriving. The next four options need it. `watermark_ms` is the maximum
    delay of an event. In files, an event is bad input if its time is more than `max_ahead_ms` ahead
    of its arrival and of all earlier events. A stream without new events for `idle_ms` no longer
    holds back the watermark; one task then reads all streams of a DataFrame, and the query does not
    end by itself (`availableNow`), because Spark watches the clock. `kb_refresh` loads changed
    files of the knowledge base between micro-batches, if the streams are paths; the driver's logger
    `spaseq` reports each change or failure. `strict` fails at malformed input and late events; by
    default they are warnings in the worker's log (logger `spaseq`). `sides` gives them as rows.
    `partial` gives partial matches as rows. `lifts` has the lift of each stream that is a DataFrame
    of rows or a path of a table: its text, or the `Path` of its file. `order` names the column that
    orders rows of equal time in such a DataFrame. Tasks read the Parquet files of a DataFrame that
    only scans them; with `direct=False` Spark reads its rows. `typed` gives a column for each
    variable: True finds the types from the answers, which are then computed in the call; a mapping
    has the Spark types of variables by name, and the others become strings.
    """

    checkpoint: str | PathLike[str] | None
    watermark_ms: int
    max_ahead_ms: int
    idle_ms: int | None
    kb_refresh: bool
    strict: bool
    sides: bool
    partial: bool
    lifts: Mapping[str, str | Path]
    order: Mapping[str, str]
    direct: bool
    typed: bool | Mapping[str, str]
