"""JSON messages of a broker as a stream: the graphs that a lift makes of them (docs/live.md)."""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import IO, Any

import numpy as np

from spaseq import thresholds
from spaseq.algebra.nodes import is_reserved
from spaseq.compiled.mode import interpreted
from spaseq.errors import InputError
from spaseq.lang import ast
from spaseq.lang.variables import walk
from spaseq.lift.cells import Cell, Wrong
from spaseq.lift.json_rows import JsonRows
from spaseq.lift.lift_plan import LiftPlan, row_reports
from spaseq.lift.lifted_events import EventMaker
from spaseq.lift.row_blocks import Report, RowBlock
from spaseq.lift.table_files import TableFile, TableFormat
from spaseq.lift.template_graphs import LiftedBatch
from spaseq.limits import Limits
from spaseq.logs.messages import NO_TIME, Message, MessageColumns
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.inputs.csv_dialect import DEFAULT_DIALECT
from spaseq.rdf.inputs.formats import CSV, TSV, PartOfFile
from spaseq.rdf.inputs.stream_options import BadInput, OnBad, StreamOptions
from spaseq.rdf.terms.term import literal_text
from spaseq.rdf.terms.times import UNTIMED, time_literal
from spaseq.records import record
from spaseq.sources.broker_stream import BrokerStream

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
    _idle: list[_MessageLift] = field(default_factory=list, init=False, repr=False, compare=False)
    """Made before, and used by no thread now: making one takes as long as lifting a message."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.options, self.url, self.plan, self.text, self.types)

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
        try:
            lift = self._idle.pop()
        except IndexError:
            lift = _MessageLift(self.plan, self.options)
        for begin in range(0, len(block), lift.together):
            yield from lift.events(block[begin : begin + lift.together], source, on_bad)
        self._idle.append(lift)


class _MessageLift:
    """Lifts the messages of a stream; for one thread.

    Attributes:
        together: how many messages are lifted together: one if the lift makes blank nodes.
    """

    def __init__(self, plan: LiftPlan, options: StreamOptions) -> None:
        self._plan, self._options = plan, options
        self.together = 1 if _makes_blank_nodes(plan) else _TOGETHER
        self._maker = EventMaker(plan, options.iri, limits=options.limits, asked=options.predicates)
        # Some fields are of the message, such as its topic; the others are of its JSON object.
        self._fields = replace(
            plan.fields,
            needed=plan.fields.needed - MESSAGE_FIELDS,
            optional=plan.fields.optional - MESSAGE_FIELDS,
        )
        self._of_messages = plan.fields.wanted & MESSAGE_FIELDS

    def events(self, messages: MessageColumns, source: str, on_bad: OnBad) -> Iterator[EventBatch]:
        """The events of messages that are lifted together; as `LiftedBroker.events`."""
        self._maker.begin_at(*identity_of(messages[0]))

        def report(line: int, reason: str, text: str = "") -> None:
            on_bad(BadInput(_name(source, messages[line - 1]), None, reason, text))

        data = _objects(messages, report)
        fields, limits = self._fields, self._options.limits
        scanner = None
        if len(messages) > thresholds.current.lifted_rows and not interpreted():
            from spaseq.lift.json_columns import JsonScanner

            scanner = JsonScanner(fields.wanted, fields.taken, limits)
        refuse = row_reports(lambda line: (_name(source, messages[line - 1]), None), on_bad)
        rows = JsonRows(io.BytesIO(data), fields, limits, scanner)
        for block in rows.blocks(report):
            mine = messages.rows(block.lines - 1)
            times = mine.time
            if self._options.messages.time == "arrival":
                times = np.full(len(mine), UNTIMED, np.int64)
            more = {name: _field(name, mine) for name in self._of_messages}
            first = np.ones(len(mine), np.int64)
            whole = replace(block, numbers=first, columns={**block.columns, **more})
            batch = self._maker.lifted(whole, refuse, times)
            yield _in_time(batch) if self._plan.others else batch.events


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


def identity_of(message: Message) -> tuple[object, ...]:
    """An identity of a message in its stream, the same when it is read again."""
    place = message.topic, message.partition, message.offset
    return (*place, message.arrival, message.key, message.payload)


def _name(source: str, message: Message) -> str:
    partition = f" of partition {message.partition}" if message.partition else ""
    return f"{source} message {message.offset}{partition}"


def _field(name: str, messages: MessageColumns) -> Any:
    """A field of messages: an Arrow array, or a list of cells."""
    import pyarrow as pa

    match name:
        case "_topic":
            return [literal_text(topic) if topic else None for topic in messages.topic]
        case "_key":
            return [_text(key) for key in messages.key]
        case "_time":
            times = messages.time.tolist()
            return [None if ms == NO_TIME else time_literal(ms) for ms in times]
        case "_partition":
            return pa.array(messages.partition)
    return pa.array(messages.offset)


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
    untimed = options.messages.time == "arrival"

    def in_file(bad: BadInput) -> None:
        on_bad(bad if bad.line is None else replace(bad, line=bad.line + part.line - 1))

    report = row_reports(lambda line: (path, line), on_bad)
    try:
        for block in table.blocks(stream.plan, options.limits, in_file, not interpreted()):
            assert isinstance(block, RowBlock), "only Parquet has statistics"
            placed = replace(
                block, lines=block.lines + part.line - 1, numbers=block.numbers + part.row - 1
            )
            times = np.full(len(block), UNTIMED, np.int64) if untimed else None
            yield maker.lifted(placed, report, times).events
    except InputError as error:
        on_bad(BadInput(path, part.line, str(error)))
