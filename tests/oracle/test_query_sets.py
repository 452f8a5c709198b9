"""Queries that run together give the answers that each gives by itself.

`SPASEQ_ORACLE_SETS` sets the number of sets, and `SPASEQ_ORACLE_SEED` another seed.
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from typing import Any

import pytest

from spaseq.algebra.answers import Answer
from spaseq.compile import CompileOptions, compile_query
from spaseq.kb.load import load_kb
from spaseq.options import FollowOptions
from spaseq.plan.families import families_of
from spaseq.plan.joint_plans import joint_plans
from spaseq.runtime.job.job import Job
from spaseq.runtime.spark import bounded
from spaseq.runtime.spark.following.follow import follow
from tests.oracle.agreement import comparables
from tests.oracle.choices import seeded
from tests.oracle.draw_events import knowledge
from tests.oracle.query_sets import answers, expected, pushed_answers, queries_of
from tests.oracle.spark_sample import apart, deliver_in_turns, directories
from tests.oracle.strategies import EVERYTHING, Case, case
from tests.sizes import sizes
from tests.thresholds import Force

SEED = os.environ.get("SPASEQ_ORACLE_SEED", "3")
SETS = int(os.environ.get("SPASEQ_ORACLE_SETS", "0"))


@sizes(5, 10, 500)
def test_a_set_of_queries_has_the_answers_of_each(
    examples: int, monkeypatch: pytest.MonkeyPatch, force: Force
) -> None:
    force("family_queries=2")
    force("template_queries=1")
    force("template_uses=1")
    answered = families = joint = 0
    for number in range(SETS or examples):
        choices = seeded(f"sets{SEED}:{number}")
        example = case(choices, EVERYTHING)
        texts = queries_of(example, choices, Random(number).choice([3, 6, 30]))
        if len(texts) < 2:
            continue
        options = CompileOptions(several=True)
        own = families_of([compile_query(text, options=options) for text in texts])
        families += len(own)
        joint += len(joint_plans(own))
        alone = [expected(text, example) for text in texts]
        together = answers(texts, example)
        wrong = [n for n in range(len(texts)) if alone[n] != together[n]]
        assert not wrong, f"set {SEED}:{number}\n" + "\n\n".join(texts[n] for n in wrong[:2])
        answered += any(alone)
    assert families >= (SETS or examples) // 8
    assert joint >= (SETS or examples) // 32
    assert answered > (SETS or examples) // 8


@sizes(3, 8, 300)
def test_a_pushed_set_has_the_answers_of_each(
    examples: int, monkeypatch: pytest.MonkeyPatch, force: Force
) -> None:
    force("family_queries=2")
    force("template_queries=1")
    force("template_uses=1")
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


def sets_of(seed: str, examples: int) -> list[tuple[str, Case, str]]:
    """(name, case, text) of the queries of some sets, each with its own streams."""
    found = []
    for number in range(examples):
        choices = seeded(f"{seed}:{number}")
        example = apart(case(choices, EVERYTHING), number)
        texts = queries_of(example, choices, Random(number).choice([3, 6, 12]))
        found += [(f"q{number}x{i}", example, text) for i, text in enumerate(texts)]
    return found


def job_of(queries: list[tuple[str, Case, str]], directory: Path) -> Job:
    """All queries in one run."""
    options = CompileOptions(several=True)
    plans = tuple(compile_query(text, name, options) for name, _, text in queries)
    used = {iri for plan in plans for iri in plan.inputs.streams}
    cases = [*{id(own): own for _, own, _ in queries}.values()]
    streams = [s for s in directories(cases, directory) if s.iri in used]
    return Job(plans, tuple(streams), load_kb(list(knowledge().items())))


@pytest.mark.spark
@pytest.mark.thorough
@pytest.mark.parametrize("way", ["files", "shuffle"])
@pytest.mark.parametrize("examples", [10, pytest.param(50, marks=pytest.mark.slow)])
def test_sets_on_spark(
    spark: Any,
    tmp_path: Path,
    examples: int,
    way: str,
    monkeypatch: pytest.MonkeyPatch,
    force: Force,
) -> None:
    force("family_queries=2")
    monkeypatch.setattr(bounded, "is_one_machine", lambda spark: way == "files")
    queries = sets_of(f"set {SEED}", SETS or examples)
    work = job_of(queries, tmp_path)
    assert len(families_of(work.plans)) > len(work.streams) // 8
    deliver_in_turns([*{id(c): c for _, c, _ in queries}.values()], tmp_path, 0, 1, Random(1))
    found = list(bounded.run(work, spark=spark, partitions=3))
    assert [query for query, _ in found] == sorted(query for query, _ in found)
    check_sets(queries, found)


@pytest.mark.spark
@pytest.mark.thorough
@pytest.mark.parametrize("examples", [12, pytest.param(30, marks=pytest.mark.slow)])
def test_followed_sets_on_spark(spark: Any, tmp_path: Path, examples: int, force: Force) -> None:
    """The run is resumed twice."""
    force("family_queries=2")
    queries = sets_of(f"followed{SEED}", SETS or examples)
    files, random, found = tmp_path / "files", Random(1), []
    work = job_of(queries, files)
    cases = [*{id(own): own for _, own, _ in queries}.values()]
    assert len(families_of(work.plans)) > len(cases) // 8
    for turn in range(3):
        deliver_in_turns(cases, files, turn, 3, random)
        options = FollowOptions(tmp_path / "checkpoint", until_done=True, buckets=2)
        found += follow(work, options, spark=spark)
    assert (work.stats.late, work.stats.bad) == (0, 0)
    check_sets(queries, found)


def check_sets(queries: list[tuple[str, Case, str]], found: list[tuple[int, Answer]]) -> None:
    """Each query has the answers that it has alone."""
    own: list[list[Answer]] = [[] for _ in queries]
    for query, answer in found:
        own[query].append(answer)
    wrong = [
        f"{name}\n{text}"
        for (name, example, text), answers in zip(queries, own, strict=True)
        if comparables(answers) != expected(text, example)
    ]
    assert not wrong, "\n\n".join(wrong[:2])
    assert sum(map(bool, own)) > len(queries) // 8
