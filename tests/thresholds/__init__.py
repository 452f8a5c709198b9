"""Forces the thresholds of this process, as `forcing.py` says, and watches them.

    with forced("least"): ...
    with forced("random:17") as crossed: ...  # afterwards `crossed` has the names

Processes that a test starts take their thresholds from the environment: `environment("never")`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from spaseq import thresholds
from tests.thresholds import forcing

Force: TypeAlias = Callable[[str], set[str]]
"""The fixture `force`: forces thresholds until the end of the test."""


@contextmanager
def forced(words: str) -> Iterator[set[str]]:
    """Force thresholds in this context; gives the names of those that are crossed in it."""
    crossed = set[str]()
    chosen = forcing.forced(words, thresholds.current)
    before = thresholds.use(forcing.watched(chosen, _note))
    _OPEN.append(crossed)
    try:
        yield crossed
    finally:
        _OPEN.pop()
        thresholds.use(before)


_OPEN: list[set[str]] = []
"""What each open context has seen."""


def _note(name: str) -> None:
    for crossed in _OPEN:
        crossed.add(name)


def environment(words: str, crossed: Path | None = None) -> dict[str, str]:
    """An environment that forces thresholds in a process, and in the workers that it starts.

    Each process appends the names of the thresholds that it crosses to the file `crossed`.
    """
    found = {**os.environ, thresholds.VARIABLE: forcing.assignments(words)}
    if crossed is not None:
        watch, root = Path(__file__).with_name("watch"), Path(__file__).parents[2]
        path = [str(watch), str(root), os.environ.get("PYTHONPATH", "")]
        found |= {forcing.CROSSED: str(crossed), "PYTHONPATH": os.pathsep.join(filter(None, path))}
    return found


def names(crossed: Path) -> set[str]:
    """The names in such a file."""
    return set(crossed.read_text().split()) if crossed.exists() else set()
