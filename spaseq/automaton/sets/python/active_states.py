"""Algorithm 1 of CORE (PVLDB 15:9, 4.3): the active states, each with its partial matches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Generic, Protocol, TypeVar

from spaseq.automaton.run.runs import Row
from spaseq.automaton.sets.python.compact_set import NIL, CompactSet, UnionList
from spaseq.automaton.sets.python.determinise import Move

S = TypeVar("S", bound="Moving")


class Moving(Protocol):
    """A state of a deterministic automaton, equal to itself only."""

    def move(self, seen: Any, /) -> Move[Any]:
        """The move of this state at an instant; `seen` is all of the instant that matters."""


class ActiveStates(Generic[S]):
    """T of Algorithm 1: union-lists by active state, in the order of falling maximum start.

    The initial state has no list, because a match may begin at any instant.
    """

    __slots__ = ("initial", "lists")

    def __init__(self, initial: S) -> None:
        self.initial = initial
        self.lists: dict[S, UnionList] = {}

    def lives(self, matches: CompactSet) -> bool:
        """Whether some partial match may still become part of a match."""
        return any(matches.lives(ul.nodes[0]) for ul in self.lists.values())

    def nodes(self) -> Iterator[int]:
        """The nodes that stand for the waiting partial matches."""
        return (node for ul in self.lists.values() for node in ul.nodes)

    def advance(
        self, matches: CompactSet, start: int, rows: Mapping[Any, list[Row]], seen: object
    ) -> list[int]:
        """Process an instant; returns the roots of the matches that end there.

        `start` is the measure of a match that begins here. `rows` are the instant's rows by letter,
        and `seen` is what the moves of the states depend on. The roots come by falling maximum
        start.
        """
        roots: list[int] = []
        after: dict[S, UnionList] = {}  # T' of Algorithm 1
        move = self.initial.move(seen)
        self._take(matches, move, NIL, start, rows, after, roots)
        if move.stay is not None:
            self.initial = move.stay
        for state, ul in self.lists.items():
            if not matches.lives(ul.nodes[0]):
                continue
            move = state.move(seen)
            if move.marks:
                before = matches.merge(ul)
                self._take(matches, move, before, matches.start(before), rows, after, roots)
            if move.stay is not None:
                listed = after.get(move.stay)
                if listed is None:
                    after[move.stay] = ul
                else:
                    matches.insert(listed, matches.merge(ul))
        self.lists = after
        return roots

    def _take(
        self,
        matches: CompactSet,
        move: Move[S],
        before: int,
        start: int,
        rows: Mapping[Any, list[Row]],
        after: dict[S, UnionList],
        roots: list[int],
    ) -> None:
        """Append each row that a marking transition takes to the matches of the node `before`."""
        inner = [before]  # by depth: what the rows are appended to
        for mark in move.marks:
            before = inner[mark.depth]
            if mark.is_inner:
                nodes = [
                    matches.output(before, NIL, start, mark.gpm, row) for row in rows[mark.letter]
                ]
                inner[mark.depth + 1 :] = [_joint(matches, nodes)]
                continue
            for row in rows[mark.letter]:
                node = matches.output(before, NIL, start, mark.gpm, row)
                if mark.accepts:
                    roots.append(node)
                if mark.target is not None:
                    listed = after.get(mark.target)
                    if listed is None:
                        after[mark.target] = UnionList([node])
                    else:
                        matches.insert(listed, node)


def _joint(matches: CompactSet, nodes: list[int]) -> int:
    """One node for nodes of one start that are no unions."""
    joint = UnionList(nodes[:1])
    for node in nodes[1:]:
        matches.insert(joint, node)
    return matches.merge(joint)
