"""The limit on waiting partial matches, which depends on the query and the instant alone.

After an instant, partial matches count that wait for another event and whose windows are open. A
set of partial matches that share their events counts once. Counting takes time, so it is done only
if there may be too many: evaluators report the number of new ones since the last count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from spaseq.algebra.answers import Answer, Instant
from spaseq.records import record

Member: TypeAlias = "str | None"
"""The term of a row of a family's table; None for a query by itself."""


@record
class Excess:
    """The first instant after which more partial matches waited than allowed, and their number."""

    instant: Instant
    count: int


@dataclass(slots=True)
class WaitingLimit:
    """The limit on the partial matches of a query that wait after an instant.

    Attributes:
        most: the limit.
        place: the position of a family's member in a partition's key; None if it has none.
        variable: the variable with the member in the first solution of a partial match, if
            partitions have no member; None if they do, and for a single query.
        room: number of new partial matches that surely keep the limit.
        exceeded: the members that have exceeded the limit.
    """

    most: int
    place: int | None = None
    room: int = 0
    exceeded: dict[Member, Excess] = field(default_factory=dict)
    variable: str | None = None

    def member(self, key: Sequence[str | None]) -> Member:
        """The member of a partition, if it has one."""
        return None if self.place is None else key[self.place]

    @property
    def is_over(self) -> bool:
        """Whether the single query has exceeded the limit."""
        return None in self.exceeded

    def until(self, time: int | None) -> int | None:
        """The time (ms) until which windows close; None: all of them do."""
        if not self.is_over:
            return time
        last = self.exceeded[None].instant[0] - 1
        return last if time is None else min(time, last)

    def before(self, answers: Sequence[Answer]) -> Sequence[Answer]:
        """The answers of a single query that ended before it exceeded the limit."""
        if not self.is_over:
            return answers
        end = self.exceeded[None].instant
        return [answer for answer in answers if answer.end < end]

    def learn(self, total: int, of_members: Callable[[], Mapping[Member, int]]) -> None:
        """Take the number of waiting ones, which gives new room."""
        self.room = self.most - total
        if self.room < 0 and (self.place is not None or self.variable is not None):
            self.room = self.most - max(self._counted(of_members()).values(), default=0)

    def check(
        self, instant: Instant, total: int, of_members: Callable[[], Mapping[Member, int]]
    ) -> list[Member]:
        """The members that exceed the limit now, given the numbers of waiting ones after an
        instant.
        """
        self.room = self.most - total
        if self.room >= 0:
            return []
        counts = self._counted(of_members())
        over = [member for member, count in counts.items() if count > self.most]
        self.exceeded.update((member, Excess(instant, counts.pop(member))) for member in over)
        self.room = self.most - max(counts.values(), default=0)
        return over

    def _counted(self, counts: Mapping[Member, int]) -> dict[Member, int]:
        return {member: n for member, n in counts.items() if member not in self.exceeded}
