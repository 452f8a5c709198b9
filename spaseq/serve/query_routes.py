"""Requests about queries."""

from __future__ import annotations

from typing import Any

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse

from spaseq.compile import CompileOptions, check_query
from spaseq.message_text import visible
from spaseq.rdf.terms.times import parse_datetime
from spaseq.runtime.live.failed_answers import json_with_id
from spaseq.runtime.live.standing_run import QueryView, StandingRun, UnknownQuery
from spaseq.serve import query_details
from spaseq.serve.answer_stream import AnswerStream
from spaseq.serve.bodies import text_of
from spaseq.serve.query_files import is_name
from spaseq.serve.refusals import Refused
from spaseq.serve.server_state import state_of

LIMIT = 1000
"""Answers that a request gets unless it says how many."""

_MOST = 2**53
_AT_ONCE = 1000


async def list_queries(request: Request) -> Response:
    """`GET /queries`."""
    views = await to_thread.run_sync(state_of(request).run.queries)
    return JSONResponse([query_details.query_json(view) for view in views])


async def show_query(request: Request) -> Response:
    """`GET /queries/NAME`."""
    view, run = await _view(request), state_of(request).run
    states = await to_thread.run_sync(run.live_states, view.name)
    return JSONResponse(await to_thread.run_sync(query_details.detailed_json, view, states))


async def draw_query(request: Request) -> Response:
    """`GET /queries/NAME/automaton.svg`."""
    view = await _view(request)
    text = await to_thread.run_sync(query_details.drawing, view)
    policy = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
    return Response(text, media_type="image/svg+xml", headers=policy)


async def put_query(request: Request) -> Response:
    """`PUT /queries/NAME[?from=TIME]`."""
    state, name = state_of(request), request.path_params["name"]
    if not is_name(name):
        raise Refused(
            400,
            f"{name[:200]!r} is no name of a query",
            "a name has letters, digits and _, then also . and -, at most 100",
        )
    since = _since(request.query_params.get("from"))
    text = await text_of(request, state.max_body)
    change, checked = await to_thread.run_sync(state.files.put, name, text, since)
    warnings = [finding.to_json() for finding in checked.diagnostics]
    body = {"changed": change != "unchanged", "diagnostics": warnings}
    return JSONResponse(body, 201 if change == "added" else 200)


async def delete_query(request: Request) -> Response:
    """`DELETE /queries/NAME`."""
    state = state_of(request)
    await to_thread.run_sync(state.files.remove, _name(request))
    return Response(status_code=204)


async def restart_query(request: Request) -> Response:
    """`POST /queries/NAME/restart`."""
    await to_thread.run_sync(state_of(request).run.restart, _name(request))
    return JSONResponse({"restarted": True})


async def check_text(request: Request) -> Response:
    """`POST /check`: what is to be said about a query's text, which does not run."""
    state = state_of(request)
    text = await text_of(request, state.max_body)
    options = CompileOptions(file="query.rq", several=True)
    checked = await to_thread.run_sync(check_query, text, "query", options)
    return JSONResponse({"diagnostics": [finding.to_json() for finding in checked.diagnostics]})


async def get_answers(request: Request) -> Response | AnswerStream:
    """`GET /queries/NAME/answers`."""
    state, name = state_of(request), _name(request)
    is_there = await to_thread.run_sync(_is_there, state.run, name)
    after = request.query_params.get("after") or None
    if _accepts(request, "text/event-stream"):
        after = request.headers.get("last-event-id") or after
        if after is None:
            after = await state.feed.last(name)
        else:
            await to_thread.run_sync(state.run.answers.read, name, after, 1)
        return AnswerStream(state.feed, name, after, is_there)
    if "last" in request.query_params:
        most = _limit(request.query_params["last"])
        newest = await to_thread.run_sync(state.run.answers.newest, name, min(most, _AT_ONCE))
        text = "".join(f"{json_with_id(answer)}\n" for answer in newest)
        return Response(text, media_type="application/x-ndjson")
    limit = _limit(request.query_params.get("limit"))
    first = await to_thread.run_sync(state.run.answers.read, name, after, min(limit, _AT_ONCE))

    async def lines() -> Any:
        found, left = first, limit
        while found:
            yield "".join(f"{json_with_id(answer)}\n" for answer in found)
            left -= len(found)
            if left <= 0:
                return
            found = await to_thread.run_sync(
                state.run.answers.read, name, found[-1].id, min(left, _AT_ONCE)
            )

    return StreamingResponse(lines(), media_type="application/x-ndjson")


async def used_knowledge(request: Request) -> Response:
    """`GET /queries/NAME/answers/ID/knowledge`."""
    state, view = state_of(request), await _view(request)
    async with state.asking:
        found = await to_thread.run_sync(state.used, view, str(request.path_params["id"]))
    return JSONResponse(found)


async def why_query(request: Request) -> Response:
    """`GET /queries/NAME/why[?event=IRI]`."""
    state, view = state_of(request), await _view(request)
    event = request.query_params.get("event")
    async with state.asking:
        report = await to_thread.run_sync(state.why, view, event)
    if _accepts(request, "text/plain"):
        return PlainTextResponse(report.as_text())
    return JSONResponse(report.as_json())


def _name(request: Request) -> str:
    name = str(request.path_params["name"])
    if not is_name(name):
        raise UnknownQuery(f"there is no query {visible(name[:200])}")
    return name


async def _view(request: Request) -> QueryView:
    name, state = _name(request), state_of(request)
    return await to_thread.run_sync(state.run.query, name)


def _is_there(run: StandingRun, name: str) -> bool:
    """Whether there is a query; UnknownQuery if there are no answers of an earlier one, either."""
    try:
        run.query(name)
    except UnknownQuery:
        if run.answers.last(name) is None:
            raise
        return False
    return True


def _accepts(request: Request, media_type: str) -> bool:
    """Whether a request names a media type."""
    accepted = request.headers.get("accept", "").lower()
    return any(part.partition(";")[0].strip() == media_type for part in accepted.split(","))


def _limit(text: str | None) -> int:
    if text is None:
        return LIMIT
    if not text.isdecimal() or not 1 <= int(text[:20]) <= _MOST:
        raise Refused(400, f"limit={text[:50]} is no number of answers", "say limit=100")
    return int(text)


def _since(text: str | None) -> int | None:
    """The time (ms) that `from` says."""
    if text is None:
        return None
    text = text.replace(" ", "+")  # a + that nobody has escaped
    ms = int(text) if text.lstrip("-").isdecimal() and len(text) < 20 else parse_datetime(text)
    if ms is None:
        raise Refused(
            400,
            f"from={text[:50]} is no time",
            "say from=2026-01-31T08:00:00Z, or milliseconds since 1970",
        )
    return ms
