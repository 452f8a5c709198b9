"""Families that begin with the member: each query has the answers that it has by itself.

`python -m tests.oracle.test_member_families --cases N --first SEED` tries more sets, by number, and
with `--spark` those with answers on Spark, too.
"""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import replace
from typing import Any

import pytest

from spaseq.compile import CompileOptions, check_query, compile_query
from spaseq.lang import ast
from spaseq.lang.format import format_query
from spaseq.lang.parser import parse
from spaseq.options import StageOptions
from spaseq.plan.families import families_of, may_begin
from tests.oracle.choices import Choices, seeded
from tests.oracle.query_sets import answers, expected, number, pushed_answers, values_of, variation
from tests.oracle.strategies import EVERYTHING, Case, case
from tests.sizes import sizes
from tests.thresholds import forced

ORDERS = ("<", "<=", ">", ">=")
FORCED = (
    "family_queries=2",
    "family_queries=2 columnar_matches=1 member_answers=1",
    "family_queries=2",
    f"family_queries=2 columnar_matches=1 member_answers={10**9}",
)
"""Answers come one by one, as columns of each member, and as columns that members share."""


def drawn(choices: Choices) -> tuple[Case, list[str]]:
    """A case, and a set of queries whose later steps differ in bounds of the first step alone."""
    example = case(choices, EVERYTHING - {"late-BIND"})  # such queries run by themselves
    query = _with_bounds(replace(parse(example.query), windows=()), choices)
    several = [query, *(_variation(query, choices) for _ in range(choices.pick((1, 2, 6))))]
    texts = [format_query(each) for each in several]
    return example, [text for text in texts if check_query(text).plan is not None]


def _with_bounds(query: ast.Query, choices: Choices) -> ast.Query:
    """The query behind a first step F, with bounds that later GPMs keep to."""
    stream = query.streams[0].name
    head = "SELECT *"
    if choices.chance(3):
        head = "CONSTRUCT { ?f0 <http://example.org/was> ?f1 . [] <http://example.org/of> ?f0 }"
    f = parse(
        f"{head} FROM STREAM {stream} <http://example.org/s> WHERE {{ SEQ(F) DEFINE GPM F ON "
        f"{stream} {{ ?f0 <http://example.org/v> ?f1 . FILTER(?f1 >= 1) }} }}"
    )
    first = f.gpms[0]
    steps = (*f.sequence.steps, *query.sequence.steps)
    join = parse("SELECT * FROM STREAM S <http://e/s> WHERE { SEQ(A; B) }").sequence.ops[0]
    sequence = replace(query.sequence, steps=steps, ops=(join, *query.sequence.ops))
    gpms = [first]
    for gpm in query.gpms:
        elements = list(gpm.pattern.elements)
        own = sorted(values_of(gpm))
        for _ in range(choices.pick((0, 1, 1, 2)) if own else 0):
            right: ast.Expr = number(choices)
            if choices.chance(2):
                right = ast.Arithmetic(choices.pick("+-"), ast.Var("f1"), number(choices))
            left = ast.Var(choices.pick(own))
            elements.append(ast.Filter(ast.Compare(choices.pick(ORDERS), left, right)))
        gpms.append(replace(gpm, pattern=ast.GroupGraphPattern(tuple(elements))))
    return replace(query, form=f.form, skip=None, sequence=sequence, gpms=tuple(gpms))


def _variation(query: ast.Query, choices: Choices) -> ast.Query:
    """The query with other numbers in its bounds."""
    return variation(query, choices, kinds=False)


def begins(texts: list[str]) -> bool:
    """Whether the queries are a family that begins with the member."""
    options = CompileOptions(several=True)
    plans = [compile_query(text, options=options) for text in texts]
    return any(
        family.begins_with_member for family in families_of(plans, may_begin(StageOptions()))
    )


def check(number: int, spark: bool = False) -> tuple[bool, bool]:
    """Compare one set; gives whether it is such a family, and whether it has answers.

    Sets with answers run on Spark, too, if `spark`.
    """
    with forced(FORCED[number % len(FORCED)]):
        example, texts = drawn(seeded(f"members:{number}"))
        if len(texts) < 2 or not begins(texts):
            return False, False
        alone = [expected(text, example) for text in texts]
        ways = {
            "bounded": answers(texts, example),
            "pushed": pushed_answers(texts, example, seeded(f"members:pushed:{number}")),
        }
        if spark and any(alone):
            ways["Spark"] = answers(texts, example, runtime="spark")
    for way, together in ways.items():
        wrong = [i for i in range(len(texts)) if alone[i] != together[i]]
        assert not wrong, f"set {number}, {way}\n" + "\n\n".join(texts[i] for i in wrong[:2])
    return True, any(alone)


@sizes(8, 32, 400)
def test_each_member_has_its_own_answers(examples: int) -> None:
    found = [check(number) for number in range(examples)]
    assert sum(begun for begun, _ in found) > examples // 8
    assert sum(answered for _, answered in found) > examples // 16


@pytest.mark.spark
@pytest.mark.thorough
@pytest.mark.parametrize("examples", [24, pytest.param(60, marks=pytest.mark.slow)])
def test_each_member_has_its_own_answers_on_spark(spark: Any, examples: int) -> None:
    found = [check(number, spark=True) for number in range(examples)]
    assert sum(answered for _, answered in found) > examples // 12


if __name__ == "__main__":
    parser = ArgumentParser()
    parser.add_argument("--spark", action="store_true")
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    chosen = parser.parse_args()
    tried = answered = differ = 0
    for n in range(chosen.first, chosen.first + chosen.cases):
        try:
            begun, some = check(n, chosen.spark)
        except AssertionError as error:
            differ += 1
            print(error, flush=True)
            continue
        tried += begun
        answered += some
    print(f"{chosen.cases} sets, {tried} families, {answered} with answers, {differ} differ")
