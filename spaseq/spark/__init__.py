"""SPAseq for Spark users: a session, and the answers of queries as a DataFrame.

>>> import spaseq
>>> spark = spaseq.spark.session()  # doctest: +SKIP
>>> rows = spaseq.spark.answers(spark, Path("slower.rq"), {"S1": "s1.nq"})  # doctest: +SKIP

The public names are `session`, `answers`, `errors` and `cause`, and the data source `rdf` and the
sink `spaseq` of DataFrames: `RdfDataSource` and `AnswerDataSink`. A name loads its module at its
first use.

Streams are paths, or come in one DataFrame with an event in each row. Its columns are `stream`
(the name or the IRI of a stream; rows of other streams are left out), `time` (a timestamp, or
integer milliseconds) and `graph` (N-Triples text). The columns `event` (the graph's IRI) and `k`
(the event's number among the events of its stream and time) are optional. Without `k`, events of
equal time are numbered in the order of their texts. DataFrames of rows are given by stream, each
with a lift. A streaming DataFrame needs the option `checkpoint`, and its time advances only while
all of its streams have new events.

In a local session, workers use this Python for `answers`, whatever Python they use for other work.
On a cluster they use the session's Python; the first call in a session checks its version and
packages.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spaseq.runtime.spark.connectors.answer_sink import AnswerDataSink
    from spaseq.runtime.spark.connectors.rdf_source import RdfDataSource
    from spaseq.runtime.spark.session.failures import cause, errors
    from spaseq.runtime.spark.session.plain_session import session
    from spaseq.spark.answer_frames import answers

_HOMES = {
    "AnswerDataSink": "spaseq.runtime.spark.connectors.answer_sink",
    "RdfDataSource": "spaseq.runtime.spark.connectors.rdf_source",
    "answers": "spaseq.spark.answer_frames",
    "cause": "spaseq.runtime.spark.session.failures",
    "errors": "spaseq.runtime.spark.session.failures",
    "session": "spaseq.runtime.spark.session.plain_session",
}

__all__ = ["AnswerDataSink", "RdfDataSource", "answers", "cause", "errors", "session"]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'spaseq.spark' has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    dunders = (name for name in globals() if name.startswith("__"))
    return sorted({*__all__, *dunders})
