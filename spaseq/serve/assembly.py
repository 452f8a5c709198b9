"""From a configuration to the parts of a server."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from spaseq.alert_templates.template import read_template
from spaseq.api.prepare import StandingPlanner, load_knowledge
from spaseq.api.why import report_on
from spaseq.compiled.cache import has_kernels
from spaseq.connectors.address import scheme_of
from spaseq.diagnosis.report import Report
from spaseq.diagnosis.watched_event import AskedEvent
from spaseq.errors import InputError, SpaseqError, UsageError
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.lift.lifted_messages import LiftedBroker
from spaseq.logs.messages import Message
from spaseq.options import (
    KnowledgeOptions,
    PlanningOptions,
    RunOptions,
    RuntimeOptions,
    ServiceOptions,
)
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.inputs.stream_options import OnBad
from spaseq.runtime.arrivals.stream_clock import FAR
from spaseq.runtime.job.job import Job
from spaseq.runtime.live.deliveries import SinkSettings, check_files, check_names
from spaseq.runtime.live.delivery import Terms
from spaseq.runtime.live.graph_changes import MOST_BYTES, GraphView
from spaseq.runtime.live.graph_log import first_graphs
from spaseq.runtime.live.intakes import LiveStream
from spaseq.runtime.live.live_directory import StandingOptions
from spaseq.runtime.live.live_engine import EngineMaker, LiveEngine
from spaseq.runtime.live.query_changes import QueryChange
from spaseq.runtime.live.run_views import QueryView
from spaseq.runtime.live.standing_run import StandingRun
from spaseq.runtime.live.stream_events import StreamEvents, arrival_times
from spaseq.serve.configuration import Configuration
from spaseq.serve.configured_streams import RECORD, record_of, stream_of
from spaseq.serve.guard import Access, Token, tokens_of
from spaseq.serve.history import BY_FILE, Audit
from spaseq.serve.http_server import check_tls
from spaseq.serve.logged_events import LoggedEvents, StreamReading, TraceEvents, UsedKnowledge
from spaseq.serve.posted_events import KeptReplies, MessageReading, PostedStream
from spaseq.serve.query_files import checked_query
from spaseq.serve.said_events import EventWords, SaidEvents
from spaseq.serve.server_state import ServerParts
from spaseq.storage.user_files import read_user_text

_SINK_OPTIONS = (
    "content_type",
    "headers",
    "method",
    "from",
    "user",
    "password",
    "starttls",
)

T = TypeVar("T")

_NEVER, _EVER = -(2**62), 2**62
"""Before and after all times (ms)."""

LISTEN = "127.0.0.1:8787"

_LOCAL = RuntimeOptions("local")
_LOG = logging.getLogger("spaseq")


def listen_of(configuration: Configuration) -> str:
    """The address that a server listens on."""
    return str(configuration.server.get("listen", LISTEN))


def parts_of(
    configuration: Configuration, directory: Path, engine: EngineMaker = LiveEngine
) -> ServerParts:
    """The parts of a server; nothing runs yet.

    Args:
        configuration: the parsed configuration.
        directory: the directory of the configuration.
        engine: makes the engine that evaluates the queries.

    Raises:
        SpaseqError: a stream, a lift, a context, a knowledge base, a sink, the token or a
            certificate is wrong; all mistakes are named.
    """
    server = configuration.server
    data = server.get("data", directory / "state")
    knowledge, streams, sinks, access, tls = _given(configuration, data)

    plan = StandingPlanner(PlanningOptions(), knowledge)
    audit = Audit(data)
    run = StandingRun(
        data,
        streams,
        Job((), (), knowledge, on_note=_LOG.warning, graphs=configuration.graphs),
        plan,
        sinks,
        _run_options(server, engine, (RECORD, record_of(configuration)), audit),
    )
    events = TraceEvents({s.iri: _stream_reading(s) for s in streams}, run.newest_records)
    return ServerParts(
        run,
        plan,
        audit,
        configuration.queries.get("directory", data / "queries.d"),
        access,
        {stream.name: _posted(stream) for stream in streams},
        KeptReplies(_retain(server)),
        _Reasons(run, streams),
        UsedKnowledge(run, events),
        SaidEvents(run, events, EventWords(knowledge)),
        server.get("max_body", 16_000_000),
        server.get("max_kb", MOST_BYTES),
        _retain(server),
        tls,
    )


def _given(
    configuration: Configuration, data: Path
) -> tuple[
    KnowledgeBase,
    list[LiveStream],
    dict[str, SinkSettings],
    Access,
    tuple[Path, Path] | None,
]:
    """What a configuration describes; errors as from `parts_of`."""
    server, mistakes = configuration.server, _Mistakes()
    loaded = mistakes.without(lambda: _knowledge(configuration, data))
    streams = [
        stream
        for name, table in configuration.streams.items()
        for stream in mistakes.without(partial(stream_of, name, table))
    ]
    sinks = {
        name: sink
        for name, table in configuration.sinks.items()
        for sink in mistakes.without(partial(_sink, name, table))
    }
    mistakes.without(lambda: check_files({name: sink.outlet() for name, sink in sinks.items()}))
    admitted = mistakes.without(lambda: _access(configuration))
    certified = mistakes.without(lambda: _tls(server))
    mistakes.tell()
    (knowledge,), (access,), (tls,) = loaded, admitted, certified
    return knowledge, streams, sinks, access, tls


class _Mistakes:
    """The errors of the parts of a configuration."""

    def __init__(self) -> None:
        self._errors: list[SpaseqError] = []

    def without(self, make: Callable[[], T]) -> tuple[T, ...]:
        """What a function makes; nothing if it raises an error, which is kept."""
        try:
            return (make(),)
        except SpaseqError as error:
            self._errors.append(error)
            return ()

    def tell(self) -> None:
        """Raise the errors as one, if there are any."""
        if len(self._errors) > 1:
            text = "\n".join(map(str, self._errors))
            wrong_call = all(isinstance(error, UsageError) for error in self._errors)
            raise UsageError(text) if wrong_call else InputError(text)
        if self._errors:
            raise self._errors[0]


def _run_options(
    server: Mapping[str, Any], engine: EngineMaker, record: tuple[str, bytes], audit: Audit
) -> StandingOptions:
    def note(before: GraphView, after: GraphView) -> None:
        audit.note(BY_FILE, "kb", after.iri, before.tag, after.tag)

    return StandingOptions(
        sync_ms=server.get("sync", 0),
        retain_ms=_retain(server),
        answers_ms=server.get("answers"),
        engine=engine,
        rebuilds=server.get("rebuild", False),
        record=record,
        most_kb=server.get("max_kb", MOST_BYTES),
        on_files=note,
    )


def _retain(server: Mapping[str, Any]) -> int:
    return int(server.get("retain", 3_600_000))


def _knowledge(configuration: Configuration, data: Path) -> KnowledgeBase:
    server = configuration.server
    services = ServiceOptions(
        timeout_s=server.get("service_timeout", 10_000) / 1000,
        refresh={url: ms / 1000 for url, ms in configuration.refresh.items()},
        required=server.get("kb_required", False),
        allow=server.get("service_allow", ()),
    )
    # The first answers need not wait for a compiler: without compiled kernels, all is interpreted
    # until that takes too long.
    sources = (None,) if has_kernels() else ()
    graphs = configuration.graphs.items()
    kept = first_graphs(data / "graphs") & {iri for iri, _ in graphs}
    kept |= {iri for iri, graph in graphs if not graph.paths}
    return load_knowledge((), configuration.kb, KnowledgeOptions(services), sources, kept)


def _untimed_reading(stream: LiveStream) -> MessageReading:
    """Makes the events of a stream's messages; those without a time are `UNTIMED`."""
    alone = StreamEvents(replace(stream.source.options.messages, dedup_ms=None))
    return partial(alone.read, stream.source)


