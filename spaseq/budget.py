"""Budgets: how much of a run's limits the evaluation of a query may still use.

Operators and functions far apart share one budget, so it is a context variable, no argument.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from typing import NoReturn

from spaseq.compiled.mode import compilation_listeners
from spaseq.limits import DEFAULT_LIMITS, Limits

BATCH_ROWS = 2_000_000
"""Maximum number of solutions of an operator on a batch, if the limit for one event is lower."""

BATCH_ROWS_PER_EVENT = 4
"""Number of solutions that a batch may always have per event."""

TEXTS = 8
"""Total length of the literals that one evaluation computes, as a multiple of the longest."""

FEW = 8
"""Number of texts that are joined before their length is checked."""

LARGE = 2**20
"""A longer computed literal counts when it is made; shorter ones are counted together."""

OUT_OF_MEMORY = "there is not enough memory for it"

LEAST_SECONDS = 0.01
"""Minimum time for a function with its own clock."""


class LimitExceeded(Exception):
    """An evaluation needs more than a limit allows.

    `reason` says which limit, for the report of the event. If the evaluation is `shared`, it does
    not depend on the event: a smaller batch needs as much.
    """

    def __init__(self, reason: str, shared: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.shared = reason, shared


def _raise(reason: str) -> NoReturn:
    raise LimitExceeded(reason)


class Budget:
    """The budget of one evaluation, for one event or a batch of them.

    Attributes:
        limits: the limits of the run.
        rows: maximum number of solutions of one operator, for all events together.
    """

    __slots__ = (
        "_deadline",
        "_exceed",
        "_for_one",
        "_patience",
        "_short",
        "_texts",
        "limits",
        "rows",
    )

    def __init__(
        self,
        limits: Limits = DEFAULT_LIMITS,
        rows: int | None = None,
        seconds: float | None = None,
        exceed: Callable[[str], NoReturn] = _raise,
    ) -> None:
        """A budget for one event, unless the arguments say otherwise.

        Args:
            limits: the limits of the run.
            rows: maximum number of solutions of an operator; by default the limit for one event.
            seconds: time from now until `check` fails; None: no limit.
            exceed: called with the reason when a limit is exceeded; it raises an error.
        """
        self.limits = limits
        self.rows = self._for_one = limits.solutions if rows is None else rows
        self._deadline = None if seconds is None else time.monotonic() + seconds
        self._texts = math.inf if seconds is None else TEXTS * limits.literal_bytes
        self._exceed = exceed
        self._patience = limits.timeout_s
        self._short = min(limits.literal_bytes // 4, LARGE)

    @classmethod
    def of_events(cls, limits: Limits, events: int) -> Budget:
        """The budget of a graph pattern on a number of events, whose time starts now."""
        rows = limits.solutions
        if events > 1:
            rows = max(rows, BATCH_ROWS, BATCH_ROWS_PER_EVENT * events)
        budget = cls(limits, rows, limits.timeout_s)
        budget._for_one = limits.solutions
        return budget

    def of_one_event(self) -> Budget:
        """This budget with the row limit of one event, for rows that are not counted by event."""
        budget = copy(self)
        budget.rows = self.limits.solutions
        return budget

    def spend(self, rows: int) -> None:
        """Reserve room for an intermediate result of `rows` solutions, before it is made."""
        if rows > self.rows:
            self.too_many()

    def too_many(self) -> NoReturn:
        """An event has more solutions than `limits.solutions`, or the batch more than `rows`."""
        self._exceed(
            f"a graph pattern has more than {self._for_one:,} intermediate solutions "
            "(--max-solutions)"
        )

    def check(self) -> None:
        """Fail if the time is over. Long loops call this regularly."""
        if self._deadline is not None and time.monotonic() > self._deadline:
            self.out_of_time()

    def out_of_time(self) -> NoReturn:
        """The evaluation takes longer than `limits.timeout_s`; the next one gets half the time."""
        self._patience /= 2
        self._exceed(f"its evaluation takes longer than {self.limits.timeout_s:g} s (--timeout)")

    def remaining(self) -> float:
        """The seconds that a function with its own clock may take."""
        if self._deadline is None:
            return max(LEAST_SECONDS, self._patience)
        return max(LEAST_SECONDS, self._deadline - time.monotonic())

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Time spent in this block, waiting for another process, does not count."""
        start = time.monotonic()
        try:
            yield
        finally:
            self.extend(time.monotonic() - start)

    def extend(self, seconds: float) -> None:
        """Move the end of the time."""
        if self._deadline is not None:
            self._deadline += seconds

    def literal(self, characters: int) -> None:
        """Reserve room for one computed literal, before it is made."""
        if characters > self.limits.literal_bytes:
            self._exceed(
                f"a computed literal has more than {self.limits.literal_bytes:,} bytes "
                "(--max-literal)"
            )

    def text(self, text: str) -> str:
        """The text of a computed literal; fails if its UTF-8 is too long."""
        most = self.limits.literal_bytes
        if 4 * len(text) > most:
            self.literal(len(text))
            self.literal(len(text.encode(errors="surrogatepass")))
        if len(text) > LARGE:
            self.texts(len(text))
        return text

    def joined(self, texts: Sequence[str], separator: str = "") -> str:
        """Join texts to a computed literal; fails if it is too long."""
        if len(texts) > FEW:
            self.literal(sum(map(len, texts)) + len(separator) * (len(texts) - 1))
        text = separator.join(texts)
        return text if len(text) <= self._short else self.text(text)

    def texts(self, characters: int) -> None:
        """Count the characters of computed literals that stay in memory, if the time is limited."""
        self._texts -= characters
        if self._texts < 0:
            self._exceed(
                f"its computed literals have more than {TEXTS * self.limits.literal_bytes:,} bytes "
                f"together, {TEXTS} times the limit of --max-literal"
            )


_ACTIVE: ContextVar[Budget] = ContextVar("spaseq_budget", default=Budget())  # noqa: B039  it counts nothing

current_budget = _ACTIVE.get
"""The budget of the current evaluation; outside of one, a budget without a deadline."""

compilation_listeners.append(lambda seconds: current_budget().extend(seconds))


@contextmanager
def spending(budget: Budget) -> Iterator[Budget]:
    """Evaluate the block with a budget."""
    token = _ACTIVE.set(budget)
    try:
        yield budget
    finally:
        _ACTIVE.reset(token)
