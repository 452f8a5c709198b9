"""Requests about queries, and a query with its plan and its automaton, as JSON values."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from functools import lru_cache
from typing import Any

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse

from spaseq.automaton.run.live_states import LiveStates
from spaseq.compile import Checked, CompileOptions, check_query
from spaseq.connectors.base import time_of
from spaseq.errors import SpaseqError
from spaseq.message_text import visible
from spaseq.rdf.terms.times import format_time
from spaseq.render.explain import Explanation, explained
from spaseq.render.picture.live import UNKNOWN, drawn_counts
from spaseq.render.plan_json import automaton_json
from spaseq.runtime.live.answer_records import json_with_id
from spaseq.runtime.live.run_views import QueryView, QueryWaits, StreamView
from spaseq.runtime.live.standing_run import StandingRun, UnknownQuery
from spaseq.serve import query_files
from spaseq.serve.answer_feed import AnswerStream
from spaseq.serve.query_files import checked_query, is_name, missing_streams
from spaseq.serve.requests import Refused, json_object, text_of
from spaseq.serve.server_state import ServerState, state_of, who_asks

Json = dict[str, Any]

LIMIT = 1000
"""Answers that a request gets unless it says how many."""

_MOST = 2**53
_WHOLE_NUMBER = re.compile("-?[0-9]{1,18}")
_AT_ONCE = 1000
_MOST_TRIED, _TRY_S = 10_000, 30.0


def query_json(query: QueryView) -> Json:
    """A query in the list of queries."""
    return {
        "name": query.name,
        "state": query.state,
        "since": _time(query.since),
        "streams": list(query.streams),
        "answers": query.answers,
        "live": query.live,
        "reason": query.reason or None,
    }


def stream_json(stream: StreamView) -> Json:
    """A stream in the list of streams."""
    return {
        "name": stream.name,
        "iri": stream.iri,
        "accepted": stream.accepted,
        "bad": stream.bad,
        "late": stream.late,
        "duplicates": stream.duplicates,
        "watermark": _time(stream.watermark),
        "source": stream.source,
        "lag": stream.lag,
    }


def waiting_json(waits: QueryWaits) -> Json:
    """The waits of a query."""
    windows = [{"closes": _time(close)} for close in waits.windows]
    return {"windows": windows, "held": waits.held, "streams": list(waits.streams)}


def detailed_json(
    query: QueryView, states: LiveStates | None, waits: QueryWaits | None, given: Collection[str]
) -> Json:
    """A query with its text, plan and automaton, the states of its partial matches, and its waits.

    `given` are the present streams (IRIs).
    """
    details = query_json(query)
    details["waiting"] = None if waits is None else waiting_json(waits)
    details["text"] = query.text
    details["muted"], details["withheld"] = query.muted, query.withheld
    diagnostics, plan, shown = _explained(query.name, query.text)
    details["diagnostics"], details["plan"], details["automaton"] = list(diagnostics), plan, None
    if shown is not None and not {*query.streams} <= {*given}:
        missing = missing_streams(checked_query(query.name, query.text), given)
        details["diagnostics"] += [finding.to_json() for finding in missing]
    if shown is not None:
        live = UNKNOWN if states is None else drawn_counts(shown.picture, shown.plan, states)
        details["automaton"] = automaton_json(shown.picture, live)
    return details


def drawing(query: QueryView) -> str:
    """The automaton of a query as SVG."""
    return explanation(query.name, query.text).to("svg")


def explanation(name: str, text: str) -> Explanation:
    """The explanation of a query."""
    return explained(checked_query(name, text))


@lru_cache(256)
def _explained(name: str, text: str) -> tuple[tuple[Json, ...], Json, Explanation | None]:
    """(warnings, plan, explanation) of a query, which are read-only."""
    try:
        checked = checked_query(name, text)
    except SpaseqError:  # a version before read the text otherwise
        return (), {}, None
    shown = explained(checked)
    plan = {name: value for name, value in shown.data.items() if name != "automaton"}
    return tuple(d.to_json() for d in checked.diagnostics), plan, shown


def _time(ms: int | None) -> str | None:
    return None if ms is None else format_time(ms)


async def list_queries(request: Request) -> Response:
    """`GET /queries`."""
    views = await to_thread.run_sync(state_of(request).run.queries)
    return JSONResponse([query_json(view) for view in views])


async def show_query(request: Request) -> Response:
    """`GET /queries/NAME`."""
    view, run = await _view(request), state_of(request).run
    states = await to_thread.run_sync(run.live_states, view.name)
    waits = await to_thread.run_sync(state_of(request).run.waits, view.name)
    given = await to_thread.run_sync(run.given_streams)
    details = await to_thread.run_sync(detailed_json, view, states, waits, given)
    return JSONResponse(details)


async def draw_query(request: Request) -> Response:
    """`GET /queries/NAME/automaton.svg`."""
    view = await _view(request)
    text = await to_thread.run_sync(drawing, view)
    policy = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
    return Response(text, media_type="image/svg+xml", headers=policy)


async def put_query(request: Request) -> Response:
    """`PUT /queries/NAME[?from=TIME][&dry-run=true][&limit=N]`."""
    state, name = state_of(request), request.path_params["name"]
    if not is_name(name):
        raise Refused(
            400,
            f"{name[:200]!r} is no name of a query",
            "a name has letters, digits and _, then also . and -, at most 100",
        )
    since = _since(request.query_params.get("from"))
    text = await text_of(request, state.max_body)
    if request.query_params.get("dry-run", "false") != "false":
        limit = limit_of(request.query_params.get("limit"))
        return await _tried(state, name, text, since, min(limit, _MOST_TRIED))
    who = who_asks(request)
    change, checked = await to_thread.run_sync(state.files.put, name, text, since, who)
    warnings = await to_thread.run_sync(_warnings, state.run, checked)
    body = {"changed": change != "unchanged", "diagnostics": warnings}
    return JSONResponse(body, 201 if change == "added" else 200)


async def _tried(
    state: ServerState, name: str, text: str, since: int | None, limit: int
) -> Response:
    """The answers of a query on trial over the logged events."""
    async with state.asking:
        checked = await to_thread.run_sync(query_files.checked_query, name, text)
        given = name, text, since, limit, _TRY_S
        answers, more = await to_thread.run_sync(state.run.tried, *given)
        warnings = await to_thread.run_sync(_warnings, state.run, checked)
    joined, diagnostics = ", ".join(map(json_with_id, answers)), json.dumps(warnings)
    body = f'{{"diagnostics": {diagnostics}, "answers": [{joined}], "more": {json.dumps(more)}}}'
    return Response(body, media_type="application/json")


def _warnings(run: StandingRun, checked: Checked) -> list[Any]:
    """The warnings about a running query."""
    missing = query_files.missing_streams(checked, run.given_streams())
    return [finding.to_json() for finding in (*checked.diagnostics, *missing)]


async def change_query(request: Request) -> Response:
    """`PATCH /queries/NAME`."""
    state, name = state_of(request), _name(request)
    given = json_object(await text_of(request, state.max_body))
    if given.keys() != {"enabled"} or not isinstance(given["enabled"], bool):
        raise Refused(400, "the body says nothing to change", 'send {"enabled": false}')
    await to_thread.run_sync(state.files.enable, name, given["enabled"], who_asks(request))
    return await show_query(request)


async def list_versions(request: Request) -> Response:
    """`GET /queries/NAME/versions`."""
    state, name = state_of(request), _name(request)
    versions = await to_thread.run_sync(state.versions.of, name)
    if not versions:
        await _view(request)  # else there is no such query
    return JSONResponse(versions)


async def roll_back(request: Request) -> Response:
    """`POST /queries/NAME/rollback`."""
    state, name = state_of(request), _name(request)
    given = json_object(await text_of(request, state.max_body))
    version = given.get("version")
    if not isinstance(version, int) or isinstance(version, bool):
        raise Refused(400, "the body names no version", 'send {"version": 3}')
    text = await to_thread.run_sync(state.versions.text, name, version)
    if text is None:
        hint = f"GET /queries/{name}/versions lists them"
        raise Refused(404, f"query {name} has no version {version}", hint)
    put, who = state.files.put, who_asks(request)
    change, _ = await to_thread.run_sync(lambda: put(name, text, None, who, "rollback"))
    return JSONResponse({"changed": change != "unchanged", "text": text})


async def delete_query(request: Request) -> Response:
    """`DELETE /queries/NAME`."""
    state = state_of(request)
    await to_thread.run_sync(state.files.remove, _name(request), who_asks(request))
    return Response(status_code=204)


async def restart_query(request: Request) -> Response:
    """`POST /queries/NAME/restart`."""
    state, name = state_of(request), _name(request)
    await to_thread.run_sync(state.run.restart, name)
    text = (await _view(request)).text
    await to_thread.run_sync(state.audit.note, who_asks(request), "start", name, text, text)
    return JSONResponse({"restarted": True})


async def check_text(request: Request) -> Response:
    """`POST /check`: the findings about a query's text, which does not run."""
    state = state_of(request)
    text = await text_of(request, state.max_body)
    options = CompileOptions(file="query.rq", several=True)

    def response() -> Response:
        findings = check_query(text, "query", options).diagnostics
        return JSONResponse({"diagnostics": [finding.to_json() for finding in findings]})

    return await to_thread.run_sync(response)


