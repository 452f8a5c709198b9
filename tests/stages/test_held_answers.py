"""Answers of several queries, held in memory and in a file until each query's turn."""

from __future__ import annotations

import pytest

from spaseq.algebra.answers import Answer, TraceItem
from spaseq.stages.held_answers import HeldAnswers
from tests.thresholds import Force


def answer(number: int) -> Answer:
    item = TraceItem(number, 0, "A", "http://e/s", None)
    return Answer((number, 0), (number, 0), (item,), (("x", f'"{number}"'),))


@pytest.mark.parametrize("most", [1, 3, 1000])
def test_each_query_gets_its_answers_in_order(most: int, force: Force) -> None:
    force(f"held_answers={most}")
    held = HeldAnswers()
    for number in range(20):
        held.add(number % 3, [answer(number)])
    found = {q: [a for part in held.take(q) for a in part] for q in (2, 0, 1)}
    assert found == {q: [answer(n) for n in range(q, 20, 3)] for q in range(3)}
    assert not [*held.take(0)]
    held.close()
