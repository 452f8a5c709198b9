"""An append-only store of nodes whose ids only grow, forgotten from the front.

The traces and value lists of runs share prefixes as nodes that link backward. No live run reaches a
node that was added more than a window ago. So forgetting costs one comparison per batch of nodes
and needs no search of the runs (compare the ring arena of CORE, PVLDB 15:9, 4.4).
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

from spaseq import thresholds

T = TypeVar("T")

NIL = -1
"""The id that ends every list."""


class Arena(Generic[T]):
    """Nodes by id; `mark` and `forget` bound their number."""

    __slots__ = ("_base", "_marks", "_nodes")

    def __init__(self) -> None:
        self._base = 0
        self._nodes: list[T] = []
        self._marks: deque[tuple[int, int]] = deque()  # (measure, first id added at or after it)

    def __len__(self) -> int:
        return len(self._nodes)

    def add(self, node: T) -> int:
        """Store a node and return its id."""
        self._nodes.append(node)
        return self.end - 1

    def __getitem__(self, number: int) -> T:
        return self._nodes[number - self._base]

    @property
    def end(self) -> int:
        """The id that the next node gets."""
        return self._base + len(self._nodes)

    def since(self, number: int) -> list[T]:
        """The nodes from an id on."""
        return self._nodes[number - self._base :]

    def mark(self, measure: int) -> None:
        """Declare that all nodes from now on are added at `measure` or later."""
        end = self.end
        if self._marks and self._marks[-1][1] == end:
            self._marks.pop()
        self._marks.append((measure, end))

    def forget(self, before: int) -> None:
        """Drop the nodes that were added before a measure, once they are at least half of all."""
        if len(self._nodes) <= thresholds.current.forgotten_nodes:
            return
        marks = self._marks
        cut = self._base
        while len(marks) > 1 and marks[1][0] < before:
            marks.popleft()
        if marks and marks[0][0] < before:
            cut = marks[0][1]
        if cut - self._base > max(thresholds.current.forgotten_nodes, len(self._nodes) // 2):
            del self._nodes[: cut - self._base]
            self._base = cut
