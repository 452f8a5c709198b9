"""What a live run keeps, and for how long."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TextIO

from spaseq.runtime.live.query_changes import Planner


@dataclass(frozen=True, slots=True)
class Persistence:
    """What a loop keeps, besides its logs, and for how long.

    Attributes:
        planner: plans the queries of an earlier run, whose set may have changed; None if the
            queries of the job are all.
        sides: further output files, open for appending, by path; a resumed run cuts them to what
            they were when the state was saved.
        sync_ms: the least time between two commits of the logs.
        retain_ms: how long messages and answers that nobody needs any more stay in the logs.
        endures: whether failures, of a disk or a broker, are problems that may pass rather than
            the end.
        waits: whether sources bring messages only after `acceptance.start`.
        wall: seconds since the epoch.
        rebuilds: whether the state is made anew from the logs, whatever an earlier run has saved.
        answers_ms: how long answers that nobody needs any more stay; None: as long as messages.
    """

    planner: Planner | None = None
    sides: Mapping[str, TextIO] = field(default_factory=dict)
    sync_ms: int = 0
    retain_ms: int = 0
    endures: bool = False
    waits: bool = False
    wall: Callable[[], float] = time.time
    rebuilds: bool = False
    answers_ms: int | None = None


USUAL = Persistence()
"""That of a run whose queries are fixed."""
