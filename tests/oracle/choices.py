"""The choices of a generated example, from a seed, a record to replay, or Hypothesis.

A list of small numbers determines an example. Bulk runs draw the numbers uniformly from a seeded
generator: Hypothesis would spend more than half of a run on mutations of earlier queries. To shrink
a failing example, the list is made shorter, then its numbers smaller, and the example is rebuilt.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import TypeVar

T = TypeVar("T")


class Choices:
    """Makes choices; `index(n)` gives a number below n. Simpler options come first."""

    def __init__(self, index: Callable[[int], int]) -> None:
        self._index = index
        self.made: list[int] = []

    def pick(self, options: Iterable[T]) -> T:
        all_options = list(options)
        index = self._index(len(all_options))
        self.made.append(index)
        return all_options[index]

    def chance(self, one_in: int) -> bool:
        """True with probability 1 / `one_in`."""
        return self.pick(range(one_in)) == one_in - 1

    def some(self, options: Iterable[T], most: int) -> list[T]:
        """Up to `most` different options, in any order."""
        left = list(options)
        picked = []
        for _ in range(self.pick(range(min(most, len(left)) + 1))):
            picked.append(self.pick(left))
            left.remove(picked[-1])
        return picked


def seeded(seed: object) -> Choices:
    """Uniform choices; equal seeds give equal choices."""
    return Choices(Random(str(seed)).randrange)


def replayed(made: list[int]) -> Choices:
    """The recorded choices where possible, and the first option after the record ends."""
    rest = iter(made)
    return Choices(lambda n: min(next(rest, 0), n - 1))


def shrink(made: list[int], fails: Callable[[list[int]], bool], seconds: float = 60) -> list[int]:
    """A shorter, then smaller list of choices whose example still fails."""
    end = time.monotonic() + seconds
    improved = True
    while improved and time.monotonic() < end:
        improved = False
        for candidate in _simpler(made):
            if time.monotonic() > end:
                break
            if fails(candidate):
                made, improved = candidate, True
                break
    return made


def _simpler(made: list[int]) -> Iterator[list[int]]:
    size = len(made) // 2
    while size:
        for start in range(len(made) - size, -1, -max(1, size // 2)):
            yield made[:start] + made[start + size :]
            if any(made[start : start + size]):
                yield made[:start] + [0] * size + made[start + size :]
        size //= 2
    for i, value in enumerate(made):
        if value:
            yield [*made[:i], 0, *made[i + 1 :]]
            yield [*made[:i], value - 1, *made[i + 1 :]]
