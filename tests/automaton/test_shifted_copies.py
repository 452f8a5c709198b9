"""A small case in many copies: each copy has the answers of the case alone, by every evaluator.

Copies with the same keys are further apart than two windows. Copies with keys of their own lie
between each other, milliseconds apart, where PARTITION BY evaluates each by itself. Thresholds are
forced, so that keys, rows and nodes are dropped all the time. `SPASEQ_SHIFTED_EXAMPLES` sets the
number of examples of a slow run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from random import Random

import pytest
from hypothesis import assume

from spaseq.algebra.answers import Answer
from spaseq.errors import QueryError
from spaseq.options import StageOptions
from spaseq.plan.query_plan import QueryPlan
from spaseq.stages.sequence import SequenceStage
from tests.automaton.cases import Case, Event, Values, batch, cases, plans, run
from tests.automaton.test_agreement import on_examples
from tests.sizes import sizes
from tests.thresholds import forced

_EXAMPLES = int(os.environ.get("SPASEQ_SHIFTED_EXAMPLES", "400"))
_STRATEGIES = ("", "", "NEXT", "LAST", "MAX", "STRICT")
_SKIPS = ("", "AFTER MATCH SKIP PAST LAST EVENT", "AFTER MATCH CONSUME")
_APART = 1_000_000
"""Above the times of a case and two windows, but for those of an hour; a multiple of 5 seconds."""

_MANY = 2**31 - 1


@dataclass(frozen=True)
class Copies:
    """How the copies lie: `apart` ms from one to the next; with keys of their own below 1000."""

    count: int
    apart: int

    @property
    def own(self) -> bool:
        return self.apart < 1000

    def events(self, events: Sequence[Event]) -> list[Event]:
        """The events of all copies, in order of time."""
        every = [
            Event(e.time + i * self.apart, e.k, e.stream, self._named(e, i))
            for i in range(self.count)
            for e in events
        ]
        return sorted(every, key=lambda e: e.time)

    def _named(self, event: Event, copy: int) -> dict[str, list[Values]]:
        if not self.own:
            return event.solutions
        return {
            gpm: [{v: self._key(v, x, copy) for v, x in values.items()} for values in found]
            for gpm, found in event.solutions.items()
        }

    def _key(self, variable: str, value: str | None, copy: int) -> str | None:
        return (
            f"<{copy}-k>"
            if variable == "k" and value == "<v1>"
            else (f"<{copy}-l>" if variable == "k" else value)
        )

    def copy_of(self, answer: Answer) -> int:
        time = answer.first[0]
        return time % 1000 // self.apart if self.own else time // self.apart

    def alone(self, answer: Answer) -> tuple[object, ...]:
        """An answer as the case alone has it."""
        shift = self.copy_of(answer) * self.apart
        trace = [(t.time - shift, t.k, t.gpm, t.stream) for t in answer.trace]
        values = (answer.bindings, answer.singles, answer.lists)
        closes_together = self.own and answer.end[0] % 1000 == 0  # tumbling windows
        end = answer.end[0] - (0 if closes_together else shift)
        return end, answer.end[1], trace, _without_copy(repr(values))


def _without_copy(text: str) -> str:
    """The text with the keys of the case alone."""
    return re.sub(r"<\d+-([kl])>", lambda key: "<v1>" if key[1] == "k" else "<v2>", text)


def wanted(case: Case, plan: QueryPlan) -> list[tuple[object, ...]]:
    return [Copies(1, _MANY).alone(answer) for answer in run(plan, case.events)[0]]


def in_steps(
    plan: QueryPlan, events: Sequence[Event], size: int, restarts: bool, ahead: int | None
) -> list[Answer]:
    """The answers if events come in steps of `size` times.

    With `ahead`, rows are processed so many ms before their watermark comes.
    """
    stage, answers = SequenceStage(plan, StageOptions()), list[Answer]()
    by_time = [[*own] for _, own in groupby(events, key=lambda e: e.time)]
    for i in range(0, len(by_time), size):
        some = [event for own in by_time[i : i + size] for event in own]
        stage.push(batch(plan, some))
        if ahead is None:
            answers += stage.advance(some[-1].time)
        else:
            answers += stage.advance(some[-1].time - ahead, ahead=True)
        if restarts and i // size % 3 == 0:
            other = SequenceStage(plan, StageOptions())
            other.restore(stage.snapshot())
            stage = other
    return answers + stage.close()


def arrivals(
    plan: QueryPlan, events: Sequence[Event], random: Random, skips: bool
) -> Iterator[tuple[str, list[Answer]]]:
    yield "at once", run(plan, events)[0]
    size = random.choice([1, 5, 40])
    yield f"in steps of {size}", in_steps(plan, events, size, True, None)
    late = 1 if skips else random.choice([1, 5000, 60_000])
    yield f"{late} ms ahead", in_steps(plan, events, random.choice([3, 30]), False, late)


def check(case: Case, copies: Copies, random: Random) -> None:
    """Check all evaluators that can run the case, with thresholds forced."""
    try:
        found = plans(case.text)
    except QueryError:  # the language refuses the drawn query
        assume(False)
    expected = wanted(case, found["registers"])
    events, skips = copies.events(case.events), "AFTER MATCH" in case.text
    for name, plan in found.items():
        words = random.choice(["least", "least", "never", f"random:{random.randrange(10**6)}"])
        with forced(words):
            for how, answers in arrivals(plan, events, random, skips):
                own: list[list[tuple[object, ...]]] = [[] for _ in range(copies.count)]
                for answer in answers:
                    own[copies.copy_of(answer)].append(copies.alone(answer))
                for number, each in enumerate(own):
                    each.sort(key=repr)
                    assert each == sorted(expected, key=repr), (name, words, how, number)


@sizes(2, 10, _EXAMPLES)
@pytest.mark.parametrize("kind", ["plain", "ends", "loops"])
def test_copies_with_the_same_keys(kind: str, examples: int) -> None:
    def check_far_apart(case: Case) -> None:
        assume("EVENTS" not in case.text)
        apart = 20 * _APART if "1 HOURS" in case.text else _APART
        random = Random(case.text)
        check(case, Copies(random.choice([3, 12]), apart), random)

    loops, ends = kind == "loops", kind == "ends"
    drawn = cases(strategies=_STRATEGIES, rest=_SKIPS, loops=loops, ends=ends)
    on_examples(examples, check_far_apart, drawn)


@sizes(2, 10, _EXAMPLES)
@pytest.mark.parametrize("kind", ["plain", "ends", "loops"])
def test_copies_with_keys_of_their_own(kind: str, examples: int) -> None:
    def check_interleaved(case: Case) -> None:
        assume("PARTITION BY" in case.text)
        random = Random(case.text)
        check(case, Copies(random.choice([3, 30]), random.choice([1, 30])), random)

    loops, ends = kind == "loops", kind == "ends"
    drawn = cases(strategies=_STRATEGIES, rest=_SKIPS, loops=loops, ends=ends, kinds=("partition",))
    on_examples(examples, check_interleaved, drawn)
