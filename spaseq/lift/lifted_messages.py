"""JSON messages of a broker as a stream: the graphs that a lift makes of them (docs/live.md)."""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from spaseq import thresholds
from spaseq.algebra.nodes import is_reserved
from spaseq.compiled.arrays import Int64s
from spaseq.compiled.mode import interpreted
from spaseq.errors import InputError
from spaseq.lang import ast
from spaseq.lang.variables import walk
from spaseq.lift.cells import Cell, Wrong
from spaseq.lift.json_rows import JsonRows
from spaseq.lift.lift_plan import ROW_NUMBER, Fields, LiftPlan, LostValue, bad_row
from spaseq.lift.lifted_events import EventMaker, LiftedBatch
from spaseq.lift.row_blocks import FilteredRows, Report, RowBlock, TableBlock, TimedRows
from spaseq.lift.table_files import TableFile, TableFormat
from spaseq.limits import Limits
from spaseq.logs.messages import NO_TIME, Message, MessageColumns
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.inputs.csv_dialect import DEFAULT_DIALECT
from spaseq.rdf.inputs.formats import CSV, TSV, PartOfFile
from spaseq.rdf.inputs.stream_options import BadInput, OnBad
from spaseq.rdf.terms.term import XSD, literal_text
from spaseq.rdf.terms.times import UNTIMED, time_literal
from spaseq.records import record
from spaseq.sources.broker_stream import BrokerStream

if TYPE_CHECKING:
    from spaseq.lift.json_columns import JsonScanner

MESSAGE_FIELDS = frozenset({"_topic", "_key", "_time", "_partition", "_offset"})
"""The additional fields of a message. They hide fields of its object with these names."""

_TOGETHER = 16_384
"""Messages that are lifted together."""

_EMPTY = re.compile(rb"(?:^|\n)\s*(?:\n|$)")


@record
class LiftedBroker(BrokerStream):
    """The messages at a URL, each a JSON object, or parts of files; `text` is the lift's.

    `types` are (field, local name of its XSD datatype), for CSV and TSV.
    """

    of_rows = True

    plan: LiftPlan
    text: str
    types: tuple[tuple[str, str], ...] = ()

    def identity(self) -> list[str]:
        digest = hashlib.sha256(self.text.encode()).hexdigest()
        types = [repr(self.types)] if self.types else []
        if self.options.csv != DEFAULT_DIALECT:
            types.append(repr(self.options.csv))
        return [*BrokerStream.identity(self), digest, *types]

    def events(
        self, messages: Sequence[Message], source: str, on_bad: OnBad
    ) -> Iterator[EventBatch]:
        """The events of messages, in their order. `source` names the broker in reports.

        A message has its time, or the time of its arrival (`MessageOptions.time`), if its lift
        makes none. Labels of blank nodes depend only on the message, so a run that reads it again
        gives the same answers.
        """
        block = MessageColumns.of(messages)
        many = 1 if _makes_blank_nodes(self.plan) else _TOGETHER
        for begin in range(0, len(block), many):
            yield from self._of_some(block[begin : begin + many], source, on_bad)

    def _of_some(
        self, messages: MessageColumns, source: str, on_bad: OnBad
    ) -> Iterator[EventBatch]:
        maker = EventMaker(
            self.plan, self.iri, limits=self.options.limits, asked=self.options.predicates
        )
        maker.number_after(*identity_of(messages[0]))

        def report(line: int, reason: str, text: str = "") -> None:
            on_bad(BadInput(_name(source, messages[line - 1]), None, reason, text))

        data = _objects(messages, report)
        row_fields, of_messages = self._fields
        limits, scanner = self.options.limits, self._scanner(maker, len(messages))
        for block in JsonRows(io.BytesIO(data), row_fields, limits, scanner).blocks(report):
            lines = np.array(block.lines)
            mine = messages.rows(lines - 1)
            times = mine.time
            if self.options.messages.time == "arrival":
                times = np.full(len(mine), UNTIMED, np.int64)

            def refuse(
                row: int, reason: str, lost: LostValue | None, lines: Int64s = lines
            ) -> None:
                name = _name(source, messages[int(lines[row]) - 1])
                on_bad(bad_row(name, None, reason, lost))

            for batch in maker.lifted(_joined(block, mine, row_fields, of_messages), refuse, times):
                yield _in_time(batch) if self.plan.others else batch.events

    @property
    def _fields(self) -> tuple[Fields, frozenset[str]]:
        """The lift's fields of JSON objects, and the names of its fields of messages."""
        fields = self.plan.fields
        row_fields = replace(
            fields, needed=fields.needed - MESSAGE_FIELDS, optional=fields.optional - MESSAGE_FIELDS
        )
        return row_fields, fields.wanted & MESSAGE_FIELDS

    def _scanner(self, maker: EventMaker, messages: int) -> JsonScanner | None:
        """The maker of columns of messages, if the lift allows it and they are many."""
        if (
            messages <= thresholds.current.lifted_rows
            or interpreted()
            or not maker.makes_columns
            or _numbers(self.plan)
        ):
            return None
        from spaseq.lift.json_columns import JsonScanner

        row_fields, _ = self._fields
        return JsonScanner(row_fields.wanted, row_fields.taken, self.options.limits)


