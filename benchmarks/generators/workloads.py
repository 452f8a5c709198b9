"""The three shapes of work that end-to-end figures are given for.

Most events are of no use to a query, or every event is but few matches end, or many matches end.
Values are few integers (*low* cardinality), or doubles that nearly all differ (*high*).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from . import synthetic
from .case import Case, Dice, Generated

QUERIES = Path(__file__).parents[1] / "queries" / "synthetic"
CARDINALITIES = {"low": 1000, "high": 10_000_000}
"""Number of different values of a stream."""


@dataclass(frozen=True)
class Workload:
    """A stream, and a query over it."""

    name: str
    query: Path
    settings: synthetic.Settings
    keys: int

    def case(self, cardinality: str) -> Case:
        """What generates the stream."""
        return synthetic.case(replace(self.settings, values=CARDINALITIES[cardinality]))

    def events(self, cardinality: str) -> Iterator[Generated]:
        """The stream, without end."""
        return self.case(cardinality).events(Dice(1), self.keys)


WORKLOADS = {
    workload.name: workload
    for workload in (
        # 9.5 % of the events have a solution
        Workload(
            "selective", QUERIES / "sequence.rq", synthetic.Settings(selectivity=0.045), keys=100
        ),
        # every event has two solutions, and few matches end
        Workload("matching", QUERIES / "matching.rq", synthetic.Settings(triples=3), keys=1000),
        # every event has a solution, and 15 % end a match
        Workload(
            "answering", QUERIES / "every.rq", synthetic.Settings(selectivity=0.3333333), keys=100
        ),
    )
}
