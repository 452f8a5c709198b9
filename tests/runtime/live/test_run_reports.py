"""Notes of a live run: what comes again and again is told twice a minute, with a count."""

from __future__ import annotations

from pathlib import Path

import pytest

from spaseq.back_off import BackOff
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.runtime.job.job import Job
from spaseq.runtime.live import delivery, run_views
from spaseq.runtime.live.run_views import RunReports
from tests.connectors.hook import Hook
from tests.serve.servers import event, served, wait
from tests.serve.test_outage import QUERY


class Minutes:
    """Reports on a clock that the test sets, and what is told."""

    def __init__(self) -> None:
        self.now, self.told = 0.0, list[str]()
        job = Job((), (), KnowledgeBase.empty(), on_note=lambda text: self.told.append(text))
        self.reports = RunReports(job, True, lambda: self.now)

    def at(self, second: float, *notes: str) -> list[str]:
        """What is told at a time, at which notes come."""
        self.now, self.told = second, []
        for note in notes:
            self.reports.note(note)
        self.reports.tell()
        return self.told


def test_a_flapping_output_is_told_at_once_and_then_counted() -> None:
    run = Minutes()
    assert run.at(10, "down") == ["down"]
    assert run.at(11, "up") == ["up"]
    assert [note for second in range(12, 60, 2) for note in run.at(second, "down", "up")] == []
    assert run.at(59, "down") == []
    assert run.at(60) == [
        "up (24 more within a minute)",
        "down (25 more within a minute)",  # as it is now
    ]
    assert run.at(61, "up") == []
    assert run.at(90, "another") == ["another"]
    assert run.at(120) == ["up (1 more within a minute)"]
    assert run.at(180) == []
    assert run.at(181, "down") == ["down"]


def test_the_end_of_a_run_tells_what_waits() -> None:
    run = Minutes()
    run.at(1, "down", "down", "down")
    run.reports.tell(is_end=True)
    assert run.told == ["down", "down (2 more within a minute)"]


def test_the_log_of_a_server_whose_webhook_flaps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(delivery, "BackOff", lambda: BackOff(0.001))
    monkeypatch.setattr(run_views, "_MINUTE_S", 1e9)  # a slow machine takes longer than a minute
    hook, flaps = Hook(), 30
    hook.statuses = [503, 204] * flaps
    sink = f'[sinks.ops]\nto = "http://127.0.0.1:{hook.port}/hook"\n'
    with served(tmp_path, stream=sink) as server:
        server.http.put("/queries/all", content=QUERY)
        server.post("".join(event(n) for n in range(flaps + 1)))
        wait(lambda: len(hook.requests) == 2 * flaps, 300)
    hook.close()
    lines = [line for line in caplog.messages if f":{hook.port}/hook" in line]
    assert [line.partition(" (")[2] for line in lines] == [
        "",
        "",
        f"{flaps - 1} more within a minute)",
        f"{flaps - 1} more within a minute)",
    ]
    assert lines[0].endswith("503 Service Unavailable; trying again")
    assert lines[1].endswith("takes answers again") and "takes answers again" in lines[3]
