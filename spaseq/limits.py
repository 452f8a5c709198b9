"""Bounds on what one input, one event and one query may need."""

from __future__ import annotations

from dataclasses import fields

from spaseq.errors import UsageError
from spaseq.records import record


@record
class Limits:
    """Bounds that keep hostile input, or a query without end, from taking the whole machine.

    The defaults are far beyond what honest streams and queries need. Input that exceeds a bound
    is bad input: it goes to the side output with the reason, and the run goes on.

    Attributes:
        nesting: how deep triple terms, JSON-LD and RDF/XML may be nested.
        line_bytes: the length of a line of N-Quads and N-Triples.
        event_bytes: the bytes of an event, or of other input, until the next event begins.
        literal_bytes: the length of a literal, read or computed, in UTF-8.
        inflation: how many times as large as the file the unpacked bytes of a .gz may be.
        solutions: the intermediate solutions of a graph pattern for one event.
        timeout_s: the seconds that one query may spend on one event.

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
