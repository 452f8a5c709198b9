"""Answers in blocks are the same answers, and blocks of several tasks are merged in order."""

from __future__ import annotations

from operator import itemgetter
from random import Random

import numpy as np
import pytest

from spaseq.algebra.answer_batch import AnswerBatch
from spaseq.algebra.answer_blocks import answers_of, blocks
from spaseq.algebra.answers import Answer
from spaseq.compile import CompileOptions, compile_query
from spaseq.plan.query_plan import EvaluatorName
from spaseq.runtime.spark.rows.stage_rows import merged
from tests.sinks.test_answer_batches import QUERIES, found_by, stream
from tests.sizes import first_of
from tests.thresholds import Force

CASES = [(name, text) for name, texts in QUERIES.items() for text in texts]


def columns_of(evaluator: EvaluatorName, text: str, number: int) -> list[AnswerBatch]:
    plan = compile_query(text, options=CompileOptions(evaluator=evaluator))
    found = found_by(plan, stream(number), 1)
    return [answers for answers in found if isinstance(answers, AnswerBatch)]


@pytest.mark.parametrize(("evaluator", "text"), CASES)
def test_a_block_has_the_answers(evaluator: EvaluatorName, text: str) -> None:
    for batch in columns_of(evaluator, text, 0):
        for answers in (batch, [*batch]):
            ((time, block),) = blocks(answers)
            found = answers_of(block)
            assert isinstance(found, type(answers))
            assert [*found] == [*batch] and time == batch[0].end[0]


@pytest.mark.parametrize("enough", first_of([20, 1, 10**6], 1))
@pytest.mark.parametrize(("evaluator", "text"), CASES)
def test_blocks_of_several_tasks_are_merged(
    evaluator: EvaluatorName, text: str, enough: int, force: Force
) -> None:
    """Each task has some answers, as columns or one by one, in pieces that overlap."""
    force(f"ordered_answers={enough}")
    for number in range(6):
        random, made, expected = Random(number), list[tuple[int, bytes]](), list[Answer]()
        for batch in columns_of(evaluator, text, number):
            expected += batch
            task = np.array([random.randrange(3) for _ in batch])
            for n in range(3):
                own = np.flatnonzero(task == n)
                for piece in np.array_split(own, random.randrange(1, 4)):
                    as_columns = n < 2 or random.random() < 0.5
                    made += blocks(batch.take(piece) if as_columns else [*batch.take(piece)])
        made.sort()
        found = [answer for answers in merged((t, answers_of(b)) for t, b in made)
                 for answer in answers]  # fmt: skip
        assert found == sorted(expected, key=Answer.order_key)


def test_only_answers_between_values_are_made_one_by_one() -> None:
    """Elsewhere, answers that come as columns leave as columns."""
    (batch, *_) = columns_of("compiled-chain", QUERIES["compiled-chain"][0], 0)
    middle = len(batch) // 2
    value = batch[middle]
    others = np.delete(np.arange(len(batch)), middle)
    pieces = [batch.take(others[::2]), batch.take(others[1::2]), [value]]
    found = [*merged(sorted(((p[0].end[0], p) for p in pieces), key=itemgetter(0)))]
    assert [a for answers in found for a in answers] == [*batch]
    (values,) = [answers for answers in found if not isinstance(answers, AnswerBatch)]
    assert {a.end[0] for a in values} == {value.end[0]}
