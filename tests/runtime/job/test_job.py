"""What the sources of a job are told."""

from __future__ import annotations

import pytest

from spaseq.api.prepare import plan_queries
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.options import PlanningOptions
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.runtime.job.job import Job
from spaseq.sources.files import FileSource

QUERY = """PREFIX : <http://e/>
    SELECT ?x WITHIN {window} SECONDS FROM STREAM S <http://e/s> WHERE {{ SEQ(A; B)
    DEFINE GPM A ON S {{ ?x :at {number} }} DEFINE GPM B ON S {{ ?x :is :Low }} }}"""


@pytest.mark.parametrize(
    ("windows", "larger"),
    [(1, 1), (50, 2), (100, 4)],
    ids=["a family has batches of the usual size", "fifty families", "a hundred queries"],
)
def test_batches_are_large_if_many_queries_differ_in_more_than_constants(
    windows: int, larger: int
) -> None:
    texts = [QUERY.format(window=1 + n % windows, number=n) for n in range(100)]
    source = FileSource(StreamOptions("http://e/s", ("events.nq",)))
    job = Job(plan_queries(texts, PlanningOptions()), (source,), KnowledgeBase.empty())
    (kept,) = job.streams
    assert isinstance(kept, FileSource)
    assert kept.options.larger == larger
