"""From lanes and a template to event batches, without an object for each row.

Whatever is not usual, such as a bad row, is `NotColumns`: then `lifted_events` makes the events.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spaseq.algebra.nodes import PatternTerm, is_reserved
from spaseq.compiled.arrays import Bools, Int32s, Int64s
from spaseq.lang import ast
from spaseq.lift.cells import TableBlock, variable_of
from spaseq.lift.lane_solutions import Lanes, LaneSolutions
from spaseq.lift.lane_terms import LaneNames, LaneTerms, united
from spaseq.lift.lanes import Lane, LaneForm, NotColumns, lane_of
from spaseq.lift.lift_plan import ROW_NUMBER, LiftPlan, TemplateTriple
from spaseq.limits import Limits
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.term_columns import text_array
from spaseq.rdf.documents.repeated_triples import repeated_rows
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.terms.term import is_rdf_term, kind_of
from spaseq.rdf.terms.times import LIMIT_MS, parse_time


@dataclass(frozen=True, slots=True)
class LaneTexts(Sequence[str]):
    """The texts of a lane's terms, on demand."""

    lane: Lane

    def __len__(self) -> int:
        return len(self.lane)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> LaneTexts: ...
    def __getitem__(self, place: int | slice) -> str | LaneTexts:
        lane = self.lane
        if isinstance(place, slice):
            return LaneTexts(Lane(lane.form, lane.values[place], lane.prefix, lane.suffix))
        return str(self[place : place + 1]._all()[0])

    def __iter__(self) -> Iterator[str]:
        yield from self._all()

    def _all(self) -> list[str]:
        codes, distinct = self.lane.encoded()
        texts: list[str] = distinct.texts().take(pa.array(codes)).to_pylist()
        return texts


_LONG_NUMBER = 64
"""Bytes of the longest text of a value that is no string, without its datatype."""


