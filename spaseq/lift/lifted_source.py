"""Files of rows, and rows of a program, as sources: the streams of the graphs that a lift makes of
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from spaseq.algebra.nodes import Pattern
from spaseq.compiled.mode import interpreted
from spaseq.errors import InputError
from spaseq.lift.cells import Cell
from spaseq.lift.lift_plan import LiftPlan, row_reports
from spaseq.lift.lifted_events import EventMaker
from spaseq.lift.pruned_lifts import pruned
from spaseq.lift.python_rows import arrow_table, dict_blocks
from spaseq.lift.row_blocks import RowBlock, joined, table_block, table_variables
from spaseq.lift.row_groups import asked_rows
from spaseq.lift.table_files import TableFile, check_names, table_files
from spaseq.lift.template_graphs import LiftedBatch
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.inputs.stream_options import BadInput, OnBad, StreamOptions
from spaseq.sources.base import Source, Split
from spaseq.storage.safe_pickles import SafePickler, SafeUnpickler


@dataclass(frozen=True, slots=True)
class LiftedSource(Source):
    """Rows from somewhere, and the lift that makes events of them.

    `types` are (field, local name of its XSD datatype).
    """

    options: StreamOptions
    plan: LiftPlan
    types: tuple[tuple[str, str], ...]

    @property
    def iri(self) -> str:
        return self.options.iri

    def maker(self) -> EventMaker:
        """The maker of the events of this stream."""
        limits, asked = self.options.limits, self.options.predicates
        decimal = self.options.csv.decimal
        types = dict(self.types)
        return EventMaker(self.plan, self.iri, types, limits=limits, asked=asked, decimal=decimal)

    def numbered_maker(self) -> EventMaker:
        """A maker whose blank nodes belong to this stream only."""
        maker = self.maker()
        maker.number_after()
        return maker

    def keeping(self, predicates: tuple[str, ...] | None) -> Source:
        return replace(self, options=replace(self.options, predicates=predicates))


@dataclass(frozen=True, slots=True)
class LiftedFiles(LiftedSource):
    """The files of `options.paths` as events. One task reads all of them.

    Types are for CSV and TSV. `matched_by` sets `patterns`, the patterns of queries.
    """

    not_followed = (
        "it follows files of RDF, and topics at Kafka; --runtime local follows files of CSV, TSV "
        "and JSON lines with a lift"
    )

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
        limits, plan = self.options.limits, self.plan
        asked = None
        if maker.is_usual:
            plan = pruned(plan, self.options.predicates, file.known_fields(limits))
            maker = maker.of_part(plan)
            if self.patterns is not None and not self.types:
                asked = asked_rows(self.patterns, plan)
        report = row_reports(lambda line: (file.path, line), on_bad)
        for block in file.blocks(plan, limits, on_bad, not interpreted(), asked):
            if isinstance(block, RowBlock):
                yield maker.lifted(block, report)
            else:
                yield maker.without(block)


OF_PROGRAM = "rows of the program"
"""The name of this input in messages."""


@dataclass(frozen=True, slots=True)
class _RowSource(LiftedSource):
    """Blocks of rows, one by one, and the lift that makes events of them."""

    def describe(self) -> str:
        return OF_PROGRAM

    def open(self, on_bad: OnBad, split: Split | None = None) -> Iterator[EventBatch]:
        maker = self.numbered_maker()
        report = row_reports(lambda line: (OF_PROGRAM, line), on_bad)
        for item in self.items(not interpreted()):
            if isinstance(item, BadInput):
                on_bad(item)
                continue
            events = maker.lifted(item, report).events
            if len(events) or events.filtered:
                yield events

    def items(self, columns: bool = False) -> Iterator[RowBlock | BadInput]:
        """Blocks of rows, and the rows that are bad already; with `columns`, dicts are tables."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class LiftedRows(_RowSource):
    """A DataFrame, an Arrow table, or an iterable of dicts. An iterator can be opened once."""

    data: Any

    def check(self) -> None:
        table = self._table()
        if table is not None:
            self._check_schema(table.schema)

    def items(self, columns: bool = False) -> Iterator[RowBlock | BadInput]:
        table = self._table()
        if table is not None:
            yield from self._of_table(table)
            return
        bad: list[BadInput] = []

        def report(number: int, reason: str, text: str) -> None:
            bad.append(BadInput(OF_PROGRAM, number, reason, text))

        for block in dict_blocks(self.data, self.plan.fields, report, columns=columns):
            yield from bad
            bad.clear()
            yield block
        yield from bad

    def shared(self, directory: Path) -> Source:
        """The rows in a file."""
        path = directory / f"{uuid4().hex}.rows"
        with path.open("wb") as file:
            for item in self.items():
                SafePickler(file).dump(item if isinstance(item, BadInput) else _stored(item))
        return StoredRows(self.options, self.plan, self.types, str(path))

    def _table(self) -> Any:
        return None if isinstance(self.data, list | tuple) else arrow_table(self.data)

    def _check_schema(self, schema: Any) -> None:
        check_names(f"stream <{self.iri}>: the table", table_variables(schema), self.plan.fields)

    def _of_table(self, table: Any) -> Iterator[RowBlock]:
        self._check_schema(table.schema)
        number = 1
        batches = table.to_batches() if hasattr(table, "to_batches") else table
        for whole in joined(batches):
            yield table_block(whole, self.plan.fields.wanted, number)
            number += len(whole)


def _stored(block: RowBlock) -> tuple[list[int], list[int], dict[str, list[Cell]]]:
    """A block as plain values."""
    columns = {name: block.cells(name) for name in block.columns}
    return block.lines.tolist(), block.numbers.tolist(), columns


class _RowUnpickler(SafeUnpickler):
    classes = frozenset(
        {
            ("spaseq.lift.cells", "Wrong"),
            ("spaseq.lift.cells", "Items"),
            ("spaseq.rdf.inputs.stream_options", "BadInput"),
        }
    )


@dataclass(frozen=True, slots=True)
class StoredRows(_RowSource):
    """Rows of a program in a file, where other processes read them."""

    path: str

    def items(self, columns: bool = False) -> Iterator[RowBlock | BadInput]:
        with open(self.path, "rb") as file:
            while True:
                try:
                    item = _RowUnpickler(file).load()
                except EOFError:
                    return
                if not isinstance(item, BadInput):
                    lines, numbers, cells = item
                    item = RowBlock(np.array(lines), np.array(numbers), cells)
                yield item
