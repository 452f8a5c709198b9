"""JSON messages of a broker as a stream: the graphs that a lift makes of them (docs/live.md)."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from spaseq.algebra.nodes import is_reserved
from spaseq.lang import ast
from spaseq.lang.variables import walk
from spaseq.lift.cells import Cell, RowBlock, TableBlock, Wrong
from spaseq.lift.json_rows import JsonRows
from spaseq.lift.lift_plan import LiftPlan
from spaseq.lift.lifted_events import NO_TIME, EventMaker
from spaseq.lift.text_lines import Report
from spaseq.logs.messages import Message
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.inputs.bad_input import BadInput, OnBad
from spaseq.rdf.terms.term import literal_text
from spaseq.rdf.terms.times import time_literal
from spaseq.rdf.terms.vocabulary import XSD
from spaseq.records import record
from spaseq.sources.base import Source
from spaseq.sources.broker_stream import BrokerStream

MESSAGE_FIELDS = frozenset({"_topic", "_key", "_time", "_partition", "_offset"})
"""The fields that a message has besides those of its object. They hide fields of these names."""

_TOGETHER = 4096
"""Messages that are lifted together."""


@record
class LiftedBroker(BrokerStream):
    """The messages at a URL, each a JSON object, or parts of files; `text` is the lift's.

    `types` are (field, local name of its XSD datatype), for CSV and TSV.
    """

    of_rows = True

    plan: LiftPlan
    text: str
    types: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, given: object, options: object) -> Source | None:
        return None  # a lift must be given, too

    def identity(self) -> list[str]:
        digest = hashlib.sha256(self.text.encode()).hexdigest()
        types = [repr(self.types)] if self.types else []
        return [*BrokerStream.identity(self), digest, *types]

    def events(
        self, messages: Sequence[Message], source: str, on_bad: OnBad
    ) -> Iterator[EventBatch]:
        """The events of messages, in their order. `source` names the broker in reports.

        A message has the time that it came with, or that of its arrival (`MessageOptions.time`), if
        its lift makes none. Labels of blank nodes
        depend on nothing but the message, so a run that reads it again gives the same answers.
        """
        many = 1 if _makes_blank_nodes(self.plan) else _TOGETHER
        rest = iter(messages)
        while some := list(islice(rest, many)):
            yield from self._of_some(some, source, on_bad)

    def _of_some(
        self, messages: Sequence[Message], source: str, on_bad: OnBad
    ) -> Iterator[EventBatch]:
        fields, limits = self.plan.fields, self.options.limits
        maker = EventMaker(self.plan, self.iri, limits=limits)
        maker.number_after(*identity_of(messages[0]))

        def report(line: int, reason: str, text: str) -> None:
            on_bad(BadInput(_name(source, messages[line - 1]), None, reason, text))

        objects = [b" ".join(message.payload.split(b"\n")) for message in messages]
        for line, text in enumerate(objects, 1):
            if not text.strip():
                report(line, "there is no event in it", "")
        data = io.BytesIO(b"\n".join(objects))
        own_fields = replace(
            fields,
            needed=fields.needed - MESSAGE_FIELDS,
            optional=fields.optional - MESSAGE_FIELDS,
        )
        for block in JsonRows(data, own_fields, limits).blocks(report):
            found = block.rows(own_fields.wanted) if isinstance(block, TableBlock) else block
            own = [messages[line - 1] for line in found.lines]
            columns = {**found.columns, **_columns(own, fields.wanted & MESSAGE_FIELDS)}
            rows = replace(found, numbers=[1] * len(found), columns=columns)
            yield self._made(maker, rows, own, report)

    def _made(
        self, maker: EventMaker, rows: RowBlock, messages: Sequence[Message], report: Report
    ) -> EventBatch:
        def refuse(row: int, reason: str) -> None:
            report(rows.lines[row], reason, "")

        rule = self.options.messages.time
        given = (m.arrival if rule == "arrival" else m.time for m in messages)
        times = [NO_TIME if time is None else time for time in given]
        return maker.events(rows, refuse, np.array(times, np.int64)).events


def identity_of(message: Message) -> tuple[object, ...]:
    """What tells a message from all others of its stream, and is the same when it is read again."""
    place = message.topic, message.partition, message.offset
    return (*place, message.arrival, message.key, message.payload)


def _name(source: str, message: Message) -> str:
    partition = f" of partition {message.partition}" if message.partition else ""
    return f"{source} message {message.offset}{partition}"


def _columns(messages: Sequence[Message], wanted: frozenset[str]) -> dict[str, list[Cell]]:
    """The cells of the fields that messages have besides those of their objects."""
    return {name: [_cell(name, message) for message in messages] for name in wanted}


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
    terms = [term for triple in plan.template for term in triple.terms]
    if any(not isinstance(term, str) and is_reserved(term.name) for term in terms):
        return True
    calls = (node for element in plan.elements for node in walk(element))
    return any(isinstance(node, ast.Call) and node.function == "BNODE" for node in calls)
