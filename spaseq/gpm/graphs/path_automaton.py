"""Property paths as automata, for searches (SPARQL 1.1 section 9).

A repetition matches a set of pairs of nodes, however many ways connect them. So it is a regular
expression over steps, and a search visits each pair of a node and a state once.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from spaseq.compiled.arrays import Int32s
from spaseq.lang import ast
from spaseq.records import record

STAY = -1
"""The leaf of a transition that takes no step."""


@record
class PathStep:
    """One step along a triple: a predicate or a negated property set, perhaps backwards.

    Without a `path` the step stays at its node, which must be an IRI or a blank node.
    """

    path: ast.Iri | ast.PathNegated | None
    backwards: bool = False


Leaf = tuple[PathStep, ...]
"""Alternative steps."""


@record
class Transitions:
    """The transitions of an automaton, by state.

    The transitions of state q are `first[q]` up to `first[q + 1]`: each takes a step of the leaf
    `leaf`, or none (STAY), to the state `to`. `first` is int32 [states + 1], the others
    int32 [transitions].
    """

    first: Int32s
    leaf: Int32s
    to: Int32s
    begin: int
    accept: int

    @classmethod
    def of(cls, triples: list[tuple[int, int, int]], begin: int, accept: int) -> Transitions:
        """From (state, leaf, state) triples."""
        table = np.array(sorted(triples), np.int32).reshape(-1, 3)
        states = max(int(table[:, [0, 2]].max(initial=0)), begin, accept) + 1
        first = np.searchsorted(table[:, 0], np.arange(states + 1)).astype(np.int32)
        return cls(first, table[:, 1].copy(), table[:, 2].copy(), begin, accept)

    @property
    def states(self) -> int:
        return len(self.first) - 1


@record
class PathAutomaton:
    """A repetition as an automaton, to search from its first or from its last node.

    `zero_length` says whether it connects every node with itself.
    """

    leaves: tuple[Leaf, ...]
    forward: Transitions
    backward: Transitions
    zero_length: bool

    @classmethod
    def of(cls, path: ast.PathRepeat) -> PathAutomaton:
        """The automaton of `p*`, `p+` or `p?`."""
        work = _Construction()
        begin = work.state()
        accept = begin if path.modifier == "*" else work.state()
        work.add(path.path, begin, accept, backwards=False)
        if path.modifier == "+":  # twice, so that no search stays at a node
            work.add(path.path, accept, accept, backwards=False)
        elif path.modifier == "?":
            work.transitions.append((begin, STAY, accept))
        turned = [(to, leaf, state) for state, leaf, to in work.transitions]
        return cls(
            tuple(work.leaves),
            Transitions.of(work.transitions, begin, accept),
            Transitions.of(turned, accept, begin),
            zero_length(path),
        )


def zero_length(path: ast.Path) -> bool:
    """Whether a path may have length zero."""
    match path:
        case ast.PathRepeat(inner, modifier):
            return modifier != "+" or zero_length(inner)
        case ast.PathSequence(parts):
            return all(map(zero_length, parts))
        case ast.PathAlternative(parts):
            return any(map(zero_length, parts))
        case ast.PathInverse(inner):
            return zero_length(inner)
        case _:
            return False


@dataclass
class _Construction:
    """Thompson's construction. Its size is linear in the path's, except for nested brackets.

    No part has a transition into its first state or out of its last one, unless both are the same.
    """

    leaves: dict[Leaf, int] = field(default_factory=dict)
    transitions: list[tuple[int, int, int]] = field(default_factory=list)
    states: int = 0

    def state(self) -> int:
        self.states += 1
        return self.states - 1

    def add(self, path: ast.Path, begin: int, end: int, *, backwards: bool) -> None:
        """Add transitions that lead from `begin` to `end` along the path."""
        leaf = _leaf(path, backwards)
        if leaf is not None:
            self.step(begin, leaf, end)
            return
        match path:
            case ast.PathInverse(inner):
                self.add(inner, begin, end, backwards=not backwards)
            case ast.PathFromNode(inner):
                middle = self.state()
                first, last = (middle, end) if backwards else (begin, middle)
                self.step(first, (PathStep(None),), last)
                first, last = (begin, middle) if backwards else (middle, end)
                self.add(inner, first, last, backwards=backwards)
            case ast.PathSequence(parts):
                inside = [self.state() for _ in parts[1:]]
                ordered = parts[::-1] if backwards else parts
                for part, a, b in zip(ordered, [begin, *inside], [*inside, end], strict=True):
                    self.add(part, a, b, backwards=backwards)
            case ast.PathAlternative(parts):
                for part in parts:
                    self.add(part, begin, end, backwards=backwards)
            case ast.PathRepeat(inner, modifier):
                self.repeat(inner, modifier, begin, end, backwards)

    def repeat(self, inner: ast.Path, modifier: str, begin: int, end: int, backwards: bool) -> None:
        if modifier == "?":
            self.transitions.append((begin, STAY, end))
            self.add(inner, begin, end, backwards=backwards)
            return
        first = self.state()
        last = first if modifier == "*" else self.state()
        self.transitions += [(begin, STAY, first), (last, STAY, end)]
        self.add(inner, first, last, backwards=backwards)
        if first != last:
            self.transitions.append((last, STAY, first))

    def step(self, begin: int, leaf: Leaf, end: int) -> None:
        self.transitions.append((begin, self.leaves.setdefault(leaf, len(self.leaves)), end))


def _leaf(path: ast.Path, backwards: bool) -> Leaf | None:
    """The path as alternative steps, if it is that."""
    match path:
        case ast.Iri() | ast.PathNegated():
            return (PathStep(path, backwards),)
        case ast.PathInverse(inner):
            return _leaf(inner, not backwards)
        case ast.PathAlternative(parts):
            leaves = [_leaf(part, backwards) for part in parts]
            return tuple(step for leaf in leaves if leaf for step in leaf) if all(leaves) else None
        case _:
            return None
