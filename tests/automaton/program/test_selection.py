"""Selection strategies among matches with the same end."""

from __future__ import annotations

import pytest

from spaseq.automaton.program.selection import Position, Strategy, select


def positions(match: str) -> frozenset[Position]:
    """The positions of a match; each digit is the time of one."""
    return frozenset(((int(c), 0), "http://e/s") for c in match.replace(" ", ""))


CASES: list[tuple[Strategy, list[str], list[str]]] = [
    ("ALL", ["13", "3", "123"], ["13", "3", "123"]),
    ("NEXT", ["136", "126", "236"], ["126"]),
    ("LAST", ["136", "126", "236"], ["236"]),
    ("MAX", ["136", "16", "26"], ["136", "26"]),
    ("NEXT", ["126", "12 6"], ["126", "12 6"]),
    ("MAX", [], []),
]


@pytest.mark.parametrize(("strategy", "matches", "kept"), CASES)
def test_a_strategy_keeps(strategy: Strategy, matches: list[str], kept: list[str]) -> None:
    assert select(matches, strategy, positions) == kept