async def get_answers(request: Request) -> Response | AnswerStream:
    """`GET /queries/NAME/answers`."""
    state, name = state_of(request), _name(request)
    is_there = await to_thread.run_sync(_is_there, state.run, name)
    after = request.query_params.get("after") or None
    if accepts(request, "text/event-stream"):
        after = request.headers.get("last-event-id") or after
        if after is None:
            after = await state.feed.last(name)
        else:
            await to_thread.run_sync(state.run.answers.read, name, after, 1)
        return AnswerStream(state.feed, name, after, is_there)
    if "last" in request.query_params:
        most = limit_of(request.query_params["last"])
        newest = await to_thread.run_sync(state.run.answers.newest, name, min(most, _AT_ONCE))
        text = "".join(f"{json_with_id(answer)}\n" for answer in newest)
        return Response(text, media_type="application/x-ndjson")
    limit = limit_of(request.query_params.get("limit"))
    first = await to_thread.run_sync(state.run.answers.read, name, after, min(limit, _AT_ONCE))

    async def lines() -> Any:
        answers, left = first, limit
        while answers:
            yield "".join(f"{json_with_id(answer)}\n" for answer in answers)
            left -= len(answers)
            if left <= 0:
                return
            answers = await to_thread.run_sync(
                state.run.answers.read, name, answers[-1].id, min(left, _AT_ONCE)
            )

    return StreamingResponse(lines(), media_type="application/x-ndjson")


