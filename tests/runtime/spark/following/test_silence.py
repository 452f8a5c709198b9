"""Time passes in a stream of files that falls silent: its last windows close all the same."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from threading import Event, Timer
from typing import Any

import pytest

from spaseq.compile import compile_query
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.options import FileSourceSettings, FollowOptions
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.runtime.job.job import Job
from spaseq.runtime.spark.following.follow import follow
from spaseq.sources.files import FileSource
from tests.runtime.machines import nquads, put

pytestmark = [pytest.mark.spark, pytest.mark.thorough]

PATIENCE_S = 240
"""How long the test waits for the last answer; without heartbeats it would never come."""

STREAM = "http://m.example/north"
COUNT = "{ SELECT (COUNT(*) AS ?n) { EVENT { ?m ?what ?value } } }"


@pytest.mark.parametrize("source", ["W", "GONE W"])
def test_the_last_windows_close_after_silence(spark: Any, tmp_path: Path, source: str) -> None:
    """Nothing comes after the third event: the windows that hold it, and the empty one, close.

    The query has no WITHIN, so nothing but its window says how long it waits.
    """
    query = f"""SELECT ?n FROM STREAM N <{STREAM}>
        FROM WINDOW W ON N RANGE 2 SECONDS SLIDE 1 SECONDS
        WHERE {{ SEQ(A) DEFINE GPM A ON {source} {COUNT} }}"""
    (tmp_path / "north").mkdir()
    rows = [(time, "m", "starts", time) for time in (0, 500, 1000)]
    put(tmp_path / "north" / "1.nq", nquads(rows))
    stream = FileSource(StreamOptions(STREAM, (str(tmp_path / "north"),)))
    job = Job((compile_query(query),), (stream,), KnowledgeBase.empty())
    arrivals = FileSourceSettings(idle_ms=500, heartbeat_ms=200)
    options = FollowOptions(tmp_path / "checkpoint", arrivals, trigger_ms=200)
    found = []
    last = 4000  # the close of the empty window
    stop = Event()
    patience = Timer(PATIENCE_S, stop.set)
    patience.start()
    with closing(follow(job, options, spark=spark, stop=stop)) as answers:
        for _, answer in answers:
            found.append((answer.end[0], dict(answer.bindings)["n"].split('"')[1]))
            if answer.end[0] == last:
                break
    patience.cancel()
    levels = [(1000, "2"), (2000, "3"), (3000, "1"), (4000, "0")]
    gone = [(2000, "2"), (3000, "3"), (4000, "1")]
    assert found == (levels if source == "W" else gone)
