"""A followed run takes up a changed knowledge base between its batches."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from spaseq.compile import compile_query
from spaseq.errors import UsageError
from spaseq.kb.cache import NO_CACHE
from spaseq.kb.endpoint import ServiceOptions
from spaseq.kb.load import load_kb
from spaseq.kb.refresh import KbWatch
from spaseq.rdf.batches import BadInput
from spaseq.rdf.readers import StreamOptions
from spaseq.runtime.job import Job
from spaseq.runtime.spark_follow import FollowOptions, follow
from tests.runtime.machines import nquads, put

pytestmark = pytest.mark.spark

KB = "http://m.example/kb"
QUERY = f"""PREFIX : <http://m.example/>
SELECT ?name ?old WITHIN 1 HOURS FROM STREAM N <http://m.example/north> FROM NAMED <{KB}>
WHERE {{ SEQ(A)
  DEFINE GPM A ON N {{ ?machine :starts ?load GRAPH <{KB}> {{ ?machine :name ?name }} }} }}"""
LATE = QUERY.replace("SEQ(A)", "SEQ(B : A)").replace(
    "DEFINE", "DEFINE GPM B ON N { ?o :stops ?old } DEFINE", 1
).replace(":name ?name }", ":name ?name } OPTIONAL { ?machine :stops ?old }")  # fmt: skip


class Followed:
    """A stream's directory and a KB file, and a run that follows both."""

    def __init__(self, spark: Any, place: Path, query: str) -> None:
        self.directory, self.kb, self.written = place / "north", place / "kb.nt", 0
        self.directory.mkdir()
        self.name("Ann")
        self.notes: list[str] = []
        self.bad: list[BadInput] = []
        sources = [(KB, self.kb)]
        self.job = Job(
            (compile_query(query),),
            (StreamOptions("http://m.example/north", (str(self.directory),)),),
            load_kb(sources),
            watch=KbWatch(sources, ServiceOptions(), NO_CACHE, every_s=0.1),
            on_note=self.note,
            on_bad=self.on_bad,
        )
        options = FollowOptions(place / "checkpoint", trigger_ms=100)
        self.answers = follow(self.job, options, spark=spark)

    def name(self, name: str) -> None:
        self.kb.write_text(f'<http://m.example/m1> <http://m.example/name> "{name}" .\n')
        os.utime(self.kb, ns=(len(name), len(name)))

    def start_machine(self) -> None:
        """One more event of the machine, and one that lets time pass."""
        at = 20_000 * self.written
        rows = [
            (at, "m2", "stops", self.written),
            (at + 1000, "m1", "starts", 1),
            (at + 2000, "m9", "starts", 1),
        ]
        self.written += 1
        put(self.directory / f"{self.written}.nq", nquads(rows, f"n{self.written}"))

    def note(self, text: str) -> None:
        self.notes.append(text)
        self.start_machine()

    def on_bad(self, bad: BadInput) -> None:
        self.bad.append(bad)
        self.start_machine()

    def next_names(self, answers: int) -> set[str]:
        return {dict(next(self.answers)[1].bindings)["name"] for _ in range(answers)}


def test_the_next_batch_is_read_with_the_new_one_and_a_broken_one_is_not_used(
    spark: Any, tmp_path: Path
) -> None:
    run = Followed(spark, tmp_path, QUERY)
    run.start_machine()
    assert run.next_names(1) == {'"Ann"'}
    run.name("Barbara")
    assert run.next_names(1) == {'"Barbara"'}
    run.kb.write_text("no triple\n")
    assert run.next_names(1) == {'"Barbara"'}
    run.answers.close()
    assert run.notes == ["the knowledge base has changed: 1 triples from the next batch"]
    assert [b.file for b in run.bad] == ["--kb"]
    assert f"does not load; the last one stays: {run.kb}:1: " in run.bad[0].reason
    assert (run.job.stats.refreshed, run.job.stats.bad) == (1, 1)
    kept = [path for path in (tmp_path / "checkpoint").iterdir() if "kb" in path.name]
    assert 1 <= len(kept) <= 2


def test_a_pattern_of_the_second_stage_is_refused(spark: Any, tmp_path: Path) -> None:
    run = Followed(spark, tmp_path, LATE)
    with pytest.raises(UsageError, match="--kb-refresh: A of query query is evaluated for each"):
        next(run.answers)
