#!/usr/bin/env python3
"""The compiled and the Python evaluator of every form of sequence, side by side.

    python benchmarks/evaluator_forms.py [NAME]

NAME: only forms whose name begins with it.

Every millisecond has one event with one solution, or two events of one key. The whole second stage
is measured, from columns of solutions to answers, in thousands of events per second of CPU time.
*Filter* forms compare a number of each later step with the first step's. The values have 100 keys,
and a match has one. The matches of a loop grow with the window, so streams of loops end them
seldom, and one of each end is selected.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from spaseq.compile import CompileOptions, compile_query
from spaseq.errors import UsageError
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.event_batch import EventNames
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.term_columns import NumberColumn, TermColumn, text_array
from spaseq.rdf.terms.number_kinds import DOUBLE
from spaseq.stages.sequence import SequenceStage

WINDOWS = 100, 100_000
KEYS, BATCH = 100, 8192
LOOPED = "ABBB" * 1000 + "C"
PAIRED = "ABC" * 1000 + "D"
STOPPED = LOOPED + "U" * 250
COMPILED_EVENTS, PYTHON_EVENTS = 100_000, 10_000


@dataclass(frozen=True)
class Form:
    """A form of sequence; `stream` has the names of its GPMs, as often as they come."""

    name: str
    sequence: str
    stream: str
    is_filter: bool = False
    select: str = ""
    evaluator: str | None = None  # None: the planner's choice
    python: tuple[str, ...] = ("registers",)  # measured if they can run it
    in_pairs: bool = False  # two events of one key and one time


FORMS = (
    Form("plain", "A; B", "ABC"),
    Form("plain, filter", "A; B; C", "ABC", True),
    Form("SELECT STRICT", "A; B", "ABC", True, "STRICT"),
    Form("SELECT STRICT", "A; B+; C", "ABBC", True, "STRICT"),
    Form("SELECT MAX", "A; B; C", "ABC", select="MAX"),
    Form("loop, filter", "A; R+; C", "ARRC", True),
    Form("counted, filter", "A; R{2,500}; C", "ARRC", True),
    Form("own operator", "A; R+[,]; C", "ARRC", True),
    Form("greedy, filter", "A; R++; C", "ARRC", True),
    Form("until, filter", "A; R+ UNTIL N; C", "ARRC" * 7 + "N", True),
    Form("greedy, last", "A; R++", "ARRC", True),
    Form("greedy, last", "A; R{1,3}+[,]", "ARRC", True),
    Form("greedy, last", "A; B++", "ABBB" + "C" * 36, python=("registers",)),
    Form("greedy, last", "A: B++", "AB" + "C" * 398),
    Form("running", "A; D+; C", "ADDC", True),
    Form("negated, first", "N!; A; B", "ABC" * 9 + "N"),
    Form("negated, first", "N!; A; B", "ABC" * 9 + "N", True),
    Form("negated, last", "A; B; N!", "ABC" * 9 + "N"),
    Form("negated, last", "A; B; N!", "ABC" * 9 + "N", True),
    Form("alternatives", "A; (B | C)", "ABC", True),
    Form("alternatives", "A, (B | C), N", "ABC" * 3 + "N", True),
    Form("alternatives", "(A; B | A, C)", "ABC", True),
    Form("alternatives", "A, (B; C | N)", "ABC" * 3 + "N", True),
    Form("loop", "A; B+; C", LOOPED, select="NEXT", python=()),
    Form("loop, own", "A; B+[,]; C", LOOPED, select="NEXT", python=()),
    Form("loop, own", "A; B+[:]; C", LOOPED, select="NEXT", python=()),
    Form("loop, greedy", "A; B++; C", LOOPED, select="NEXT", python=()),
    Form("loop, greedy", "A: B++[,]; C", LOOPED, select="NEXT", python=()),
    Form("loop, MAX", "B+; C", LOOPED, select="MAX", python=()),
    Form("loop, MAX", "B+[:]; C", LOOPED, select="MAX", python=()),
    Form("loop, until", "A; B+ UNTIL U; C", STOPPED, select="NEXT", python=()),
    Form("loop, until", "A; B++ UNTIL U; C", STOPPED, select="NEXT", python=()),
    Form("&", "A; (B & C)", "ABC", in_pairs=True),
    Form("&", "A: (B & C)+; D", PAIRED, select="NEXT", in_pairs=True, python=()),
    Form("AND", "(A AND B); C", LOOPED, select="NEXT", python=()),
    Form("AND, filter", "(A AND F), C", "AF" + "C" * 38, True, python=("registers",)),
    Form("AND, filter", "A, (B AND C)", "AB" + "C" * 18, True, python=("registers",)),
    Form("AND", "A; (B AND C)+; D", PAIRED, select="NEXT", python=()),
)


@dataclass(frozen=True)
class FormLine:
    """One measurement, in thousands of events per second."""

    name: str
    sequence: str
    window: int
    compiled_by: str
    compiled: float
    python: float


def limit_of(name: str, variable: str) -> str:
    """The condition of a later step: R rises, D limits the sum over its repetitions, F has none."""
    match name:
        case "D":
            return f"SUM(?{variable}) < 2 * ?va"
        case "R":
            return f"!BOUND(PREV(?{variable})) || ?{variable} > PREV(?{variable})"
    return f"?{variable} > ?va"


def plan_of(form: Form, window: int, evaluator: str | None) -> QueryPlan:
    """The plan of a form."""
    gpms = []
    for name in sorted(set(form.stream)):
        v = f"v{name.lower()}"
        later = f" FILTER({limit_of(name, v)})" if form.is_filter and name not in "AF" else ""
        value = f" ; :v ?{v}" if form.is_filter else ""
        gpms.append(f"DEFINE GPM {name} ON S {{ [] a :{name} ; :k ?k{value}{later} }}")
    text = (
        f"PREFIX : <http://e.example/> SELECT {form.select} * WITHIN {window} MILLISECONDS "
        "PARTITION BY (?k) FROM STREAM S <http://e.example/s> "
        f"WHERE {{ SEQ({form.sequence}) {' '.join(gpms)} }}"
    )
    return compile_query(text, options=CompileOptions(evaluator=evaluator))


def batches(plan: QueryPlan, form: Form, count: int) -> Iterator[SolutionBatch]:
    """The first `count` solutions."""
    dice, names = np.random.default_rng(1), [g.name for g in plan.patterns.gpms]
    numbers = np.array([names.index(n) if n in names else -1 for n in form.stream], np.int32)
    keys = text_array([f"<http://e.example/{i}>" for i in range(KEYS)])
    for first in range(0, count, BATCH):
        gpm = numbers[dice.integers(0, len(numbers), BATCH)]
        gpm = np.where(gpm < 0, 0, gpm).astype(np.int32)
        key = TermColumn(dice.integers(0, KEYS, BATCH).astype(np.int32), keys)
        value = NumberColumn(dice.random(BATCH) * 1000, np.full(BATCH, DOUBLE, np.int8))
        zeros, time = np.zeros(BATCH, np.int32), np.arange(first, first + BATCH)
        k = zeros
        if form.in_pairs:
            k, time = (time % 2).astype(np.int32), time // 2
            key = TermColumn(np.repeat(key.codes[::2], 2), keys)
        yield SolutionBatch(
            zeros,
            time,
            k,
            gpm,
            EventNames.of([None] * BATCH),
            dict.fromkeys(plan.patterns.columns.variables, key),
            dict.fromkeys(plan.patterns.columns.numbers, value),
        )


def rate(form: Form, window: int, evaluator: str | None, count: int) -> float:
    """Thousands of events per second."""
    plan = plan_of(form, window, evaluator)
    given = [*batches(plan, form, count)]
    stage, spent, events = SequenceStage(plan), 0.0, 0
    for i, batch in enumerate(given):
        started = time.process_time()
        stage.push(batch)
        stage.advance(int(batch.time[-1]))
        if i or len(given) == 1:
            spent += time.process_time() - started
            events += len(batch)
    return events / spent / 1e3


def in_python(form: Form, window: int) -> float:
    """The rate of the fastest evaluator in Python; NaN if none is measured."""
    rates = []
    for evaluator in form.python:
        try:
            rates.append(rate(form, window, evaluator, PYTHON_EVENTS))
        except UsageError:
            continue
    return max(rates, default=math.nan)


def lines(only: str = "") -> Iterator[FormLine]:
    """All measurements of the forms whose name begins with `only`."""
    for form in FORMS:
        if form.name.startswith(only):
            for window in WINDOWS:
                name = plan_of(form, window, form.evaluator).sequence.evaluator.name
                rate(form, window, form.evaluator, BATCH)
                compiled = rate(form, window, form.evaluator, COMPILED_EVENTS)
                yield FormLine(
                    form.name, form.sequence, window, name, compiled, in_python(form, window)
                )


HEADER = "form", "sequence", "window", "evaluator", "compiled", "Python", "ratio"
ROW = "{:<16} {:<19} {:>7} {:<19} {:>8} {:>8} {:>6}"


def shown(line: FormLine) -> str:
    """A measurement as a line of the table."""
    python, ratio = "-", "-"
    if not math.isnan(line.python):
        python, ratio = f"{line.python:.0f}", f"{line.compiled / line.python:.0f}x"
    rates = f"{line.compiled:.0f}", python, ratio
    return ROW.format(line.name, line.sequence, line.window, line.compiled_by, *rates)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", nargs="?", default="")
    print(ROW.format(*HEADER))
    for line in lines(parser.parse_args().name):
        print(shown(line), flush=True)


if __name__ == "__main__":
    main()
