"""The timed enumerable compact set (tECS): many partial matches in few nodes (CORE, PVLDB 15:9).

A node stands for a set of partial matches. An *output* node appends one row to every partial match
of the node `before`, and may carry a further set along as `rest`. A *union* node stands for the
matches of two other nodes. `union`, `merge` and `insert` keep three invariants:

- Time-ordered: every node knows the latest start among its matches (the maximum start, max(n)), and
  the left child of a union starts no earlier than the right one. So an enumeration cuts off what
  is out of the window without a visit.
- 3-bounded: from any node, an output node is at most three left steps away. So the delay of an
  enumeration depends on the size of the match only.
- Duplicate-free: two paths never stand for the same match, because the automaton is deterministic.

Ids only grow. No node with a match in the window reaches a node that was added before the window.
So nodes are forgotten from the front.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from spaseq.automaton.run.runs import Row

NIL = -1
"""The id of no node."""

UNION = -1
"""The GPM of a union node."""

EVER = -(2**63)
"""A start before all others."""

Node: TypeAlias = tuple[int, int, int, int, Row | None]
"""An output node (before or NIL, rest or NIL, maximum start, GPM, row), or a union node (left,
right, maximum start, UNION, None)."""

_MARKED_EVERY = 32
_SLACK = 128


class UnionList:
    """ul in CORE 4.2: safe nodes of one state by falling maximum start; the first is no union."""

    __slots__ = ("merged", "nodes")

    def __init__(self, nodes: list[int]) -> None:
        self.nodes = nodes
        self.merged = NIL  # the node for the whole list, if it has been made


class CompactSet:
    """The nodes of one partition.

    `floor` is the begin of the window that ends now. A node with an earlier maximum start is dead.
    """

    __slots__ = ("_limit", "_marks", "base", "floor", "nodes")

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.base = 0  # id of the first node kept
        self.floor = EVER
        self._marks: list[tuple[int, int]] = []  # (measure, first id added at or after it)
        self._limit = _SLACK

    def output(self, before: int, rest: int, start: int, gpm: int, row: Row) -> int:
        """extend(n, j): append a row to the matches of `before`; `start` is their maximum start."""
        self.nodes.append((before, rest, start, gpm, row))
        return self.base + len(self.nodes) - 1

    @property
    def end(self) -> int:
        """The id that the next node gets."""
        return self.base + len(self.nodes)

    def outputs_since(self, number: int) -> Iterator[tuple[int, Row, int]]:
        """(GPM, row, maximum start) of the output nodes from an id on."""
        for _, _, start, gpm, row in self.nodes[max(0, number - self.base) :]:
            if row is not None:
                yield gpm, row, start

    def start(self, node: int) -> int:
        """The maximum start of a node, EVER if the node is forgotten."""
        return EVER if node < self.base else self.nodes[node - self.base][2]

    def lives(self, node: int) -> bool:
        """Whether some match of the node lies in the window that ends now."""
        return node >= self.base and self.nodes[node - self.base][2] >= self.floor

    def union(self, one: int, other: int) -> int:
        """A safe node for two safe nodes with equal maximum start (CORE 4.2, Figure 5, a-d)."""
        nodes, base = self.nodes, self.base
        left1, right1, start, kind1, _ = nodes[one - base]
        left2, right2, _, kind2, _ = nodes[other - base]
        if kind1 != UNION:
            return self.either(one, other, start)
        if kind2 != UNION:
            return self.either(other, one, start)
        start1, start2 = self.start(right1), self.start(right2)
        if start1 < start2:
            right1, start1, right2, start2 = right2, start2, right1, start1
        if start1 < self.floor:
            return self.either(left1, left2, start)
        below = right1 if start2 < self.floor else self.either(right1, right2, start1)
        return self.either(left1, self.either(left2, below, start), start)

    def merge(self, ul: UnionList) -> int:
        """A safe node for a whole union-list (CORE 4.2, Figure 5, e)."""
        if ul.merged == NIL:
            listed = ul.nodes
            self._trim(listed)
            node = listed[-1]
            for i in range(len(listed) - 2, -1, -1):
                node = self.either(listed[i], node, self.nodes[listed[i] - self.base][2])
            ul.merged = node
        return ul.merged

    def insert(self, ul: UnionList, node: int) -> None:
        """Add a safe node that starts no later than the first node of a union-list (CORE 4.2)."""
        listed = ul.nodes
        self._trim(listed)
        ul.merged = NIL
        start = self.start(node)
        place = 1
        while place < len(listed) and self.start(listed[place]) > start:
            place += 1
        if place < len(listed) and self.start(listed[place]) == start:
            listed[place] = self.union(listed[place], node)
        else:
            listed.insert(place, node)

    def either(self, left: int, right: int, start: int) -> int:
        """A union node; `start` is the maximum start of its left child."""
        self.nodes.append((left, right, start, UNION, None))
        return self.base + len(self.nodes) - 1

    def _trim(self, listed: list[int]) -> None:
        """Drop the nodes that are out of the window; the first node of a live list never is."""
        while len(listed) > 1 and not self.lives(listed[-1]):
            listed.pop()

    # --- time -------------------------------------------------------------------------------------

    def advance(self, start: int, floor: int) -> None:
        """From now on nodes are added at the measure `start`, and the window begins at `floor`."""
        self.floor = floor
        following = self.base + len(self.nodes)
        if not self._marks or following - self._marks[-1][1] >= _MARKED_EVERY:
            self._marks.append((start, following))
        if len(self.nodes) > self._limit:
            self._forget()

    def _forget(self) -> None:
        """Drop the nodes added before the window, once they may be half of all."""
        cut, kept = self.base, 0
        for i, (measure, first) in enumerate(self._marks):
            if measure >= self.floor:
                break
            cut, kept = first, i
        del self.nodes[: cut - self.base]
        del self._marks[:kept]
        self.base = cut
        self._limit = 2 * len(self.nodes) + _SLACK

    # --- reading ----------------------------------------------------------------------------------

    def reachable(self, roots: list[int]) -> list[int]:
        """The nodes below some roots with matches in the window, children before parents."""
        nodes, base, floor = self.nodes, self.base, self.floor
        seen = {root for root in roots if self.lives(root)}
        todo = list(seen)
        while todo:
            one, other, _, _, _ = nodes[todo.pop() - base]
            if one >= base and one not in seen:  # as new as its parent, so in the window
                seen.add(one)
                todo.append(one)
            if other >= base and other not in seen and nodes[other - base][2] >= floor:
                seen.add(other)
                todo.append(other)
        return sorted(seen)

    def enumerate(self, roots: list[int]) -> Iterator[tuple[int, list[tuple[int, Row]]]]:
        """The matches of some roots in the window, as (start, (GPM, row) pairs in order).

        The delay between two matches is linear in their size.
        """
        nodes, base, floor = self.nodes, self.base, self.floor
        path: list[tuple[int, Row]] = []  # the last row first
        todo = [(root, 0) for root in reversed(roots) if self.lives(root)]
        while todo:
            node, size = todo.pop()
            del path[size:]
            while True:
                before, rest, start, gpm, row = nodes[node - base]
                if rest >= base and nodes[rest - base][2] >= floor:
                    todo.append((rest, len(path)))
                if row is not None:
                    path.append((gpm, row))
                    if before == NIL:
                        yield start, path[::-1]
                        break
                node = before
