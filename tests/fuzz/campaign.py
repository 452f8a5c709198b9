"""Runs one target on many mutated inputs, in a process that is told to stop at the first finding.

`python -m tests.fuzz.campaign TARGET COUNT SEED LAST` prints one JSON object: how many mutations
were tried, how many of them the target accepted, the longest time of one, the peak memory, and the
finding, if any. The file LAST holds the input under test, so that an input that kills the process
is known.
"""

from __future__ import annotations

import faulthandler
import json
import random
import resource
import sys
import time
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.fuzz.mutation import mutated
from tests.fuzz.targets import TARGETS, Target

SECONDS = 1.0
"""Processor time that one input may take."""

_HANGS = 60
"""Seconds of wall clock after which an input hangs: even a busy machine needs no such time."""

_WARM = 3
"""How often the seeds are tried first, without a bound on time: kernels load, caches fill."""


@dataclass(slots=True)
class Report:
    """What a campaign has tried and found."""

    target: str
    tried: int = 0
    accepted: int = 0
    slowest_s: float = 0.0
    peak_mb: int = 0
    finding: str = ""


def campaign(target: Target, count: int, seed: int, last: Path) -> Report:
    """Try `count` mutations of a target, up to the first finding."""
    dice = random.Random(seed)
    report = Report(target.name)
    with last.open("wb", buffering=0) as file:
        for data in (*target.seeds, *target.seeds, *target.seeds)[: _WARM * len(target.seeds)]:
            target.check([data])
        while report.tried < count and not report.finding:
            batch = [
                mutated(target.seeds, dice, target.pieces)
                for _ in range(min(target.batch, count - report.tried))
            ]
            file.seek(0)
            file.truncate()
            file.write(b"\n".join(batch))
            _try(target, batch, report)
    report.peak_mb = _peak_mb()
    return report


def _peak_mb() -> int:
    """The most memory that the process has had since its program began.

    `ru_maxrss` also knows the memory of the process that started it.
    """
    status = Path("/proc/self/status")
    if not status.exists():  # not Linux
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    lines = status.read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) // 1024


def _try(target: Target, batch: list[bytes], report: Report) -> None:
    faulthandler.dump_traceback_later(_HANGS, exit=True)
    began = time.process_time()
    try:
        report.accepted += target.check(batch)
    except Exception:
        report.finding = f"{batch!r:.4000}\n{traceback.format_exc()}"
    faulthandler.cancel_dump_traceback_later()
    took = time.process_time() - began
    report.slowest_s = max(report.slowest_s, round(took, 3))
    report.tried += len(batch)
    if took > SECONDS and not report.finding:
        report.finding = f"{took:.1f} s for {batch!r:.4000}"


def main() -> None:
    name, count, seed, last = sys.argv[1:]
    target = next(t() for n, t in TARGETS.items() if n == name)
    print(json.dumps(asdict(campaign(target, int(count), int(seed), Path(last)))))


if __name__ == "__main__":
    main()
