#!/usr/bin/env python3
"""Rare-first (lazy) evaluation against arrival order (registers): work, time, and what is stored.

    python benchmarks/rare_first.py [--events 200000] [--seed 1] [--json FILE]

The second stage alone is measured: solutions of the GPMs go in, as the first stage would give them.
Every event is one of some types, drawn by weight, with one of 500 keys and a value; all steps join
on the key, and values must fall, then rise far. Both evaluators must give the same answers.

Work is counted in a run of its own: *candidates* are the solutions looked at for a partial match (a
register run that begins counts as one), *conditions* the FILTERs between events that are evaluated.
*Stored* is the largest number of runs, or of stored solutions, at the end of any batch.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from spaseq.automaton import machine
from spaseq.automaton.evaluators import lazy_search, registers
from spaseq.compile import compile_query
from spaseq.engine import SequenceStage
from spaseq.plan.nodes import QueryPlan
from spaseq.rdf.batches import SolutionBatch

KEYS = 500
VALUES = 1000
WINDOW_MS = 20_000  # an event per ms
BATCH = 10_000

HEAD = f"""PREFIX : <http://e.example/>
SELECT * WITHIN {WINDOW_MS} MILLISECONDS FROM STREAM S <http://e.example/s>
"""
A = "DEFINE GPM A ON S { ?a a :A ; :key ?k ; :value ?va }"
B = "DEFINE GPM B ON S { ?b a :B ; :key ?k ; :value ?vb FILTER(?vb < ?va) }"
C = "DEFINE GPM C ON S { ?c a :C ; :key ?k ; :value ?vc FILTER(?vc > ?va + 500) }"
N = "DEFINE GPM N ON S { ?n a :N ; :key ?k ; :value ?vn FILTER(?vn > ?va && ?vn > ?vc) }"


@dataclass(frozen=True)
class Scenario:
    """A query, and the weights of its GPMs in each part of the stream, in the order of the text."""

    name: str
    sequence: str
    gpms: tuple[str, ...]
    parts: tuple[tuple[int, ...], ...]
    divisor: int = 1  # the stream has this many times fewer events


SCENARIOS = (
    Scenario("last step rare", "A : B : C", (A, B, C), ((1000, 30, 1),)),
    Scenario("rates flip half-way", "A : B : C", (A, B, C), ((1000, 30, 1), (1, 30, 1000))),
    Scenario("middle step rare", "A : B : C", (A, B, C), ((1000, 1, 1000),)),
    Scenario("first step rare", "A : B : C", (A, B, C), ((1, 30, 1000),)),
    Scenario("equal rates", "A : B : C", (A, B, C), ((1, 1, 1),)),
    Scenario("AND, one rare", "(A AND B AND C)", (A, B, C), ((20, 5, 1),), 20),
    Scenario("negation, last rare", "A : N! : B : C", (A, N, B, C), ((1000, 300, 30, 1),)),
)


@dataclass
class Work:
    """What a run looked at."""

    candidates: int = 0
    conditions: int = 0


@dataclass(frozen=True)
class Result:
    """One evaluator on one scenario."""

    scenario: str
    evaluator: str
    events: int
    answers: int
    candidates: int
    conditions: int
    stored: int
    seconds: float


def batches(plan: QueryPlan, scenario: Scenario, events: int, seed: int) -> list[SolutionBatch]:
    """The solutions of a stream with one event per millisecond."""
    random = np.random.default_rng(seed)
    names = [gpm.split()[2] for gpm in scenario.gpms]
    numbers = [[g.name for g in plan.gpms].index(name) for name in names]
    share = events // len(scenario.parts)
    gpm = np.concatenate(
        [random.choice(numbers, share, p=np.divide(w, sum(w))) for w in scenario.parts]
    ).astype(np.int32)
    total = len(gpm)
    keys = np.array([f"<http://e.example/k/{i}>" for i in range(KEYS)], dtype=object)
    values = np.array(
        [f'"{i}"^^<http://www.w3.org/2001/XMLSchema#integer>' for i in range(VALUES)], dtype=object
    )
    texts = {"k": keys, **{f"v{n.lower()}": values for n in names}}
    events_iris = np.array([f"<http://e.example/e/{i}>" for i in range(total)], dtype=object)
    columns = {}
    for variable in plan.variables:
        options = texts.get(variable)
        drawn = events_iris
        if options is not None:
            drawn = options[random.integers(len(options), size=total)]
        bound = [n for n, g in zip(numbers, names, strict=True) if variable in _variables(plan, g)]
        columns[variable] = np.where(np.isin(gpm, bound), drawn, None)
    whole = SolutionBatch(
        np.zeros(total, np.int32),
        np.arange(total, dtype=np.int64),
        np.zeros(total, np.int32),
        gpm,
        events_iris,
        columns,
    )
    return [whole.take(slice(i, i + BATCH)) for i in range(0, total, BATCH)]


def _variables(plan: QueryPlan, gpm: str) -> tuple[str, ...]:
    return next(g.variables for g in plan.gpms if g.name == gpm)


def run(plan: QueryPlan, stream: Sequence[SolutionBatch]) -> tuple[list[Any], int, float]:
    """The answers' places, the largest number stored, and seconds."""
    stage = SequenceStage(plan)
    answers: list[Any] = []
    stored = 0
    start = time.perf_counter()
    for batch in stream:
        stage.push(batch)
        answers += [a.trace for a in stage.advance(int(batch.time[-1]))]
        stored = max(stored, stage.live_runs())
    answers += [a.trace for a in stage.close()]
    return answers, stored, time.perf_counter() - start


