"""Requests: their parameters; their bodies, limited in size and time; and refusals: status, error
and hint.
"""

from __future__ import annotations

import asyncio
import json
import re
import zlib
from collections.abc import Collection, Mapping
from http import HTTPStatus
from typing import Any

from anyio import to_thread
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from spaseq.errors import QueryError, RunError, SpaseqError
from spaseq.lang.spelling import suggested
from spaseq.message_text import visible
from spaseq.runtime.live.answer_log import AnswerGone
from spaseq.runtime.live.graph_changes import GraphGone
from spaseq.runtime.live.log_points import HistoryGone
from spaseq.runtime.live.standing_run import UnknownQuery

_HINTS = {
    404: "GET /queries and GET /streams list the names",
    405: "see the table of requests in docs/serve.md",
}

BODY_S = 30.0
"""Seconds for a body, besides the time for its size at the slowest rate."""

_SLOWEST = 16 * 1024  # bytes per second

_PACKINGS = ("gzip", "x-gzip", "deflate")
"""The values of Content-Encoding that are unpacked."""

_ANY_HEADER = 32  # zlib: the header tells whether the data is a gzip


class Refused(Exception):
    """A request that the server does not serve.

    Args:
        status: of the response.
        error: the error.
        hint: the remedy.
        headers: further headers of the response.
        more: further members of the JSON object.
    """

    def __init__(
        self,
        status: int,
        error: str,
        hint: str = "",
        headers: Mapping[str, str] | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(error)
        self.status, self.error, self.hint = status, error, hint
        self.headers, self.more = dict(headers or {}), dict(more or {})

    def response(self) -> JSONResponse:
        """The refusal as a response."""
        body = {"error": self.error, "hint": self.hint, **self.more}
        return JSONResponse(body, self.status, self.headers)


def refusal_of(error: SpaseqError) -> Refused:
    """The response to an error of the run."""
    if isinstance(error, QueryError):
        findings = [finding.to_json() for finding in error.diagnostics]
        first = error.diagnostics[0].message if error.diagnostics else "the query has errors"
        hint = "each of the diagnostics has its place in the query"
        return Refused(400, first, hint, more={"diagnostics": findings})
    if isinstance(error, UnknownQuery):
        return Refused(404, str(error), _HINTS[404])
    if isinstance(error, AnswerGone | HistoryGone | GraphGone):
        return Refused(410, str(error), "ask for less, or raise retain in the configuration")
    if isinstance(error, RunError):
        return Refused(503, str(error), "GET /health says more", {"Retry-After": "5"})
    return Refused(409, str(error), "")


async def on_refused(request: Request, error: Exception) -> Response:
    """Starlette's handler of `Refused`."""
    assert isinstance(error, Refused)
    return error.response()


async def on_error(request: Request, error: Exception) -> Response:
    """Starlette's handler of the errors of this package."""
    assert isinstance(error, SpaseqError)
    return refusal_of(error).response()


async def on_http(request: Request, error: Exception) -> Response:
    """Starlette's handler of its refusals: no such path, or no such method."""
    assert isinstance(error, HTTPException)
    text = error.detail or HTTPStatus(error.status_code).phrase
    hint = _HINTS.get(error.status_code, "")
    return Refused(error.status_code, text, hint, error.headers).response()


async def on_fault(request: Request, error: Exception) -> Response:
    """Starlette's handler of a fault of the server, which is also in its log."""
    hint = "the server's log says more"
    return Refused(500, f"a fault of the server: {type(error).__name__}", hint).response()


def check_parameters(request: Request, known: Collection[str]) -> None:
    """Refused if the URL of a request has a parameter that is not known."""
    for name in request.query_params.keys() - known:
        like = suggested(name, known)
        hint = f"did you mean {like}?" if like else f"known: {', '.join(known) or 'none'}"
        raise Refused(400, f"there is no parameter {visible(name[:100])} here", hint)


async def body_of(request: Request, most: int) -> bytes:
    """The body of a request, unpacked; a text in UTF-8.

    Raises:
        Refused: it is larger than `most` bytes, packed or unpacked, comes too slowly, cannot be
            unpacked, or is no text in the character set that its Content-Type names.
    """
    return _as_utf8(await _whole_body(request, most), request.headers.get("content-type", ""))


def _as_utf8(body: bytes, content_type: str) -> bytes:
    named = _CHARSET.search(content_type)
    charset = "utf-8" if named is None else named[1].lower()
    if charset in ("utf-8", "utf8", "us-ascii"):
        return body
    hint = "send the body in UTF-8"
    if charset not in _CHARSETS:
        raise Refused(415, f"charset {visible(charset[:100])} is not known", hint)
    try:
        return body.decode(charset).encode()
    except UnicodeDecodeError as error:
        raise Refused(400, f"the body is no {charset}: {error.reason}", hint) from None


_CHARSET = re.compile(r';\s*charset\s*=\s*"?([^\s";]+)', re.IGNORECASE)
_CHARSETS = ("iso-8859-1", "windows-1252", "utf-16", "utf-16le", "utf-16be")


async def _whole_body(request: Request, most: int) -> bytes:
    packing = request.headers.get("content-encoding", "").strip().lower()
    if packing in ("", "identity"):
        return await _sent(request, most)
    if packing not in _PACKINGS:
        raise Refused(
            415,
            f"Content-Encoding {visible(packing[:100])} is not known",
            f"send the body as it is, or packed as {_PACKINGS[0]}",
            {"Accept-Encoding": ", ".join(_PACKINGS)},
        )
    return await to_thread.run_sync(_unpacked, await _sent(request, most), most)


def _unpacked(packed: bytes, most: int) -> bytes:
    """The data in a gzip, which may have several members, or in a zlib stream."""
    parts, left = [], most + 1
    try:
        while packed:
            member = zlib.decompressobj(zlib.MAX_WBITS | _ANY_HEADER)
            parts.append(member.decompress(packed, left))
            left -= len(parts[-1])
            if not left:
                raise _too_large(most)
            if not member.eof:
                raise zlib.error("it ends early")
            packed = member.unused_data
    except zlib.error as error:
        raise Refused(400, f"the body cannot be unpacked: {error}", "nothing has changed") from None
    return b"".join(parts)


async def _sent(request: Request, most: int) -> bytes:
    """The body of a request as it was sent."""
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > most:
        raise _too_large(most)
    parts, size = [], 0
    loop = asyncio.get_running_loop()
    began = loop.time()
    try:
        async with asyncio.timeout_at(began + BODY_S) as limit:
            async for part in request.stream():
                parts.append(part)
                size += len(part)
                if size > most:
                    raise _too_large(most)
                limit.reschedule(began + BODY_S + size / _SLOWEST)
    except TimeoutError:
        raise Refused(
            408, "the body comes too slowly", "send it at once", {"Connection": "close"}
        ) from None
    except ClientDisconnect:
        raise Refused(400, "the body ends early", "send all of it") from None
    return b"".join(parts)


async def text_of(request: Request, most: int) -> str:
    """The body of a request as text; Refused as from `body_of`, or if it is no UTF-8."""
    try:
        return (await body_of(request, most)).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Refused(400, f"the text is no UTF-8: {error.reason}", "send it as UTF-8") from None


def _too_large(most: int) -> Refused:
    return Refused(
        413,
        f"the body has more than {most:,} bytes",
        "send it in parts, or raise max_body in the table [server] of the configuration",
        {"Connection": "close"},
    )


def json_object(text: str) -> dict[str, Any]:
    """The JSON object in a body, which may be empty; Refused if it is none."""
    try:
        given = json.loads(text or "{}")
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise Refused(400, "the body is no JSON object", "")
    return given
