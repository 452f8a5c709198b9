"""From blocks of rows to the solutions of WHERE, as columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from spaseq.algebra.constants import constant_text
from spaseq.expr.casts import CASTS
from spaseq.expr.compile import Options, compile_filter, compile_term
from spaseq.expr.env import Env, PlainEnv
from spaseq.expr.extension import known_functions
from spaseq.lang import ast
from spaseq.lang.variables import variables_of, walk
from spaseq.lift.cells import Cell, Items, Wrong, is_term, read_time, time_format, time_term
from spaseq.lift.lift_plan import ROW_NUMBER, LiftPlan, Unnest, cast_of, watched_where
from spaseq.lift.row_blocks import RowBlock
from spaseq.rdf.terms.term import XSD, split_literal

_REMEMBERED = 1 << 16
"""Values of one variable for which an expression's term is kept."""

_LONG_FRACTION = re.compile(r"(\.[0-9]{6})[0-9]+")


@dataclass(slots=True)
class RowSolutions:
    """m solutions of some rows, ascending by row.

    `rows` [m] are places in the block. `columns` and `lists` have [m] values for each variable.
    `bad` has the reason of each row that is bad. `lost` has the terms, by row, that a cast loses,
    by (field, datatype).
    """

    rows: list[int]
    columns: dict[str, list[str | None]]
    lists: dict[str, list[Cell]] = field(default_factory=dict)
    bad: dict[int, str] = field(default_factory=dict)
    first: int = 0  # number of the first solution in the stream
    most: int = 0  # maximum number of solutions at any step
    lost: dict[tuple[str, str], dict[int, str]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, places: Sequence[int]) -> None:
        """Keep the solutions at these places; a place may stand several times."""
        self.most = max(self.most, len(self.rows), len(places))
        self.rows = [self.rows[i] for i in places]
        self.columns = {v: [c[i] for i in places] for v, c in self.columns.items()}
        self.lists = {v: [c[i] for i in places] for v, c in self.lists.items()}

    def without_bad(self) -> None:
        """Leave out the solutions of bad rows."""
        if self.bad:
            bad = self.bad
            self.take([i for i, row in enumerate(self.rows) if row not in bad])


class _SolutionEnv(PlainEnv):
    """One solution as an environment of expressions."""

    __slots__ = ("_columns", "number", "place")

    def __init__(self, columns: dict[str, list[str | None]]) -> None:
        self._columns, self.place, self.number = columns, 0, 0

    def value(self, name: str) -> str | None:
        column = self._columns.get(name)
        return None if column is None else column[self.place]

    def blank_node(self, label: str) -> str:
        key = f"{self.number} {label}".encode()
        return "_:f" + blake2b(key, digest_size=16).hexdigest()


Term = Callable[[_SolutionEnv], "str | None"]
Step = Callable[[RowSolutions], None]


class SolutionMaker:
    """The WHERE of a lift, ready to run over blocks of rows."""

    def __init__(
        self, plan: LiftPlan, types: dict[str, str] | None = None, decimal: str = "."
    ) -> None:
        """`types` has the type of a field (see `cells`), `decimal` the sign in numbers."""
        self._plan, self._decimal = plan, decimal
        where = watched_where(plan, decimal)
        self._casts = where.casts
        self._options = Options(base=plan.base, functions=known_functions())
        self._types = {v: self._cast(v, name) for v, name in (types or {}).items()}
        self._filters = [
            compile_filter(e.expr, self._options)
            for e in where.elements
            if isinstance(e, ast.Filter)
        ]
        self._steps = [step for e in where.elements if (step := self._step(e)) is not None]

    def solutions(self, block: RowBlock, first: int) -> RowSolutions:
        """The solutions of a block's rows; `first` is the number of the first one."""
        solutions = RowSolutions([*range(len(block))], {}, first=first)
        fields = self._plan.fields
        for name, cells in block.columns.items():
            typed = self._types.get(name)
            if name in fields.terms:
                solutions.columns[name] = _terms(
                    name, cells if typed is None else typed(cells), solutions
                )
            else:
                solutions.lists[name] = cells
        solutions.columns[ROW_NUMBER] = [f'"{n}"^^<{XSD}integer>' for n in block.numbers]
        solutions.without_bad()
        for step in self._steps:
            step(solutions)
        solutions.without_bad()
        if self._filters:
            env = _SolutionEnv(solutions.columns)
            kept = []
            for row in range(len(solutions)):
                env.place = row
                env.number = solutions.first + row
                if all(test(env) for test in self._filters):
                    kept.append(row)
            if len(kept) < len(solutions):
                solutions.take(kept)
        return solutions

    def _cast(self, name: str, datatype: str) -> Callable[[list[Cell]], list[Cell]]:
        form = time_format(datatype)
        if form is not None:
            return lambda cells: [_formatted(cell, form) for cell in cells]
        term = compile_term(cast_of(name, datatype, self._decimal), self._options)

        def cast(cells: list[Cell]) -> list[Cell]:
            texts: list[str | None] = [c if type(c) is str else None for c in cells]
            env = _SolutionEnv({name: texts})
            out: list[Cell] = []
            for env.place, cell in enumerate(cells):
                value = None if type(cell) is not str else term(env)
                out.append(
                    cell
                    if cell is None or type(cell) is not str
                    else Wrong(f"{cell} is no xsd:{datatype}")
                    if value is None
                    else _cut(value)
                )
            return out

        return cast

    def _step(self, element: ast.Node) -> Step | None:
        match element:
            case ast.Bind(expr, var):
                return self._bind(expr, var.name)
            case ast.Values():
                return _values(element)
            case Unnest(items, item):
                names = [
                    v
                    for v in self._plan.fields.elements
                    if v == item.name or v.startswith(f"{item.name}_")
                ]
                inner = [e.items.name for e in self._plan.elements if isinstance(e, Unnest)]
                return _unnest(items.name, item.name, names, frozenset(inner))
        return None

    def _bind(self, expr: ast.Expr, name: str) -> Step:
        if isinstance(expr, ast.Var):
            return _renamed(expr.name, name)
        term = checked_term(expr, self._options)
        variables = sorted(variables_of(expr))
        labels = any(isinstance(n, ast.Call) and n.function == "BNODE" for n in walk(expr))
        foreign = any(
            isinstance(n, ast.FunctionCall) and n.function.value not in CASTS for n in walk(expr)
        )
        only = variables[0] if len(variables) == 1 and not labels and not foreign else None
        known: dict[str, str | None] = {}

        field_cast = self._casts.get(name)

        def bind(solutions: RowSolutions) -> None:
            env = _SolutionEnv(solutions.columns)
            column = solutions.columns.get(only) if only is not None else None
            out: list[str | None] = []
            for row in range(len(solutions)):
                key = None if column is None else column[row]
                if key is not None and key in known:
                    out.append(known[key])
                    continue
                env.place, env.number = row, solutions.first + row
                value = term(env)
                out.append(value)
                if key is not None:
                    if len(known) >= _REMEMBERED:
                        known.clear()
                    known[key] = value
            solutions.columns[name] = out
            if field_cast is not None:
                _count_lost(solutions, out, *field_cast)

        return bind