@contextmanager
def counting() -> Iterator[Work]:
    """Count what both evaluators look at."""
    work = Work()

    def candidates(method: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any) -> Any:
            work.candidates += 1
            return method(*args)

        return counted

    def conditions(compile_filter: Callable[..., Any]) -> Callable[..., Any]:
        def compiled(*args: Any) -> Callable[[Any], bool]:
            holds = compile_filter(*args)

            def counted(env: Any) -> bool:
                work.conditions += 1
                return bool(holds(env))

            return counted

        return compiled

    with (
        patch.object(machine, "compile_filter", conditions(machine.compile_filter)),
        patch.object(registers.Partition, "_take", candidates(registers.Partition._take)),
        patch.object(lazy_search.Search, "_pass", candidates(lazy_search.Search._pass)),
    ):
        yield work


def measure(scenario: Scenario, events: int, seed: int) -> list[Result]:
    """Both evaluators on one scenario."""
    text = f"{HEAD} WHERE {{ SEQ({scenario.sequence}) {' '.join(scenario.gpms)} }}"
    results, answers = [], []
    for evaluator in ("registers", "lazy"):
        plan = compile_query(text, evaluator=evaluator)
        stream = batches(plan, scenario, events, seed)
        found, stored, seconds = run(plan, stream)
        with counting() as work:
            run(plan, stream)
        answers.append(found)
        results.append(
            Result(
                scenario.name,
                evaluator,
                events,
                len(found),
                work.candidates,
                work.conditions,
                stored,
                round(seconds, 3),
            )
        )
    if answers[0] != answers[1]:
        raise SystemExit(f"{scenario.name}: the evaluators' answers differ")
    return results


def table(results: Sequence[Result]) -> Iterator[str]:
    """The results as lines, each pair with its ratios."""
    yield (
        f"{'stream':22} {'evaluator':10} {'answers':>8} {'candidates':>11} {'conditions':>11} "
        f"{'stored':>8} {'us/event':>9}"
    )
    for eager, lazy in zip(results[::2], results[1::2], strict=True):
        for r in (eager, lazy):
            yield (
                f"{r.scenario:22} {r.evaluator:10} {r.answers:8} {r.candidates:11} "
                f"{r.conditions:11} {r.stored:8} {r.seconds / r.events * 1e6:9.2f}"
            )
        ratios = [
            _ratio(eager.candidates, lazy.candidates, 11),
            _ratio(eager.conditions, lazy.conditions, 11),
            _ratio(eager.stored, lazy.stored, 8),
            _ratio(eager.seconds, lazy.seconds, 9),
        ]
        yield f"{'':22} {'ratio':10} {'':8} " + " ".join(ratios)


def _ratio(eager: float, lazy: float, width: int) -> str:
    return f"{eager / lazy:{width - 1}.1f}x" if lazy else f"{'-':>{width}}"


def main() -> None:
    """Measure all scenarios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the results to a file, too")
    parser.add_argument("--only", default="", help="scenarios whose name has this in it")
    options = parser.parse_args()
    results: list[Result] = []
    for scenario in SCENARIOS:
        if options.only in scenario.name:
            results += measure(scenario, options.events // scenario.divisor, options.seed)
    print("\n".join(table(results)))
    if options.json:
        options.json.write_text(json.dumps([asdict(r) for r in results], indent=2) + "\n")


if __name__ == "__main__":
    main()
