"""Queries that run together give the answers that each gives by itself.

`SPASEQ_ORACLE_SETS` sets the number of sets, and `SPASEQ_ORACLE_SEED` another seed.
"""

from __future__ import annotations

import os
from random import Random

import pytest

from spaseq.compile import CompileOptions, compile_query
from spaseq.plan import families as families_module
from spaseq.plan.families import families_of
from tests.oracle.choices import seeded
from tests.oracle.query_sets import answers, expected, pushed_answers, queries_of
from tests.oracle.strategies import EVERYTHING, case
from tests.sizes import sizes

SEED = os.environ.get("SPASEQ_ORACLE_SEED", "1")
SETS = int(os.environ.get("SPASEQ_ORACLE_SETS", "0"))


@sizes(12, 500)
def test_a_set_of_queries_has_the_answers_of_each(
    examples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(families_module, "FEWEST", 2)
    answered = families = 0
    for number in range(SETS or examples):
        choices = seeded(f"sets{SEED}:{number}")
        example = case(choices, EVERYTHING)
        texts = queries_of(example, choices, Random(number).choice([3, 6, 30]))
        if len(texts) < 2:
            continue
        options = CompileOptions(several=True)
        families += len(families_of([compile_query(text, options=options) for text in texts]))
        alone = [expected(text, example) for text in texts]
        together = answers(texts, example)
        wrong = [n for n in range(len(texts)) if alone[n] != together[n]]
        assert not wrong, f"set {SEED}:{number}\n" + "\n\n".join(texts[n] for n in wrong[:2])
        answered += any(alone)
    assert families > (SETS or examples) // 8
    assert answered > (SETS or examples) // 8


@sizes(8, 300)
def test_a_pushed_set_has_the_answers_of_each(
    examples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(families_module, "FEWEST", 2)
    answered = 0
    for number in range(SETS or examples):
        choices = seeded(f"pushed{SEED}:{number}")
        example = case(choices, EVERYTHING)
        texts = queries_of(example, choices, Random(number).choice([3, 6, 30]))
        if not texts:
            continue
        alone = [expected(text, example) for text in texts]
        together = pushed_answers(texts, example, choices)
        wrong = [n for n in range(len(texts)) if alone[n] != together[n]]
        assert not wrong, f"set {SEED}:{number}\n" + "\n\n".join(texts[n] for n in wrong[:2])
        answered += any(alone)
    assert answered > (SETS or examples) // 8