def _formatted(cell: Cell, form: str) -> Cell:
    """The time in the literal of a cell, which has a format."""
    if type(cell) is not str:
        return cell
    time = read_time(split_literal(cell)[0], form)
    return Wrong(f"{cell} is no time in the format {form}") if time is None else time_term(time)


def _count_lost(solutions: RowSolutions, made: list[str | None], field: str, datatype: str) -> None:
    """Note the rows in which a field has a value and its cast has none."""
    given = solutions.columns.get(field, [])
    lost = [i for i, (a, b) in enumerate(zip(given, made, strict=False)) if b is None and a]
    if lost:
        texts = solutions.lost.setdefault((field, datatype), {})
        texts.update((solutions.rows[i], given[i] or "") for i in lost)


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
        column = solutions.columns.get(old)
        solutions.columns[new] = [None] * len(solutions) if column is None else column

    return rename


def _terms(name: str, cells: list[Cell], solutions: RowSolutions) -> list[str | None]:
    """The terms of a field; a row with another cell is bad."""
    for row, cell in zip(solutions.rows, cells, strict=True):
        if cell is not None and type(cell) is not str:
            reason = cell.reason if isinstance(cell, Wrong) else "a list is no term"
            solutions.bad.setdefault(row, f"field {name}: {reason}")
    return cells  # type: ignore[return-value]


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
        joined: dict[str, list[str | None]] = {name: [] for name in names}
        columns = {name: solutions.columns.get(name) for name in names}
        for number in range(len(solutions)):
            mine = {n: None if c is None else c[number] for n, c in columns.items()}
            for row in rows:
                pairs = dict(mine)
                if all(_joins(pairs, n, v) for n, v in zip(names, row, strict=True)):
                    places.append(number)
                    for n in names:
                        joined[n].append(pairs[n])
        solutions.take(places)
        solutions.columns.update(joined)

    return join


def _joins(solution: dict[str, str | None], name: str, value: str | None) -> bool:
    """Whether a value agrees with a solution, which gets it."""
    if value is None:
        return True
    if solution[name] is None:
        solution[name] = value
    return solution[name] == value


def _unnest(source: str, item: str, names: list[str], inner: frozenset[str]) -> Step:
    def unnest(solutions: RowSolutions) -> None:
        cells = solutions.lists.get(source)
        if cells is None:
            cells = list(solutions.columns.get(source, [None] * len(solutions)))
        places: list[int] = []
        elements: list[Mapping[str, Cell]] = []
        for row, cell in enumerate(cells):
            if cell is None:
                continue
            if isinstance(cell, Items):
                places += [row] * len(cell.elements)
                elements += cell.elements
            else:
                solutions.bad.setdefault(
                    solutions.rows[row], f"field {source}: UNNEST takes a list"
                )
        solutions.take(places)
        columns = {n: [e.get(n[len(item) :]) for e in elements] for n in names}
        for name, column in columns.items():
            if name in inner:
                solutions.lists[name] = column
            else:
                solutions.columns[name] = _terms(name, column, solutions)
        solutions.without_bad()

    return unnest
