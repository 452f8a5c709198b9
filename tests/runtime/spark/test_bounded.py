"""Bounded runs on Spark give the same answers as the local runtime, in the same order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spaseq.algebra.answer_batch import AnswerBatch
from spaseq.errors import InputError, RunError
from spaseq.limits import Limits
from spaseq.rdf.inputs.stream_options import BadInput
from spaseq.runtime.spark import bounded as spark_runtime
from tests.runtime.machines import HEAD, KEYED, NORTH, SOUTH, answers_in_process, job_of, nquads

pytestmark = pytest.mark.spark


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    north, south = tmp_path / "north.nq", tmp_path / "south.nq"
    north.write_text(nquads(NORTH, "n"))
    south.write_text(nquads(reversed(SOUTH), "s"))
    return [north, south]


@pytest.fixture(autouse=True, params=["files", "shuffle"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows go between the stages in files of this machine, or through Spark as on a cluster."""
    files = request.param == "files"
    monkeypatch.setattr(spark_runtime, "is_one_machine", lambda spark: files)


def test_queries_with_and_without_a_key_answer_as_in_process(spark: Any, paths: list[Path]) -> None:
    job = job_of(paths)
    expected = answers_in_process(job_of(paths))
    assert list(spark_runtime.run(job, spark=spark)) == expected
    assert [query for query, _ in expected] == [0] * 5 + [1] * 4
    assert (job.stats.events, job.stats.triples, job.stats.matches) == (10, 10, 9)
    assert set(job.stats.stages) == {"ingest", "graph patterns", "sequence"}


def test_many_answers_leave_as_columns(spark: Any, tmp_path: Path) -> None:
    """Seven machines, each in one bucket; their answers end at the same times."""
    rows = [
        (second * 1000, f"m{machine}", what, second)
        for second in range(200)
        for machine in range(7)
        for what in (("starts", "stops") if second % 3 else ("starts",))
    ]
    north, south = tmp_path / "north.nq", tmp_path / "south.nq"
    north.write_text(nquads(rows, "n"))
    south.write_text("")
    expected = answers_in_process(job_of([north, south], query=KEYED))
    found = [*spark_runtime.run_batches(job_of([north, south], query=KEYED), spark=spark)]
    assert [(query, answer) for query, answers in found for answer in answers] == expected
    assert len(expected) > 7 * 130
    assert any(isinstance(answers, AnswerBatch) for _, answers in found)


def test_answers_that_come_in_pieces_are_in_order(
    spark: Any, paths: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_runtime, "PIECE_BYTES", 1000)
    assert list(spark_runtime.run(job_of(paths), spark=spark)) == answers_in_process(job_of(paths))


def test_bad_input_is_reported_and_the_rest_is_used(spark: Any, paths: list[Path]) -> None:
    bad: list[BadInput] = []
    with paths[0].open("a") as file:
        file.write("this is no quad\n")
    job = job_of(paths, on_bad=bad.append)
    answers = list(spark_runtime.run(job, spark=spark))
    last = 2 * len(NORTH)  # the end of the event before, which counts as bad, too
    assert [(b.file, b.line) for b in bad] == [(str(paths[0]), n) for n in (last + 1, last)]
    assert job.stats.bad == 2
    assert answers == answers_in_process(job_of(paths))


def test_executors_obey_the_limits_of_reading(spark: Any, paths: list[Path]) -> None:
    whole = paths[0].read_text().splitlines(keepends=True)
    paths[0].write_text("".join(whole[:-2]))  # the first bad line costs the event before it
    expected = answers_in_process(job_of(paths))
    paths[0].write_text("".join(whole))
    nested = "<a:s> <a:p> " + "<<( <a:s> <a:p> " * 10_000 + "<a:o>" + " )>>" * 10_000 + " ."
    literal = '<a:s> <a:p> "' + "x" * 2000 + '" <a:g> .'
    event = "".join(f"<a:s{i:06}> <a:p> <a:o> <a:g> .\n" for i in range(4000))
    stamp = "<a:g> <http://www.w3.org/ns/prov#generatedAtTime> "
    stamp += '"1"^^<http://www.w3.org/2001/XMLSchema#long> .'
    with paths[0].open("a") as file:
        file.write(f"{nested}\n{literal}\n{'0' * 400_000}\n")
        file.write("<a:s> <a:p> <a:o> <a:h> .\n" + stamp.replace("<a:g>", "<a:h>") + "\n")
        file.write(f"{event}{stamp}\n")
    bad: list[BadInput] = []
    limits = Limits(line_bytes=300_000, literal_bytes=1000, event_bytes=100_000)
    assert (
        list(spark_runtime.run(job_of(paths, limits, on_bad=bad.append), spark=spark)) == expected
    )
    first = 2 * len(NORTH) + 1
    assert sorted((b.line, b.reason.partition(";")[0]) for b in bad) == [
        (first - 1, "event that has lost a quad to a line that cannot be read"),
        (first, "triple terms are nested more than 200 deep"),
        (first + 1, "a literal of 2000 bytes"),
        (first + 2, "a line of 400000 bytes"),
        (first + 3, "event that has lost a quad to a line that cannot be read"),
        (first + 5, "an event of more than 100000 bytes, the limit (--max-event)"),
    ]


def test_an_error_of_a_stage_arrives_as_itself(spark: Any, paths: list[Path]) -> None:
    paths[1].unlink()
    with pytest.raises(InputError, match=r"no such file or directory: .*south\.nq"):
        list(spark_runtime.run(job_of(paths), spark=spark))


def test_a_failure_of_spark_is_a_run_error_that_names_its_cause(spark: Any) -> None:
    def fail(_: object) -> Any:
        raise ZeroDivisionError("seven by nought")

    broken = spark.range(1).mapInArrow(fail, "id long")
    with (
        pytest.raises(RunError, match="ZeroDivisionError: seven by nought"),
        spark_runtime.spark_errors(),
    ):
        broken.collect()


def test_a_query_with_245_optionals_is_answered(spark: Any, paths: list[Path]) -> None:
    optionals = " ".join(f"OPTIONAL {{ ?machine :p{i} ?y{i} }}" for i in range(245))
    query = HEAD + f"SEQ (A) {{ DEFINE GPM A ON N {{ ?machine ?p ?v {optionals} }} }}"
    expected = answers_in_process(job_of(paths, query=query))
    assert list(spark_runtime.run(job_of(paths, query=query), spark=spark)) == expected
    assert expected
