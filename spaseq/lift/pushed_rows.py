"""Rows that a program pushes one by one: each is lifted to its events, mostly one or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import numpy as np

from spaseq.errors import InputError, UsageError
from spaseq.lift.lift_checks import compiled_lift
from spaseq.lift.lift_plan import LostValue
from spaseq.lift.lifted import text_of
from spaseq.lift.lifted_events import EventMaker
from spaseq.lift.python_rows import dict_blocks
from spaseq.lift.template_graphs import NO_TIME
from spaseq.limits import DEFAULT_LIMITS, Limits
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.events.instants import UncountedInstants
from spaseq.rdf.inputs.stream_options import BadInput, warn_once
from spaseq.rdf.terms.term import GENERATED_AT_TIME, Triple
from spaseq.records import record

LiftedEvent: TypeAlias = "tuple[int, str | None, list[Triple]]"
"""An event: its time in ms, the IRI of its graph, its triples."""


@record
class LiftedMany:
    """The events of n rows; `times` [n] in ms, None for rows without a solution."""

    batches: Sequence[EventBatch]
    times: Sequence[int | None]


class RowLifter:
    """The lift of one stream.

    Args:
        stream: the stream's IRI.
        lift: the text of the lift, or the `Path` of its file.
        limits: bounds on literals.
        time_unit: the unit of integer times, `ms` or `s`.

    Attributes:
        rows: how many rows have been taken; `?_line` of the next one is one greater.

    Raises:
        QueryError: the lift has errors.
        InputError: the lift's file cannot be read.
    """

    def __init__(
        self, stream: str, lift: str | Path, limits: Limits = DEFAULT_LIMITS, time_unit: str = "ms"
    ) -> None:
        text, name = text_of(lift)
        self._plan = compiled_lift(text, name, GENERATED_AT_TIME, time_unit)
        self._maker = EventMaker(self._plan, stream, counter=UncountedInstants(), limits=limits)
        self.rows = 0

    @property
    def filtered(self) -> int:
        """Number of rows without a solution."""
        return self._maker.filtered

    @property
    def position(self) -> tuple[int, int]:
        """The lifter's state, for `return_to`."""
        return self.rows, self.filtered

    def return_to(self, position: tuple[int, int]) -> None:
        """Forget the rows since the lifter stood there."""
        self.rows, self._maker.filtered = position

    def events(self, rows: Sequence[object]) -> LiftedMany | None:
        """The events of many rows, as columns as far as they can be.

        None if a row is bad, or may be several events.
        """
        if self._plan.others:
            return None
        position, first = self.position, self.rows + 1
        times = np.full(len(rows), NO_TIME, np.int64)
        batches = []
        try:
            for block in dict_blocks(rows, self._plan.fields, _refuse, first, columns=True):
                start = block.lines[0] - first
                made = self._maker.lifted(block, _refused_row)
                times[start + made.rows] = made.events.time
                batches.append(made.events)
        except (InputError, UsageError):
            self.return_to(position)
            return None
        self.rows += len(rows)
        return LiftedMany(batches, [None if t == NO_TIME else t for t in times.tolist()])

    def of_row(self, row: Mapping[str, Any], time: int | None) -> list[LiftedEvent]:
        """The events of a row in order of time: none if no solution is left.

        `time` counts if the lift makes none. Events of equal time are in the template's order.

        Raises:
            InputError: the row is bad.
            UsageError: the row is no dict.
        """
        if not isinstance(row, Mapping):
            raise UsageError(f"a lifted stream has rows that are dicts, not {type(row).__name__}")
        for block in dict_blocks([row], self._plan.fields, _refuse, self.rows + 1):
            times = None if time is None else np.array([time], np.int64)
            batch = self._maker.lifted(block, _refused_row, times).events
            order = np.argsort(batch.time, kind="stable")
            return [_event(batch, event) for event in order.tolist()]
        raise AssertionError("a row is a block, or bad")


def _event(batch: EventBatch, event: int) -> LiftedEvent:
    rows = slice(int(batch.start[event]), int(batch.start[event + 1]))
    codes = zip(batch.s[rows].tolist(), batch.p[rows].tolist(), batch.o[rows].tolist(), strict=True)
    terms = batch.terms
    triples = [(terms[s], terms[p], terms[o]) for s, p, o in codes]
    return int(batch.time[event]), batch.graph[event], triples


def _refuse(number: int, reason: str, text: str) -> NoReturn:
    raise InputError(f"a bad row: {reason}")


def _refused_row(line: int, reason: str, lost: LostValue | None) -> None:
    if lost is None:
        raise InputError(f"a bad row: {reason}")
    warn_once(BadInput("pushed rows", None, reason, lost=(lost.field, lost.count)))
