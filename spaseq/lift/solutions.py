"""The WHERE of a lift: from blocks of rows to columns of solutions.

An expression without a form for lanes is evaluated once for each distinct combination of the terms
that it reads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa

from spaseq import thresholds
from spaseq.algebra.nodes import PatternTerm
from spaseq.compiled.arrays import Bools, Int64s
from spaseq.expr.casts import CASTS
from spaseq.expr.compile import Options, compile_filter, compile_term
from spaseq.expr.env import Env, PlainEnv
from spaseq.expr.extension import known_functions
from spaseq.expr.uses import is_volatile
from spaseq.lang import ast
from spaseq.lang.constants import constant_text
from spaseq.lang.variables import variables_of, walk
from spaseq.lift.cells import Cell, Items, is_term, read_time, time_format, time_term
from spaseq.lift.lane_forms import lane_form, lane_test
from spaseq.lift.lanes import Column, Lane, LaneForm, Listed, column_of_texts, field_column
from spaseq.lift.lift_plan import (
    ROW_NUMBER,
    LiftPlan,
    LostValue,
    Unnest,
    cast_of,
    shown_term,
    watched_where,
)
from spaseq.lift.row_blocks import RowBlock
from spaseq.rdf.terms.term import XSD, XSD_STRING, split_literal
from spaseq.records import record

_REMEMBERED = 1 << 16
"""Combinations of terms for which the result of an expression is kept."""

_LONG_FRACTION = re.compile(r"(\.[0-9]{6})[0-9]+")


@record
class Lost:
    """The solutions whose values a cast loses: their rows, and a function from a position among
    them to the text of the term.
    """

    rows: Int64s
    text: Callable[[int], str | None]


def lost_values(lost: Mapping[tuple[str, str], Lost], bad: Collection[int]) -> Iterator[LostValue]:
    """The values that casts lose in rows that are not bad; `lost` is by (field, datatype)."""
    for (name, datatype), each in lost.items():
        rows, first = np.unique(each.rows, return_index=True)
        good = np.isin(rows, [*bad], invert=True)
        if good.any():
            place = int(good.argmax())
            text = shown_term(each.text(int(first[place])) or "")
            yield LostValue(name, datatype, int(rows[place]), text, int(good.sum()))


@dataclass(slots=True)
class RowSolutions:
    """m solutions of some rows, ascending by row.

    `rows` [m] are places in the block. `columns` and `lists` have [m] values for each variable.
    `bad` has the reason of each row that is bad. `lost` has the terms that a cast loses, by (field,
    datatype).
    """

    rows: Int64s
    lanes: bool  # whether columns are lanes
    first: int  # number of the first solution in the stream
    columns: dict[str, Column] = field(default_factory=dict)
    lists: dict[str, list[Cell]] = field(default_factory=dict)
    bad: dict[int, str] = field(default_factory=dict)
    most: int = 0  # maximum number of solutions at any step
    lost: dict[tuple[str, str], Lost] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, places: Int64s) -> None:
        """Keep the solutions at these places; a place may stand several times."""
        self.most = max(self.most, len(self.rows), len(places))
        self.rows = self.rows[places]
        self.columns = {v: column.take(places) for v, column in self.columns.items()}
        self.lists = {v: [c[i] for i in places.tolist()] for v, c in self.lists.items()}

    def without_bad(self) -> None:
        """Leave out the solutions of bad rows."""
        if self.bad:
            good = np.isin(self.rows, [*self.bad], invert=True)
            if not good.all():
                self.take(np.flatnonzero(good))

    def add(self, name: str, texts: list[str | None]) -> None:
        """Give a variable these terms."""
        self.columns[name] = column_of_texts(texts, self.lanes)

    def add_cells(
        self, name: str, values: Any, compared: bool = True, is_utf8: bool = False
    ) -> None:
        """Give a variable the terms in cells, or in an Arrow array; other cells make rows bad."""
        column, wrong = field_column(values, self.lanes, compared, is_utf8)
        self.columns[name] = column
        for place, reason in wrong.items():
            self.bad.setdefault(int(self.rows[place]), f"field {name}: {reason}")

    def texts(self, term: PatternTerm) -> list[str | None]:
        """The texts [m] of a term."""
        if isinstance(term, str):
            return [term] * len(self)
        column = self.columns.get(term.name)
        return [None] * len(self) if column is None else column.row_texts()

    def texts_at(self, places: Int64s, term: PatternTerm) -> list[str | None]:
        """The texts of a term in some solutions."""
        if isinstance(term, str):
            return [term] * len(places)
        column = self.columns.get(term.name)
        return [None] * len(places) if column is None else column.take(places).row_texts()

    def text(self, place: int, term: PatternTerm) -> str | None:
        """The text of a term in one solution."""
        return self.texts_at(np.array([place]), term)[0]

    def bound(self, name: str) -> Bools:
        """The solutions [m] in which a variable is bound."""
        column = self.columns.get(name)
        return np.zeros(len(self), np.bool_) if column is None else column.bound()


class _SolutionEnv(PlainEnv):
    """One solution as an environment of expressions."""

    __slots__ = ("_number", "_terms")

    def __init__(self, terms: Mapping[str, str | None], number: int) -> None:
        self._terms, self._number = terms, number

    def value(self, name: str) -> str | None:
        return self._terms.get(name)

    def blank_node(self, label: str) -> str:
        key = f"{self._number} {label}".encode()
        return "_:f" + blake2b(key, digest_size=16).hexdigest()


class _Evaluated:
    """An expression that is evaluated once for each distinct combination of terms.

    If it is not repeatable, it is evaluated for each solution.
    """

    def __init__(self, expr: ast.Expr, function: Callable[[Env], Any]) -> None:
        self._names, self._function = sorted(variables_of(expr)), function
        self._variables = [*map(ast.Var, self._names)]
        self._known: dict[tuple[str | None, ...], Any] | None = {} if _repeatable(expr) else None

    def of(self, solutions: RowSolutions) -> list[Any]:
        """The results [m]."""
        names, known = self._names, self._known
        keys: Any = zip(*map(solutions.texts, self._variables), strict=True)
        if not names:
            keys = [()] * len(solutions)
        results = []
        for number, key in enumerate(keys, solutions.first):
            if known is not None and key in known:
                results.append(known[key])
                continue
            value = self._function(_SolutionEnv(dict(zip(names, key, strict=True)), number))
            results.append(value)
            if known is not None:
                if len(known) >= _REMEMBERED:
                    known.clear()
                known[key] = value
        return results


Step = Callable[[RowSolutions], None]


class WhereClause:
    """The WHERE of a lift, ready to run over blocks of rows.

    Attributes:
        one_each: whether a row has at most one solution, and equal rows have equal ones.
    """

    def __init__(
        self, plan: LiftPlan, types: Mapping[str, str] | None = None, decimal: str = "."
    ) -> None:
        """`types` has the type of a field (see `cells`), `decimal` the sign in numbers."""
        self._plan = plan
        where = watched_where(plan, decimal)
        self._casts = where.casts
        self._options = Options(base=plan.base, functions=known_functions())
        self.one_each = all(
            isinstance(e, ast.Bind | ast.Filter) and _repeatable(e) for e in where.elements
        )
        self._types = {
            name: self._typed(name, kind, decimal)
            for name, kind in sorted((types or {}).items())
            if name in plan.fields.terms
        }
        self._steps = [*self._ordered(where.elements)]

    def solutions(
        self, block: RowBlock, first: int, compared: frozenset[str] | None = None
    ) -> RowSolutions:
        """The solutions of a block's rows; `first` is the number of the first one.

        `compared` are the fields whose codes may be needed, None for all.
        """
        lanes = block.is_table or len(block) > thresholds.current.lifted_rows
        solutions = RowSolutions(np.arange(len(block), dtype=np.int64), lanes, first)
        fields = self._plan.fields
        for name in sorted(block.columns):
            values = block.columns[name]
            if name not in fields.terms:
                solutions.lists[name] = block.cells(name)
                continue
            solutions.add_cells(name, values, compared is None or name in compared, block.is_utf8)
            if name in self._types:
                self._types[name](solutions)
        solutions.columns[ROW_NUMBER] = (
            Lane(LaneForm.INTEGER, pa.array(block.numbers))
            if lanes
            else Listed([f'"{n}"^^<{XSD}integer>' for n in block.numbers.tolist()])
        )
        solutions.without_bad()
        for step in self._steps:
            step(solutions)
        return solutions

    def _ordered(self, elements: tuple[ast.Node, ...]) -> Iterator[Step]:
        """The steps. A FILTER comes as soon as its variables are known, so that fewer solutions
        have terms, but behind what sees all solutions.
        """
        waiting = [
            (self._test(part), variables_of(part))
            for e in elements
            if isinstance(e, ast.Filter)
            for part in (e.expr.operands if isinstance(e.expr, ast.And) else (e.expr,))
        ]
        others = [e for e in elements if not isinstance(e, ast.Filter)]
        for number, element in enumerate(others):
            rest = others[number:]
            if self.one_each and not any(e.var.name in self._casts for e in rest):  # type: ignore[attr-defined]
                unknown = {e.var.name for e in rest}  # type: ignore[attr-defined]
                yield from (test for test, names in waiting if not names & unknown)
                waiting = [(test, names) for test, names in waiting if names & unknown]
            yield self._step(element)
        yield from (test for test, _ in waiting)

    def _typed(self, name: str, datatype: str, decimal: str) -> Step:
        """The step that casts a field to the type that a user gave it."""
        form = time_format(datatype)
        if form is None:
            cast, reason = self._bind(cast_of(name, datatype, decimal), name), f"xsd:{datatype}"
        else:
            field = ast.Var(name)
            cast = self._evaluated(field, lambda env: _formatted(env.value(name), form), name)
            reason = f"time in the format {form}"

        def typed(solutions: RowSolutions) -> None:
            given = solutions.columns[name]
            cast(solutions)
            lost = np.flatnonzero(given.bound() & ~solutions.bound(name))
            for place, text in zip(lost.tolist(), given.take(lost).row_texts(), strict=True):
                solutions.bad.setdefault(place, f"field {name}: {text} is no {reason}")

        return typed

    def _step(self, element: ast.Node) -> Step:
        match element:
            case ast.Bind(expr, var):
                return self._bind(expr, var.name)
            case ast.Values():
                return _values(element)
        assert isinstance(element, Unnest)
        items, item = element.items.name, element.item.name
        fields = self._plan.fields.elements
        names = [v for v in fields if v == item or v.startswith(f"{item}_")]
        inner = [e.items.name for e in self._plan.elements if isinstance(e, Unnest)]
        return _unnest(items, item, names, frozenset(inner))

    def _bind(self, expr: ast.Expr, name: str) -> Step:
        if isinstance(expr, ast.Var):
            return _renamed(expr.name, name)
        return self._evaluated(expr, checked_term(expr, self._options), name)

    def _evaluated(self, expr: ast.Expr, term: Callable[[Env], str | None], name: str) -> Step:
        evaluated, form = _Evaluated(expr, term), cache(partial(lane_form, expr, term))
        field_cast = self._casts.get(name)

        def bind(solutions: RowSolutions) -> None:
            of_lanes = form() if solutions.lanes else None
            lane = None if of_lanes is None else of_lanes(solutions.columns)
            if lane is None:
                solutions.add(name, evaluated.of(solutions))
            else:
                solutions.columns[name] = lane
            if field_cast is not None:
                _note_lost(solutions, name, field_cast)

        return bind

    def _test(self, expr: ast.Expr) -> Step:
        evaluated = _Evaluated(expr, compile_filter(expr, self._options))
        of_lane = lane_test(expr)

        def test(solutions: RowSolutions) -> None:
            kept = None if of_lane is None else of_lane(solutions.columns)
            if kept is None:
                kept = np.array(evaluated.of(solutions), np.bool_)
            if not kept.all():
                solutions.take(np.flatnonzero(kept))

        return test


def _repeatable(element: Any) -> bool:
    """Whether equal terms always give equal results."""
    return not is_volatile(element) and all(
        node.function.value in CASTS or node.function.value == XSD_STRING
        for node in walk(element)
        if isinstance(node, ast.FunctionCall)
    )


def _formatted(text: str | None, form: str) -> str | None:
    """The time in a literal that has a format; None if there is none."""
    time = None if text is None else read_time(split_literal(text)[0], form)
    return None if time is None else time_term(time)


def _note_lost(solutions: RowSolutions, made: str, field_cast: tuple[str, str]) -> None:
    """Note the rows in which a field has a value and its cast has none."""
    given = solutions.columns.get(field_cast[0])
    if given is None:
        return
    lost = np.flatnonzero(given.bound() & ~solutions.bound(made))
    if len(lost):
        rows = solutions.rows[lost]
        solutions.lost.setdefault(
            field_cast, Lost(rows, lambda place: given.take(lost[place : place + 1]).row_texts()[0])
        )


def checked_term(expr: ast.Expr, options: Options) -> Callable[[Env], str | None]:
    """BIND's expression: a function from a solution to an RDF term, None for an error."""
    term = compile_term(expr, options)
    moments = isinstance(expr, ast.FunctionCall) and expr.function.value in CASTS

    def checked(env: Env) -> str | None:
        value = term(env)
        if value is None or not is_term(value):
            return None
        return _cut(value) if moments else value

    return checked


