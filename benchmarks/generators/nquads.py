"""Writing events as N-Quads text.

Terms are written in the canonical form of N-Quads. Therefore a term has the same text in a stream
and in an answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from enum import Enum
from functools import lru_cache
from typing import TypeAlias

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
GENERATED_AT = "<http://www.w3.org/ns/prov#generatedAtTime>"
OBSERVATION = "<http://www.w3.org/ns/sosa/Observation>"
MADE_BY = "<http://www.w3.org/ns/sosa/madeBySensor>"

Triple: TypeAlias = tuple[str, str, str]
"""Subject, predicate and object as N-Quads terms."""


class Stamp(Enum):
    """Where an event's timestamp stands (docs/lookup.md#formats)."""

    BEFORE = "in the default graph, before the event's quads"
    AFTER = "in the default graph, after the event's quads"
    INSIDE = "inside the event's graph"


def integer(value: int) -> str:
    """An `xsd:integer` literal."""
    return f'"{value}"^^<{XSD}integer>'


def double(lexical: str) -> str:
    """An `xsd:double` literal with this lexical form."""
    return f'"{lexical}"^^<{XSD}double>'


def decimal(lexical: str) -> str:
    """An `xsd:decimal` literal with this lexical form."""
    return f'"{lexical}"^^<{XSD}decimal>'


def hundredths(value: int) -> str:
    """A non-negative number of hundredths as a lexical form with two fraction digits."""
    return f"{value // 100}.{value % 100:02d}"


def tenths(value: int) -> str:
    """A non-negative number of tenths as a lexical form with one fraction digit."""
    return f"{value // 10}.{value % 10}"


def milliseconds(text: str) -> int:
    """Milliseconds since the epoch of an ISO 8601 time in UTC, such as `2024-03-01T06:00:00`."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 1000


@lru_cache(maxsize=1024)
def _minute(minutes: int) -> str:
    return datetime.fromtimestamp(minutes * 60, UTC).strftime("%Y-%m-%dT%H:%M")


def date_time(time_ms: int) -> str:
    """An `xsd:dateTime` literal in UTC; milliseconds are written if there are any."""
    minutes, rest = divmod(time_ms, 60_000)
    seconds, ms = divmod(rest, 1000)
    fraction = f".{ms:03d}" if ms else ""
    return f'"{_minute(minutes)}:{seconds:02d}{fraction}Z"^^<{XSD}dateTime>'


def event(graph: str, time_ms: int, triples: Iterable[Triple], stamp: Stamp) -> str:
    """The lines of one event: its quads in `graph` (an IRI in brackets) and its timestamp."""
    quads = "".join([f"{s} {p} {o} {graph} .\n" for s, p, o in triples])
    time = f"{graph} {GENERATED_AT} {date_time(time_ms)}"
    match stamp:
        case Stamp.BEFORE:
            return f"{time} .\n{quads}"
        case Stamp.AFTER:
            return f"{quads}{time} .\n"
        case Stamp.INSIDE:
            return f"{quads}{time} {graph} .\n"


def trig(graph: str, text: str) -> str:
    """An event's lines as TriG: its graph as one block, its other triples as they are."""
    end = f" <{graph}> .\n"
    lines = text.splitlines(keepends=True)
    inside = [f"  {line.removesuffix(end)} .\n" for line in lines if line.endswith(end)]
    outside = [line for line in lines if not line.endswith(end)]
    return f"<{graph}> {{\n{''.join(inside)}}}\n{''.join(outside)}"
