"""Algorithm 1 of CORE (PVLDB 15:9, 4.3): active states, each with its partial matches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, Protocol, TypeVar

from spaseq.automaton.run.runs import Row
from spaseq.automaton.sets.python.compact_set import NIL, CompactSet, UnionList
from spaseq.automaton.sets.python.determinise import Move

S = TypeVar("S", bound="Moving")


class Moving(Protocol):
    """A state of a deterministic automaton, equal to itself only."""

    def move(self, seen: Any, /) -> Move[Any]:
        """What an instant at which so much is seen does here."""


class ActiveStates(Generic[S]):
    """T of Algorithm 1: union-lists by active state, in the order of falling maximum start.

    The initial state has no list: a match may begin at any instant.
    """

    __slots__ = ("initial", "lists")

    def __init__(self, initial: S) -> None:
        self.initial = initial
        self.lists: dict[S, UnionList] = {}

    def advance(
        self, matches: CompactSet, start: int, rows: Mapping[Any, list[Row]], seen: object
    ) -> list[int]:
        """Work off an instant; the nodes of the matches that end there, by falling maximum start.

        `start` is the measure of a match that begins here, `rows` the solutions by letter, `seen`
        what the states' moves depend on.
        """
        roots: list[int] = []
        after: dict[S, UnionList] = {}  # T' of Algorithm 1
        move = self.initial.move(seen)
        self._take(matches, move, NIL, start, rows, after, roots)
        if move.stay is not None:
            self.initial = move.stay
        for state, partial in self.lists.items():
            if not matches.lives(partial.nodes[0]):
                continue
            move = state.move(seen)
            if move.marks:
                before = matches.merge(partial)
                self._take(matches, move, before, matches.start(before), rows, after, roots)
            if move.stay is not None:
                mine = after.get(move.stay)
                if mine is None:
                    after[move.stay] = partial
                else:
                    matches.insert(mine, matches.merge(partial))
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
        """Append every solution that may be taken to the matches of a node."""
        for mark in move.marks:
            for row in rows[mark.letter]:
                node = matches.output(before, NIL, start, mark.gpm, row)
                if mark.accepts:
                    roots.append(node)
                if mark.target is not None:
                    mine = after.get(mark.target)
                    if mine is None:
                        after[mark.target] = UnionList([node])
                    else:
                        matches.insert(mine, node)
