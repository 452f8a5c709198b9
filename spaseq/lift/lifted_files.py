"""Files of rows as a source: the stream of the graphs that a lift makes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from spaseq.algebra.nodes import Pattern
from spaseq.compiled.mode import interpreted
from spaseq.errors import InputError
from spaseq.lift.asked_rows import asked_rows
from spaseq.lift.lifted_events import EventMaker, LiftedBatch
from spaseq.lift.lifted_source import LiftedSource
from spaseq.lift.pruned_lifts import pruned
from spaseq.lift.row_blocks import FilteredRows, TimedRows
from spaseq.lift.table_files import TableFile, table_files
from spaseq.lift.watched_casts import LostValue, bad_row
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.inputs.bad_input import OnBad
from spaseq.sources.base import Source, Split


@dataclass(frozen=True, slots=True)
class LiftedFiles(LiftedSource):
    """The files of `options.paths` as events. One task reads all of them.

    Types are for CSV and TSV. `matched_by` sets `patterns`, which queries ask of an event.
    """

    patterns: tuple[Pattern, ...] | None = field(default=None, kw_only=True)

    def describe(self) -> str:
        return ", ".join(self.options.paths)

    def files(self) -> Sequence[TableFile]:
        """The files, in order.

        Raises:
            InputError: there are none, or one is of no known format.
        """
        return table_files(self.options.paths, self.options.csv)

    def check(self) -> None:
        try:
            for file in self.files():
                file.check(self.plan, self.options.limits)
        except InputError as error:
            raise InputError(f"stream <{self.iri}>: {error}") from None

    def keeping(self, predicates: tuple[str, ...] | None) -> Source:
        options = replace(self.options, predicates=predicates)
        return replace(self, options=options, patterns=None)

    def matched_by(self, patterns: Callable[[], tuple[Pattern, ...] | None]) -> Source:
        return replace(self, patterns=patterns())

    def open(self, on_bad: OnBad, split: Split | None = None) -> Iterator[EventBatch]:
        for batch in self.lifted(on_bad, self.numbered_maker()):
            if len(batch.events) or batch.events.filtered:
                yield batch.events

    def lifted(self, on_bad: OnBad, maker: EventMaker | None = None) -> Iterator[LiftedBatch]:
        """The events with the literals of their times."""
        maker = maker or self.maker()
        for file in self.files():
            yield from self._of_file(file, maker, on_bad)

    def _of_file(self, file: TableFile, maker: EventMaker, on_bad: OnBad) -> Iterator[LiftedBatch]:
        columns = not interpreted() and maker.makes_columns
        limits, plan = self.options.limits, self.plan
        asked = None
        if maker.makes_columns:
            plan = pruned(plan, self.options.predicates, file.known_fields(limits))
            maker = maker.of_part(plan)
            if self.patterns is not None and not self.types:
                asked = asked_rows(self.patterns, plan)
        for block in file.blocks(plan, limits, on_bad, columns, asked):
            if isinstance(block, FilteredRows | TimedRows):
                yield maker.without(block)
                continue
            lines = block.lines

            def report(
                row: int, reason: str, lost: LostValue | None, lines: Sequence[int] = lines
            ) -> None:
                on_bad(bad_row(file.path, lines[row], reason, lost))

            yield from maker.lifted(block, report)
