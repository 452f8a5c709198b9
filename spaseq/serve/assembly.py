"""From a configuration to the parts of a server."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from spaseq.api.prepare import StandingPlanner, load_knowledge
from spaseq.api.streams import stream_source
from spaseq.api.why import report_on
from spaseq.compiled.cache import has_kernels
from spaseq.diagnosis.report import Report
from spaseq.diagnosis.watched_event import AskedEvent
from spaseq.errors import InputError, UsageError
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.lift.lifted import Lifted
from spaseq.lift.lifted_messages import LiftedBroker
from spaseq.logs.messages import Message
from spaseq.options import (
    FileSourceSettings,
    FollowOptions,
    KnowledgeOptions,
    PlanningOptions,
    ReadingOptions,
    RunOptions,
    RuntimeOptions,
    ServiceOptions,
)
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.inputs.bad_input import OnBad
from spaseq.rdf.inputs.message_options import MessageOptions
from spaseq.runtime.job.job import Job
from spaseq.runtime.live.deliveries import SinkSettings, check_names
from spaseq.runtime.live.delivery import Terms
from spaseq.runtime.live.live_engine import EngineMaker, LiveEngine, LiveStream
from spaseq.runtime.live.standing_run import (
    QueryView,
    StandingOptions,
    StandingRun,
)
from spaseq.runtime.live.stream_events import StreamEvents
from spaseq.serve.configuration import Configuration
from spaseq.serve.guard import Access
from spaseq.serve.http_server import check_tls
from spaseq.serve.kept_replies import KeptReplies
from spaseq.serve.logged_events import LoggedEvents
from spaseq.serve.posted_events import PostedStream
from spaseq.serve.query_files import checked_query
from spaseq.serve.server import ServerParts
from spaseq.serve.used_knowledge import UsedKnowledge
from spaseq.sources.broker_stream import POSTED, BrokerStream
from spaseq.sources.json_ld import JsonLd

LISTEN = "127.0.0.1:8787"

_LOCAL = RuntimeOptions("local")
_LOG = logging.getLogger("spaseq")


def listen_of(configuration: Configuration) -> str:
    """The address that a server listens on."""
    return str(configuration.server.get("listen", LISTEN))


def parts_of(
    configuration: Configuration, directory: Path, engine: EngineMaker = LiveEngine
) -> ServerParts:
    """What a server is made of; nothing runs yet.

    Args:
        configuration: as it was read.
        directory: where the configuration is.
        engine: makes what evaluates the queries.

    Raises:
        SpaseqError: a lift, a context, a knowledge base, the token or a certificate is wrong.
    """
    server = configuration.server
    data = server.get("data", directory / "state")
    knowledge = _knowledge(configuration)
    streams = [_stream(name, table) for name, table in configuration.streams.items()]

    plan = StandingPlanner(PlanningOptions(), knowledge)

    run = StandingRun(
        data,
        streams,
        Job((), (), knowledge, on_note=_LOG.warning),
        plan,
        {name: _sink(name, table) for name, table in configuration.sinks.items()},
        StandingOptions(sync_ms=server.get("sync", 20), retain_ms=_retain(server), engine=engine),
    )
    return ServerParts(
        run,
        plan,
        configuration.queries.get("directory", data / "queries.d"),
        _access(configuration),
        {stream.name: _posted(stream) for stream in streams},
        KeptReplies(_retain(server)),
        _Reasons(run, streams, knowledge),
        UsedKnowledge(run, {s.iri: (s.name, _reading(s)) for s in streams}, knowledge),
        server.get("max_body", 16_000_000),
        _tls(server),
    )


def _retain(server: Mapping[str, Any]) -> int:
    return int(server.get("retain", 3_600_000))


def _knowledge(configuration: Configuration) -> KnowledgeBase:
    server = configuration.server
    services = ServiceOptions(
        timeout_s=server.get("service_timeout", 10_000) / 1000,
        required=server.get("kb_required", False),
        allow=server.get("service_allow", ()),
    )
    # The first answers need not wait for a compiler: without compiled kernels, all is interpreted
    # until that takes too long.
    sources = (None,) if has_kernels() else ()
    return load_knowledge((), configuration.kb, KnowledgeOptions(services), sources)


def _stream(name: str, table: Mapping[str, Any]) -> LiveStream:
    given = [table.get("source", POSTED)]
    for key in ("context", "context_map"):
        if "lift" in table and key in table:
            raise UsageError(f"[streams.{name}] has a lift and a {key}; give one")
    how: Any = given
    if "lift" in table:
        how = Lifted(given, table["lift"])
    elif "context" in table:
        how = JsonLd(given, table["context"])
    most = table.get("max_message") if "source" in table else None  # max_body bounds requests
    messages = MessageOptions(table.get("format"), table.get("time"), table.get("dedup"), most)
    follow = FollowOptions(Path(), messages=messages)
    reading = ReadingOptions(context_map=table.get("context_map", {}))
    options = RunOptions(reading=reading, runtime=_LOCAL, follow=follow)
    try:
        source = stream_source(table["iri"], how, options)
    except InputError as error:
        raise InputError(f"[streams.{name}] {error}") from None
    if not isinstance(source, BrokerStream):
        raise UsageError(f"[streams.{name}] source: {source.describe()} cannot be followed here")
    watermark, idle = table.get("watermark", 0), table.get("idle")
    return LiveStream(name, source, FileSourceSettings(delay_ms=watermark, idle_ms=idle))


def _reading(stream: LiveStream) -> Callable[[Sequence[Message], OnBad], Iterator[EventBatch]]:
    """Makes the events of a stream's messages, as the run does."""

    def read(messages: Sequence[Message], on_bad: OnBad) -> Iterator[EventBatch]:
        source = stream.source
        alone = replace(source.options.messages, dedup_ms=None)
        return StreamEvents(alone).read(source, messages, on_bad)

    return read


