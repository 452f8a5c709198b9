"""Answers of several queries, held in memory and in a file until each query's turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

import pytest

from spaseq.algebra.answer_batch import AnswerBatch, SharedAnswers, SharedPart
from spaseq.algebra.answers import Answer, TraceItem
from spaseq.stages.held_answers import HeldAnswers
from tests.runtime.spark.rows.test_answer_blocks import columns_of
from tests.sinks.test_answer_batches import QUERIES
from tests.sizes import first_of
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


@pytest.fixture(scope="module")
def batches() -> list[AnswerBatch]:
    """Columns of answers of two queries with other names."""
    texts = [(evaluator, texts[0]) for evaluator, texts in QUERIES.items()]
    found = (batch for n in range(5) for each in texts for batch in columns_of(*each, n))
    return [batch.part(0, min(len(batch), 40)) for batch in found]


@pytest.mark.parametrize("most", [1, 50, 10**6])
@pytest.mark.parametrize("block", first_of([7, 1, 8192], 1))
def test_columns_parts_of_columns_and_single_answers_mix(
    most: int,
    block: int,
    batches: list[AnswerBatch],
    force: Force,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A block has answers of several queries, and a query has answers in several blocks."""
    force(f"held_answers={most}")
    for module in ("algebra.answer_blocks", "stages.held_answers"):
        monkeypatch.setattr(f"spaseq.{module}.PIECE", block)
    monkeypatch.setattr("spaseq.algebra.answer_batch.AnswerBatch.parts", _in_parts_of(block))
    random, held, expected = Random(1), HeldAnswers(), dict[int, list[Answer]]()
    for batch in batches:
        shared = SharedAnswers(batch)
        ends = sorted(random.randrange(len(batch) + 1) for _ in range(4))
        for begin, end in zip([0, *ends], [*ends, len(batch)], strict=True):
            query = random.randrange(3)
            pieces = SharedPart(shared, begin, end), batch.part(begin, end), [*batch][begin:end]
            held.add(query, random.choice(pieces))
            expected.setdefault(query, []).extend([*batch][begin:end])
    for query in (0, 1, 2):
        assert [answer for part in held.take(query) for answer in part] == expected[query]
        assert not [*held.take(query)]
    held.close()
    assert sum(map(len, expected.values())) > 100


def _in_parts_of(size: int) -> Callable[[AnswerBatch], Iterator[AnswerBatch]]:
    whole = AnswerBatch.parts
    return lambda batch: whole(batch, size)
