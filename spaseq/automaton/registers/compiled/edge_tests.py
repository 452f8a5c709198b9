"""Tests at edges: comparisons of two numbers, and FILTERs that Python answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from spaseq.automaton.program.bound_variables import EVENT_TIME, last_time
from spaseq.automaton.program.nfa import GpmColumns
from spaseq.expr.uses import timestamp_uses
from spaseq.lang import ast
from spaseq.lang.variables import conjuncts, expression_variables, is_now, walk
from spaseq.rdf.terms.term import XSD
from spaseq.records import record

Operator: TypeAlias = Literal["<", "<=", ">", ">=", "=", "!="]

FLIPPED: dict[str, Operator] = {
    "<": ">",
    "<=": ">=",
    ">": "<",
    ">=": "<=",
    "=": "=",
    "!=": "!=",
}


@record
class SolutionValue:
    """A variable that the solution itself binds."""

    variable: str


@record
class RunValue:
    """A variable's value from the run."""

    variable: str


Running: TypeAlias = Literal["FIRST", "COUNT", "SUM", "MIN", "MAX"]
"""An aggregate over the repetitions of a loop so far."""


@record
class RunningValue:
    """An aggregate of a variable over the repetitions so far, the solution's included.

    `begins`: the solution is the first repetition. `ended`: the loop is over, and the solution is
    of a later step.
    """

    variable: str
    function: Running
    begins: bool
    ended: bool = False

    @property
    def number(self) -> Number:
        """The number to compare with."""
        number = Number(self.variable, running=self.function)
        return number.base if self.begins else number

    @property
    def place(self) -> Literal["run", "solution", "both"]:
        """The place of the number."""
        if self.begins:
            return "solution"
        return "run" if self.ended or self.function == "FIRST" else "both"


Place: TypeAlias = SolutionValue | RunValue | RunningValue | None
"""Where the value of a variable comes from; None if it is unbound."""


@record
class Number:
    """A number of a solution or a run.

    It is a variable's value, the result of a formula over it, or an id of its term. A constant is a
    formula without a variable. With `offset_ms` it is the time (ms) of the event, plus the offset.
    A `running` number is an aggregate that a register accumulates. A `measure` needs no variable:
    the time (ms) of the event, the number of its instant, a mark that is NaN until a register is
    marked, or a count of the repetitions of the step whose number is `variable`; `plus` is added
    to it. A `constant` is `plus`. For a candidate of a bracket behind `;`, `begin` is the first row
    of its first instant, and `earliest` is the same row of the earliest complete candidate of a
    bracket behind the run. The number of a `slot` is the slot. An `equal` number by term is an id
    that all variables share, and all terms that `=` may hold for (see `EqualTerms`). A `joined`
    number is the id of the slot and another number of the solution: a value, the id of a term, or
    an `equal` number.
    """

    variable: str
    by_term: bool = False
    formula: ast.Expr | None = None
    offset_ms: int | None = None
    running: Running | Literal[""] = ""
    measure: Literal[
        "",
        "time",
        "instant",
        "mark",
        "count",
        "constant",
        "begin",
        "earliest",
        "slot",
        "equal",
        "joined value",
        "joined term",
        "joined equal",
    ] = ""
    plus: int = 0

    @property
    def name(self) -> str:
        """A name that is unique among the numbers of a solution: by default the variable's."""
        return self.variable if self.formula is None else repr(self.formula)

    @property
    def is_measure(self) -> bool:
        """Whether it needs no variable."""
        return self.measure not in ("", "equal") and not self.is_joined

    @property
    def ids(self) -> str:
        """The space of an id: a variable, "" for `equal` numbers, JOINED for `joined` ones."""
        if self.is_joined:
            return JOINED
        return "" if self.measure == "equal" else self.variable

    @property
    def is_joined(self) -> bool:
        """Whether it is the id of the slot and another number."""
        return self.measure in ("joined value", "joined term", "joined equal")

    @property
    def joined(self) -> Number:
        """The id of the slot and this number."""
        if not self.by_term:
            return replace(self, by_term=True, measure="joined value")
        return replace(self, measure="joined equal" if self.measure else "joined term")

    @property
    def alone(self) -> Number:
        """The number that a `joined` number is of; else this number."""
        if not self.is_joined:
            return self
        measure: Literal["", "equal"] = "equal" if self.measure == "joined equal" else ""
        return replace(self, by_term=self.measure != "joined value", measure=measure)

    @property
    def base(self) -> Number:
        """The number of a solution from which a running number is made; else this number."""
        if self.running == "COUNT" or self.measure == "count":
            return ONE
        return Number(self.variable) if self.running else self


JOINED = " "  # no variable has this name

SLOT = Number("", measure="slot")
"""The slot of a run."""

BEGIN = Number("", measure="begin")
"""The row at which the candidate of a run begins."""


def earliest_of(place: int) -> Number:
    """The first row of the earliest candidate of a bracket behind `;` that follows a state."""
    return Number(str(place), measure="earliest")


