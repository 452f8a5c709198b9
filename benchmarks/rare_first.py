#!/usr/bin/env python3
"""Rare-first (lazy) evaluation compared with arrival order (registers): work, speed and memory.

    python benchmarks/rare_first.py [--events 100000] [--seed 1] [--only NAME] [--json FILE]

Only the second stage is measured: its input is solutions of the GPMs, as from the first stage. The
type of each event is drawn by weight; the event also has one of 500 keys and a value. All steps
join on the key, and values must fall, then rise far. Both evaluators run in this process and must
give the same answers. A star marks the planner's choice.

Speed is in events per second of CPU time. A separate run measures work and memory. *Candidates* is
the number of solutions compared with a partial match; the start of a register run counts as one,
and so does a last event from which a search starts. *Conditions* is the number of evaluated FILTERs
between events. *Peak* is Python's peak allocated memory without the input.
"""

from __future__ import annotations

import argparse
import json
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spaseq.automaton.run.work_counts import WorkCounts
from spaseq.compile import CompileOptions, compile_query
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.term_columns import NumberColumn, TermColumn, text_array
from spaseq.rdf.terms.number_kinds import EXACT, OTHER
from spaseq.stages.sequence import SequenceStage

KEYS = 500
VALUES = 1000
WINDOW_MS = 20_000  # an event per ms
BATCH = 10_000

A = "DEFINE GPM A ON S { ?a a :A ; :key ?k ; :value ?va }"
B = "DEFINE GPM B ON S { ?b a :B ; :key ?k ; :value ?vb FILTER(?vb < ?va) }"
C = "DEFINE GPM C ON S { ?c a :C ; :key ?k ; :value ?vc FILTER(?vc > ?va + 500) }"
N = "DEFINE GPM N ON S { ?n a :N ; :key ?k ; :value ?vn FILTER(?vn > ?va && ?vn > ?vc) }"


@dataclass(frozen=True)
class Scenario:
    """A query, and the weights of its GPMs, in text order, for each part of the stream."""

    name: str
    sequence: str
    gpms: tuple[str, ...]
    parts: tuple[tuple[int, ...], ...]
    divisor: int = 1  # the stream has this many times fewer events
    window_ms: int = WINDOW_MS

    @property
    def query(self) -> str:
        """The text of the query."""
        return f"""PREFIX : <http://e.example/> SELECT * WITHIN {self.window_ms} MILLISECONDS
        FROM STREAM S <http://e.example/s>
        WHERE {{ SEQ({self.sequence}) {" ".join(self.gpms)} }}"""


SCENARIOS = (
    Scenario("last step 1000x rarer", "A : B : C", (A, B, C), ((1000, 30, 1),)),
    Scenario("first step rarest", "A : B : C", (A, B, C), ((1, 30, 1000),)),
    Scenario("middle step rarest", "A : B : C", (A, B, C), ((1000, 1, 1000),)),
    Scenario("equal rates", "A : B : C", (A, B, C), ((1, 1, 1),)),
    Scenario("rates flip half-way", "A : B : C", (A, B, C), ((1000, 30, 1), (1, 30, 1000))),
    Scenario("two steps, equal rates", "A : B", (A, B), ((1, 1),)),
    Scenario("AND, equal rates", "(A AND B)", (A, B), ((1, 1),), 10),
    Scenario("AND, one rarest", "(A AND B AND C)", (A, B, C), ((20, 5, 1),), 10),
    Scenario("negation, last rarest", "A : N! : B : C", (A, N, B, C), ((1000, 300, 30, 1),)),
    Scenario("negation, equal rates", "A : N! : B : C", (A, N, B, C), ((1, 1, 1, 1),)),
)


@dataclass(frozen=True)
class Result:
    """The measurement of one evaluator on one scenario."""

    scenario: str
    evaluator: str
    chosen: bool
    events: int
    answers: int
    candidates: int
    conditions: int
    seconds: float
    peak_mb: float

    @property
    def speed(self) -> float:
        """Events per second."""
        return self.events / self.seconds


