"""Bounded runs whose rows go through files; tasks run one after the other, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from spaseq.compile import CompileOptions, compile_query
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.plan.families import QueryUnits
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.runtime import bounded_sequence
from spaseq.runtime.job.job import Job
from spaseq.runtime.spark import one_machine
from spaseq.runtime.spark.bounded import bounded_solve
from spaseq.runtime.spark.one_machine import found_in_files
from spaseq.runtime.spark.rows.stage_rows import Pack, items_of
from spaseq.sources import files as source_files
from spaseq.sources.files import FileSource
from tests.runtime.machines import IRIS, Row, answers_in_process, nquads
from tests.thresholds import Force

MEMBERS = 8
"""Queries of a family, each of which asks for events with one value."""

QUERY = """PREFIX : <http://m.example/>
SELECT * WITHIN 10 SECONDS PARTITION BY (?m) FROM STREAM N <http://m.example/north> WHERE {{
  SEQ({sequence})
  DEFINE GPM A ON N {{ ?m :starts "{value}" }}
  DEFINE GPM B ON N {{ ?m :stops "{value}" }} }}"""

SPARK = SimpleNamespace(sparkContext=SimpleNamespace(master="local[2]", defaultParallelism=2))


def job_of(path: Path, rows: Sequence[Row], sequence: str = "A; B") -> Job:
    path.write_text(nquads(rows))
    options = CompileOptions(several=True)
    texts = (QUERY.format(sequence=sequence, value=value) for value in range(MEMBERS))
    plans = tuple(compile_query(text, f"q{n}", options) for n, text in enumerate(texts))
    return Job(plans, (FileSource(StreamOptions(IRIS[0], (str(path),))),), KnowledgeBase.empty())


class Tasks:
    """Runs the tasks of a job here. `jobs` has what each of Spark's jobs would get."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.jobs: list[Sequence[Any]] = []
        self._directory = directory
        monkeypatch.setattr(one_machine, "_each", self._each)

    def _each(self, _: object, task: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        self.jobs.append(items)
        return [task(item) for item in items]

    def answers(self, job: Job, time_scan: bool = False) -> list[tuple[int, Any]]:
        solve = bounded_solve(SPARK, job, self._directory)
        found = found_in_files(SPARK, solve, self._directory, time_scan, ExitStack())
        assert found is not None
        return [(query, one) for query, own in items_of(found) if query >= 0 for one in own]

    @property
    def packs(self) -> list[list[Pack]]:
        """The solutions that each task of stage 2 got."""
        return [[pack for pack in task if pack.query >= 0] for task in self.jobs[1]]


@pytest.fixture
def tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tasks:
    return Tasks(tmp_path, monkeypatch)


def drawn(random: Random, size: int) -> list[Row]:
    """Events in order of time; many queries find no match within ten seconds."""
    rows, time = list[Row](), 0
    for _ in range(size):
        time += random.choice((0, 500, 2000, 9000))
        what = random.choice(("starts", "stops"))
        rows.append((time, f"m{random.randrange(3)}", what, random.randrange(MEMBERS)))
    return rows


@pytest.mark.each_once
@pytest.mark.parametrize("split_bytes", [700, 3000, 10**6])
@pytest.mark.parametrize("sequence", ["A; B", "B!; A; B", "A: B+", "A; B+"])
def test_a_family_has_the_answers_of_a_local_run(
    tasks: Tasks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, split_bytes: int, sequence: str
) -> None:
    """However its stream is divided: rows near the edge of a split may match rows beyond it."""
    monkeypatch.setattr(source_files, "SPLIT_BYTES", split_bytes)
    job = job_of(tmp_path / "stream.nq", drawn(Random(split_bytes), 600), sequence)
    assert len(QueryUnits.of(job.plans).families) == 1
    expected = answers_in_process(job)
    assert tasks.answers(job) == expected
    assert len(expected) > 10
    assert (len(tasks.jobs[0]) > 1) == (split_bytes < 10**6)


ONE_BY_ONE = f"family_queries={MEMBERS + 1}"
RARE = "hopeless_query=1 rare_solutions=1"


@pytest.mark.each_once
@pytest.mark.parametrize("words", ["", RARE, "memory_bytes=1", "memory_bytes=70000"])
@pytest.mark.parametrize("sequence", ["A; B", "B!; A; B", "A: B+", "A; B+"])
def test_queries_by_themselves_have_the_answers_of_a_local_run(
    tasks: Tasks,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    force: Force,
    words: str,
    sequence: str,
) -> None:
    """Whether the rows of a split wait for its end, wait for a while, or do not wait."""
    monkeypatch.setattr(source_files, "SPLIT_BYTES", 3000)
    job = job_of(tmp_path / "stream.nq", drawn(Random(5), 600), sequence)
    force(ONE_BY_ONE)
    expected = answers_in_process(job)
    force(f"{ONE_BY_ONE} {words}")
    assert tasks.answers(job) == expected
    assert len(expected) > 10 and len(tasks.jobs[0]) > 1


def test_a_stream_out_of_order_has_the_answers_of_a_local_run(
    tasks: Tasks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_files, "SPLIT_BYTES", 3000)
    rows = drawn(Random(1), 600)
    Random(2).shuffle(rows)
    job = job_of(tmp_path / "stream.nq", rows)
    assert tasks.answers(job, time_scan=True) == answers_in_process(job) != []
    assert len(tasks.jobs[0]) > 1


MATCH: list[Row] = [(50_000, "m1", "starts", 3), (55_000, "m1", "stops", 3)]


@pytest.mark.parametrize("words", ["", ONE_BY_ONE])
def test_rows_that_can_be_in_no_match_do_not_reach_stage_2(
    tasks: Tasks, tmp_path: Path, force: Force, words: str
) -> None:
    force(words)
    alone: list[Row] = [
        (0, "m1", "starts", 1),
        (1000, "m2", "stops", 1),
        (2000, "m1", "stops", 2),
        (20_000, "m1", "stops", 1),
        *MATCH,
        (56_000, "m1", "stops", 4),
    ]
    assert len(tasks.answers(job_of(tmp_path / "stream.nq", alone))) == 1
    assert sum(p.payload.end - p.payload.start for task in tasks.packs for p in task) == len(MATCH)


def test_without_a_possible_match_there_is_no_stage_2(tasks: Tasks, tmp_path: Path) -> None:
    assert tasks.answers(job_of(tmp_path / "stream.nq", MATCH[:1])) == []
    assert tasks.jobs[1] == []


def busy(seconds: int) -> list[Row]:
    """Two members have four machines each, which start and stop every second."""
    return [
        (second * 1000, f"m{machine}", what, machine % 4 // 2)
        for second in range(seconds)
        for machine in range(8)
        for what in ("starts", "stops")
    ]


def test_few_rows_are_not_divided_among_tasks(tasks: Tasks, tmp_path: Path, force: Force) -> None:
    job = job_of(tmp_path / "stream.nq", busy(16))
    expected = tasks.answers(job)
    assert len(tasks.jobs[1]) == 1
    force("task_rows=0")
    tasks.jobs.clear()
    assert tasks.answers(job) == expected != []
    assert len(tasks.jobs[1]) == 2


def test_tasks_take_turns_with_many_queries_that_are_not_divided(
    tasks: Tasks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, force: Force
) -> None:
    """Eight queries by themselves have as many rows each, and each task has four of them."""
    force(ONE_BY_ONE)
    force("task_rows=0")
    rows: list[Row] = [(t, f"m{m}", w, v) for t, m, w, _ in busy(2) for v in range(MEMBERS)]
    job = job_of(tmp_path / "stream.nq", rows)
    assert tasks.answers(job) == answers_in_process(job)
    queries = [{pack.query for pack in task} for task in tasks.packs]
    assert [*map(len, queries)] == [4, 4] and not queries[0] & queries[1]


def test_stage_2_is_made_only_if_a_match_is_possible(
    tasks: Tasks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, force: Force
) -> None:
    """Queries by themselves, whose rows do not wait in stage 1."""
    asked = list[bool]()

    def noted(plan: Any, rows: Any) -> bool:
        asked.append(told(plan, rows))
        return asked[-1]

    told = bounded_sequence.leave_out_hopeless
    monkeypatch.setattr(bounded_sequence, "leave_out_hopeless", noted)
    force(f"{ONE_BY_ONE} memory_bytes=1")
    rows: list[Row] = [(0, "m1", "starts", 1), (0, "m1", "starts", 3), *MATCH]
    assert len(tasks.answers(job_of(tmp_path / "stream.nq", rows))) == 1
    assert sorted(asked) == [False, True]
