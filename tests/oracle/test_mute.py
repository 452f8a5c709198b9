"""MUTE in the engine against the oracle: the same answers, and as many muted ones.

`python -m tests.oracle.test_mute N` tries N drawn cases, and prints what they exercised.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from spaseq.kb.load import load_kb
from spaseq.lang import ast
from tests.oracle.agreement import Tally, compare, parsed
from tests.oracle.answers import muted, select
from tests.oracle.choices import Choices, seeded
from tests.oracle.engine import Arrival, solved
from tests.oracle.model import TooBig
from tests.oracle.oracle import QueryRun
from tests.oracle.strategies import EVERYTHING, Case, case
from tests.sizes import sizes

TIMES = ("1 MILLISECONDS", "1 SECONDS", "2000 MILLISECONDS", "4 SECONDS", "1 MINUTES")


def muting(example: Case, choices: Choices) -> Case:
    """The case with MUTE in its query."""
    mute, text = f"MUTE {choices.pick(list(TIMES))}", example.query
    if "MUTE" in text:
        return example
    found = re.search(r"(?m)^AFTER MATCH .*$", text)
    if found is not None:
        return replace(example, query=f"{text[: found.end()]} {mute}{text[found.end() :]}")
    query = re.sub(r"(?m)^(WITHIN .*)$", rf"\1\nAFTER MATCH {mute}", text, count=1)
    return replace(example, query=query)


def muted_by_oracle(query: ast.Query, example: Case) -> int:
    run, count = QueryRun(query, example.streams, example.kb), 0
    strategy = getattr(query.form, "strategy", "ALL")
    assert query.skip is not None
    for key, events in run.partitions():
        having = [a for a in run.matched(key, events) if run.has(a)]
        count += muted(query.skip, select(strategy, having, sorted({e.instant for e in events})))
    return count


def tried(seed: str, examples: int) -> Counter[str]:
    """Compare drawn cases; a disagreement fails the test. Gives how many muted answers."""
    counts, number, tally = Counter[str](), 0, Tally()
    while counts["compared"] < examples:
        name, number = f"{seed}:{number}", number + 1
        choices = seeded(name)
        example = muting(case(choices, EVERYTHING - {"MUTE"}), choices)
        before = tally.compared
        wrong = compare(example, tally, Random(name))
        if wrong is not None:
            pytest.fail(f"{name}: {wrong.kind}\n{wrong.text}", pytrace=False)
        if tally.compared == before:
            continue
        counts["compared"] += 1
        query, plans = parsed(example.query)
        try:
            expected = muted_by_oracle(query, example)
        except TooBig:
            continue
        counts["with muted answers"] += expected > 0
        times = sorted(time for rows in example.streams.values() for time, _, _ in rows)
        for evaluator, plan in plans.items():
            arrival = Arrival(Random(name), knowledge=load_kb([*(example.kb or {}).items()]))
            arrival.answers(plan, solved(plan, example.streams, example.kb, Random(name)), times)
            assert arrival.muted == expected, f"{name} on {evaluator}: {example.query}"
            counts[f"muted on {evaluator}"] += expected > 0
    return counts


@sizes(8, 20, 3000)
def test_muted_answers(examples: int) -> None:
    counts = tried("muted", examples)
    assert counts["with muted answers"] >= examples // 10


if __name__ == "__main__":
    print(tried("by name", int(sys.argv[1])))
