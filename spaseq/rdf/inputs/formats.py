"""RDF formats: by name, by file extension, and by the media types of messages.

Also the lines that mark a log of RDF Messages; parts of files as messages; and messages with
headers: the envelope of a CloudEvent, and the context of JSON. Messages are logged without headers,
so these become a part of the message.
"""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode
from collections.abc import Mapping
from difflib import get_close_matches
from enum import Enum
from typing import Any
from urllib.parse import unquote

from spaseq.errors import InputError, UsageError
from spaseq.records import record

VERSION = 'VERSION "1.2-messages"\n'
"""The first line."""

MESSAGE_END = "MESSAGE\n"
"""A delimiter, which stands after each message."""

_PART = re.compile(r"(.*); line=([0-9]{1,18}); row=([0-9]{1,18})")

CSV, TSV, JSON_LINES = "text/csv", "text/tab-separated-values", "application/x-ndjson"
"""The media types of rows. A message of CSV or TSV begins with the header of its file."""

CLOUD_EVENT = "application/cloudevents+json"

_CONTEXT = re.compile(
    r"""<\s*([^<>\s]+)\s*>(?=[^<]*;\s*rel\s*=\s*"?http://www\.w3\.org/ns/json-ld\#context)"""
)
_JSON = re.compile(r"application/(?!ld\+)([\w.-]+\+)?json", re.IGNORECASE)


class Format(Enum):
    """RDF formats that spaseq reads; the value is the name in options."""

    NQUADS = "nquads"
    NTRIPLES = "ntriples"
    TRIG = "trig"
    TURTLE = "turtle"
    JSONLD = "jsonld"
    RDFXML = "rdfxml"
    RDFM = "rdfm"  # RDF Messages in N-Triples or N-Quads
    RDFM_TRIG = "rdfm-trig"  # RDF Messages in Turtle or TriG
    NDJSONLD = "ndjsonld"
    JELLY = "jelly"
    NGSILD = "ngsild"
    CLOUDEVENTS = "cloudevents"
    SOSA = "sosa"  # observations, in any of the document formats

    @property
    def has_graphs(self) -> bool:
        """Whether the format has named graphs: then each graph can be an event."""
        return self.is_messages or self in (Format.NQUADS, Format.TRIG, Format.JSONLD)

    @property
    def is_messages(self) -> bool:
        """Whether the format divides quads into messages."""
        return self in _MESSAGES


_IN_JSON = Format.NDJSONLD, Format.NGSILD, Format.CLOUDEVENTS
_MESSAGES = frozenset((Format.RDFM, Format.RDFM_TRIG, Format.JELLY, Format.SOSA, *_IN_JSON))

EXTENSIONS: dict[str, Format] = {
    ".nq": Format.NQUADS,
    ".nquads": Format.NQUADS,
    ".nt": Format.NTRIPLES,
    ".ntriples": Format.NTRIPLES,
    ".trig": Format.TRIG,
    ".ttl": Format.TURTLE,
    ".turtle": Format.TURTLE,
    ".jsonld": Format.JSONLD,
    ".json": Format.JSONLD,
    ".rdf": Format.RDFXML,
    ".xml": Format.RDFXML,
    ".rdfm": Format.RDFM,
    ".ndjsonld": Format.NDJSONLD,
    ".jelly": Format.JELLY,
    ".ngsild": Format.NGSILD,
    ".cloudevents": Format.CLOUDEVENTS,
    ".sosa": Format.SOSA,
}

AS_MESSAGES = {
    Format.NQUADS: Format.RDFM,
    Format.NTRIPLES: Format.RDFM,
    Format.TRIG: Format.RDFM_TRIG,
    Format.TURTLE: Format.RDFM_TRIG,
}
"""The formats of files that announce messages, by the format of the file's name."""

_ANNOUNCEMENT = re.compile(
    rb"""(?:^(?:\xef\xbb\xbf)?|\n)\s*@?version\s+["'][\w.-]*-messages["']""", re.IGNORECASE
)


def announces_messages(head: bytes) -> bool:
    """Whether the begin of a document announces RDF Messages by its version.

    >>> announces_messages(b'PREFIX : <http://e/>\\nVERSION "1.2-messages"')
    True
    """
    return _ANNOUNCEMENT.search(head) is not None


