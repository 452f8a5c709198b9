"""Requests about the answers of all queries: the feed, and acknowledgements."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from spaseq.lang.scan import head_comments
from spaseq.message_text import visible
from spaseq.runtime.live.answer_records import LoggedAnswer, json_with_id
from spaseq.serve.answer_feed import AnswerStream
from spaseq.serve.query_routes import accepts, limit_of
from spaseq.serve.requests import Refused, json_object, text_of
from spaseq.serve.said_events import Said
from spaseq.serve.server_state import ServerState, state_of, who_asks

NEWEST = 100
"""Answers that a request gets unless it says how many."""

_AT_ONCE = 1000
_MOST_NOTE = 10_000
_BODY = 100_000


@dataclass(frozen=True, slots=True)
class Feed:
    """The answers of the queries that match a glob, with the given severity, if any.

    With `tells`, each answer has the statements of its events.
    """

    state: ServerState
    glob: str
    severity: str | None
    tells: bool = False

    def lines(self, after: str | None, most: int) -> list[tuple[str, str]]:
        """(id, line) of the next answers after one, or of the newest."""
        heads = self._heads()

        def want(title: str) -> bool:
            severity = heads.get(title, {}).get("severity")
            return fnmatchcase(title, self.glob) and self.severity in (None, severity)

        answers = self.state.run.answers.read_all(want, after, most)
        said = self.state.said.of(answers) if self.tells else {}
        return [(answer.id, self._line(answer, heads, said)) for answer in answers]

    def newest(self) -> str | None:
        """The id of the newest answer of all queries."""
        answers = self.state.run.answers.read_all(lambda title: True, None, 1)
        return answers[0].id if answers else None

    async def subscribe(
        self, name: str, after: str | None, pause_s: float, is_there: bool
    ) -> AsyncGenerator[Sequence[tuple[str, str]] | None]:
        """As `AnswerFeed.subscribe`, for all queries."""
        feed = self.state.feed
        while not feed.closed:
            grown = feed.grown
            newer = []
            if after is not None:
                newer = await to_thread.run_sync(self.lines, after, _AT_ONCE)
            else:  # there was no answer at all when it began
                newer = await to_thread.run_sync(self.lines, None, _AT_ONCE)
            if newer:
                after = newer[-1][0]
                yield newer
                continue
            try:
                async with asyncio.timeout(pause_s):
                    await grown.wait()
            except TimeoutError:
                yield ()

    def _heads(self) -> dict[str, Mapping[str, str]]:
        """The metadata in the comments at the head of each query."""
        return {name: head_comments(text) for name, text in self.state.run.texts().items()}

    def _line(
        self,
        answer: LoggedAnswer,
        heads: Mapping[str, Mapping[str, str]],
        said: Mapping[str, Said],
    ) -> str:
        head = heads.get(answer.title, {})
        more: dict[str, object] = {
            "name": answer.title,
            "severity": head.get("severity"),
            "title": head.get("title"),
            "acknowledged": self.state.acknowledgements.of(answer.id),
        }
        if self.tells:
            more["said"] = said[answer.id]
        return f"{json_with_id(answer)[:-1]}, {json.dumps(more, ensure_ascii=False)[1:]}"


async def get_feed(request: Request) -> Response | AnswerStream:
    """`GET /answers[?after=ID&limit=N&query=GLOB&severity=...&said=true]`."""
    state, asked = state_of(request), request.query_params
    tells = asked.get("said", "false") != "false"
    feed = Feed(state, asked.get("query") or "*", asked.get("severity") or None, tells)
    after = asked.get("after") or None
    if accepts(request, "text/event-stream"):
        after = request.headers.get("last-event-id") or after
        if after is None:
            after = await to_thread.run_sync(feed.newest)
        else:
            await to_thread.run_sync(feed.lines, after, 1)
        return AnswerStream(feed, "", after, True)
    most = min(limit_of(asked.get("limit"), NEWEST), 10 * _AT_ONCE)
    lines = await to_thread.run_sync(feed.lines, after, most)
    text = "".join(f"{line}\n" for _, line in lines)
    return Response(text, media_type="application/x-ndjson")


async def acknowledge(request: Request) -> Response:
    """`POST /answers/ID/acknowledge`."""
    state, name = state_of(request), str(request.path_params["id"])
    given = json_object(await text_of(request, _BODY))
    note = given.get("note", "")
    if given.keys() - {"note"} or not isinstance(note, str) or len(note) > _MOST_NOTE:
        raise Refused(400, "the body is no note", 'send {"note": "on it"}, or no body')
    who = who_asks(request)

    def acknowledged() -> dict[str, str] | None:
        if state.run.answers.title_of(name) is None:
            return None
        acknowledgement = state.acknowledgements.add(name, who, note)
        state.audit.note(who, "acknowledge", name, None, note)
        return acknowledgement

    acknowledgement = await to_thread.run_sync(acknowledged)
    if acknowledgement is None:
        raise Refused(404, f"there is no answer {visible(name[:100])}", "GET /answers lists them")
    return JSONResponse({"acknowledged": acknowledgement})
