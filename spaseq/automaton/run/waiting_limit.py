"""The limit on partial matches that wait, which depends on the query and the instant alone.

After an instant those partial matches count that wait for another event, and whose windows are
open. A set of partial matches that share their events counts once. To count takes time, so it is
done only if there may be too many: evaluators say how many they have made since the last count.
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
    """The first instant after which more partial matches waited than may, and how many."""

    instant: Instant
    count: int


@dataclass(slots=True)
class WaitingLimit:
    """How many partial matches of a query may wait after an instant.

    Attributes:
        most: the limit.
        place: where a partition's key has the member of a family; None if it has none.
        variable: what names the member in the first solution of a partial match, if partitions do
            not; None if they do, and for a query by itself.
        room: surely no more than `most` wait until this many more have been made.
        exceeded: the members that have exceeded the limit.
    """

    most: int
    place: int | None = None
    room: int = 0
    exceeded: dict[Member, Excess] = field(default_factory=dict)
    variable: str | None = None

    def member(self, key: Sequence[str | None]) -> Member:
        """The member that a partition is of, if it is of one."""
        return None if self.place is None else key[self.place]

    @property
    def is_over(self) -> bool:
        """Whether the query by itself has exceeded the limit."""
        return None in self.exceeded

    def until(self, time: int | None) -> int | None:
        """The time (ms) until which windows close; None: all of them do."""
        if not self.is_over:
            return time
        last = self.exceeded[None].instant[0] - 1
        return last if time is None else min(time, last)

    def before(self, answers: Sequence[Answer]) -> Sequence[Answer]:
        """The answers of a query by itself that ended before it exceeded the limit."""
        if not self.is_over:
            return answers
        end = self.exceeded[None].instant
        return [answer for answer in answers if answer.end < end]

    def learn(self, total: int, of_members: Callable[[], Mapping[Member, int]]) -> None:
        """Learn how many wait, which gives new room."""
        self.room = self.most - total
        if self.room < 0 and (self.place is not None or self.variable is not None):
            self.room = self.most - max(self._counted(of_members()).values(), default=0)

    def check(
        self, instant: Instant, total: int, of_members: Callable[[], Mapping[Member, int]]
    ) -> list[Member]:
        """The members that exceed the limit now, given how many wait after an instant."""
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
