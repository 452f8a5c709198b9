"""Forced thresholds: least, never reached, or at random; and a note of which ones a run crosses.

Some words say which: `least`, `never`, `random:SEED`, or `NAME=VALUE`, where the value may also be
`least` or `never`. Later words go before earlier ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from random import Random
from typing import Any

from spaseq.errors import UsageError
from spaseq.thresholds import ENTRIES, Thresholds

CROSSED = "SPASEQ_THRESHOLDS_CROSSED"
"""Names the file to which each process appends the thresholds that it crosses, by name."""


def forced(words: str, usual: Thresholds = Thresholds()) -> Thresholds:
    """The thresholds that some words stand for; all others are as usual.

    Raises:
        UsageError: a word stands for nothing.

    >>> forced("least few_matches=7").few_matches
    7
    """
    values = {name: int(getattr(usual, name)) for name in ENTRIES}
    for word in words.split():
        name, _, value = word.partition("=")
        if word in ("least", "never"):
            values = {n: _extreme(n, word) for n in values}
        elif word.startswith("random:"):
            values = drawn(word.removeprefix("random:"))
        elif name in values and value in ("least", "never"):
            values[name] = _extreme(name, value)
        elif name in values and value.isdecimal():
            values[name] = int(value)
        else:
            raise UsageError(f"{word!r} forces no threshold; there are {', '.join(values)}")
    return Thresholds(**values)


def assignments(words: str) -> str:
    """The same as `NAME=VALUE` for each threshold that is not as usual."""
    usual, chosen = Thresholds(), forced(words)
    pairs = ((name, getattr(usual, name), getattr(chosen, name)) for name in ENTRIES)
    return " ".join(f"{name}={value}" for name, before, value in pairs if value != before)


def _extreme(name: str, word: str) -> int:
    entry = ENTRIES[name]
    return entry.least if word == "least" else entry.never


def drawn(seed: str) -> dict[str, int]:
    """Values at random: a fourth each the usual one, the least, never, and a small one."""
    random, values = Random(seed), dict[str, int]()
    for name, entry in ENTRIES.items():
        small = entry.least + int(2 ** random.uniform(0, 6)) - 1
        choices = entry.value, entry.least, entry.never, min(small, entry.never)
        values[name] = random.choice(choices)
    return values


def watched(given: Thresholds, note: Callable[[str], None]) -> Thresholds:
    """The same thresholds, which call `note` with their names when they are crossed."""
    values: Mapping[str, Any] = {
        field.name: WatchedThreshold.of(getattr(given, field.name), field.name, note)
        for field in fields(given)
    }
    return replace(given, **values)


def written_to(path: str) -> Callable[[str], None]:
    """Appends each name once to a file, at once: a worker may be killed."""
    known = set[str]()

    def note(name: str) -> None:
        if name not in known:
            known.add(name)
            with open(path, "a") as file:
                file.write(f"{name}\n")

    return note


class WatchedThreshold(int):
    """A threshold that notes each comparison with a value that is as large, or larger.

    What is computed from it with whole numbers, by `+`, `-`, `*` or `//`, is watched, too.
    """

    __array_ufunc__ = None  # numbers of NumPy leave the comparison to this class
    name: str
    note: Callable[[str], None]

    @classmethod
    def of(cls, value: int, name: str, note: Callable[[str], None]) -> WatchedThreshold:
        """A threshold of some name."""
        made = cls(value)
        made.name, made.note = name, note
        return made

    def _noted(self, other: Any) -> int:
        own = int(self)
        if other >= own:
            self.note(self.name)
        return own

    def __lt__(self, other: Any) -> bool:
        return bool(self._noted(other) < other)

    def __le__(self, other: Any) -> bool:
        return bool(self._noted(other) <= other)

    def __gt__(self, other: Any) -> bool:
        return bool(self._noted(other) > other)

    def __ge__(self, other: Any) -> bool:
        return bool(self._noted(other) >= other)

    def _derived(self, value: int) -> WatchedThreshold:
        return WatchedThreshold.of(value, self.name, self.note)

    def __add__(self, other: Any) -> WatchedThreshold:
        return self._derived(int(self) + int(other))

    __radd__ = __add__

    def __sub__(self, other: Any) -> WatchedThreshold:
        return self._derived(int(self) - int(other))

    def __mul__(self, other: Any) -> WatchedThreshold:
        return self._derived(int(self) * int(other))

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> WatchedThreshold:
        return self._derived(int(self) // int(other))

    def __reduce__(self) -> tuple[type[int], tuple[int]]:
        return int, (int(self),)

    def __hash__(self) -> int:
        return hash(int(self))

    def __eq__(self, other: object) -> bool:
        return int(self) == other
