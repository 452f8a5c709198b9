"""What headers say of a message: the envelope of a CloudEvent, and the context of JSON.

Messages are logged without headers, so what these say becomes a part of the message.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

CLOUD_EVENT = "application/cloudevents+json"

_CONTEXT = re.compile(
    r"""<\s*([^<>\s]+)\s*>(?=[^<]*;\s*rel\s*=\s*"?http://www\.w3\.org/ns/json-ld\#context)"""
)
_JSON = re.compile(r"application/(?!ld\+)([\w.-]+\+)?json", re.IGNORECASE)


def with_headers(
    headers: Mapping[str, str], media_type: str, body: bytes, *, encoded: bool = True
) -> tuple[str, bytes]:
    """The media type and the body of a message in which is what its headers say.

    Args:
        headers: by name in lower case.
        media_type: of the body.
        body: the payload.
        encoded: whether the values of a CloudEvent's headers are percent-encoded, as in HTTP.

    >>> headers = {"ce-specversion": "1.0", "ce-id": "7", "ce-source": "/s", "ce-type": "t"}
    >>> media_type, body = with_headers(headers, "application/json", b"[1]")
    >>> media_type, json.loads(body)["data"]
    ('application/cloudevents+json', [1])
    """
    envelope = {
        name[3:]: unquote(value) if encoded else value
        for name, value in headers.items()
        if name[:3] in ("ce-", "ce_")
    }
    if "specversion" in envelope:
        return CLOUD_EVENT, cloud_event(envelope, media_type, body)
    return media_type, _with_context(headers.get("link", ""), media_type, body)


def cloud_event(envelope: Mapping[str, str], media_type: str, body: bytes) -> bytes:
    """A CloudEvent in structured mode, from one in binary mode."""
    event: dict[str, Any] = dict(envelope)
    if media_type:
        event["datacontenttype"] = media_type
    if body and (not media_type or "json" in media_type.lower()):
        try:
            event["data"] = json.loads(body)
        except (ValueError, RecursionError):
            event["data_base64"] = b64encode(body).decode("ascii")
    elif body:
        event["data_base64"] = b64encode(body).decode("ascii")
    return json.dumps(event).encode()


def _with_context(link: str, media_type: str, body: bytes) -> bytes:
    """JSON with the context that a Link header names; other text as it is."""
    match = _CONTEXT.search(link) if link else None
    text = body.lstrip()
    is_json = _JSON.match(media_type) is not None
    if match is None or not is_json or text[:1] != b"{" or b'"@context"' in body:
        return body
    rest = text[1:].lstrip()
    comma = b"" if rest[:1] == b"}" else b", "
    return b'{"@context": ' + json.dumps(match[1]).encode() + comma + rest
