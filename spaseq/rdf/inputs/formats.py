"""RDF formats, by name and by file extension, and the lines that mark a log of RDF Messages."""

from __future__ import annotations

import re
from difflib import get_close_matches
from enum import Enum
from pathlib import Path

from spaseq.errors import InputError

VERSION = 'VERSION "1.2-messages"\n'
"""The first line."""

MESSAGE_END = "MESSAGE\n"
"""A delimiter, which stands after each message."""


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
"""The formats that a file is in if it announces messages, by the format that its name says."""

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
    name = Path(path.removesuffix(".gz").lower())
    form = EXTENSIONS.get(name.suffix)
    is_sosa = form is not None and Path(name.stem).suffix == ".sosa"
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
