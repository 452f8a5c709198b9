"""The oracle's cases with forced thresholds: all least, all never reached, and each at random.

`python -m tests.oracle.forced_campaign --cases N --first SEED` prints disagreements and, at the
end, how many cases crossed each threshold. A case is a drawn example and a choice of thresholds;
`FORCINGS` successive numbers share an example, as the brute force takes longest. Each case runs on
all evaluators, in pieces and with restarts; every third example is a set of queries instead, that
run together or are pushed. `--spark` runs single queries on Spark, many in a run.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import traceback
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from random import Random
from unittest.mock import patch

from spaseq import compile as compiling
from spaseq.thresholds import ENTRIES
from tests.oracle import agreement
from tests.oracle.agreement import Tally, compare, expected_of
from tests.oracle.choices import seeded
from tests.oracle.query_sets import answers, expected, pushed_answers, queries_of
from tests.oracle.strategies import EVERYTHING, case
from tests.thresholds import environment, forced, names

EVERY = 3
"""One example in this number is a set of queries."""

FORCINGS = 8
"""The number of cases of an example: least, never, and the rest at random."""


@dataclass
class Forced:
    """What a campaign has found."""

    cases: int = 0
    answered: int = 0
    crossed: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    @property
    def table(self) -> str:
        """The number of cases that crossed each threshold."""
        rows = [f"{name:24}{self.crossed[name]:8}" for name in ENTRIES]
        none = [name for name in ENTRIES if not self.crossed[name]]
        each = sum(self.crossed.values()) / max(1, self.cases)
        ends = [f"{each:.1f} thresholds crossed in each case; in none: {' '.join(none) or '-'}"]
        return "\n".join([*rows, *ends])


def words_of(number: int) -> str:
    """The words that force the thresholds of a case."""
    place = number % FORCINGS
    return ("least", "never")[place] if place < 2 else f"random:{number}"


class Example:
    """A drawn example, whose brute force is computed once."""

    def __init__(self, number: int, features: frozenset[str] = EVERYTHING) -> None:
        self.number = number
        self._choices = seeded(f"forced:{number}")
        self._case = case(self._choices, features)
        self._is_set = number % EVERY == 2
        self._texts = self._drawn_set() if self._is_set else []
        self._expected = cache(lambda query: expected_of(query, self._case))
        self._alone = cache(lambda: [expected(text, self._case) for text in self._texts])

    def _drawn_set(self) -> list[str]:
        return queries_of(self._case, self._choices, Random(self.number).choice([3, 3, 6, 12]))

    def wrong(self, seed: int, found: Forced) -> str | None:
        """How the engine's answers differ, with the present thresholds."""
        if self._is_set:
            return self._wrong_set(seed, found)
        tally = Tally()
        wrong = compare(self._case, tally, Random(seed), lambda query, _: self._expected(query))
        found.answered += tally.answered["(all)"]
        return None if wrong is None else f"{wrong.kind}\n{wrong.text}"

    def _wrong_set(self, seed: int, found: Forced) -> str | None:
        if not self._texts:
            return None
        try:
            alone = self._alone()
            ways = {
                "together": answers(self._texts, self._case),
                "pushed": pushed_answers(self._texts, self._case, seeded(f"pushed:{seed}")),
            }
        except Exception:
            return "\n\n".join([*self._texts, traceback.format_exc()])
        found.answered += any(alone)
        for way, several in ways.items():
            for text, own, other in zip(self._texts, alone, several, strict=True):
                if own != other:
                    return f"{way}, {len(own)} answers, not {len(other)}\n{text}"
        return None


def run(first: int, cases: int, tell: Callable[[str], None] = print) -> Forced:
    """Run some cases, by number."""
    found, example = Forced(), None
    for number in range(first, first + cases):
        if example is None or example.number != number // FORCINGS:
            example = Example(number // FORCINGS)
        words = words_of(number)
        with forced(words) as crossed:
            wrong = example.wrong(number, found)
        if wrong is not None:
            found.wrong.append(f"case {number} with thresholds {words!r}: {wrong}")
            tell(found.wrong[-1])
        found.crossed.update(crossed)
        found.cases += 1
        if found.cases % 1000 == 0:
            tell(f"{found.cases} cases, up to {number}, {len(found.wrong)} differ")
    return found


def share_plans() -> None:
    """Read and plan each query once for all cases of its example: no threshold changes its plan."""
    patch.object(compiling, "_checked", lru_cache(200)(compiling._checked)).start()
    patch.object(agreement, "parsed", lru_cache(8)(agreement.parsed)).start()


TOGETHER = 30
"""Cases that run together on Spark, where a run takes long to start."""


def run_on_spark(first: int, cases: int, tell: Callable[[str], None] = print) -> Forced:
    """Run some cases on Spark, each group in a process whose workers have its thresholds."""
    found = Forced()
    for number in range(first, first + cases, TOGETHER):
        size, words = min(TOGETHER, first + cases - number), words_of(number // TOGETHER)
        told, crossed = on_spark(number, size, words)
        found.cases += size
        found.crossed.update(crossed)
        if told:
            found.wrong.append(f"cases from {number} on, with thresholds {words!r}:\n{told}")
            tell(found.wrong[-1])
    return found


def on_spark(first: int, cases: int, words: str) -> tuple[str, set[str]]:
    """What went wrong in a bounded and in a followed run, and the thresholds that they crossed."""
    with tempfile.TemporaryDirectory() as directory:
        crossed = Path(directory) / "crossed"
        done = subprocess.run(
            [sys.executable, "-m", "tests.oracle.forced_spark", str(first), str(cases)],
            env=environment(words, crossed),
            capture_output=True,
            text=True,
            check=False,
        )
        return (done.stderr[-5000:] if done.returncode else ""), names(crossed)


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--spark", action="store_true", help="on Spark, many cases in a run")
    given = parser.parse_args()
    share_plans()
    way = run_on_spark if given.spark else run
    found = way(given.first, given.cases, lambda text: print(text, flush=True))
    print(found.table)
    print(f"{found.cases} cases, {found.answered} with answers, {len(found.wrong)} differ")


if __name__ == "__main__":
    main()
