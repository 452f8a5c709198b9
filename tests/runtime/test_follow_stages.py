"""Source and first stage of a followed run, driven by hand: which KB a batch is matched with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spaseq.compile import compile_query
from spaseq.kb.load import load_kb
from spaseq.rdf.readers import StreamOptions
from spaseq.runtime.arrivals import ArrivalLog
from spaseq.runtime.spark_follow_stages import FollowSolve, unpack
from spaseq.runtime.spark_rows import SIDE
from spaseq.runtime.spark_solve import StoredKnowledge
from spaseq.runtime.spark_source import RdfDataSource, source_options
from tests.runtime.machines import nquads, put
from tests.runtime.test_kb_refresh import KB, QUERY


class Driven:
    """A batch at a time, without Spark."""

    def __init__(self, place: Path) -> None:
        self.place, self.plan = place, compile_query(QUERY)
        (place / "north").mkdir()
        streams = (StreamOptions("http://m.example/north", (str(place / "north"),)),)
        self.log = ArrivalLog(place / "log", streams)
        options = source_options(streams, str(place), place / "log")
        self.source = RdfDataSource(options).streamReader(None)
        first = StoredKnowledge(str(place / self.use("Ann")), "kb-Ann")
        self.solve = FollowSolve((self.plan,), streams, first, 1)
        self.batch = 0

    def use(self, name: str) -> str:
        """Another knowledge base for the batches to come."""
        file = self.place / "kb.nt"
        file.write_text(f'<http://m.example/m1> <http://m.example/name> "{name}" .\n')
        load_kb([(KB, file)]).save(self.place / f"kb-{name}")
        self.log.use_knowledge(f"kb-{name}")
        return f"kb-{name}"

    def plan_batch(self) -> list[Any]:
        """The parts of the next batch, which has one more file."""
        put(self.place / "north" / f"{self.batch}.nq", nquads([(self.batch, "m1", "starts", 1)]))
        return self.planned()

    def planned(self) -> list[Any]:
        start = {"batch": self.batch}
        end = self.source.latestOffset(start, self.source.getDefaultReadLimit())
        return list(self.source.partitions(start, end))

    def names(self, parts: list[Any]) -> list[str | None]:
        """The names that a batch's solutions have."""
        self.batch += 1
        found: list[str | None] = []
        for rows in self.solve.run(b for part in parts for b in self.source.read(part)):
            for row in rows.to_pylist():
                if row["query"] != SIDE and row["stream"] < 0:
                    solutions = unpack(row["payload"], self.plan.columns)
                    found += solutions.values["name"].objects().tolist()
        return found


def test_a_batch_is_matched_with_what_was_current_when_it_was_planned(tmp_path: Path) -> None:
    run = Driven(tmp_path)
    assert run.names(run.plan_batch()) == ['"Ann"']
    parts = run.plan_batch()
    run.use("Barbara")  # too late for the batch that is planned already
    assert run.names(parts) == ['"Ann"']
    assert run.names(run.plan_batch()) == ['"Barbara"']


def test_a_batch_that_is_run_again_is_matched_with_the_same(tmp_path: Path) -> None:
    run = Driven(tmp_path)
    run.plan_batch()
    run.use("Barbara")
    assert run.names(run.planned()) == ['"Ann"']
    assert run.log.knowledge_in_use() == {"kb-Ann", "kb-Barbara"}
