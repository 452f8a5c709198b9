"""The compiler of expressions: from a syntax tree to closures over an environment (SPARQL 1.1
section 17, docs/meaning.md).

Each expression has up to three views: its value, its term (N-Triples text) and its effective
boolean value. Each view is a closure that takes an `Env` and raises ExpressionError where SPARQL
has an error. Forms that pass terms on (variables, IF, COALESCE, MIN ...) keep their lexical form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

from spaseq.expr import leaves, operators
from spaseq.expr.aggregates import AGGREGATES, group_concat
from spaseq.expr.casts import CASTS, cast_to_string, derived_datatype, is_cast
from spaseq.expr.env import Env, ExpressionError, NotCompilable
from spaseq.expr.extension import Function, place_aggregate
from spaseq.expr.functions import BUILTINS, Builtin
from spaseq.expr.leaves import TermOf, TermOrNone, ValueOf
from spaseq.expr.operators import ARITHMETIC, COMPARISONS, SIGNS, Test, boolean
from spaseq.expr.temporal import moment_of_ms
from spaseq.expr.values import decode, encode
from spaseq.extras import missing
from spaseq.lang import ast
from spaseq.lang.constants import constant_text
from spaseq.lang.spelling import nearest
from spaseq.lang.variables import variables_of, walk
from spaseq.rdf.schema import Schema
from spaseq.rdf.terms.term import XSD_STRING
from spaseq.rdf.terms.times import canonical_time
from spaseq.records import record

R = TypeVar("R")
ExistsTest: TypeAlias = Callable[[ast.Exists, Env], bool]


@record
class Options:
    """The options of expressions that come from the surrounding query."""

    exists: ExistsTest | None = None
    """Evaluates EXISTS; the compiler applies its `negated` flag."""
    base: str | None = None
    """The base IRI of IRI()."""
    groups: frozenset[str] | None = None
    """The query's group variables, needed only for aggregates over several variables."""
    functions: tuple[Function, ...] = ()
    """The extension functions."""
    schema: Schema | None = None
    """The schema by which the patterns of EXISTS are entailed."""


