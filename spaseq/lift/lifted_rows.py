"""Rows of a program as a source: the stream of the graphs that a lift makes of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from spaseq import thresholds
from spaseq.compiled.mode import interpreted
from spaseq.lift.lifted_source import LiftedSource
from spaseq.lift.python_rows import arrow_table, dict_blocks
from spaseq.lift.row_blocks import RowBlock, TableBlock
from spaseq.lift.table_files import check_names
from spaseq.lift.watched_casts import LostValue, bad_row
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.inputs.bad_input import BadInput, OnBad
from spaseq.sources.base import Source, Split
from spaseq.storage.safe_pickles import SafePickler, SafeUnpickler

OF_PROGRAM = "rows of the program"
"""What messages call this input."""


@dataclass(frozen=True, slots=True)
class _RowSource(LiftedSource):
    """Blocks of rows, one by one, and the lift that makes events of them."""

    def describe(self) -> str:
        return OF_PROGRAM

    def open(self, on_bad: OnBad, split: Split | None = None) -> Iterator[EventBatch]:
        maker = self.numbered_maker()
        for item in self.items(not interpreted() and maker.makes_columns):
            if isinstance(item, BadInput):
                on_bad(item)
                continue
            lines = item.lines

            def report(
                row: int, reason: str, lost: LostValue | None, lines: Sequence[int] = lines
            ) -> None:
                on_bad(bad_row(OF_PROGRAM, lines[row], reason, lost))

            for batch in maker.lifted(item, report):
                if len(batch.events) or batch.events.filtered:
                    yield batch.events

    def items(self, columns: bool = False) -> Iterator[RowBlock | TableBlock | BadInput]:
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

    def items(self, columns: bool = False) -> Iterator[RowBlock | TableBlock | BadInput]:
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
                rows = item.rows(self.plan.fields.wanted) if isinstance(item, TableBlock) else item
                SafePickler(file).dump(rows)
        return StoredRows(self.options, self.plan, self.types, str(path))

    def _table(self) -> Any:
        return None if isinstance(self.data, list | tuple) else arrow_table(self.data)

    def _check_schema(self, schema: Any) -> None:
        from spaseq.lift.arrow_rows import table_variables

        check_names(f"stream <{self.iri}>: the table", table_variables(schema), self.plan.fields)

    def _of_table(self, table: Any) -> Iterator[TableBlock]:
        from spaseq.lift.arrow_rows import joined

        self._check_schema(table.schema)
        number = 1
        batches = table.to_batches() if hasattr(table, "to_batches") else table
        for whole in joined(batches):
            for first in range(0, len(whole), thresholds.current.table_rows):
                block = TableBlock(whole.slice(first, thresholds.current.table_rows), number)
                number += len(block)
                yield block


class _RowUnpickler(SafeUnpickler):
    classes = frozenset(
        {
            ("spaseq.lift.row_blocks", "RowBlock"),
            ("spaseq.lift.cells", "Wrong"),
            ("spaseq.lift.cells", "Items"),
            ("spaseq.rdf.inputs.bad_input", "BadInput"),
        }
    )


@dataclass(frozen=True, slots=True)
class StoredRows(_RowSource):
    """Rows of a program in a file, where other processes read them."""

    path: str

    def items(self, columns: bool = False) -> Iterator[RowBlock | TableBlock | BadInput]:
        with open(self.path, "rb") as file:
            while True:
                try:
                    item: RowBlock | BadInput = _RowUnpickler(file).load()
                except EOFError:
                    return
                yield item