ONE = Number("", formula=ast.Literal("1", XSD + "integer"))
"""The number 1."""


@record
class EdgeTest:
    """The comparison `left operator right`, by value, or for a join by term.

    `right` is a number of the run, or of the solution. If it is running, it may be of "both": the
    run's after it has taken the solution. `left` is the run's if `left_in_run`; else it is the
    solution's.
    """

    left: Number
    operator: Operator
    right: Number
    left_in_run: bool = False
    right_in: Literal["run", "solution", "both"] = "run"

    @property
    def is_threshold(self) -> bool:
        """Whether it orders a number of the solution and one that the run has already."""
        ordered = self.operator not in ("=", "!=")
        return ordered and not self.left_in_run and self.right_in == "run"

    @property
    def of_count(self) -> bool:
        """Whether it depends only on a count of the run, so that it decides where the run waits."""
        return self.left.measure == "count"

    @property
    def of_bases(self) -> EdgeTest:
        """The same comparison of the numbers that running numbers are made of."""
        return EdgeTest(self.left.base, self.operator, self.right.base)

    @property
    def by_value(self) -> bool:
        """Whether it compares terms by value, so that float64 may be inexact for their kinds."""
        left = self.left
        return not (left.by_term or left.measure) and left.offset_ms is None

    @property
    def of_run(self) -> tuple[Number, ...]:
        """The numbers that it reads of the run."""
        right = () if self.right_in == "solution" else (self.right,)
        return (self.left, *right) if self.left_in_run else right

    @property
    def of_solution(self) -> tuple[Number, ...]:
        """The numbers that it reads of the solution, or that the run has from solutions."""
        return self.left.base, self.right.base


@record
class AskedTest:
    """FILTERs that are evaluated in Python, once for the same terms and times.

    They depend on `of_own`, ids of terms and a time of the solution, and on `of_run`, ids and a
    time of the run. There, the id of a variable that the solution also binds is the value before:
    PREV, or the value if the solution leaves the variable unbound. Or they depend on the whole run:
    then `taken` has the ids of the edge that takes the solution, and of the edge inside its
    bracket. `late`: the FILTERs are the late ones of that edge.
    """

    conditions: tuple[ast.Expr, ...]
    of_own: tuple[Number, ...]
    of_run: tuple[Number, ...]
    taken: tuple[int, int] | None = None
    late: bool = False

    is_threshold = of_count = by_value = False

    @property
    def of_solution(self) -> tuple[Number, ...]:
        """The numbers that it reads of the solution, or that the run has from solutions."""
        return *self.of_own, *self.of_run

    @property
    def is_of_terms(self) -> bool:
        """Whether only terms decide it: no time, and no whole run."""
        return self.taken is None and all(number.by_term for number in self.of_solution)


AnyTests: TypeAlias = tuple[EdgeTest | AskedTest, ...]

EdgeTests: TypeAlias = tuple[EdgeTest, ...]

Read: TypeAlias = ast.Var | ast.Prev | ast.Aggregate | ast.Timestamp | ast.Call
"""A variable, PREV of one, an aggregate of one, TIMESTAMP, or NOW."""


def asked_test(conditions: Sequence[ast.Expr], gpm: GpmColumns, known: frozenset[str]) -> AskedTest:
    """The asked test of a GPM's FILTERs; `known` are the variables that the run may have."""
    nodes = [node for condition in conditions for node in walk(condition)]
    read = {node.name for node in nodes if isinstance(node, ast.Var)}
    before = {node.var.name for node in nodes if isinstance(node, ast.Prev)}
    timed = {last_time(name) for c in conditions for name in timestamp_uses(c)}
    of_own = [Number(v, by_term=True) for v in gpm.variables if v in read]
    if any(map(is_now, nodes)):
        of_own.append(Number(EVENT_TIME, offset_ms=0))
    of_run = [Number(v, by_term=True) for v in sorted((read - gpm.certain | before) & known)]
    of_run += [Number(name, offset_ms=0) for name in sorted(timed & known)]
    return AskedTest(tuple(conditions), tuple(of_own), tuple(of_run))


def late_test(conditions: Sequence[ast.Expr], gpm: GpmColumns, taken: tuple[int, int]) -> AskedTest:
    """The asked test of the late FILTERs of an edge that takes a solution of a GPM."""
    test = asked_test(conditions, gpm, frozenset())
    time = Number(EVENT_TIME, offset_ms=0)
    own = test.of_own if time in test.of_own else (*test.of_own, time)
    return replace(test, of_own=own, taken=taken, late=True)


def with_asked(gpms: Sequence[GpmColumns], variables: frozenset[str]) -> list[GpmColumns]:
    """The GPMs with FILTERs on some variables in a form that no edge test has."""

    def asked(condition: ast.Expr) -> ast.Expr:
        is_other = expression_variables(condition).isdisjoint(variables)
        return condition if is_other else ast.Not(ast.Not(condition))

    return [replace(g, conditions=tuple(map(asked, conjuncts(g.conditions)))) for g in gpms]
