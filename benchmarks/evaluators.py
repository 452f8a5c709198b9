#!/usr/bin/env python3
"""The chain and the compact evaluator as the number of partial matches grows.

    python benchmarks/evaluators.py [--events 10000] [--json FILE]
    python benchmarks/evaluators.py --forms [NAME]

With --forms, the compiled and the Python evaluator of every form of sequence, side by side: see
`evaluator_forms.py`. Without, only the evaluators are measured. Each event has one solution, and no
event ends a match. The window is filled before the measurement. *Partial* is the exact number of
partial matches in the window. *Time* is the CPU time per event in the best of a few rounds.
*Memory* is the memory of the evaluator divided by the number of events in the window; it does not
include the solutions, which the evaluator shares. Time and memory should stay flat, within a factor
of two, from the first line of a scenario to its last. *First* is the time of an event that ends all
matches: the evaluator returns the first 10 matches and counts the others exactly. It grows with the
number of events in the window, not with the number of matches. Registers are measured only for
windows that finish in reasonable time.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import time
import tracemalloc
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import evaluator_forms

from spaseq.algebra.answers import Instant
from spaseq.automaton.evaluators import PartitionEvaluator, RowsByGpm, partitions
from spaseq.automaton.program.gpm_columns import GpmColumns
from spaseq.automaton.run.machine import Machine
from spaseq.automaton.run.runs import Row
from spaseq.automaton.sets.python.compact_evaluator import CompactEvaluator
from spaseq.compile import CompileOptions, compile_query

GPMS = "".join(f" DEFINE GPM {n} ON S {{ ?{n.lower()} :is :{n} }}" for n in "ABCD")
LIMIT = 10
ROUNDS = 4
FLAT = 2.0


@dataclass(frozen=True)
class Scenario:
    """A sequence whose last step is C, the GPMs of its stream, and windows in events."""

    name: str
    evaluator: str
    sequence: str
    stream: str  # names of GPMs, repeated
    windows: tuple[int, ...]
    registers: tuple[int, ...] = ()  # windows for which registers are measured


SCENARIOS = (
    Scenario("window", "chain", "A: B: C", "AB", (1000, 3162, 10_000, 31_623), (32, 100, 316)),
    Scenario("window", "chain", "A; B; C", "AAAAAAAAAB", (1000, 3162, 10_000, 31_623), (1000,)),
    Scenario("window", "compact", "A: (B | D): C", "AABD", (1000, 3162, 10_000, 31_623)),
    Scenario("repetition", "compact", "A: B+: C", "ABBB", (1000, 1004, 1008, 1013), (4, 8, 12)),
    Scenario("repetition", "compact", "A: B+: C", "ABBB", (1000, 3162, 10_000, 31_623)),
    Scenario("repetition", "compact", "A; B+; D*; C", "ABBD", (1000, 3162, 10_000, 31_623)),
)


@dataclass(frozen=True)
class Line:
    """One measurement; `partial_log10` is the logarithm of the number of partial matches."""

    scenario: str
    sequence: str
    evaluator: str
    window: int
    partial_log10: float
    time_us: float
    memory_bytes: float
    first_ms: float


class Input:
    """The solutions of a scenario: one event a second."""

    def __init__(self, scenario: Scenario, evaluator: str, window: int) -> None:
        self._names, self._window = scenario.stream, window
        text = (
            f"PREFIX : <http://e.example/> SELECT * WITHIN {window} SECONDS "
            f"FROM STREAM S <http://e.example/s> WHERE {{ SEQ({scenario.sequence}) {GPMS} }}"
        )
        self._plan = compile_query(text, options=CompileOptions(evaluator=evaluator))
        self._numbers = {g.name: i for i, g in enumerate(self._plan.patterns.gpms)}

    def partition(self) -> PartitionEvaluator:
        """An empty partition of the query."""
        plan = self._plan
        machine = Machine(
            plan.sequence.program,
            plan.sequence.window,
            [GpmColumns(g.variables) for g in plan.patterns.gpms],
            [g.name for g in plan.patterns.gpms],
            evaluator=plan.sequence.evaluator.name,
            limit=LIMIT,
        )
        return partitions(machine)()

    def steps(self, count: int) -> list[tuple[Instant, RowsByGpm, int]]:
        """The first events, as arguments of `step`."""
        return [self._step(i, self._names[i % len(self._names)]) for i in range(count)]

    def end(self, after: int) -> tuple[Instant, RowsByGpm, int]:
        """The event that ends the matches."""
        return self._step(after, "C")

    def _step(self, second: int, name: str) -> tuple[Instant, RowsByGpm, int]:
        time_ms = 1000 * second
        gpm = self._numbers[name]
        variables = self._plan.patterns.gpms[gpm].variables
        values = (f"<http://e.example/{second}>",) if variables else ()
        row: Row = (0, time_ms, 0, None, values)
        return (time_ms, 0), {gpm: [row]}, 1


def measure(scenario: Scenario, evaluator: str, window: int, events: int) -> Line:
    """Measure one evaluator on one window: fill it, time it, end it; again for memory."""
    given = Input(scenario, evaluator, window)
    partition = given.partition()
    full = 3 * window
    steps = given.steps(full + ROUNDS * events)
    for step in steps[:full]:
        partition.step(*step)
    gc.collect()
    spent = min(timed(partition, steps[i : i + events]) for i in range(full, len(steps), events))
    partial = math.nan
    if isinstance(partition, CompactEvaluator):
        partial = math.log10(partition.partial_matches())
    started = time.process_time()
    partition.step(*given.end(len(steps)))
    first = time.process_time() - started
    return Line(
        scenario.name,
        scenario.sequence,
        evaluator,
        window,
        partial,
        1e6 * spent / events,
        held(given, steps[:full]) / window,
        1e3 * first,
    )


def timed(partition: PartitionEvaluator, steps: list[tuple[Instant, RowsByGpm, int]]) -> float:
    """CPU seconds for some steps."""
    started = time.process_time()
    for step in steps:
        partition.step(*step)
    return time.process_time() - started


def held(given: Input, steps: list[tuple[Instant, RowsByGpm, int]]) -> int:
    """Bytes that a partition holds after some steps, without the solutions."""
    gc.collect()
    tracemalloc.start()
    partition = given.partition()
    for step in steps:
        partition.step(*step)
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return held


def lines(events: int) -> Iterator[Line]:
    """All measurements, scenario by scenario."""
    for scenario in SCENARIOS:
        for window in scenario.registers:
            yield measure(scenario, "registers", window, events // 50)
        for window in scenario.windows:
            yield measure(scenario, scenario.evaluator, window, events)


HEADER = (
    "scenario",
    "sequence",
    "evaluator",
    "window",
    "partial",
    "µs/event",
    "B/event",
    "first ms",
)
FORM = "{:<11} {:<14} {:<10} {:>7} {:>10} {:>9} {:>8} {:>9}"


def shown(line: Line) -> str:
    """A measurement as a line of the table."""
    partial = "" if math.isnan(line.partial_log10) else f"10^{line.partial_log10:.1f}"
    numbers = f"{line.time_us:.1f}", f"{line.memory_bytes:.0f}", f"{line.first_ms:.1f}"
    return FORM.format(line.scenario, line.sequence, line.evaluator, line.window, partial, *numbers)


def spread(found: list[Line]) -> Iterator[str]:
    """The ratio of the largest to the smallest value of each scenario."""
    for scenario in SCENARIOS:
        mine = [
            line
            for line in found
            if (line.sequence, line.evaluator) == (scenario.sequence, scenario.evaluator)
            and line.scenario == scenario.name
            and line.window in scenario.windows
        ]
        times, memories = [x.time_us for x in mine], [x.memory_bytes for x in mine]
        ratios = max(times) / min(times), max(memories) / min(memories)
        verdict = "flat" if max(ratios) <= FLAT else "NOT FLAT"
        yield (
            f"{scenario.sequence:<14} {scenario.evaluator:<8} time x{ratios[0]:.2f}, "
            f"memory x{ratios[1]:.2f}: {verdict}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, default=10_000, help=f"events timed, {ROUNDS} times")
    parser.add_argument("--json", metavar="FILE", help="also write the measurements to a file")
    parser.add_argument(
        "--forms", metavar="NAME", nargs="?", const="", help="forms whose name begins with NAME"
    )
    options = parser.parse_args()
    if options.forms is not None:
        evaluator_forms.main(options.forms)
        return
    print(FORM.format(*HEADER))
    found = []
    for line in lines(options.events):
        print(shown(line), flush=True)
        found.append(line)
    print()
    print(*spread(found), sep="\n")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump([asdict(line) for line in found], file, indent=2)


if __name__ == "__main__":
    main()
