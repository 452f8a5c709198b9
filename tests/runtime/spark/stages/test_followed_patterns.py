"""Source and first stage of a followed run, driven step by step: the KB of each batch."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from spaseq.compile import compile_query
from spaseq.kb.load import NO_CACHE, load_kb
from spaseq.kb.watched_graphs import KbWatch
from spaseq.options import ServiceOptions
from spaseq.plan.families import QueryUnits
from spaseq.rdf.columns.solution_batch import SolutionCodec
from spaseq.rdf.inputs.stream_options import BadInput, StreamOptions
from spaseq.runtime.arrivals.file_source_log import FileSourceLog
from spaseq.runtime.job.job import Job
from spaseq.runtime.job.unit_graph import QueryGroups
from spaseq.runtime.spark.connectors.rdf_source import FollowedFiles
from spaseq.runtime.spark.following.kb_refresh import Refresh
from spaseq.runtime.spark.rows.stage_rows import SIDE
from spaseq.runtime.spark.shared import store_knowledge
from spaseq.runtime.spark.stages.followed_patterns import FollowSolve
from spaseq.runtime.spark.stages.shipped_units import StoredKnowledge
from spaseq.sources.files import GrowingFiles
from tests.runtime.machines import nquads, put
from tests.runtime.spark.following.test_kb_refresh import KB, QUERY


class Driven:
    """Runs one batch at a time, without Spark."""

    def __init__(self, place: Path) -> None:
        self.place, self.plan = place, compile_query(QUERY)
        (place / "north").mkdir()
        streams = (
            GrowingFiles.at(StreamOptions("http://m.example/north", (str(place / "north"),))),
        )
        self.log = FileSourceLog(place / "log", streams)
        self.source = FollowedFiles(streams, place / "log").reader()
        first = StoredKnowledge(str(place / self.use("Ann")), "kb-Ann")
        groups = QueryGroups.of(QueryUnits.of([self.plan]))
        self.solve = FollowSolve(groups, streams, first, 1)
        self.batch = 0

    def use(self, name: str) -> str:
        """Set the knowledge base of the next batches."""
        file = self.place / "kb.nt"
        file.write_text(f'<http://m.example/m1> <http://m.example/name> "{name}" .\n')
        load_kb([(KB, file)]).save(self.place / f"kb-{name}")
        self.log.use_knowledge(f"kb-{name}")
        return f"kb-{name}"

    def plan_batch(self) -> list[Any]:
        """The parts of the next batch, which gets a new file."""
        put(self.place / "north" / f"{self.batch}.nq", nquads([(self.batch, "m1", "starts", 1)]))
        return self.planned()

    def planned(self) -> list[Any]:
        start = {"batch": self.batch}
        end = self.source.latestOffset(start, self.source.getDefaultReadLimit())
        return list(self.source.partitions(start, end))

    def names(self, parts: list[Any]) -> list[str | None]:
        """The names in a batch's solutions."""
        self.batch += 1
        found: list[str | None] = []
        for rows in self.solve.run(b for part in parts for b in self.source.read(part)):
            for row in rows.to_pylist():
                if row["query"] != SIDE and row["reader"] >= 0:
                    solutions = SolutionCodec(self.plan.patterns.columns).decode(row["payload"])
                    found += solutions.values["name"].objects().tolist()
        return found


def test_a_batch_is_matched_with_what_was_current_when_it_was_planned(tmp_path: Path) -> None:
    run = Driven(tmp_path)
    assert run.names(run.plan_batch()) == ['"Ann"']
    parts = run.plan_batch()
    run.use("Barbara")  # after the batch was planned
    assert run.names(parts) == ['"Ann"']
    assert run.names(run.plan_batch()) == ['"Barbara"']


def test_a_batch_that_is_run_again_is_matched_with_the_same(tmp_path: Path) -> None:
    run = Driven(tmp_path)
    run.plan_batch()
    run.use("Barbara")
    assert run.names(run.planned()) == ['"Ann"']
    assert run.log.knowledge_in_use() == {"kb-Ann", "kb-Barbara"}


def test_a_changed_file_is_stored_for_the_batches_to_come(tmp_path: Path) -> None:
    run, notes, bad = Driven(tmp_path), list[str](), list[BadInput]()
    file, sources = tmp_path / "kb.nt", [(KB, tmp_path / "kb.nt")]
    job = Job(
        (run.plan,),
        (GrowingFiles.at(StreamOptions("http://m.example/north", (str(tmp_path / "north"),))),),
        load_kb(sources),
        watch=KbWatch(sources, ServiceOptions(), NO_CACHE, every_s=0.0),
        on_note=notes.append,
        on_bad=bad.append,
    )
    local: Any = SimpleNamespace(sparkContext=SimpleNamespace(master="local[1]"))
    place: Any = SimpleNamespace(directory=tmp_path, arrivals=tmp_path / "log")
    refresh = Refresh(local, job, place)
    first = store_knowledge(local, job.knowledge, tmp_path).name
    run.log.use_knowledge(first)

    def write(text: str, times: int) -> None:
        file.write_text(text)
        os.utime(file, ns=(times, times))
        for _ in range(3):
            refresh.poll()

    names = [f'<http://m.example/m1> <http://m.example/name> "{n}" .\n' for n in "abc"]
    write(names[0], 1)
    assert run.names(run.plan_batch()) == ['"a"']
    write("no triple\n", 2)
    assert run.names(run.plan_batch()) == ['"a"']
    assert [b.reason.partition(":")[0] for b in bad] == [
        "the knowledge base has changed and does not load; the last one stays"
    ]
    write(names[1], 3)
    write(names[2], 4)
    assert run.names(run.plan_batch()) == ['"c"']
    assert notes == ["the knowledge base has changed: 1 triples from the next batch"] * 3
    assert (job.stats.refreshed, job.stats.bad) == (3, 1)
    kept = {path.name for path in tmp_path.glob("spaseq-kb-*")}
    assert first in kept
    assert len(kept) == 4  # also the ones of the previous and the current batch
