"""What a directory of queries costs: each text is planned once, and not again while it stays."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from spaseq.api.prepare import StandingPlanner
from spaseq.api.queries import QueryInput
from spaseq.compile import Checked
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.options import FileSourceSettings, PlanningOptions
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.runtime.job.job import Job
from spaseq.runtime.live.intakes import LiveStream
from spaseq.runtime.live.live_directory import StandingOptions
from spaseq.runtime.live.standing_run import StandingRun
from spaseq.serve.query_files import QueryFiles
from spaseq.sources.broker_stream import BrokerStream

QUERY = """SELECT ?x WITHIN 1 HOURS FROM STREAM S <http://e/{stream}>
WHERE {{ SEQ(A{step}) DEFINE GPM A ON S {{ ?x <http://e/p> 1 }} }}"""


class CountingPlanner(StandingPlanner):
    """Notes the names of the queries that it plans."""

    def __init__(self) -> None:
        super().__init__(PlanningOptions(), KnowledgeBase.empty())
        self.planned: list[str] = []

    def checked(
        self,
        name: str,
        query: QueryInput,
        maintained: Collection[str] = (),
        file: str | None = None,
    ) -> tuple[Checked, QueryPlan]:
        self.planned.append(name)
        return super().checked(name, query, maintained, file)

    def taken(self) -> list[str]:
        """The names since the last call."""
        names, self.planned = self.planned, []
        return names


@pytest.fixture
def planner() -> CountingPlanner:
    return CountingPlanner()


@pytest.fixture
def run(tmp_path: Path, planner: CountingPlanner) -> Iterator[StandingRun]:
    stream = LiveStream(
        "S", BrokerStream(StreamOptions("http://e/s", ()), ""), FileSourceSettings()
    )
    job = Job((), (), KnowledgeBase.empty())
    standing = StandingRun(tmp_path / "state", [stream], job, planner, {}, StandingOptions())
    standing.start()
    yield standing
    standing.stop()


def files_of(directory: Path, run: StandingRun, planner: StandingPlanner) -> QueryFiles:
    return QueryFiles(directory, run, planner, lambda name: None)


def test_each_text_is_planned_once(
    tmp_path: Path, run: StandingRun, planner: CountingPlanner, caplog: pytest.LogCaptureFixture
) -> None:
    directory = tmp_path / "rules"
    files = files_of(directory, run, planner)
    for number, step in enumerate(["", "+", "; B"]):  # there is no B
        (directory / f"q{number}.rq").write_text(QUERY.format(stream="s", step=step))
    with caplog.at_level(logging.ERROR, "spaseq"):
        files.begin()
    assert planner.taken() == ["q0", "q1", "q2"]
    assert sorted(run.texts()) == ["q0", "q1"]
    assert "q2.rq:2:" in caplog.text

    (directory / "q1.rq").write_text("# another comment\n" + QUERY.format(stream="s", step="+"))
    files.look()  # a file may be half written: its change counts when two looks have seen it
    files.look()
    assert planner.taken() == ["q1"]
    assert run.texts()["q1"].startswith("# another")

    with caplog.at_level(logging.INFO, "spaseq"):
        files_of(directory, run, planner).begin()  # as a server that is started again
    assert planner.taken() == ["q2"]
    assert "2 queries are unchanged" in caplog.text


def test_a_query_that_waits_for_a_stream_is_told_of_at_each_start(
    tmp_path: Path, run: StandingRun, planner: CountingPlanner, caplog: pytest.LogCaptureFixture
) -> None:
    directory = tmp_path / "rules"
    files = files_of(directory, run, planner)
    (directory / "lost.rq").write_text(QUERY.format(stream="t", step=""))
    for begun in (files, files_of(directory, run, planner)):
        caplog.clear()
        with caplog.at_level(logging.WARNING, "spaseq"):
            begun.begin()
        assert "no stream and no query gives <http://e/t>" in caplog.text


READER = """SELECT ?x FROM STREAM S <http://e/s> FROM NAMED <http://e/kept>
WHERE { SEQ(A) DEFINE GPM A ON S { ?x <http://e/p> 1 GRAPH <http://e/kept> { ?x <http://e/q> 2 } } }
"""
MAKER = """MAINTAIN GRAPH <http://e/kept> AS INSERT { ?x <http://e/q> 2 } FROM STREAM S <http://e/s>
WHERE { SEQ(A) DEFINE GPM A ON S { ?x <http://e/p> 1 } }
"""


@pytest.mark.parametrize("is_later", [False, True])
def test_a_file_may_stand_before_the_one_that_maintains_its_graph(
    tmp_path: Path,
    run: StandingRun,
    planner: CountingPlanner,
    caplog: pytest.LogCaptureFixture,
    is_later: bool,
) -> None:
    """Files are taken by name, and the reader's is the first one."""
    directory = tmp_path / "rules"
    files = files_of(directory, run, planner)
    (directory / "a.rq").write_text(READER)
    with caplog.at_level(logging.ERROR, "spaseq"):
        if is_later:
            files.begin()
            assert "a.rq is not used: the knowledge base has no graph" in caplog.text
            files.look()
            assert planner.taken() == ["a"]  # and not again at each look
            run.put("z", MAKER)  # as a request does
            files.look()
        else:
            (directory / "z.rq").write_text(MAKER)
            files.begin()
            assert caplog.text == ""
    assert sorted(run.texts()) == ["a", "z"]
