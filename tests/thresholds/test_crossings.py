"""Each threshold is crossed by a named test, whose answers are right on both sides of it."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest

from spaseq.thresholds import ENTRIES
from tests.thresholds import forced
from tests.thresholds.crossings import APART, CROSSINGS, ELSEWHERE, Check


def _together() -> list[list[str]]:
    """The names of thresholds that the same check crosses at once, besides the same words."""
    found = defaultdict[tuple[Check, str], list[str]](list)
    for name, crossing in CROSSINGS.items():
        if name not in APART:
            found[crossing.check, crossing.besides].append(name)
    return [*found.values(), *([name] for name in sorted(APART))]


@pytest.mark.parametrize("names", _together(), ids=" ".join)
def test_answers_are_right_with_several_on_each_side(names: list[str], tmp_path: Path) -> None:
    check_both_sides(names, tmp_path)


@pytest.mark.thorough
@pytest.mark.parametrize("name", CROSSINGS)
def test_answers_are_right_on_both_sides(name: str, tmp_path: Path) -> None:
    check_both_sides([name], tmp_path)


def check_both_sides(names: list[str], directory: Path) -> None:
    """Check the answers with all of these thresholds at their least values, then at `never`."""
    crossing = CROSSINGS[names[0]]
    compared = {name for name in names if not CROSSINGS[name].counted}
    for value, expected in (("least", compared), ("never", set[str]())):
        (directory / value).mkdir()
        forces = " ".join(f"{name}={value}" for name in names)
        with forced(f"{crossing.besides} {forces}") as crossed:
            crossing.check(directory / value)
        assert crossed & compared == expected


def test_every_threshold_has_a_test_that_crosses_it() -> None:
    assert not CROSSINGS.keys() & ELSEWHERE.keys()
    assert CROSSINGS.keys() | ELSEWHERE.keys() == ENTRIES.keys()
    for node in ELSEWHERE.values():
        path, name = node.split("::")
        text = (Path(__file__).parents[2] / path).read_text(encoding="utf-8")
        tests = {d.name for d in ast.parse(text).body if isinstance(d, ast.FunctionDef)}
        assert name in tests, node
