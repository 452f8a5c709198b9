"""From lanes and a template to event batches, without an object for each row.

Whatever is not usual, such as a bad row, is `NotColumns`: then `lifted_events` makes the events.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import compress

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spaseq.algebra.nodes import PatternTerm, is_reserved
from spaseq.compiled.arrays import Bools, Int64s
from spaseq.lang import ast
from spaseq.lift.cells import variable_of
from spaseq.lift.lane_solutions import Lanes, LaneSolutions
from spaseq.lift.lane_terms import SharedTexts
from spaseq.lift.lanes import Lane, LaneForm, NotColumns, lane_of
from spaseq.lift.lift_plan import ROW_NUMBER, LiftPlan, LostValue, TemplateTriple
from spaseq.lift.lifted_graphs import LiftedEvents, LiftedGraphs
from spaseq.lift.pruned_lifts import needed_variables
from spaseq.lift.row_blocks import TableBlock
from spaseq.limits import Limits
from spaseq.rdf.columns.event_batch import EventNames
from spaseq.rdf.columns.term_columns import text_array
from spaseq.rdf.events.graph_times import TimeTerms
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.terms.term import is_rdf_term, kind_of

_LONG_NUMBER = 64
"""Bytes of the longest text of a value that is no string, without its datatype."""


class LaneEvents:
    """Makes events from record batches.

    Only triples with a predicate in `asked` are kept (None: all); others are counted.
    """

    def __init__(
        self,
        plan: LiftPlan,
        times: TimeTerms,
        counter: InstantCounter,
        limits: Limits,
        asked: Collection[str] | None,
        cells: tuple[Mapping[str, str], str],
    ) -> None:
        """NotColumns if the lift has something that only rows can have.

        `cells` are (the types that fields are cast to, the decimal sign of numbers).
        """
        self._plan, self._stream, self._counter = plan, times.stream, counter
        self._times_read = times
        self._where = LaneSolutions(plan, *cells)
        self._longest = limits.literal_bytes // 8  # escapes, and a datatype, may be added
        if self._longest < _LONG_NUMBER:
            raise NotColumns
        if plan.others:
            raise NotColumns
        timed = [t for t in plan.template if t.terms[1] == plan.time_predicate]
        others = [t for t in plan.template if t.terms[1] != plan.time_predicate]
        terms = [*(term for t in plan.template for term in t.terms), plan.graph]
        blank = any(isinstance(t, ast.Var) and is_reserved(t.name) for t in terms)
        varied = any(isinstance(t.terms[1], ast.Var) for t in plan.template)
        constants = [term for term in terms if isinstance(term, str)]
        subjects = [t.terms[0] for t in plan.template if isinstance(t.terms[0], str)]
        wrong = not all(map(is_rdf_term, constants)) or any(s[0] != "<" for s in subjects)
        if len(timed) != 1 or blank or varied or wrong or not others:
            raise NotColumns
        self._time, self._texts = timed[0], SharedTexts()
        self._inside: list[TemplateTriple] = [t for t in plan.template if t.inside]
        self._needed = plan.fields.terms if asked is None else needed_variables(plan, asked)
        self._kept = [asked is None or str(t.terms[1])[1:-1] in asked for t in self._inside]

    @property
    def lost(self) -> list[LostValue]:
        """Number of values that casts lost in the last block."""
        return self._where.lost

    def events(self, block: TableBlock) -> tuple[LiftedEvents, Callable[[], Sequence[str]], Int64s]:
        """(events, a function for the literals of their times, rows) of a block.

        Raises:
            NotColumns: a row is bad, or not usual.
        """
        lanes, rows = self._where.solutions(self._lanes(block), len(block))
        size = len(rows)
        self._check_lengths(lanes)
        names = self._names(lanes, size)
        time, texts = self._times(lanes, size)
        valid = self._valid(lanes, size)
        given = sum(size if mask is None else int(mask.sum()) for mask in valid)
        template = [t.terms for t in compress(self._inside, self._kept)]
        graphs = LiftedGraphs(size, template, lanes, [*compress(valid, self._kept)], self._texts)
        head = self._stream, time, self._counter.assign(time), names
        events = LiftedEvents(head, graphs, triples=given, filtered=len(block) - size)
        return events, texts, rows

    def _check_lengths(self, lanes: Lanes) -> None:
        """NotColumns if a literal in a triple may be beyond the limit."""
        objects = {t.terms[2] for t in self._plan.template}
        for lane in (lane for name, lane in lanes.items() if ast.Var(name) in objects):
            if lane.form in (LaneForm.TEXT, LaneForm.STRING, LaneForm.IRI):
                values = lane.values
                if pa.types.is_dictionary(values.type):
                    values = values.dictionary
                if pa.types.is_integer(values.type):
                    continue
                if (pc.max(pc.binary_length(values)).as_py() or 0) > self._longest:
                    raise NotColumns

    def _lanes(self, block: TableBlock) -> Lanes:
        batch = block.batch
        fields = self._plan.fields
        columns = dict(zip(map(variable_of, batch.schema.names), batch.columns, strict=True))
        lanes = {}
        for name in fields.terms:
            if name not in columns:
                raise NotColumns
            lanes[name] = lane_of(columns[name], name in self._needed, block.is_utf8)
        numbers = np.arange(block.first, block.first + len(block), dtype=np.int64)
        lanes[ROW_NUMBER] = Lane(LaneForm.INTEGER, pa.array(numbers))
        return self._where.typed(lanes, len(block))

    def _names(self, lanes: Lanes, size: int) -> EventNames:
        graph = self._plan.graph
        if graph is None:
            return EventNames.none(size)
        if isinstance(graph, str):
            return EventNames.of([graph[1:-1]] * size)
        lane = lanes.get(graph.name)
        if lane is None or lane.values.null_count:
            raise NotColumns
        if lane.form is LaneForm.IRI:
            return EventNames.between(lane.prefix, lane.values, lane.suffix)
        codes, distinct = lane.encoded()
        texts = distinct.texts().to_pylist()
        if not all(kind_of(text) == "iri" and is_rdf_term(text) for text in texts):
            raise NotColumns
        return EventNames.of([texts[code][1:-1] for code in codes.tolist()])

    def _times(self, lanes: Lanes, size: int) -> tuple[Int64s, Callable[[], Sequence[str]]]:
        subject, _, term = self._time.terms
        self._check_subject(subject, lanes)
        lane = _lane(term, lanes, size)
        if lane is None or lane.values.null_count:
            raise NotColumns
        if lane.form is LaneForm.MOMENT:
            return lane.values.to_numpy() // 1000, lane.row_texts
        if lane.form is LaneForm.INTEGER:
            ms = self._times_read.integers(lane.values.to_numpy())
            if ms is None:
                raise NotColumns
            return ms, lane.row_texts
        codes, distinct = lane.encoded()
        times = [self._times_read.read(text) for text in distinct.texts().to_pylist()]
        if any(time is None for time in times):
            raise NotColumns
        return np.array(times, np.int64)[codes], lane.row_texts

    def _check_subject(self, term: PatternTerm, lanes: Lanes) -> None:
        """NotColumns if a subject of the time's triple is unbound or no IRI."""
        if isinstance(term, str):
            return
        lane = lanes.get(term.name)
        if lane is None or lane.values.null_count or not _is_iris(lane):
            raise NotColumns

    def _valid(self, lanes: Lanes, size: int) -> list[Bools | None]:
        """The rows that have each triple of the template [size]; None if all do."""
        valid = []
        for triple in self._inside:
            subject, rows = triple.terms[0], None
            lane = lanes.get(subject.name) if isinstance(subject, ast.Var) else None
            if lane is not None and not _is_iris(lane):
                raise NotColumns
            for term in (subject, triple.terms[2]):
                bound = _bound(lanes.get(term.name), size) if isinstance(term, ast.Var) else None
                if bound is not None:
                    rows = bound if rows is None else rows & bound
            valid.append(rows)
        content = [v for t, v in zip(self._inside, valid, strict=True) if t is not self._time]
        partly = [rows for rows in content if rows is not None]
        if len(partly) == len(content) and not np.logical_or.reduce(partly).all():
            raise NotColumns
        return valid


def _bound(lane: Lane | None, size: int) -> Bools | None:
    """Whether each value of a lane is bound; None if all are."""
    if lane is None:
        return np.zeros(size, np.bool_)
    if not lane.values.null_count:
        return None
    bound: Bools = lane.values.is_valid().to_numpy(zero_copy_only=False)
    return bound


def _lane(term: PatternTerm, lanes: Lanes, size: int) -> Lane | None:
    if isinstance(term, ast.Var):
        return lanes.get(term.name)
    zeros = pa.array(np.zeros(size, np.int32))
    return Lane(LaneForm.TEXT, pa.DictionaryArray.from_arrays(zeros, text_array([term])))


def _is_iris(lane: Lane) -> bool:
    """Whether all terms of a lane are IRIs."""
    if lane.form is not LaneForm.TEXT:
        return lane.form is LaneForm.IRI
    values = lane.values
    texts = values.dictionary if pa.types.is_dictionary(values.type) else values
    return (
        bool(pc.all(pc.starts_with(texts, "<")).as_py())
        and not pc.any(pc.starts_with(texts, "<<")).as_py()
    )
