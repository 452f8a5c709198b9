"""Parts of files of rows, which a live run has in its log: the graphs that a lift makes of them."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import IO

import numpy as np

from spaseq.compiled.mode import interpreted
from spaseq.errors import InputError
from spaseq.lift.lifted_events import EventMaker
from spaseq.lift.lifted_messages import LiftedBroker
from spaseq.lift.row_blocks import FilteredRows, RowBlock, TableBlock, TimedRows
from spaseq.lift.table_files import TableFile
from spaseq.lift.table_formats import TableFormat
from spaseq.lift.watched_casts import LostValue, bad_row
from spaseq.limits import Limits
from spaseq.logs.messages import Message
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.inputs.bad_input import BadInput, OnBad
from spaseq.rdf.inputs.file_messages import CSV, TSV, PartOfFile
from spaseq.rdf.terms.times import UNTIMED

_FORMATS = {CSV: TableFormat.CSV, TSV: TableFormat.TSV}


@dataclass(frozen=True, slots=True)
class _PartOfTable(TableFile):
    """Some rows of a file, with its header."""

    data: bytes

    def _opened(self, limits: Limits) -> IO[bytes]:
        return io.BufferedReader(io.BytesIO(self.data))


def events_of_part(
    stream: LiftedBroker, message: Message, part: PartOfFile, on_bad: OnBad
) -> Iterator[EventBatch]:
    """The events of the rows in a part of a file."""
    options, path = stream.options, message.topic
    maker = EventMaker(
        stream.plan,
        stream.iri,
        dict(stream.types),
        limits=options.limits,
        asked=options.predicates,
        decimal=options.csv.decimal,
    )
    maker.number_after(path, part.line, part.row)
    form = _FORMATS.get(part.format, TableFormat.JSON_LINES)
    table = _PartOfTable(path, form, message.payload, csv=options.csv)
    wanted = stream.plan.fields.wanted if options.messages.time == "arrival" else None

    def in_file(bad: BadInput) -> None:
        on_bad(bad if bad.line is None else replace(bad, line=bad.line + part.line - 1))

    columns = wanted is None and not interpreted() and maker.makes_columns
    try:
        for block in table.blocks(stream.plan, options.limits, in_file, columns):
            assert not isinstance(block, FilteredRows | TimedRows), "only Parquet has statistics"
            yield from _lifted(maker, _placed(block, part), path, wanted, on_bad)
    except InputError as error:
        on_bad(BadInput(path, part.line, str(error)))


def _lifted(
    maker: EventMaker,
    block: RowBlock | TableBlock,
    path: str,
    wanted: frozenset[str] | None,
    on_bad: OnBad,
) -> Iterator[EventBatch]:
    """The events of a block; with `wanted` fields, a row may have no time."""
    lines = block.lines

    def report(row: int, reason: str, lost: LostValue | None) -> None:
        on_bad(bad_row(path, lines[row], reason, lost))

    if wanted is not None:
        rows = block if isinstance(block, RowBlock) else block.rows(wanted)
        yield maker.events(rows, report, np.full(len(rows), UNTIMED, np.int64)).events
        return
    for batch in maker.lifted(block, report):
        yield batch.events


def _placed(block: RowBlock | TableBlock, part: PartOfFile) -> RowBlock | TableBlock:
    """A block with the lines and the numbers that its rows have in their file."""
    lines, rows = part.line - 1, part.row - 1
    if isinstance(block, TableBlock):
        return replace(block, first=block.first + rows, above=block.above + lines - rows)
    return replace(
        block,
        lines=[line + lines for line in block.lines],
        numbers=[number + rows for number in block.numbers],
    )
