"""CONSTRUCT and queries that read each other's streams, followed on Spark."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

import spaseq
from spaseq.cli import main
from spaseq.compile import compile_query
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.kb.load import load_kb
from spaseq.options import FollowOptions
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.runtime.job.job import Job
from spaseq.runtime.job.unit_graph import reading_order
from spaseq.runtime.spark.following.follow import follow, run
from spaseq.sources.files import FileSource
from tests.construct.test_chains import DOUBLE_FALLS, FALLS, VALUES, E
from tests.construct.test_differential import inputs, many_chains
from tests.language.tables import event
from tests.oracle.draw_events import knowledge
from tests.oracle.spark_sample import deliver_in_turns, directories

pytestmark = pytest.mark.spark

TURNS = 3


@pytest.mark.thorough
def test_many_chains(spark: Any, tmp_path: Path) -> None:
    """A followed run gives the answers of a bounded run, in order, however files divide events."""
    queries, examples = many_chains(10, "followed")
    plans = reading_order([compile_query(q, f"query{n}") for n, q in enumerate(queries, 1)])
    kb, streams = knowledge(), {i: es for e in examples for i, es in inputs(e).items()}
    whole = [(m.query, m.answer) for m in spaseq.run(queries, streams, kb, "local")]

    files, random = tmp_path / "files", Random(1)
    options = FollowOptions(tmp_path / "state", until_done=True)
    job = Job(plans, directories(examples, files), load_kb(list(kb.items())))
    found = []
    for turn in range(TURNS):
        deliver_in_turns(examples, files, turn, TURNS, random)
        found += [(plans[n].identity.name, a) for n, a in follow(job, options, spark=spark)]
    for plan in plans:
        expected = [a for name, a in whole if name == plan.identity.name]
        assert [a for name, a in found if name == plan.identity.name] == expected
    assert len({name for name, _ in whole}) > 6


@pytest.mark.thorough
def test_graphs_in_a_file_that_several_runs_fill(spark: Any, tmp_path: Path) -> None:
    """A bounded run writes the same text, except for the order of the queries."""
    place, whole = tmp_path / "s", tmp_path / "s.nq"
    place.mkdir()
    events = [event(value, second) for second, value in enumerate(VALUES.split())]
    events.append(event("1000", 10**6))
    whole.write_text("".join(events))
    for name, text in (("falls", FALLS), ("double", DOUBLE_FALLS)):
        (tmp_path / f"{name}.rq").write_text(text)

    plans = reading_order([compile_query(DOUBLE_FALLS, "double"), compile_query(FALLS, "falls")])
    job = Job(plans, (FileSource(StreamOptions(f"{E}s", (str(place),))),), KnowledgeBase.empty())
    options = FollowOptions(tmp_path / "state", until_done=True)
    for turn, some in enumerate((events[:4], events[4:5], events[5:])):
        (place / f"{turn}.nq").write_text("".join(some))
        run(job, options, out=str(tmp_path / "followed"), form="nquads")

    arguments = ["double.rq", "falls.rq", "--stream", "S=s.nq", "--runtime", "local"]
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit):
        patch.chdir(tmp_path)
        main(["run", *arguments, "--format", "nquads", "--out", "bounded"])
    bounded, followed = ((tmp_path / n).read_text().splitlines() for n in ("bounded", "followed"))
    assert sorted(followed) == sorted(bounded)
    assert sum("generatedAtTime" in line for line in followed) == 7
