"""Files of rows as a source: the stream of the graphs that a lift makes of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spaseq.errors import InputError
from spaseq.lift.lift_plan import LiftPlan
from spaseq.lift.lifted_events import EventMaker, LiftedBatch
from spaseq.lift.table_files import TableFile, table_files
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.inputs.bad_input import BadInput, OnBad
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.sources.base import Source, Split


@dataclass(frozen=True, slots=True)
class LiftedFiles(Source):
    """The files of `options.paths` as events. One task reads all of them."""

    options: StreamOptions
    plan: LiftPlan
    types: tuple[tuple[str, str], ...] = ()
    """(field, local name of its XSD datatype), for CSV and TSV."""

    @classmethod
    def of(cls, given: object, options: StreamOptions) -> Source | None:
        return None  # a lift must be given, too

    @property
    def iri(self) -> str:
        return self.options.iri

    def describe(self) -> str:
        return ", ".join(self.options.paths)

    def check(self) -> None:
        try:
            for file in table_files(self.options.paths):
                file.check(self.plan, self.options.limits)
        except InputError as error:
            raise InputError(f"stream <{self.iri}>: {error}") from None

    def open(self, on_bad: OnBad, split: Split | None = None) -> Iterator[EventBatch]:
        for batch in self.lifted(on_bad):
            if len(batch.events):
                yield batch.events

    def lifted(self, on_bad: OnBad, maker: EventMaker | None = None) -> Iterator[LiftedBatch]:
        """The events with the literals of their times."""
        maker = maker or self.maker()
        for file in table_files(self.options.paths):
            yield from self._of_file(file, maker, on_bad)

    def maker(self) -> EventMaker:
        """What makes the events of this stream."""
        return EventMaker(self.plan, self.iri, dict(self.types))

    def _of_file(self, file: TableFile, maker: EventMaker, on_bad: OnBad) -> Iterator[LiftedBatch]:
        for block in file.blocks(self.plan, self.options.limits, on_bad):
            lines = block.lines

            def report(row: int, reason: str, lines: list[int] = lines) -> None:
                on_bad(BadInput(file.path, lines[row], reason))

            yield maker.events(block, report)