def _reading(stream: LiveStream) -> MessageReading:
    """Makes the events of a stream's messages, as the run does."""
    events = _untimed_reading(stream)

    def read(messages: Sequence[Message], on_bad: OnBad) -> Iterator[EventBatch]:
        arrival = messages[0].arrival
        for batch in events(messages, on_bad):
            yield batch.with_time(arrival_times(batch.time, arrival, None, FAR, None))

    return read


def _stream_reading(stream: LiveStream) -> StreamReading:
    options = stream.source.options
    delay_ms = stream.settings.delay_ms
    return StreamReading(stream.name, _reading(stream), delay_ms, options.time_predicate)


def _posted(stream: LiveStream) -> PostedStream:
    options = stream.source.options
    rows = isinstance(stream.source, LiftedBroker) or options.contexts.own is not None
    given = options.messages
    return PostedStream(
        stream.name,
        _untimed_reading(stream),
        options.time_predicate,
        rows,
        given.format,
        given.dedup_ms is not None,
    )


def _sink(name: str, table: Mapping[str, Any]) -> SinkSettings:
    # Old news for people is not old for files, databases and brokers.
    past = table.get("past", scheme_of(table["to"]) not in ("http", "https", "smtp", "smtps"))
    queries = tuple(table.get("queries", ("*",)))
    terms = Terms(queries, table.get("keep", 86_400_000), past=past)
    options = {key: table[key] for key in _SINK_OPTIONS if key in table}
    try:
        usual = "mail" if scheme_of(table["to"]) in ("smtp", "smtps") else ""
        given, directory = table.get("template", (usual, Path()))
        template = read_template(given, directory, table.get("vars", {})) if given else None
        settings = SinkSettings(table["to"], terms, "", (), False, True, template, options)
        check_names([name])
        settings.outlet()
    except (InputError, UsageError) as error:
        raise UsageError(f"[sinks.{name}] {error}") from None
    return settings


