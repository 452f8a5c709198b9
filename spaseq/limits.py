"""Limits of one input, one event and one query."""

from __future__ import annotations

from dataclasses import fields

from spaseq.errors import UsageError
from spaseq.records import record


@record
class Limits:
    """Bounds that protect the machine from hostile input and endless queries.

    The defaults are far beyond what honest streams and queries need. Input that exceeds a bound
    is bad input: it goes to the side output with the reason, and the run goes on.

    Attributes:
        nesting: maximum depth of triple terms, JSON-LD and RDF/XML.
        line_bytes: maximum length of a line of N-Quads or N-Triples.
        event_bytes: maximum bytes of an event, or of input between two events.
        literal_bytes: maximum UTF-8 length of a literal, read or computed.
        inflation: maximum ratio of the unpacked bytes of a .gz to its size.
        solutions: maximum number of intermediate solutions of a graph pattern for one event.
        timeout_s: maximum seconds that one query spends on one event.

    Raises:
        UsageError: a bound is not positive.
    """

    nesting: int = 200
    line_bytes: int = 32 * 2**20
    event_bytes: int = 64 * 2**20
    literal_bytes: int = 16 * 2**20
    inflation: int = 500
    solutions: int = 1_000_000
    timeout_s: float = 60.0

    def __post_init__(self) -> None:
        for bound in fields(self):
            value = getattr(self, bound.name)
            if value <= 0:
                raise UsageError(f"the limit {bound.name} is {value}; it must be positive")


DEFAULT_LIMITS = Limits()
