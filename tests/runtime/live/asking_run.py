"""A standing run whose queries ask an endpoint; as a process, it is killed before it logs answers.

`python -m tests.runtime.live.asking_run DIRECTORY URL COUNT`
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from spaseq.api.prepare import StandingPlanner
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.logs.messages import UNNUMBERED, Message
from spaseq.logs.segment_log import SegmentLog
from spaseq.options import FileSourceSettings, PlanningOptions, ServiceOptions
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.runtime.job.job import Job
from spaseq.runtime.live.deliveries import SinkSettings
from spaseq.runtime.live.intakes import LiveStream
from spaseq.runtime.live.live_directory import StandingOptions
from spaseq.runtime.live.standing_run import StandingRun
from spaseq.sources.broker_stream import BrokerStream
from tests.runtime.live.live_jobs import IRI, QUERY, events

ASKING = "?x <http://example/is> {} . SERVICE <{}> {{ ?x <http://example/v> ?n }} }}"


def single(url: str) -> str:
    """Each event, with what the endpoint says of its thing."""
    return (
        f"SELECT ?x ?n WITHIN 5 SECONDS FROM STREAM S <{IRI}> WHERE {{ SEQ(A) "
        f"DEFINE GPM A ON S {{ {ASKING.format('?s', url)} }}"
    )


def pair(url: str) -> str:
    """QUERY, where the endpoint is asked about the second event of a match."""
    asking = ASKING.format('"cold"', url)
    text = QUERY.replace("SELECT ?x", "SELECT ?x ?n")
    return text.replace('?x <http://example/is> "cold" }', asking)


class AskingRun:
    """A run with the queries `single` and `pair`; `kill` leaves its directory as SIGKILL would."""

    def __init__(
        self, directory: Path, url: str, options: ServiceOptions = ServiceOptions()
    ) -> None:
        allowed = replace(options, allow=["127.0.0.1"])
        knowledge = replace(KnowledgeBase.empty(), services=allowed)

        settings = FileSourceSettings(max_ahead_ms=10**12)
        self.run = StandingRun(
            directory / "state",
            [LiveStream("S", BrokerStream(StreamOptions(IRI, ()), ""), settings)],
            Job((), (), knowledge),
            StandingPlanner(PlanningOptions(), knowledge),
            {"out": SinkSettings(str(directory / "out.jsonl"))},
            StandingOptions(sync_ms=0),
        )
        self.run.start()
        self.run.put("single", single(url))
        self.run.put("pair", pair(url))

    def feed(self, payloads: Sequence[bytes]) -> None:
        """Accept events, one by one."""
        for payload in payloads:
            self.run.accept("S", [Message(payload, 0, UNNUMBERED)])

    def settle(self) -> None:
        """Wait until all is evaluated."""
        while any(view.lag for view in self.run.streams()):
            time.sleep(0.005)
        self.run.queries()  # after the answers of the last batch

    def answers(self, name: str) -> list[tuple[str, str, str]]:
        """(id, thing, what the endpoint said) of each logged answer."""
        found = self.run.answers.read(name, None, 10**6)
        return [(a.id, dict(a.answer.bindings)["x"], dict(a.answer.bindings)["n"]) for a in found]

    def kill(self) -> None:
        self.run._loop._save = lambda: None  # type: ignore[method-assign]
        self.run.stop()


def main(directory: Path, url: str, count: int) -> None:
    running, commit = AskingRun(directory, url), SegmentLog.commit

    def killed(log: SegmentLog) -> int:
        if log.directory.name == "answers":
            os.kill(os.getpid(), signal.SIGKILL)
        return commit(log)

    SegmentLog.commit = killed  # type: ignore[method-assign]
    running.feed(events(count)[: count // 2])  # the others come after the kill
    running.settle()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