def _access(configuration: Configuration) -> Access:
    server, tokens = configuration.server, tuple[Token, ...]()
    if "token_file" in server:
        path = server["token_file"]
        try:
            tokens = tokens_of(read_user_text(path))
            if path.stat().st_mode & 0o077:
                _LOG.warning("token_file %s can be read by others; run: chmod 600 %s", path, path)
        except (OSError, UnicodeDecodeError, UsageError) as error:
            raise InputError(f"token_file {path}: {error}") from None
    host = listen_of(configuration).rpartition(":")[0].strip("[]")
    secure = bool(server.get("tls") or server.get("behind_proxy"))
    return Access(host, server.get("hosts", ()), tokens, secure)


def _tls(server: Mapping[str, Any]) -> tuple[Path, Path] | None:
    table = server.get("tls")
    if not table:
        return None
    if not table.keys() >= {"cert", "key"}:
        raise UsageError('tls needs both: tls = { cert = "c.pem", key = "k.pem" }')
    check_tls(table["cert"], table["key"])
    return table["cert"], table["key"]


class _Reasons:
    """Says why queries have no answers, from the events that are still logged."""

    def __init__(self, run: StandingRun, streams: Sequence[LiveStream]) -> None:
        self._run, self._streams = run, streams

    def __call__(self, query: QueryView, event: str | None) -> Report:
        """The report on a query, or on an event that is in none of its answers.

        The report on a query covers the events that it has seen, and counts the certain answers. If
        it reads the results of other queries, or is about an event, it covers all logged events, as
        if there were no others.
        """
        asked = None if event is None else AskedEvent(event, 0)
        others = [view for view in self._run.queries() if view.name != query.name]
        checked = [checked_query(view.name, view.text) for view in (query, *others)]
        options = RunOptions().stages
        known = {stream.iri for stream in self._streams}
        seen = None if asked or not known >= {*query.streams} else self._run.began(query.name)
        sources = [self._source(stream, seen) for stream in self._streams]
        until = None if seen is None else self._certain_until(query)
        knowledge = self._run.knowledge_at(_EVER)
        return report_on(checked, 0, sources, knowledge, options, asked, until)

    def _certain_until(self, query: QueryView) -> int:
        """The time (ms) up to which the streams of a query have come."""
        marks = [view.watermark for view in self._run.streams() if view.iri in query.streams]
        return min(_NEVER if mark is None else mark for mark in marks) - 1

    def _source(self, stream: LiveStream, seen: QueryChange | None) -> LoggedEvents:
        """The logged events of a stream that a query has seen, or all."""
        begin, since = 0, None
        if seen is not None and seen.start is not None:
            since = seen.query.since
        elif seen is not None:
            begin = seen.places.get(stream.iri, 0)
        records = partial(self._run.records, stream.name)
        delay_ms = stream.settings.delay_ms
        return LoggedEvents(stream.iri, _reading(stream), records, delay_ms, begin, since)