def format_of(path: str) -> Format | None:
    """The format by file extension, below a `.gz` if there is one; None if it is unknown.

    >>> format_of("a.nq.gz").value, format_of("a.sosa.ttl").value
    ('nquads', 'sosa')
    """
    name, extension = os.path.splitext(path.removesuffix(".gz").lower())
    form = EXTENSIONS.get(extension)
    is_sosa = form is not None and name.endswith(".sosa") and os.path.basename(name) != ".sosa"
    return Format.SOSA if is_sosa else form


def format_named(name: str) -> Format:
    """The format with this name or extension; otherwise InputError with the nearest name."""
    known = {f.value: f for f in Format} | {e[1:]: f for e, f in EXTENSIONS.items()}
    if (form := known.get(name.lower().lstrip("."))) is not None:
        return form
    raise InputError(
        f"unknown format {name!r}{_nearest(name, known)}; formats are {', '.join(sorted(known))}"
    )


def _nearest(name: str, known: dict[str, Format]) -> str:
    close = get_close_matches(name.lower(), known, n=1)
    return f", did you mean {close[0]!r}?" if close else ""


@record
class PartOfFile:
    """The part of a file that a message has.

    Attributes:
        format: the media type of the file.
        line: the number of the first line, from 1, in formats of lines.
        row: the number of the first row, from 1, in formats of rows.
    """

    format: str
    line: int = 1
    row: int = 1

    @property
    def media_type(self) -> str:
        """The media type of the message."""
        return f"{self.format}; line={self.line}; row={self.row}"


def part_of_file(media_type: str) -> PartOfFile | None:
    """The inverse of `PartOfFile.media_type`; None for a message that is no part of a file."""
    match = _PART.fullmatch(media_type)
    return None if match is None else PartOfFile(match[1], int(match[2]), int(match[3]))


MEDIA_TYPES = {
    "": Format.NQUADS,
    "application/n-quads": Format.NQUADS,
    "text/plain": Format.NQUADS,
    "application/n-triples": Format.NTRIPLES,
    "application/trig": Format.TRIG,
    "text/turtle": Format.TURTLE,
    "application/ld+json": Format.JSONLD,
    "application/json": Format.JSONLD,
    "application/x-ld+ndjson": Format.NDJSONLD,
    "application/x-jelly-rdf": Format.JELLY,
    "application/rdf+xml": Format.RDFXML,
    "application/cloudevents+json": Format.CLOUDEVENTS,
    "application/cloudevents-batch+json": Format.CLOUDEVENTS,
}
"""The formats of messages, by media type without parameters."""

LOG_TYPES = {
    "application/n-triples": Format.RDFM,
    "application/n-quads": Format.RDFM,
    "text/turtle": Format.RDFM_TRIG,
    "application/trig": Format.RDFM_TRIG,
}
"""The formats of messages whose media type has a version that ends in `-messages`."""

_LOG = re.compile(r""";\s*version\s*=\s*"?[\w.-]*-messages\b""", re.IGNORECASE)


def format_of_media(media_type: str) -> Format | None:
    """The format of a message with a media type; None if it is unknown.

    >>> format_of_media("text/turtle; charset=utf-8").value
    'turtle'
    """
    name, _, parameters = media_type.partition(";")
    name = name.strip().lower()
    if parameters and name in LOG_TYPES and _LOG.search(media_type):
        return LOG_TYPES[name]
    return MEDIA_TYPES.get(name)


def message_format(text: str) -> Format:
    """The format of a name, an extension or a media type.

    Raises:
        UsageError: there is none.

    >>> message_format("json") is message_format("application/ld+json")
    True
    """
    form = format_of_media(text) if text else None
    if form is not None:
        return form
    try:
        return format_named(text)
    except InputError as error:
        raise UsageError(str(error)) from None


def with_headers(
    headers: Mapping[str, str], media_type: str, body: bytes, *, encoded: bool = True
) -> tuple[str, bytes]:
    """The media type and the body of a message, with its headers included in the body.

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
