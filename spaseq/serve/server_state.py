"""What all requests share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anyio import CapacityLimiter
from starlette.requests import Request

from spaseq.diagnosis.report import Report
from spaseq.runtime.live.standing_run import QueryView, StandingRun
from spaseq.serve.answer_feed import AnswerFeed
from spaseq.serve.guard import Access
from spaseq.serve.kept_replies import KeptReplies
from spaseq.serve.posted_events import PostedStream
from spaseq.serve.query_files import QueryFiles

THREADS = 128
"""Requests that may wait for the disk at the same time."""


@dataclass(slots=True)
class ServerState:
    """The run, and what the requests about it share.

    Attributes:
        run: the run.
        access: who may ask.
        files: the directory of queries.
        feed: the subscribers.
        posted: the streams, by name, as requests feed them.
        replies: what was answered to requests that may come again.
        why: says why a query has no answers.
        used: says what an answer used of the knowledge base.
        max_body: most bytes of a body.
        page: the directory of the page's files.
        asking: held while a request asks why, or what was used: that takes a processor.
        threads: bounds the requests that wait for the disk.
    """

    run: StandingRun
    access: Access
    files: QueryFiles
    feed: AnswerFeed
    posted: dict[str, PostedStream]
    replies: KeptReplies
    why: Callable[[QueryView, str | None], Report]
    used: Callable[[QueryView, str], dict[str, Any]]
    max_body: int
    page: Path
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)
    threads: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(THREADS))


def state_of(request: Request) -> ServerState:
    """What all requests share."""
    found = request.app.state.server
    assert isinstance(found, ServerState)
    return found
