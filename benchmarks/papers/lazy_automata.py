"""The lazy automata's experiments (section 8): what meeting the rarest event first gains.

As in the paper, a pattern differs from the next in its operator and window, conditions join each
pair of its events, and the eager automaton is measured beside the lazy one, both in Python. The
paper's condition, a correlation of price histories, is a join on one of 500 keys and a comparison
of values here. For sequences our compiled eager evaluator is drawn, too. Only the second stage is
measured; all evaluators must give the same answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.plots.figures import Band, Curve, Figure
from benchmarks.rare_first import A, B, C, N, Scenario, batches, run
from spaseq.compile import CompileOptions, compile_query

EAGER, LAZY, COMPILED = "registers", "lazy", "compiled-registers"
LABELS = {EAGER: "eager, Python", LAZY: "lazy, Python", COMPILED: "eager, compiled"}
D = "DEFINE GPM D ON S { ?d a :D ; :key ?k ; :value ?vd FILTER(?vd > ?vb) }"
RATES = (1000, 30, 1)
WINDOWS_S = (5, 10, 20, 30)
RATIOS = (1, 3, 10, 33, 100, 300, 700)
PATTERNS = {
    "SEQ3": Scenario("", "A : B : C", (A, B, C), (RATES,)),
    "SEQ4": Scenario("", "A : B : D : C", (A, B, D, C), ((1000, 100, 30, 1),)),
    "NEG3": Scenario("", "A : N! : B : C", (A, N, B, C), ((1000, 300, 30, 1),)),
    "AND2": Scenario("", "(A AND B)", (A, B), ((30, 1),), 10),
}
GAIN = Band("lazy to eager, published", 10, 100)


def rates(scenario: Scenario, events: int, evaluators: tuple[str, ...]) -> list[float]:
    """Events per second of each evaluator, which must give the same answers."""
    found, speeds = [], []
    for evaluator in evaluators:
        plan = compile_query(scenario.query, options=CompileOptions(evaluator=evaluator))
        stream = batches(plan, scenario, events // scenario.divisor, seed=1)
        run(plan, stream[:1])
        answers, _, seconds = run(plan, stream)
        found.append(sorted(map(repr, answers)))
        speeds.append(events // scenario.divisor / seconds)
    if any(answers != found[0] for answers in found):
        raise SystemExit(f"{scenario.sequence}: the evaluators' answers differ")
    return speeds


def scaled(scenario: Scenario, **changes: object) -> Scenario:
    """A scenario with another window or other rates."""
    return Scenario(**{**vars(scenario), **changes})  # type: ignore[arg-type]


def by_window(name: str, scenario: Scenario, events: int) -> Figure:
    """Throughput of a pattern as its window grows."""
    evaluators = (EAGER, LAZY, COMPILED) if name.startswith("SEQ") else (EAGER, LAZY)
    points = [
        rates(scaled(scenario, window_ms=seconds * 1000), events, evaluators)
        for seconds in WINDOWS_S
    ]
    curves = [
        Curve(LABELS[evaluator], WINDOWS_S, [point[i] for point in points])
        for i, evaluator in enumerate(evaluators)
    ]
    return Figure(
        f"lazy-{name.lower()}", f"{name} by window", "window in seconds", "events/s", curves
    )


def figures(folder: Path, events: int, rounds: int) -> Iterator[Figure]:
    """Measure all experiments."""
    del folder, rounds  # nothing is written, and the work of a run varies little
    shown = [by_window(name, scenario, events) for name, scenario in PATTERNS.items()]
    yield from shown
    yield Figure(
        "lazy-gain-window",
        "Gain of the lazy automaton by window",
        "window in seconds",
        "times the eager automaton's rate",
        [
            Curve(
                name, WINDOWS_S, [b / a for a, b in zip(*(c.y for c in f.curves[:2]), strict=True)]
            )
            for name, f in zip(PATTERNS, shown, strict=True)
        ],
        (GAIN,),
    )
    gains = []
    for ratio in RATIOS:
        scenario = scaled(PATTERNS["SEQ3"], parts=((ratio, max(ratio // 5, 1), 1),))
        eager, lazy = rates(scenario, events, (EAGER, LAZY))
        gains.append(lazy / eager)
    yield Figure(
        "lazy-gain-ratio",
        "Gain of the lazy automaton by the rates of its events",
        "most frequent to rarest type",
        "times the eager automaton's rate",
        [Curve("SEQ3, the last step is the rarest", RATIOS, gains)],
        (Band("never slower, published", 1, 1),),
        log_x=True,
    )
