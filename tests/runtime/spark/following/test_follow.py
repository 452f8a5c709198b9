"""Followed runs: answers after the watermark, late events, and resuming from a checkpoint."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spaseq.errors import TooManyWaiting, UsageError
from spaseq.options import FileSourceSettings, FollowOptions, StateLimits
from spaseq.rdf.inputs.stream_options import BadInput
from spaseq.rdf.terms.times import format_time
from spaseq.runtime.job.job import Job, LateEvent, Stats
from spaseq.runtime.spark.following.follow import follow, run
from spaseq.sinks.answer_json import partial_json
from spaseq.sinks.base import open_lines
from tests.runtime.machines import (
    KEYED,
    NORTH,
    SOUTH,
    Row,
    answers_in_process,
    job_of,
    nquads,
    put,
)

pytestmark = pytest.mark.spark

LONG_AFTER: tuple[Row, ...] = ((900_000, "m9", "starts", 0),)

LOST = '<a:s> <a:p> "\\q" <a:lost> .\n'
"""A line that cannot be read, of an event without any other line."""


@pytest.fixture
def incoming(tmp_path: Path) -> tuple[Path, Path]:
    north, south = tmp_path / "north", tmp_path / "south"
    north.mkdir()
    south.mkdir()
    return north, south


def followed(spark: Any, job: Job, checkpoint: Path, watermark_ms: int = 0) -> list[Any]:
    options = FollowOptions(checkpoint, FileSourceSettings(delay_ms=watermark_ms), until_done=True)
    return list(follow(job, options, spark=spark))


@pytest.mark.thorough
def test_files_in_any_number_of_runs_answer_as_all_of_them_at_once(
    spark: Any, tmp_path: Path, incoming: tuple[Path, Path]
) -> None:
    north, south = incoming
    checkpoint = tmp_path / "checkpoint"
    got: list[tuple[int, Any]] = []

    put(north / "1.nq", nquads(NORTH[:2], "n1"))
    job = job_of(incoming)
    got += followed(spark, job, checkpoint)
    assert got == []  # the other stream's time is not known yet
    assert job.stats.watermark is None

    put(south / "1.nq", nquads(SOUTH[:3], "s1"))
    put(north / "2.nq", nquads(NORTH[2:], "n2"))
    job = job_of(incoming)
    got += followed(spark, job, checkpoint)
    assert job.stats.watermark == 5000
    assert job.stats.phases["addBatch"] > 0
    assert {answer.end[0] for _, answer in got} == {1000}  # more events at 5000 may come

    put(north / "3.nq", nquads(LONG_AFTER, "n3"))
    put(south / "2.nq", nquads([*SOUTH[3:], *LONG_AFTER], "s2"))
    got += followed(spark, job_of(incoming), checkpoint)
    assert followed(spark, job_of(incoming), checkpoint) == []

    whole = answers_in_process(job_of(incoming))
    assert sorted(got, key=lambda item: item[0]) == whole
    assert len(whole) == 9


@pytest.mark.thorough
def test_late_events_and_bad_input_are_reported_and_left_out(
    spark: Any, tmp_path: Path, incoming: tuple[Path, Path]
) -> None:
    north, south = incoming
    put(north / "1.nq", nquads([(0, "m1", "starts", 5), *LONG_AFTER], "n") + LOST)
    rows = [(9000, "m2", "starts", 1), (6000, "m1", "stops", 1), (5999, "m1", "stops", 2)]
    put(south / "1.nq", nquads([*rows, *LONG_AFTER], "s"))
    late: list[LateEvent] = []
    bad: list[BadInput] = []
    job = job_of(incoming, on_late=late.append, on_bad=bad.append)
    answers = followed(spark, job, tmp_path / "checkpoint", watermark_ms=3000)
    assert [(e.event, e.time, e.lateness_ms) for e in late] == [("http://m.example/s/2", 5999, 1)]
    assert [(b.file, b.line) for b in bad] == [(str(north / "1.nq"), 5)]
    assert (job.stats.late, job.stats.bad) == (1, 1)
    assert {dict(a.bindings)["code"] for _, a in answers} == {'"1"'}


@pytest.mark.thorough
def test_a_query_fails_where_too_many_partial_matches_wait_and_can_go_on_with_more(
    spark: Any, tmp_path: Path, incoming: tuple[Path, Path]
) -> None:
    """Of one micro-batch the answers come that end before the second machine waits."""
    north, south = incoming
    rows = [(0, "m1", "starts", 5), (1000, "m1", "stops", 1), (2000, "m2", "starts", 1)]
    rows += [(3000, "m3", "starts", 1), (4000, "m2", "stops", 2)]
    put(north / "1.nq", nquads([*rows, *LONG_AFTER], "n"))
    put(south / "1.nq", nquads(LONG_AFTER, "s"))

    def run_with(most: int) -> Iterator[tuple[int, Any]]:
        limits = StateLimits(rows=most)
        options = FollowOptions(tmp_path / "state", until_done=True, limits=limits, buckets=1)
        return follow(job_of(incoming, query=KEYED), options, spark=spark)

    found = []
    with pytest.raises(TooManyWaiting, match="2 partial matches") as raised:
        for own in run_with(1):  # `extend` would lose what comes before the error
            found.append(own)
    assert raised.value.instant[0] == 3000
    assert [answer.end[0] for _, answer in found] == [1000]
    assert [answer.end[0] for _, answer in run_with(2)] == [1000, 4000]


@pytest.mark.thorough
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="reads /proc")
def test_the_workers_of_stage_2_are_those_that_started_early(
    spark: Any, tmp_path: Path, incoming: tuple[Path, Path]
) -> None:
    for place, name in zip(incoming, "ns", strict=True):
        put(place / "1.nq", nquads(LONG_AFTER, name))
    followed(spark, job_of(incoming), tmp_path / "checkpoint")
    assert len(_processes_of_stage_2()) == 1


def _processes_of_stage_2() -> set[int]:
    """The processes below this one's Java from which workers of stage 2 are forked."""
    parents: dict[int, int] = {}
    marked: set[int] = set()
    for place in Path("/proc").glob("[0-9]*"):
        try:
            fields = (place / "stat").read_text().rsplit(")", 1)[1].split()
            if fields[0] != "Z" and b"SPASEQ_STAGE=2" in (place / "environ").read_bytes():
                marked.add(int(place.name))
            parents[int(place.name)] = int(fields[1])
        except OSError:  # the process has ended, or is another user's
            continue
    ours = {pid for pid in marked if parents[pid] not in marked}
    return {pid for pid in ours if parents.get(parents[pid]) == os.getpid()}