class LaneEvents:
    """Makes events from record batches.

    Triples with a predicate that is none of `asked` are left out, and counted. None asks for all.
    """

    def __init__(
        self,
        plan: LiftPlan,
        stream: str,
        counter: InstantCounter,
        limits: Limits,
        asked: Collection[str] | None,
        types: Mapping[str, str],
    ) -> None:
        """NotColumns if the lift has something that only rows can have.

        `types` are the local names of the datatypes that fields are cast to.
        """
        self._plan, self._stream, self._counter = plan, stream, counter
        self._where = LaneSolutions(plan, types)
        self._longest = limits.literal_bytes // 8  # escapes, and a datatype, may be added
        if self._longest < _LONG_NUMBER:
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
        self._time = timed[0]
        self._inside: list[TemplateTriple] = [t for t in plan.template if t.inside]
        predicates = [str(t.terms[1]) for t in self._inside]
        self._kept = [asked is None or predicate[1:-1] in asked for predicate in predicates]
        self._may_repeat = len({*predicates}) < len(predicates)

    def events(self, block: TableBlock) -> tuple[EventBatch, Sequence[str]]:
        """(events, literals of their times) of a block.

        Raises:
            NotColumns: a row is bad, or not usual.
        """
        lanes, rows = self._where.solutions(self._lanes(block), len(block))
        size = len(rows)
        self._check_lengths(lanes)
        names = self._names(lanes, size)
        time, texts = self._times(lanes, size)
        valid = self._valid(lanes, size)
        triples = self._triples(lanes, valid[:, self._kept])
        k = self._counter.assign(time)
        skipped = int(valid.sum()) - len(triples[1])
        events = EventBatch(self._stream, time, k, names, *triples, skipped, len(block) - size)
        return events, texts

    def _check_lengths(self, lanes: Lanes) -> None:
        """NotColumns if a literal may be beyond the limit."""
        for lane in lanes.values():
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
            lanes[name] = lane_of(columns[name])
        numbers = np.arange(block.first, block.first + len(block), dtype=np.int64)
        lanes[ROW_NUMBER] = Lane(LaneForm.INTEGER, pa.array(numbers))
        return self._where.typed(lanes, len(block))

    def _names(self, lanes: Lanes, size: int) -> Sequence[str | None]:
        graph = self._plan.graph
        if graph is None:
            return [None] * size
        if isinstance(graph, str):
            return [graph[1:-1]] * size
        lane = lanes.get(graph.name)
        if lane is None or lane.values.null_count:
            raise NotColumns
        if lane.form is LaneForm.IRI:
            return LaneNames(lane)
        codes, distinct = lane.encoded()
        texts = distinct.texts().to_pylist()
        if not all(kind_of(text) == "iri" and is_rdf_term(text) for text in texts):
            raise NotColumns
        return [texts[code][1:-1] for code in codes.tolist()]

    def _times(self, lanes: Lanes, size: int) -> tuple[Int64s, Sequence[str]]:
        subject, _, term = self._time.terms
        self._check_subject(subject, lanes)
        lane = _lane(term, lanes, size)
        if lane is None or lane.values.null_count:
            raise NotColumns
        if lane.form is LaneForm.MOMENT:
            return lane.values.to_numpy() // 1000, LaneTexts(lane)
        if lane.form is LaneForm.INTEGER:
            ms = lane.values.to_numpy()
            if not ((ms > -LIMIT_MS) & (ms < LIMIT_MS)).all():
                raise NotColumns
            return ms.astype(np.int64), LaneTexts(lane)
        codes, distinct = lane.encoded()
        times = [parse_time(text) for text in distinct.texts().to_pylist()]
        if any(time is None for time in times):
            raise NotColumns
        return np.array(times, np.int64)[codes], LaneTexts(lane)

    def _check_subject(self, term: PatternTerm, lanes: Lanes) -> None:
        """NotColumns if a subject of the time's triple is unbound or no IRI."""
        if isinstance(term, str):
            return
        lane = lanes.get(term.name)
        if lane is None or lane.values.null_count or not _is_iris(lane):
            raise NotColumns

    def _valid(self, lanes: Lanes, size: int) -> Bools:
        """Whether each row has each triple of the template [size, triples]."""
        valid = np.ones((size, len(self._inside)), np.bool_)
        for number, triple in enumerate(self._inside):
            subject = triple.terms[0]
            lane = lanes.get(subject.name) if isinstance(subject, ast.Var) else None
            if lane is not None and not _is_iris(lane):
                raise NotColumns
            for term in (subject, triple.terms[2]):
                if isinstance(term, ast.Var):
                    valid[:, number] &= _bound(lanes.get(term.name), size)
        content = np.array([t is not self._time for t in self._inside], np.bool_)
        if not valid[:, content].any(axis=1).all():
            raise NotColumns
        return valid

    def _triples(
        self, lanes: Lanes, valid: Bools
    ) -> tuple[Int64s, Int32s, Int32s, Int32s, LaneTerms]:
        """(start, s, p, o, terms) of the triples that are kept."""
        size, template = len(valid), [*compress(self._inside, self._kept)]
        codes, terms = _codes([term for t in template for term in t.terms], lanes, size)
        unbound = np.full(size, -1, np.int32)
        matrix = [np.empty((size, len(template)), np.int32) for _ in range(3)]
        for number, triple in enumerate(template):
            for column, term in zip(matrix, triple.terms, strict=True):
                column[:, number] = codes.get(term, unbound)
        start = np.zeros(size + 1, np.int64)
        np.cumsum(valid.sum(axis=1), out=start[1:])
        s, p, o = (column.ravel() if valid.all() else column[valid] for column in matrix)
        if self._may_repeat:
            twice = repeated_rows(start, s, p, o)
            if len(twice):
                s, p, o = (np.delete(column, twice) for column in (s, p, o))
                start = start - np.searchsorted(twice, start)
        return start, s, p, o, terms


def _codes(
    used: Sequence[PatternTerm], lanes: Lanes, size: int
) -> tuple[dict[PatternTerm, Int32s], LaneTerms]:
    """(the codes [size] of terms of the template, the table of their terms)."""
    constants = [*dict.fromkeys(term for term in used if isinstance(term, str))]
    names = {term.name for term in used if isinstance(term, ast.Var)} & lanes.keys()
    own = {name: lanes[name].encoded() for name in sorted(names)}
    distinct = [Lane(LaneForm.TEXT, text_array(constants)), *(lane for _, lane in own.values())]
    terms, places = united(distinct)
    codes: dict[PatternTerm, Int32s] = {
        text: np.full(size, place, np.int32)
        for text, place in zip(constants, places[0].tolist(), strict=True)
    }
    for name, place in zip(own, places[1:], strict=True):
        codes[ast.Var(name)] = np.append(place, np.int32(-1))[own[name][0]]
    return codes, terms


def _bound(lane: Lane | None, size: int) -> Bools:
    """Whether each value of a lane is bound."""
    if lane is None:
        return np.zeros(size, np.bool_)
    if not lane.values.null_count:
        return np.ones(size, np.bool_)
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