class ExpressionCompiler:
    """Compiles expressions into closures, by the three views of a result: value, term, test."""

    def __init__(self, options: Options) -> None:
        self.options = options

    # --- test ---

    def test(self, expr: ast.Expr) -> Test:
        """The view as effective boolean value."""
        match expr:
            case ast.Or(operands):
                return operators.disjunction([self.test(e) for e in operands])
            case ast.And(operands):
                return operators.conjunction([self.test(e) for e in operands])
            case ast.Not(operand):
                return operators.negation(self.test(operand))
            case ast.Compare(op, left, right):
                return self.comparison(op, left, right)
            case ast.In(operand, options, negated):
                member = operators.membership(self.value(operand), [self.value(e) for e in options])
                return operators.negation(member) if negated else member
            case ast.Exists():
                return self.existence(expr)
            case ast.Call("BOUND", (ast.Var(name),)):
                return lambda env: env.value(name) is not None
            case ast.Call("BOUND", (ast.Prev(ast.Var(name)),)):
                return lambda env: env.previous(name) is not None
        value = self.value(expr)
        return lambda env: boolean(value(env))

    def comparison(self, op: str, left: ast.Expr, right: ast.Expr) -> Test:
        """A comparison; a constant on the right is decoded once."""
        compare, a, b = COMPARISONS[op], self.value(left), self.value(right)
        if isinstance(right, ast.Literal | ast.Iri):
            constant = decode(constant_text(right))
            return lambda env: compare(a(env), constant)
        return lambda env: compare(a(env), b(env))

    def existence(self, expr: ast.Exists) -> Test:
        """EXISTS or NOT EXISTS."""
        exists = self.options.exists
        if exists is None:
            raise NotCompilable(expr, "EXISTS is not supported yet")
        holds: Test = lambda env: exists(expr, env)  # noqa: E731
        return operators.negation(holds) if expr.negated else holds

    # --- value ---

    def value(self, expr: ast.Expr) -> ValueOf:
        """The view as value."""
        match expr:
            case ast.Var(name):
                return leaves.variable_value(name)
            case ast.Iri() | ast.Literal():
                constant = decode(constant_text(expr))
                return lambda env: constant
            case ast.Arithmetic(op, left, right):
                combine, a, b = ARITHMETIC[op], self.value(left), self.value(right)
                return lambda env: combine(a(env), b(env))
            case ast.Sign(op, operand):
                sign, number = SIGNS[op], self.value(operand)
                return lambda env: sign(number(env))
            case ast.Timestamp(gpm):
                ms = leaves.event_time(gpm.name)
                return lambda env: moment_of_ms(ms(env))
            case ast.Call():
                return self.call(expr)
            case ast.FunctionCall():
                return self.function_call(expr)
            case ast.Aggregate() | ast.Prev():
                return leaves.decoded(self.term(expr))
        return self.test(expr)

    def call(self, expr: ast.Call) -> ValueOf:
        """The value of a built-in function's call."""
        match expr:
            case ast.Call("BOUND", (ast.Var() | ast.Prev(),)):
                return self.test(expr)
            case ast.Call("IF" | "COALESCE") if branches := self.branches(expr, self.value):
                return branches
            case ast.Call("NOW", ()):
                now = leaves.now()
                return lambda env: moment_of_ms(now(env))
            case ast.Call("IRI" | "URI", (operand,)):
                return leaves.iri_function(self.value(operand), self.options.base)
            case ast.Call("BNODE", (operand,)):
                return leaves.blank_node_function(self.value(operand))
            case ast.Call(leaves.OF_SOLUTION, (operand, ast.Var(solution))):
                term = leaves.variable_term(solution)
                return leaves.labelled_node_function(self.value(operand), term)
        builtin = self.builtin(expr)
        if builtin.gives_term:
            return leaves.decoded(self.term(expr))
        return self.application(builtin, expr.args)

    def branches(
        self, expr: ast.Call, view: Callable[[ast.Expr], Callable[[Env], R]]
    ) -> Callable[[Env], R] | None:
        """IF or COALESCE, in the view of its branches; None for a wrong number of arguments."""
        match expr:
            case ast.Call("IF", (condition, then, otherwise)):
                return operators.conditional(self.test(condition), view(then), view(otherwise))
            case ast.Call("COALESCE", operands):
                return operators.coalescence([view(e) for e in operands])
        return None

    def builtin(self, expr: ast.Call) -> Builtin:
        """The built-in function of a call."""
        builtin = BUILTINS.get(expr.function)
        if builtin is None or not builtin.accepts(len(expr.args)):
            count = len(expr.args)
            raise NotCompilable(expr, f"no function {expr.function} of {count} arguments")
        return builtin

    def application(self, builtin: Builtin, args: Sequence[ast.Expr]) -> Callable[[Env], Any]:
        """The function applied to its arguments, in the view that it takes."""
        views: list[Callable[[Env], Any]] = [
            self.term(e) if builtin.takes_terms else self.value(e) for e in args
        ]
        run = builtin.run
        if len(views) == 1:
            only = views[0]
            return lambda env: run(only(env))
        if len(views) == 2:
            first, second = views
            return lambda env: run(first(env), second(env))
        return lambda env: run(*[view(env) for view in views])

    def function_call(self, expr: ast.FunctionCall) -> ValueOf:
        """The value of a cast or of an extension function's call."""
        iri = expr.function.value
        if not is_cast(iri):
            return leaves.decoded(self.extension_call(expr))
        if len(expr.args) != 1:
            raise NotCompilable(expr, f"<{iri}> takes one argument")
        if iri == XSD_STRING:
            term = self.term(expr.args[0])
            return lambda env: cast_to_string(term(env))
        cast, value = CASTS[iri], self.value(expr.args[0])
        return lambda env: cast(value(env))

    # --- term ---

    def term(self, expr: ast.Expr) -> TermOf:
        """The view as term."""
        match expr:
            case ast.Var(name):
                return leaves.variable_term(name)
            case ast.Iri() | ast.Literal():
                constant = constant_text(expr)
                return lambda env: constant
            case ast.Timestamp(gpm):
                ms = leaves.event_time(gpm.name)
                return lambda env: canonical_time(ms(env))
            case ast.Prev(ast.Var(name)):
                return leaves.previous_term(name)
            case ast.Aggregate():
                return self.aggregate(expr)
            case ast.Call("IF" | "COALESCE") if branches := self.branches(expr, self.term):
                return branches
            case ast.Call(name, args) if name in BUILTINS and BUILTINS[name].gives_term:
                return self.application(self.builtin(expr), args)
            case ast.FunctionCall(iri) if not is_cast(iri.value):
                return self.extension_call(expr)
            case ast.FunctionCall(iri) if derived_datatype(iri.value):
                return leaves.derived_integer(self.value(expr), iri.value)
        value = self.value(expr)
        return lambda env: encode(value(env))

    def extension_call(self, expr: ast.FunctionCall) -> TermOf:
        """The term of an extension function's call."""
        iri, count = expr.function.value, len(expr.args)
        functions = {f.iri: f for f in self.options.functions}
        function = functions.get(iri)
        if function is None:
            near = nearest(iri, (*functions, *CASTS))
            hint = None if near is None else f"<{near}>"
            raise NotCompilable(expr, f"unknown function <{iri}>", hint)
        if not function.accepts(count):
            raise NotCompilable(expr, f"<{iri}> does not take {count} argument{'s' * (count != 1)}")
        problem = function.problem()
        if problem is not None:
            raise NotCompilable(expr, f"<{iri}>: {problem}")
        return leaves.extension_call(function, [self.term(e) for e in expr.args])

    def aggregate(self, expr: ast.Aggregate) -> TermOf:
        """The term of a set function over a group variable."""
        if expr.operand is None:
            raise NotCompilable(expr, "COUNT(*) counts no group variable; name one")
        name = self.group_variable(expr, expr.operand)
        elements = self.elements(expr.operand, name)
        combine = set_function(expr)
        if expr.distinct:
            return lambda env: combine(list(dict.fromkeys(elements(env))))
        return lambda env: combine(elements(env))

    def group_variable(self, expr: ast.Aggregate, operand: ast.Expr) -> str:
        """The one group variable of an aggregate's operand."""
        names = variables_of(operand)
        if len(names) > 1 and self.options.groups is not None:
            names &= self.options.groups
        if len(names) != 1:
            raise NotCompilable(expr, f"{expr.function} needs exactly one group variable")
        return next(iter(names))

    def elements(self, operand: ast.Expr, name: str) -> Callable[[Env], Sequence[str | None]]:
        """The operand's term for each value of a group variable; None where it is an error."""
        if isinstance(operand, ast.Var):
            return lambda env: env.group(name)
        term = leaves.none_on_error(self.term(operand))
        return lambda env: [term(leaves.Element(env, name, element)) for element in env.group(name)]


