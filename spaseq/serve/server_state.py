"""The parts of a server, and the state that all requests share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anyio import CapacityLimiter
from starlette.requests import Request

from spaseq.api.prepare import StandingPlanner
from spaseq.diagnosis.report import Report
from spaseq.runtime.live.run_views import QueryView
from spaseq.runtime.live.standing_run import StandingRun
from spaseq.serve.answer_feed import AnswerFeed
from spaseq.serve.guard import NOBODY, WHO, Access
from spaseq.serve.history import Acknowledgements, Audit, Versions
from spaseq.serve.posted_events import KeptReplies, PostedStream
from spaseq.serve.query_files import QueryFiles
from spaseq.serve.said_events import SaidEvents

THREADS = 128
"""Requests that may wait for the disk at the same time."""


@dataclass(frozen=True, slots=True)
class ServerParts:
    """The parts of a server.

    Attributes:
        run: the run; the server starts and stops it.
        plan: plans a query's text under a name, as the run does.
        audit: the audit trail.
        queries: the directory of queries.
        access: the rules of access.
        posted: the streams that get events from requests, by name.
        replies: the replies to repeatable requests.
        why: finds the reason why a query has no answers.
        used: finds the knowledge of an answer.
        said: finds the statements of the events of answers.
        max_body: maximum bytes of a request's body.
        max_kb: maximum bytes of a body that has a graph.
        retain_ms: how long earlier values of graphs are kept.
        tls: the files of a certificate and its key.
    """

    run: StandingRun
    plan: StandingPlanner
    audit: Audit
    queries: Path
    access: Access
    posted: Mapping[str, PostedStream]
    replies: KeptReplies
    why: Callable[[QueryView, str | None], Report]
    used: Callable[[QueryView, str], dict[str, Any]]
    said: SaidEvents
    max_body: int
    max_kb: int
    retain_ms: int
    tls: tuple[Path, Path] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerState(ServerParts):
    """The parts of a running server, and the other state that requests share.

    Attributes:
        files: the directory of queries.
        feed: the subscribers.
        page: the directory of the page's files.
        versions: the earlier texts of queries.
        acknowledgements: the acknowledged answers.
        asking: lock of requests for `why` and knowledge, which use a whole processor.
        threads: limits the requests that wait for the disk.
    """

    files: QueryFiles
    feed: AnswerFeed
    page: Path
    versions: Versions
    acknowledgements: Acknowledgements
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)
    threads: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(THREADS))


def who_asks(request: Request) -> str:
    """The name of who sends a request."""
    return str(request.scope.get(WHO, NOBODY.name))


def state_of(request: Request) -> ServerState:
    """The state that all requests share."""
    server = request.app.state.server
    assert isinstance(server, ServerState)
    return server