@pytest.mark.thorough
def test_a_batch_that_was_not_finished_is_written_once(
    spark: Any, tmp_path: Path, incoming: tuple[Path, Path]
) -> None:
    north, south = incoming
    out, checkpoint = tmp_path / "out.jsonl", tmp_path / "checkpoint"
    put(north / "1.nq", nquads([*NORTH, *LONG_AFTER], "n") + LOST)
    put(south / "1.nq", nquads([*SOUTH, *LONG_AFTER], "s"))

    class Interrupted(Exception):
        pass

    def interrupt(_: object) -> None:
        raise Interrupted

    def interrupt_after_answers(stats: Stats) -> None:
        if stats.matches:
            raise Interrupted

    def write(job: Job) -> None:
        run(job, FollowOptions(checkpoint, until_done=True), out=str(out), form="jsonl")

    with pytest.raises(Interrupted):  # after the answers of the batch, before it is committed
        write(job_of(incoming, on_progress=interrupt_after_answers))
    assert out.read_text().count("\n") == 9
    with pytest.raises(Interrupted):
        write(job_of(incoming, on_bad=interrupt))
    write(job_of(incoming))
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["query"] for line in lines] == ["keyed"] * 5 + ["unkeyed"] * 4
    write(job_of(incoming))
    assert len(out.read_text().splitlines()) == 9