async def used_knowledge(request: Request) -> Response:
    """`GET /queries/NAME/answers/ID/knowledge`."""
    state, view = state_of(request), await _view(request)
    async with state.asking:
        used = await to_thread.run_sync(state.used, view, str(request.path_params["id"]))
    return JSONResponse(used)


async def why_query(request: Request) -> Response:
    """`GET /queries/NAME/why[?event=IRI]`."""
    state, view = state_of(request), await _view(request)
    event = request.query_params.get("event")
    async with state.asking:
        report = await to_thread.run_sync(state.why, view, event)
    if accepts(request, "text/plain"):
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


def accepts(request: Request, media_type: str) -> bool:
    """Whether a request names a media type."""
    accepted = request.headers.get("accept", "").lower()
    return any(part.partition(";")[0].strip() == media_type for part in accepted.split(","))


def limit_of(text: str | None, usual: int = LIMIT) -> int:
    """The requested number of answers; Refused if it is invalid."""
    if text is None:
        return usual
    if _WHOLE_NUMBER.fullmatch(text) is None or not 1 <= int(text) <= _MOST:
        raise Refused(400, f"{text[:50]} is no number of answers", "say limit=100")
    return int(text)


def _since(text: str | None) -> int | None:
    """The time (ms) that `from` says."""
    if text is None:
        return None
    text = text.replace(" ", "+")  # an unescaped +
    ms = time_of(text)
    if ms is None:
        raise Refused(
            400,
            f"from={text[:50]} is no time",
            "say from=2026-01-31T08:00:00Z, or milliseconds since 1970",
        )
    return ms