def _posted(stream: LiveStream) -> PostedStream:
    options = stream.source.options
    rows = isinstance(stream.source, LiftedBroker) or options.contexts.own is not None
    form = options.messages.format
    return PostedStream(stream.name, _reading(stream), options.time_predicate, rows, form)


def _sink(name: str, table: Mapping[str, Any]) -> SinkSettings:
    terms = Terms(tuple(table.get("queries", ("*",))), table.get("keep", 86_400_000))
    settings = SinkSettings(table["to"], terms)
    try:
        check_names([name])
        settings.outlet()
    except UsageError as error:
        raise UsageError(f"[sinks.{name}] {error}") from None
    return settings


def _access(configuration: Configuration) -> Access:
    server, token = configuration.server, None
    if "token_file" in server:
        path = server["token_file"]
        try:
            token = path.read_text("utf-8").strip()
            if path.stat().st_mode & 0o077:
                _LOG.warning("token_file %s can be read by others; run: chmod 600 %s", path, path)
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"token_file {path}: {error}") from None
        if not token or not token.isascii() or any(c.isspace() for c in token):
            raise InputError(f"token_file {path}: a token is one word of ASCII characters")
    host = listen_of(configuration).rpartition(":")[0].strip("[]")
    secure = bool(server.get("tls") or server.get("behind_proxy"))
    return Access(host, server.get("hosts", ()), token, secure)


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

    def __init__(
        self, run: StandingRun, streams: Sequence[LiveStream], knowledge: KnowledgeBase
    ) -> None:
        self._run, self._knowledge = run, knowledge
        self._sources = [
            LoggedEvents(
                stream.iri,
                _reading(stream),
                partial(run.records, stream.name),
                stream.settings.delay_ms,
            )
            for stream in streams
        ]

    def __call__(self, query: QueryView, event: str | None) -> Report:
        """The report on a query, or on an event that none of its answers holds."""
        asked = None if event is None else AskedEvent(event, 0)
        others = [view for view in self._run.queries() if view.name != query.name]
        checked = [checked_query(view.name, view.text) for view in (query, *others)]
        options = RunOptions().stages
        return report_on(checked, 0, self._sources, self._knowledge, options, asked)