def _in_time(batch: LiftedBatch) -> EventBatch:
    """The events of messages; the events of one message by time, so that none of them makes one
    late.
    """
    order = np.lexsort((batch.events.time, batch.rows))
    return replace(batch.events.take(order), filtered=batch.events.filtered)


def _objects(messages: MessageColumns, report: Report) -> bytes:
    """The objects of messages, each on a line; an empty message is reported.

    One with a key says that the key's record is gone (a tombstone), and is no event.
    """
    data = messages.payload.joined
    if data.count(b"\n") >= len(messages):
        data = b"\n".join(b" ".join(text.split(b"\n")) for text in messages.payload.each())
    if _EMPTY.search(data):
        for line, text in enumerate(data.split(b"\n"), 1):
            if not text.strip() and messages.key[line - 1] is None:
                report(line, "there is no event in it", "")
    return data


def _joined(
    block: RowBlock | TableBlock, messages: MessageColumns, fields: Fields, wanted: frozenset[str]
) -> RowBlock | TableBlock:
    """Rows with the fields of their messages, too."""
    import pyarrow as pa

    if isinstance(block, TableBlock):
        arrays = {name: _array(name, messages) for name in wanted}
        if None not in arrays.values():
            columns = dict(zip(block.batch.schema.names, block.batch.columns, strict=True))
            return replace(block, batch=pa.record_batch({**columns, **arrays}))
        block = block.rows(fields.wanted)
    columns = {name: [_cell(name, message) for message in messages] for name in wanted}
    return replace(block, numbers=[1] * len(block), columns={**block.columns, **columns})


def identity_of(message: Message) -> tuple[object, ...]:
    """An identity of a message in its stream, the same when it is read again."""
    place = message.topic, message.partition, message.offset
    return (*place, message.arrival, message.key, message.payload)


def _name(source: str, message: Message) -> str:
    partition = f" of partition {message.partition}" if message.partition else ""
    return f"{source} message {message.offset}{partition}"


def _array(name: str, messages: MessageColumns) -> Any:
    """An Arrow array of a field that messages have; None if it has a key that is no text."""
    import pyarrow as pa

    from spaseq.lift.row_blocks import term_array

    match name:
        case "_topic":
            return pa.array([topic or None for topic in messages.topic], pa.large_string())
        case "_key":
            try:
                keys = [None if key is None else key.decode() for key in messages.key]
            except UnicodeDecodeError:
                return None
            return pa.array(keys, pa.large_string())
        case "_time":
            texts = [None if ms == NO_TIME else time_literal(ms) for ms in messages.time.tolist()]
            return term_array(pa.array(texts, pa.large_string()))
        case "_partition":
            return pa.array(messages.partition)
    return pa.array(messages.offset)


def _cell(name: str, message: Message) -> Cell:
    match name:
        case "_topic":
            return literal_text(message.topic) if message.topic else None
        case "_key":
            return _text(message.key)
        case "_time":
            return None if message.time is None else time_literal(message.time)
        case "_partition":
            return f'"{message.partition}"^^<{XSD}integer>'
    return f'"{message.offset}"^^<{XSD}integer>'


def _text(key: bytes | None) -> Cell:
    if key is None:
        return None
    try:
        return literal_text(key.decode())
    except UnicodeDecodeError:
        return Wrong("the key is not UTF-8")


def _makes_blank_nodes(plan: LiftPlan) -> bool:
    if any(isinstance(term, ast.Var) and is_reserved(term.name) for term in plan.terms):
        return True
    calls = (node for element in plan.elements for node in walk(element))
    return any(isinstance(node, ast.Call) and node.function == "BNODE" for node in calls)


def _numbers(plan: LiftPlan) -> bool:
    """Whether a lift reads the numbers of rows, which is 1 in each message."""
    terms = plan.terms
    nodes = (node for element in plan.elements for node in walk(element))
    return any(isinstance(v, ast.Var) and v.name == ROW_NUMBER for v in (*terms, *nodes))


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