@pytest.mark.thorough
def test_chosen_columns_of_an_unfinished_batch_are_written_once(
    spark: Any, tmp_path: Path, incoming: tuple[Path, Path]
) -> None:
    north, south = incoming
    out, checkpoint = tmp_path / "out.csv", tmp_path / "checkpoint"
    put(north / "1.nq", nquads([*NORTH, *LONG_AFTER], "n"))
    put(south / "1.nq", nquads([*SOUTH, *LONG_AFTER], "s"))
    columns = ["code", "+start", "+end"]

    class Interrupted(Exception):
        pass

    def interrupt_after_answers(stats: Stats) -> None:
        if stats.matches:
            raise Interrupted

    def write(columns: list[str], **functions: Any) -> None:
        job = job_of(incoming, query=KEYED, **functions)
        options = FollowOptions(checkpoint, until_done=True)
        run(job, options, out=str(out), form="csv", columns=columns)

    with pytest.raises(Interrupted):
        write(columns, on_progress=interrupt_after_answers)
    with pytest.raises(UsageError, match="has other columns"):
        write(["code"])
    write(columns)
    header, *rows = out.read_text().splitlines()
    assert header == "code,start,end"
    answers = [answer for _, answer in answers_in_process(job_of(incoming, query=KEYED))]
    codes = [dict(answer.bindings)["code"].strip('"') for answer in answers]
    times = [(format_time(answer.first[0]), format_time(answer.end[0])) for answer in answers]
    assert sorted(rows) == sorted(
        f"{code},{start},{end}" for code, (start, end) in zip(codes, times, strict=True)
    )


def test_the_end_of_a_json_document_never_comes(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="json"):
        run(job_of([tmp_path] * 2), FollowOptions(Path("c")), out="-", form="json")


@pytest.mark.thorough
def test_partial_matches_of_an_unfinished_batch_are_written_once(
    spark: Any, tmp_path: Path, incoming: tuple[Path, Path]
) -> None:
    north, south = incoming
    side, out, checkpoint = tmp_path / "partial", tmp_path / "out", tmp_path / "checkpoint"
    put(north / "1.nq", nquads([*NORTH, (20_000, "m7", "starts", 1), *LONG_AFTER], "n"))
    put(south / "1.nq", nquads([*SOUTH, *LONG_AFTER], "s"))

    class Interrupted(Exception):
        pass

    def interrupt(stats: Stats) -> None:
        if stats.partial:
            raise Interrupted

    def write(**more: Any) -> None:
        job = job_of(incoming, partial=True, **more)
        with open_lines(str(side), os.O_APPEND) as file:
            job.on_partial = lambda name, partial: file.write(partial_json(name, partial) + "\n")
            options = FollowOptions(checkpoint, until_done=True)
            run(job, options, out=str(out), form="jsonl", sides={str(side): file})

    with pytest.raises(Interrupted):  # after the output of the batch, before it is committed
        write(on_progress=interrupt)
    first = side.read_text()
    assert first
    write()
    write()
    lines = [json.loads(line) for line in side.read_text().splitlines()]
    assert len({json.dumps(line) for line in lines}) == len(lines)
    assert side.read_text() == first
    found: list[tuple[str, Any]] = []
    job = job_of(incoming, partial=True)
    job.on_partial = lambda name, partial: found.append((name, partial))
    answers_in_process(job)
    closed = [p for p in found if p[1].closed[0] < 900_000]  # later windows are still open
    told = [json.loads(partial_json(name, p)) for name, p in closed]
    assert sorted(map(str, lines)) == sorted(map(str, told))


@pytest.mark.thorough
def test_a_checkpoint_without_partial_matches_is_not_resumed_with_them(
    spark: Any, tmp_path: Path, incoming: tuple[Path, Path]
) -> None:
    put(incoming[0] / "1.nq", nquads(NORTH, "n"))
    job = job_of(incoming)
    followed(spark, job, tmp_path / "checkpoint")
    with pytest.raises(UsageError, match="without partial matches, and is resumed with them"):
        followed(spark, job_of(incoming, partial=True), tmp_path / "checkpoint")
