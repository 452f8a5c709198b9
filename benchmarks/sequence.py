#!/usr/bin/env python3
"""Sequences: the compiled evaluators, alone and in the whole stage.

    python benchmarks/sequence.py [--events 2000000] [--rounds 5] [--only NAME] [--json FILE]

Every millisecond has one event with one solution; its step is drawn uniformly. In *sets* scenarios
(chain and compact) no event matches the last step, so no match ends: partial matches accumulate
within the window, which counts events. In *registers* scenarios the value of each later step must
exceed the value of the first one with the same key, and matches end all the time. Matches also end
in *SELECT* scenarios: a strategy keeps one match per instant, or the matches without gaps.
*SELECT ALL* returns all matches.

*Kernel* measures the kernel alone. *Stage* measures the whole second stage of a query, from columns
of solutions to answers. Both are in millions of events per second of CPU time: the median of the
rounds. *B/node* is the size of the kernel's arrays at the end, per partial match (registers) or
node (sets). `evaluator_forms.py` compares with the evaluator in Python.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np

from spaseq.automaton.batch.frame import BatchFrame
from spaseq.automaton.program.nfa import GpmColumns
from spaseq.automaton.registers.compiled.answers import AskedAnswers
from spaseq.automaton.registers.compiled.run_state import RunState
from spaseq.automaton.registers.compiled.run_tables import run_tables
from spaseq.automaton.sets.compiled.chain_state import ChainState
from spaseq.automaton.sets.compiled.compact_state import CompactState
from spaseq.automaton.sets.python.determinise import DeterministicAutomaton
from spaseq.automaton.sets.python.expand import expand
from spaseq.compile import CompileOptions, compile_query
from spaseq.expr.compile import Options
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.event_batch import EventNames
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.term_columns import NumberColumn, TermColumn, text_array
from spaseq.rdf.terms.number_kinds import DOUBLE
from spaseq.stages.sequence import SequenceStage

NAMES = "ABCDEFGHIJKLMNOPQRSTUVWX"
BATCH = 16_384
SELECTED = 100_000
"""Number of events in SELECT scenarios."""
ENDING = 200_000
"""Number of events for the whole stage if matches end; answers take most of the time there."""


@dataclass(frozen=True)
class Scenario:
    """A sequence, its window in events, and its number of keys (0: no key)."""

    name: str
    sequence: str
    window: int
    keys: int = 0
    evaluator: str | None = None  # None: the planner's choice
    endless: bool = False  # no event matches the last step, in a correlated scenario either

    @property
    def strategy(self) -> str:
        """The selection strategy, if the scenario measures one."""
        return self.name.removeprefix("SELECT ") if self.name.startswith("SELECT ") else ""

    @property
    def ends(self) -> bool:
        """Whether matches end."""
        correlated = self.name.startswith("correlated") and not self.endless
        return bool(self.strategy) or correlated

    @property
    def steps(self) -> str:
        """The names of the GPMs."""
        return "".join(n for n in NAMES if n in self.sequence)


def plain(steps: int, operator: str) -> str:
    """A sequence without conditions."""
    return operator.join(NAMES[:steps])


SCENARIOS = (
    *(Scenario("chain", plain(n, ": "), w) for n in (3, 6, 12) for w in (100, 10_000, 1_000_000)),
    *(Scenario("chain", plain(3, op), 10_000) for op in ("; ", ", ")),
    Scenario("chain by key", plain(3, "; "), 10_000, 100),
    *(
        Scenario("compact", plain(n, ": "), w, evaluator="compiled-compact")
        for n in (3, 6, 12)
        for w in (100, 10_000, 1_000_000)
    ),
    *(Scenario("Kleene", "A: B+: C", w) for w in (100, 10_000, 1_000_000)),
    Scenario("Kleene", "A; B+; C*; D", 10_000),
    *(Scenario("correlated", "A; B; C", 1000, k) for k in (1, 100, 10_000, 100_000)),
    *(Scenario("correlated", "A; B; C", 100_000, k) for k in (1, 100, 100_000)),
    *(Scenario("correlated Kleene", "A; B+; C", w, k) for w, k in ((30, 1), (3000, 100))),
    *(Scenario(f"SELECT {s}", "A: B: C", 30) for s in ("ALL", "NEXT", "LAST", "STRICT", "MAX")),
    *(Scenario(f"SELECT {s}", "A: B: C", 1000) for s in ("NEXT", "LAST", "STRICT")),
    *(Scenario(f"SELECT {s}", "A: B+: C", 30) for s in ("NEXT", "LAST")),
)


@dataclass(frozen=True)
class Line:
    """One measurement: millions of events per second."""

    scenario: str
    sequence: str
    window: int
    keys: int
    evaluator: str
    kernel: float | None
    stage: float
    node_bytes: float | None


class Input:
    """The solutions of a scenario."""

    def __init__(self, scenario: Scenario, evaluator: str | None = None) -> None:
        self._scenario, self.correlated = scenario, scenario.name.startswith("correlated")
        key = " ; :k ?k" if scenario.keys else ""
        gpms = []
        for name in scenario.steps:
            v = f"v{name.lower()}"
            later = f" FILTER(?{v} > ?va)" if self.correlated and name != "A" else ""
            value = f" ; :v ?{v}" if self.correlated else ""
            gpms.append(f"DEFINE GPM {name} ON S {{ [] a :{name}{key}{value}{later} }}")
        self.plan: QueryPlan = compile_query(
            f"PREFIX : <http://e.example/> SELECT {scenario.strategy} * "
            f"WITHIN {scenario.window} MILLISECONDS "
            f"{'PARTITION BY (?k)' if key else ''} FROM STREAM S <http://e.example/s> "
            f"WHERE {{ SEQ({scenario.sequence}) {' '.join(gpms)} }}",
            options=CompileOptions(evaluator=evaluator),
        )

    def batches(self, count: int) -> Iterator[SolutionBatch]:
        """The first `count` solutions."""
        dice, scenario = np.random.default_rng(1), self._scenario
        keys = text_array([f"<http://e.example/{i}>" for i in range(max(scenario.keys, 1))])
        labels = text_array([f'"{name}"' for name in NAMES])
        last = len(scenario.steps) - (not scenario.ends)
        for first in range(0, count, BATCH):
            n = min(BATCH, count - first)
            gpm = dice.integers(0, last, n).astype(np.int32)
            key = TermColumn(dice.integers(0, len(keys), n).astype(np.int32), keys)
            value = NumberColumn(dice.random(n) * 1000, np.full(n, DOUBLE, np.int8))
            zeros = np.zeros(n, np.int32)
            variables = self.plan.patterns.columns.variables
            terms = {v: key if v == "k" else TermColumn(gpm, labels) for v in variables}
            yield SolutionBatch(
                zeros,
                np.arange(first, first + n),
                zeros,
                gpm,
                EventNames.of([None] * n),
                terms,
                dict.fromkeys(self.plan.patterns.columns.numbers, value),
            )


def stage_rate(given: Input, batches: list[SolutionBatch]) -> float:
    """Millions of events per second, of the whole stage."""
    stage = SequenceStage(given.plan)
    started = time.process_time()
    for batch in batches:
        stage.push(batch)
        stage.advance(int(batch.time[-1]))
    return sum(map(len, batches)) / (time.process_time() - started) / 1e6


def kernel_rate(given: Input, batches: list[SolutionBatch]) -> tuple[float, float]:
    """Millions of events per second of the kernel alone, and bytes per node."""
    if given.plan.sequence.evaluator.name == "compiled-registers":
        return runs_rate(given.plan, batches)
    return sets_rate(given.plan, batches)


def _columns(plan: QueryPlan) -> list[GpmColumns]:
    return [GpmColumns(g.variables, g.conditions, g.certain) for g in plan.patterns.gpms]


def runs_rate(plan: QueryPlan, batches: list[SolutionBatch]) -> tuple[float, float]:
    """`kernel_rate` of the register kernel."""
    columns, sequence = _columns(plan), plan.sequence
    partition, window = sequence.partition, sequence.window
    tables = run_tables(sequence.program, columns, partition, window)
    runs = RunState(tables, AskedAnswers(tables, Options(), {}))
    frame = BatchFrame(columns, partition, tables.key, window, tables.strict)
    spent, events = 0.0, 0
    for batch in batches:
        solutions, rows = frame.rows(batch)
        numbers = np.array([solutions.numbers[n.variable].value for n in tables.numbers])
        runs.grow(frame.keys.bound)
        taken = np.zeros(len(rows), np.uint8)
        started = time.process_time()
        for _ in runs.advance(rows, numbers, taken):
            pass
        spent += time.process_time() - started
        events += len(batch)
    runs.collect(int(rows.lowest[-1]))
    return events / spent / 1e6, runs.nbytes() / max(runs.live(), 1)


def sets_rate(plan: QueryPlan, batches: list[SolutionBatch]) -> tuple[float, float]:
    """`kernel_rate` of the chain and the compact kernel.

    Only the second half is measured, when the window is full and the ring has stopped growing.
    """
    program, gpms = plan.sequence.program, len(plan.patterns.gpms)
    state: ChainState | CompactState
    if plan.sequence.evaluator.name == "compiled-chain":
        state = ChainState(program, gpms, False)
    else:
        state = CompactState(DeterministicAutomaton(expand(program)), gpms)
    partition, window = plan.sequence.partition, plan.sequence.window
    key = (*partition, *plan.sequence.evaluator.key)
    frame = BatchFrame(_columns(plan), partition, key, window, state.strict)
    spent, events = 0.0, 0
    for i, batch in enumerate(batches):
        _, rows = frame.rows(batch)
        state.grow(frame.keys.bound)
        started, before = time.process_time(), state.nodes.next
        state.advance(rows)
        state.nodes.mark(before, rows.start, rows.number)
        state.nodes.forget(int(rows.lowest[-1]))
        if 2 * i >= len(batches):
            spent += time.process_time() - started
            events += len(batch)
    return events / spent / 1e6, state.nodes.array.nbytes / max(state.nodes.used, 1)


def measure(scenario: Scenario, events: int, rounds: int) -> Line:
    """Measure one scenario."""
    given = Input(scenario, scenario.evaluator)
    if scenario.strategy:
        return selection(scenario, given, rounds)
    batches = list(given.batches(max(events, 4 * min(scenario.window, events))))
    kernels = [kernel_rate(given, batches) for _ in range(rounds + 1)][1:]
    some = batches[: ENDING // BATCH] if scenario.ends else batches
    stages = [stage_rate(given, some) for _ in range(rounds)]
    return Line(
        scenario.name,
        scenario.sequence,
        scenario.window,
        scenario.keys,
        given.plan.sequence.evaluator.name,
        statistics.median(rate for rate, _ in kernels),
        statistics.median(stages),
        kernels[-1][1],
    )


def selection(scenario: Scenario, given: Input, rounds: int) -> Line:
    """Measure a selection strategy: only the whole stage, as matches take most of the time."""
    batches = list(given.batches(SELECTED))
    stage_rate(given, batches[:1])
    return Line(
        scenario.name,
        scenario.sequence,
        scenario.window,
        scenario.keys,
        given.plan.sequence.evaluator.name,
        None,
        statistics.median(stage_rate(given, batches) for _ in range(rounds)),
        None,
    )


HEADER = (
    "scenario",
    "sequence",
    "window",
    "keys",
    "kernel",
    "stage",
    "B/node",
)
FORM = "{:<18} {:<28} {:>8} {:>7} {:>8} {:>8} {:>7}"


def shown(line: Line) -> str:
    """A measurement as a line of the table."""
    rates = ["" if r is None else f"{r:.3g}" for r in (line.kernel, line.stage)]
    sequence = line.sequence if len(line.sequence) < 28 else f"{line.sequence[:25]}..."
    size = "" if line.node_bytes is None else f"{line.node_bytes:.0f}"
    return FORM.format(line.scenario, sequence, line.window, line.keys, *rates, size)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, default=2_000_000, help="per round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", metavar="NAME", help="only scenarios whose name begins with NAME")
    parser.add_argument("--json", metavar="FILE", help="also write the measurements to a file")
    options = parser.parse_args()
    print(FORM.format(*HEADER))
    found = []
    for scenario in SCENARIOS:
        if scenario.name.startswith(options.only or ""):
            line = measure(scenario, options.events, options.rounds)
            print(shown(line), flush=True)
            found.append(line)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump([asdict(line) for line in found], file, indent=2)


if __name__ == "__main__":
    main()
