"""Measures of a run: rows, time and memory of each node of a plan.

A run measures only on request.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

NodePath: TypeAlias = tuple[Hashable, ...]
"""Path of a node of a plan: the enclosing nodes, outermost first, then the node."""


@dataclass(slots=True)
class Measure:
    """Rows, time and memory of one node.

    `rows_in` is None for a node that reads no rows of another. `seconds` include the nodes inside.
    `bytes` is the maximum that the node held at a time, None if it is not measured.
    """

    calls: int = 0
    rows_in: int | None = None
    rows: int = 0
    seconds: float = 0.0
    bytes: int | None = None

    def took(self, rows: int, size: int | None = None, rows_in: int | None = None) -> None:
        """Add one call; `size` is the number of bytes that the node holds."""
        self.calls += 1
        self.rows += rows
        if size is not None:
            self.bytes = max(size, self.bytes or 0)
        if rows_in is not None:
            self.rows_in = rows_in + (self.rows_in or 0)


@dataclass(slots=True)
class Measures:
    """The measures of a run, by node, in the order of their first use.

    `runtime` names the runtime. `seconds` and `peak_bytes` are measured for its process.
    """

    runtime: str = "local"
    nodes: dict[NodePath, Measure] = field(default_factory=dict)
    seconds: float = 0.0
    peak_bytes: int | None = None
    _around: NodePath = ()

    def at(self, *path: Hashable) -> Measure:
        """The measure of a node; `path` is relative to the open nodes."""
        return self.nodes.setdefault((*self._around, *path), Measure())

    @contextmanager
    def inside(self, *path: Hashable) -> Iterator[Measure]:
        """Measure the time of a node; measures in this block stand below it."""
        measure, around = self.at(*path), self._around
        self._around = (*around, *path)
        start = time.perf_counter()
        try:
            yield measure
        finally:
            measure.seconds += time.perf_counter() - start
            self._around = around


def peak_memory() -> int | None:
    """Peak memory of this process in bytes; None where the system does not report it."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    import sys

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


class ProcessCount:
    """Counter of one kind of event in this process; each kind is a subclass."""

    total: ClassVar[int] = 0

    def __init__(self) -> None:
        self._before = self.total

    def take(self) -> int:
        """The count since the last call, or since this object was made."""
        since_last, self._before = self.total - self._before, self.total
        return since_last


class BadGeometryCount(ProcessCount):
    """Counts the bad geometries that functions of this process meet."""
