"""The answers of another query as the events of the stream that it registers."""

from __future__ import annotations

from collections.abc import Iterator

from spaseq.algebra.answers import Answer
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.inputs.stream_options import OnBad, StreamOptions
from spaseq.records import record
from spaseq.runtime.job.chaining import RegisteredStream
from spaseq.sources.base import Source, Split

_ANSWERS = 4096
"""How many answers make a batch."""


@record
class RegisteredAnswers(Source):
    """A registered stream whose query has run; it may be opened several times."""

    stream: str  # IRI
    answers: tuple[Answer, ...]

    @property
    def iri(self) -> str:
        return self.stream

    @classmethod
    def of(cls, given: object, options: StreamOptions) -> Source | None:
        return None  # no user gives one

    def describe(self) -> str:
        return "answers of another query"

    def open(self, on_bad: OnBad, split: Split | None = None) -> Iterator[EventBatch]:
        stream = RegisteredStream(self.stream)
        for start in range(0, len(self.answers), _ANSWERS):
            yield stream.events(self.answers[start : start + _ANSWERS])
