"""One point of a curve: the least CPU time per event of some runs, in ns.

Other programs on the machine only make a run slower, so the least of a few runs is the steadiest.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

from benchmarks.generators.case import Case, Dice
from benchmarks.plots.timing import jsonl_seconds
from benchmarks.sequence import Input, Scenario, stage_rate


def write(folder: Path, case: Case, keys: int, sizes: Sequence[int]) -> list[Path]:
    """The first events of a case, one file for each size."""
    events = iter(case.events(Dice(1), keys))
    paths = [folder / f"{size}.nq" for size in sorted(sizes)]
    written = 0
    with ExitStack() as stack:
        files = [stack.enter_context(path.open("w", encoding="utf-8")) for path in paths]
        for at, size in enumerate(sorted(sizes)):
            while written < size:
                chunk = "".join(e.text for e in islice(events, min(1000, size - written)))
                written += min(1000, size - written)
                for file in files[at:]:
                    file.write(chunk)
    return paths


def text_cost(query: str, stream: Path, events: int, rounds: int) -> tuple[float, int]:
    """ns per event of a run from N-Quads text to jsonl, and the number of answers."""
    file = stream.with_suffix(".rq")
    file.write_text(query, encoding="utf-8")
    runs = [jsonl_seconds(file, {"S1": stream}) for _ in range(rounds)]
    return min(seconds for seconds, _ in runs) / events * 1e9, runs[0][1]


def stage_cost(scenario: Scenario, events: int, rounds: int) -> float:
    """ns per event of the second stage alone, from columns of solutions."""
    given = Input(scenario)
    batches = list(given.batches(events))
    return 1e3 / max(stage_rate(given, batches) for _ in range(rounds))
