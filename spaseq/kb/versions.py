"""Versions of a graph that replace it at a time: named graphs of the knowledge base beside it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from spaseq.errors import UsageError
from spaseq.options import KbChanges, KbInput
from spaseq.rdf.terms.times import parse_datetime

if TYPE_CHECKING:
    from spaseq.kb.knowledge import KnowledgeBase

_VERSION = "urn:spaseq:version:"


def version_name(time: int, iri: str) -> str:
    """The name of the version of a graph from a time (ms) on."""
    return f"{_VERSION}{time}:{iri}"


def versions_given(changes: KbChanges) -> list[tuple[str, KbInput]]:
    """(name, source) of each version; at equal times the last one counts.

    Raises:
        UsageError: a time is invalid.
    """
    sources: dict[str, KbInput] = {}
    for iri, versions in changes.items():
        for time, source in versions:
            sources[version_name(_milliseconds(iri, time), iri)] = source
    return [*sources.items()]


def _milliseconds(iri: str, time: int | str | datetime) -> int:
    if isinstance(time, datetime):
        return int(time.replace(tzinfo=time.tzinfo or UTC).timestamp() * 1000)
    if isinstance(time, int):
        return time
    text = time.removeprefix("-")
    time_ms = int(time) if text.isascii() and text.isdigit() else parse_datetime(time)
    if time_ms is None:
        raise UsageError(
            f"<{iri}> cannot change at {time!r}: a time is an xsd:dateTime such as "
            "2026-01-31T10:00:00Z, or milliseconds since 1970"
        )
    return time_ms


def versions_of(knowledge: KnowledgeBase, iri: str) -> Iterator[tuple[int, str]]:
    """(time in ms, name) of each version of a graph."""
    for name in knowledge.graphs:
        if name.startswith(_VERSION):
            time, _, graph = name.removeprefix(_VERSION).partition(":")
            if graph == iri:
                yield int(time), name