def set_function(expr: ast.Aggregate) -> Callable[[Sequence[str | None]], str]:
    """The function that computes an aggregate from the terms of its operand.

    Raises:
        NotCompilable: there is no such function, or it is not installed.
    """
    if expr.function == "GROUP_CONCAT":
        return group_concat(" " if expr.separator is None else expr.separator)
    aggregate = AGGREGATES.get(expr.function) or place_aggregate(expr.function)
    if aggregate is None:
        raise NotCompilable(expr, f"unknown aggregate {expr.function}")
    if expr.function not in AGGREGATES and missing("geo"):
        raise NotCompilable(expr, f"<{expr.function}>: functions of places need {missing('geo')}")
    return aggregate


_DEFAULT = Options()


def compile_filter(expr: ast.Expr, options: Options = _DEFAULT) -> Test:
    """The test of a FILTER: the effective boolean value, False where that is an error.

    Raises:
        NotCompilable: as `compile_test`.
    """
    match expr:
        case ast.And(operands):
            return _every([compile_filter(e, options) for e in operands])
        case ast.Or(operands):
            return _some([compile_filter(e, options) for e in operands])
    test = compile_test(expr, options)

    def run(env: Env) -> bool:
        try:
            return test(env)
        except ExpressionError:
            return False

    return run


def _every(filters: Sequence[Test]) -> Test:
    """`&&` without a third value: under a FILTER an error counts as false."""
    if len(filters) == 2:
        first, second = filters
        return lambda env: first(env) and second(env)
    return lambda env: all(f(env) for f in filters)


def _some(filters: Sequence[Test]) -> Test:
    """`||` without a third value."""
    return lambda env: any(f(env) for f in filters)


def compile_term(expr: ast.Expr, options: Options = _DEFAULT) -> TermOrNone:
    """The term of an expression as canonical N-Triples text, None where it is an error.

    Raises:
        NotCompilable: as `compile_test`.
    """
    return leaves.none_on_error(ExpressionCompiler(options).term(expr))


def compile_test(expr: ast.Expr, options: Options = _DEFAULT) -> Test:
    """The effective boolean value of an expression; its evaluation may raise ExpressionError.

    Raises:
        NotCompilable: an unknown function, a wrong number of arguments, EXISTS without
            `options.exists`, an aggregate that names no group variable.
    """
    return ExpressionCompiler(options).test(expr)


def problems(expr: ast.Expr, options: Options = _DEFAULT) -> list[NotCompilable]:
    """All parts of an expression that do not compile, in the order of the text."""
    reported: list[NotCompilable] = []
    for node in walk(expr):
        if isinstance(node, ast.Call | ast.FunctionCall | ast.Aggregate | ast.Exists):
            try:
                compile_test(node, options)
            except NotCompilable as problem:
                if not any(problem.node is known.node for known in reported):
                    reported.append(problem)
    return reported