def _renamed(old: str, new: str) -> Step:
    """The step of `BIND (?old AS ?new)`."""

    def rename(solutions: RowSolutions) -> None:
        if old in solutions.columns:
            solutions.columns[new] = solutions.columns[old]

    return rename


def _cut(term: str) -> str:
    """A dateTime, time or duration without digits below the microsecond."""
    if "." not in term or not term.endswith(("ime>", "Stamp>", "uration>")):
        return term
    text, sign, datatype = term.rpartition("^^")
    text = _LONG_FRACTION.sub(r"\1", text)
    text = re.sub(r"\.([0-9]*?)0+(?=[^0-9])", r".\1", text)
    return re.sub(r"\.(?=[^0-9])", "", text) + sign + datatype


def _values(values: ast.Values) -> Step:
    names = [v.name for v in values.variables]
    rows = [[None if c is None else constant_text(c) for c in row] for row in values.rows]

    def join(solutions: RowSolutions) -> None:
        places: list[int] = []
        united: list[tuple[str | None, ...]] = []
        for place, mine in enumerate(zip(*map(solutions.texts, values.variables), strict=True)):
            for row in rows:
                pairs = [*zip(mine, row, strict=True)]
                if all(a is None or b is None or a == b for a, b in pairs):
                    places.append(place)
                    united.append(tuple(b if a is None else a for a, b in pairs))
        solutions.take(np.array(places, np.int64))
        for number, name in enumerate(names):
            solutions.add(name, [row[number] for row in united])

    return join


def _unnest(source: str, item: str, names: list[str], inner: frozenset[str]) -> Step:
    def unnest(solutions: RowSolutions) -> None:
        cells = solutions.lists.get(source) or solutions.texts(ast.Var(source))
        places: list[int] = []
        elements: list[Mapping[str, Cell]] = []
        for place, cell in enumerate(cells):
            if isinstance(cell, Items):
                places += [place] * len(cell.elements)
                elements += cell.elements
            elif cell is not None:
                row = int(solutions.rows[place])
                solutions.bad.setdefault(row, f"field {source}: UNNEST takes a list")
        solutions.take(np.array(places, np.int64))
        for name in names:
            column = [e.get(name[len(item) :]) for e in elements]
            if name in inner:
                solutions.lists[name] = column
            else:
                solutions.add_cells(name, column)
        solutions.without_bad()

    return unnest
