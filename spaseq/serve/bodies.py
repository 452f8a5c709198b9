"""Bodies of requests, bounded in size and in time."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from starlette.requests import ClientDisconnect, Request

from spaseq.serve.refusals import Refused

BODY_S = 30.0
"""How long a body may take, besides what its size takes at the slowest rate."""

_SLOWEST = 16 * 1024  # bytes per second


async def body_of(request: Request, most: int) -> bytes:
    """The body of a request.

    Raises:
        Refused: it is larger than `most` bytes, or comes too slowly.
    """
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
        return (await body_of(request, most)).decode("utf-8")
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