def batches(plan: QueryPlan, scenario: Scenario, events: int, seed: int) -> list[SolutionBatch]:
    """The solutions of a stream with one event per millisecond."""
    random = np.random.default_rng(seed)
    names = [gpm.split()[2] for gpm in scenario.gpms]
    numbers = [[g.name for g in plan.patterns.gpms].index(name) for name in names]
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
    iris = np.array([f"<http://e.example/e/{i}>" for i in range(total)], dtype=object)
    terms, figures = {}, {}
    for variable in plan.patterns.columns.variables:
        bound = [n for n, g in zip(numbers, names, strict=True) if variable in _variables(plan, g)]
        options = texts.get(variable)
        drawn, column = None, iris
        if options is not None:
            drawn = random.integers(len(options), size=total)
            column = options[drawn]
        terms[variable] = TermColumn.of(np.where(np.isin(gpm, bound), column, None))
        if variable in plan.patterns.columns.numbers and drawn is not None:
            is_bound = np.isin(gpm, bound)
            kinds = np.where(is_bound, EXACT, OTHER).astype(np.int8)
            figures[variable] = NumberColumn(np.where(is_bound, drawn, np.nan), kinds)
    whole = SolutionBatch(
        np.zeros(total, np.int32),
        np.arange(total, dtype=np.int64),
        np.zeros(total, np.int32),
        gpm,
        text_array(iris),
        terms,
        figures,
    )
    return [whole.take(slice(i, i + BATCH)) for i in range(0, total, BATCH)]


def _variables(plan: QueryPlan, gpm: str) -> tuple[str, ...]:
    return next(g.variables for g in plan.patterns.gpms if g.name == gpm)


def run(plan: QueryPlan, stream: Sequence[SolutionBatch]) -> tuple[list[Any], WorkCounts, float]:
    """The answers' traces, the work counts, and CPU seconds."""
    stage = SequenceStage(plan)
    answers: list[Any] = []
    start = time.process_time()
    for batch in stream:
        stage.push(batch)
        answers += [a.trace for a in stage.advance(int(batch.time[-1]))]
    answers += [a.trace for a in stage.close()]
    return answers, stage.work, time.process_time() - start


def measure(scenario: Scenario, events: int, seed: int) -> tuple[Result, Result]:
    """Measure both evaluators on one scenario."""
    text = scenario.query
    chosen = compile_query(text).sequence.evaluator.name
    results: list[Result] = []
    answers = []
    for evaluator in ("registers", "lazy"):
        plan = compile_query(text, options=CompileOptions(evaluator=evaluator))
        stream = batches(plan, scenario, events, seed)
        found, _, seconds = run(plan, stream)
        tracemalloc.start()
        _, work, _ = run(plan, stream)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        answers.append(found)
        results.append(
            Result(
                scenario.name,
                evaluator,
                evaluator == chosen,
                events,
                len(found),
                work.candidates,
                work.conditions,
                round(seconds, 3),
                round(peak / 1e6, 1),
            )
        )
    if answers[0] != answers[1]:
        raise SystemExit(f"{scenario.name}: the evaluators' answers differ")
    eager, lazy = results
    return eager, lazy


HEADING = (
    f"{'stream':22} {'evaluator':10} {'answers':>8} {'candidates':>11} {'conditions':>11} "
    f"{'events/s':>9} {'peak MB':>8}"
)


def lines(eager: Result, lazy: Result) -> Iterator[str]:
    """The results of one scenario, with the factor by which lazy is better."""
    for r in (eager, lazy):
        name = r.evaluator + ("*" if r.chosen else "")
        yield (
            f"{r.scenario:22} {name:10} {r.answers:8} {r.candidates:11} "
            f"{r.conditions:11} {r.speed:9.0f} {r.peak_mb:8.1f}"
        )
    ratios = [
        _ratio(eager.candidates, lazy.candidates, 11),
        _ratio(eager.conditions, lazy.conditions, 11),
        _ratio(lazy.speed, eager.speed, 9),
        _ratio(eager.peak_mb, lazy.peak_mb, 8),
    ]
    yield f"{'':22} {'ratio':10} {'':8} " + " ".join(ratios)


def _ratio(better: float, base: float, width: int) -> str:
    return f"{better / base:{width - 1}.2f}x" if base else f"{'-':>{width}}"


def main() -> None:
    """Measure all scenarios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="also write the results to a file")
    parser.add_argument("--only", default="", help="only scenarios whose name contains this")
    options = parser.parse_args()
    results: list[Result] = []
    print(HEADING)
    for scenario in SCENARIOS:
        if options.only in scenario.name:
            pair = measure(scenario, options.events // scenario.divisor, options.seed)
            print("\n".join(lines(*pair)), flush=True)
            results += pair
    if options.json:
        options.json.write_text(json.dumps([asdict(r) for r in results], indent=2) + "\n")


if __name__ == "__main__":
    main()
