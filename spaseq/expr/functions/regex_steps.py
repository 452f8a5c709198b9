"""An upper bound on the steps of a backtracking engine on a pattern.

A repeated group can take a number of steps that is exponential in the text: `(a|ab)+` tries all
ways to divide it. The number is bounded where a text can be divided in one way only: the
repetitions of `(a|b)+` and `(,[0-9]+)*` begin at the same characters, whatever was tried before.
"""

from __future__ import annotations

import sys
from itertools import pairwise
from math import inf
from typing import Any, NamedTuple

from spaseq.expr.functions.unicode_classes import Ranges, complement, merged
from spaseq.expr.functions.xpath_regex import (
    Assertion,
    BackReference,
    CharacterSet,
    Quantified,
    RegexChoice,
    RegexGroup,
    RegexNode,
    RegexSequence,
)

FEW_STEPS = 1_000_000
"""Steps that a backtracking engine may need."""

_SMALL = 50
"""Maximum number of nodes of a repeated group that is analysed exactly."""


def _children(node: RegexNode) -> tuple[RegexNode, ...]:
    match node:
        case RegexGroup(inner) | Quantified(inner):
            return (inner,)
        case RegexSequence(parts) | RegexChoice(parts):
            return parts
    return ()


def has(node: RegexNode, test: Any) -> bool:
    """Whether a node, or one inside it, passes a test."""
    return test(node) or any(has(child, test) for child in _children(node))


def _nullable(node: RegexNode) -> bool:
    """Whether a node may match the empty text."""
    match node:
        case CharacterSet():
            return False
        case RegexSequence(parts):
            return all(map(_nullable, parts))
        case RegexChoice(alternatives):
            return any(map(_nullable, alternatives))
        case Quantified(inner, least):
            return not least or _nullable(inner)
        case RegexGroup(inner):
            return _nullable(inner)
    return True


def has_nullable_loop(tree: RegexNode) -> bool:
    """Whether a repeated part may be empty; engines differ in the groups that it leaves."""
    return has(tree, lambda node: isinstance(node, Quantified) and _nullable(node.inner))


def longest_text(tree: RegexNode) -> int:
    """The length of a text on which a backtracking engine takes at most `FEW_STEPS`."""
    tries, _, degree = _steps(tree)
    degree += not _is_anchored(tree)  # a search starts at each character
    if tries > FEW_STEPS:
        return -1
    return int((FEW_STEPS / tries) ** (1 / degree)) - 1 if degree else sys.maxsize


def _is_anchored(tree: RegexNode) -> bool:
    """Whether a match can only start where the text starts."""
    match tree:
        case RegexSequence((first, *_)):
            return first == Assertion("^", False)
    return False


class _Steps(NamedTuple):
    """The cost of backtracking from one position, on n characters.

    It takes at most `tries * (n + 1)**degree` steps in a node, and leaves it `ways * (n +
    1)**degree` times.
    """

    tries: float
    ways: float
    degree: int


def _steps(node: RegexNode) -> _Steps:
    match node:
        case RegexGroup(inner):
            return _steps(inner)
        case RegexSequence(parts):
            tries, ways, degree = 1.0, 1.0, 0
            for part in parts:
                t, w, d = _steps(part)
                tries, ways, degree = tries + ways * t, ways * w, degree + d
            return _Steps(tries, ways, degree)
        case RegexChoice(alternatives):
            tries_, ways_, degrees = zip(*map(_steps, alternatives), strict=True)
            return _Steps(sum(tries_), sum(ways_), max(degrees))
        case Quantified(CharacterSet(), most=most):
            return _Steps(2, 1, 1) if most is None else _Steps(most + 1, most + 1, 0)
        case Quantified(inner, 0, 1):
            t, w, d = _steps(inner)
            return _Steps(t + 1, w + 1, d)
        case Quantified(inner) if (size := _size(inner)) <= _SMALL and _begins_apart(inner):
            return _Steps(size + 1, 2, 1)  # each node at each character, at most once
        case Quantified() | BackReference():
            return _Steps(inf, inf, 0)
    return _Steps(1, 1, 0)


# --- repetitions that match a text in one way only -----------------------------------------------


def _size(node: RegexNode) -> int:
    """The number of nodes, and of hundreds of ranges in their sets. It stops above `_SMALL`."""
    size, waiting = 0, [node]
    while waiting and size <= _SMALL:
        each = waiting.pop()
        size += 1 + (len(each.ranges) // 100 if isinstance(each, CharacterSet) else 0)
        waiting += _children(each)
    return size


def _begins_apart(inner: RegexNode) -> bool:
    """Whether the repetitions of a part can only follow one another in one way.

    A repetition in the part ends where no character continues it. So all that it tries on the way
    from one start to the next lies between both, and a search tries no place twice.
    """
    return not _nullable(inner) and _one_way(inner, _first(inner))


def _one_way(node: RegexNode, follow: Ranges) -> bool:
    """Whether at most one way leads from a place through a node to a character of `follow`."""
    match node:
        case CharacterSet() | Assertion():
            return True
        case RegexGroup(inner):
            return _one_way(inner, follow)
        case RegexChoice(alternatives):
            return (
                not any(map(_nullable, alternatives))
                and _are_apart(*map(_first, alternatives))
                and all(_one_way(alternative, follow) for alternative in alternatives)
            )
        case Quantified(inner, least, most):
            first = _first(inner)
            if _nullable(inner) or not (least == most or _are_apart(first, follow)):
                return False
            return _one_way(inner, merged((*first, *follow)))
        case RegexSequence(parts):
            for part in reversed(parts):
                if not _one_way(part, follow):
                    return False
                follow = merged((*_first(part), *follow)) if _nullable(part) else _first(part)
            return True
    return False


def _first(node: RegexNode) -> Ranges:
    """The characters that a match of a node can start with."""
    match node:
        case CharacterSet(ranges):
            return ranges
        case RegexGroup(inner) | Quantified(inner):
            return _first(inner)
        case RegexChoice(alternatives):
            return merged(r for alternative in alternatives for r in _first(alternative))
        case RegexSequence(parts):
            of_parts: list[tuple[int, int]] = []
            for part in parts:
                of_parts += _first(part)
                if not _nullable(part):
                    break
            return merged(of_parts)
        case BackReference():
            return complement(())
    return ()


def _are_apart(*sets: Ranges) -> bool:
    """Whether no two sets have a character in common."""
    ranges = sorted(r for each in sets for r in each)
    return all(a[1] < b[0] for a, b in pairwise(ranges))
