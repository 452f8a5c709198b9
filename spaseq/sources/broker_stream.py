"""A broker as a source: messages that keep coming, each with one event or several."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Self

from spaseq.connectors import is_source, source_at
from spaseq.connectors.address import scheme_of
from spaseq.errors import UsageError
from spaseq.rdf.inputs.stream_options import ARRIVAL, OnBad, StreamOptions
from spaseq.records import record
from spaseq.sources.base import Source, Split

if TYPE_CHECKING:
    from spaseq.connectors.base import MessageSource
    from spaseq.rdf.columns.event_batch import EventBatch


POSTED = ""
"""In the place of a URL: messages are posted to the run."""


@record
class BrokerStream(Source):
    """The stream at a URL, or in files that arrive or grow at a path.

    `runtime.live` reads it: its messages go into a log first. A followed run on Spark reads Kafka.
    """

    of_rows: ClassVar[bool] = False
    """Whether files of the stream have rows, for a lift."""

    options: StreamOptions
    url: str

    @classmethod
    def of(cls, given: object, options: StreamOptions) -> Source | None:
        if given == (POSTED,):
            return cls(options, POSTED)
        if not isinstance(given, tuple) or not (options.live or any(map(is_source, given))):
            return None
        if len(given) > 1:
            raise UsageError(
                f"stream <{options.iri}>: a stream has one broker or path, and no other input"
            )
        stream = cls(options, given[0])
        stream.connector()
        return stream

    @property
    def iri(self) -> str:
        return self.options.iri

    def describe(self) -> str:
        connector = self.connector()
        return f"stream <{self.iri}>" if connector is None else str(connector.address)

    def connector(self) -> MessageSource | None:
        """The source of its messages; None if they are posted to the run.

        Raises:
            UsageError: the URL lacks something, or events are to have times that it does not give.
        """
        if not self.url:
            return None
        if is_source(self.url):
            source = source_at(self.url, self.options)
        else:
            from spaseq.connectors.arriving_files import ArrivingFiles

            source = ArrivingFiles(self.url, self.options, self.of_rows)
        if self.options.messages.time == "message" and not source.has_times:
            raise UsageError(
                f"stream <{self.iri}>: {source.address} gives messages no time, so events cannot "
                "have it; let them have that of their arrival"
            )
        return source

    def identity(self) -> list[str]:
        """The parts that must stay the same for a run to resume."""
        options = self.options
        return [
            *(self.iri, self.describe(), *options.contexts.identity),
            *options.messages.identity,
        ]

    def check(self) -> None:
        """UsageError: the stream has no end, and this run reads to the ends of its streams."""
        raise self._endless()

    @property
    def needs_log(self) -> bool:
        """Whether its messages must go into a log: Spark itself reads only Kafka.

        Duplicates are found as messages are logged, and heartbeats of the clock are in the log.
        """
        how = self.options.messages
        return scheme_of(self.url) != "kafka" or how.dedup_ms is not None or how.time == ARRIVAL

    def followed(self) -> Self:
        """This stream, if Spark itself reads it.

        Raises:
            UsageError: it is at no Kafka server, or its duplicates are to be dropped.
        """
        if self.needs_log:
            raise UsageError(
                f"stream <{self.iri}>: {self.describe()}: Spark itself reads files and Kafka, and "
                "drops no duplicates; spaseq run --follow reads others through a log"
            )
        return self

    def open(self, on_bad: OnBad, split: Split | None = None) -> Iterator[EventBatch]:
        raise self._endless()

    def keeping(self, predicates: tuple[str, ...] | None) -> Self:
        return replace(self, options=replace(self.options, predicates=predicates))

    def _endless(self) -> UsageError:
        local = "" if scheme_of(self.url) == "kafka" else "--runtime local "
        return UsageError(
            f"stream <{self.iri}>: {self.describe()} has no end; read it with spaseq run "
            f"{local}--follow --checkpoint DIR"
        )
