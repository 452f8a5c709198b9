"""The part of a lift that queries read: other fields need not be read.

A lift is pruned only if that makes no row good or bad: some triple that stays is in every graph,
and no value of a removed field could make its row bad.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from spaseq.algebra.nodes import PatternTerm, is_reserved
from spaseq.expr.values import decode
from spaseq.lang import ast
from spaseq.lang.constants import constant_text
from spaseq.lang.variables import variables_of
from spaseq.lift.cells import variable_of
from spaseq.lift.lift_plan import ROW_NUMBER, LiftPlan, TemplateTriple, time_field
from spaseq.limits import Limits
from spaseq.rdf.terms.term import is_absolute_iri, is_rdf_term
from spaseq.records import record

_PREFIX = re.compile("https?://[A-Za-z0-9.-]+(/[A-Za-z0-9._~-]*)*[/#]")
"""The beginnings that make a valid IRI with any integer after them."""


@dataclass(frozen=True, slots=True)
class KnownFields:
    """Known properties of the columns of a table before they are read, by variable.

    Attributes:
        whole: integers without a null.
        harmless: fields of which no value can make its row bad.
        moments: timestamps in the years 1 to 9999, without a null.
    """

    whole: frozenset[str] = field(default=frozenset())
    harmless: frozenset[str] = field(default=frozenset())
    moments: frozenset[str] = field(default=frozenset())


def longest_harmless(limits: Limits) -> int:
    """The bytes that texts may have together and not be beyond the limit of literals, escaped."""
    return limits.literal_bytes // 8


def known_fields(
    schema: Any,
    nulls: Mapping[str, int | None],
    sizes: Mapping[str, int],
    times: Collection[str],
    longest: int,
) -> KnownFields:
    """Known properties of the columns of a table, by its schema, and by name of a column.

    `nulls` counts them, None if that is not known. `sizes` are bytes: texts are harmless if all of
    them together have at most `longest`. `times` are those in years 1 to 9999.
    """
    from pyarrow import types  # lifts of text need not wait for it

    whole, harmless, moments = set[str](), set[str](), set[str]()
    for column in schema:
        name, is_whole = variable_of(column.name), nulls.get(column.name) == 0
        if types.is_integer(column.type) and is_whole:
            whole.add(name)
        short = sizes.get(column.name, longest + 1) <= longest
        usual = types.is_timestamp(column.type) and column.name in times
        if usual or _is_harmless(column.type, short):
            harmless.add(name)
        if usual and is_whole:
            moments.add(name)
    return KnownFields(frozenset(whole), frozenset(harmless), frozenset(moments))


def _is_harmless(kind: Any, short: bool) -> bool:
    from pyarrow import types as t

    if t.is_dictionary(kind):
        kind = kind.value_type
    if t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind):
        return short
    number = t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind)
    return bool(number or t.is_boolean(kind))


def pruned(plan: LiftPlan, asked: Collection[str] | None, known: KnownFields) -> LiftPlan:
    """The lift without the parts for triples with predicates that are not in `asked`.

    The plan itself if that may change the events.
    """
    elements = plan.elements
    if asked is None or not all(isinstance(e, ast.Bind | ast.Filter) for e in elements):
        return plan
    terms = [term for t in plan.template for term in t.terms]
    if any(isinstance(t, ast.Var) and is_reserved(t.name) for t in terms):
        return plan
    kept = [t for t in plan.template if _is_kept(t, plan, asked)]
    binds = {e.var.name: e.expr for e in elements if isinstance(e, ast.Bind)}
    if not any(_is_certain(t, plan, binds, known.whole) for t in kept):
        return plan
    needed = _needed(plan, kept, binds)
    fields = plan.fields
    unread = fields.wanted - needed - (fields.wanted - known.harmless)
    if not unread:
        return plan
    fewer = replace(
        fields,
        needed=fields.needed - unread,
        optional=fields.optional - unread,
        terms=fields.terms - unread,
    )
    elements = tuple(e for e in elements if not isinstance(e, ast.Bind) or e.var.name in needed)
    return replace(plan, fields=fewer, elements=elements, template=tuple(kept))


def surely_timed(plan: LiftPlan, known: KnownFields) -> str | None:
    """The field with the times of the rows, if each row is certainly an event; else None."""
    if not plan.fields.wanted - {ROW_NUMBER} <= known.harmless:
        return None
    if not all(isinstance(e, ast.Bind) and _is_small(e.expr) for e in plan.elements):
        return None
    binds = plan.binds
    sure = {ROW_NUMBER, *known.whole}
    timed = [t for t in plan.template if t.terms[1] == plan.time_predicate]
    iris = [t.terms[0] for t in timed] + ([] if plan.graph is None else [plan.graph])
    if not all(_is_sure_iri(term, binds, sure) for term in iris):
        return None
    if not any(_is_certain(t, plan, binds, known.whole) for t in plan.template):
        return None
    name = time_field(plan)
    return name if name in known.moments else None


def needed_variables(plan: LiftPlan, asked: Collection[str]) -> frozenset[str]:
    """The variables of a lift that the triples with some predicates need, its name and FILTERs."""
    kept = [t for t in plan.template if _is_kept(t, plan, asked)]
    return _needed(plan, kept, plan.binds)


def _is_kept(triple: TemplateTriple, plan: LiftPlan, asked: Collection[str]) -> bool:
    predicate = triple.terms[1]
    if isinstance(predicate, ast.Var) or predicate == plan.time_predicate:
        return True
    return predicate[1:-1] in asked


def _needed(
    plan: LiftPlan, kept: Iterable[TemplateTriple], binds: Mapping[str, ast.Expr]
) -> frozenset[str]:
    """The variables that triples, the name, and FILTERs read."""
    terms: list[PatternTerm | None] = [term for t in kept for term in t.terms]
    waiting = {t.name for t in (*terms, plan.graph) if isinstance(t, ast.Var)}
    for element in plan.elements:
        if isinstance(element, ast.Filter):
            waiting |= variables_of(element.expr)
    waiting |= {name for name, expr in binds.items() if not _is_small(expr)}
    needed: set[str] = set()
    composed = dict(plan.composed)
    while waiting:
        name = waiting.pop()
        needed.add(name)
        if name in binds:
            waiting |= variables_of(binds[name]) - needed
        inside = composed.get(name, ())
        waiting |= {t.name for t in inside if isinstance(t, ast.Var)} - needed
    return frozenset(needed)


def _is_small(expr: ast.Expr) -> bool:
    """Whether the term of a BIND can be no literal beyond the limit, if its field is none."""
    match expr:
        case ast.Var() | ast.Call("IRI" | "URI"):
            return True
        case ast.FunctionCall(args=(ast.Var(),)):
            return True
    return False


def _is_certain(
    triple: TemplateTriple, plan: LiftPlan, binds: Mapping[str, ast.Expr], whole: Collection[str]
) -> bool:
    """Whether every row has this triple, and it is more than the time."""
    subject, predicate, thing = triple.terms
    if not triple.inside or predicate == plan.time_predicate or isinstance(predicate, ast.Var):
        return False
    sure = {ROW_NUMBER, *whole}

    return _is_sure_iri(subject, binds, sure) and (
        isinstance(thing, str)
        or (thing.name in sure and thing.name not in binds)
        or _is_sure_iri(thing, binds, sure)
    )


def _is_sure_iri(term: PatternTerm, binds: Mapping[str, ast.Expr], sure: Collection[str]) -> bool:
    """Whether every row has a valid IRI as a term of the template, given integers without nulls."""
    if isinstance(term, str):
        return term.startswith("<") and not term.startswith("<<") and is_rdf_term(term)
    expr = binds.get(term.name)
    return expr is not None and numbered_iri(expr, sure)


def numbered_iri(expr: ast.Expr, whole: Collection[str]) -> bool:
    """Whether an expression is `IRI(CONCAT("http://...", STR(?f)))` of an integer ?f.

    >>> numbered_iri(ast.Var("f"), {"f"})
    False
    """
    iri = spelled_iri(expr)
    if iri is None or not iri.in_str or iri.suffix:
        return False
    return iri.field in whole and _PREFIX.fullmatch(iri.prefix) is not None


@record
class SpelledIri:
    """The IRIs of a field between two texts; `in_str` says whether STR is around the field."""

    prefix: str
    field: str
    suffix: str
    in_str: bool


def spelled_iri(expr: ast.Expr) -> SpelledIri | None:
    """The IRIs of `IRI(CONCAT("scheme:...", ?f, "..."))`, also with `STR(?f)`.

    >>> spelled_iri(ast.Call("IRI", (ast.Literal("http://e/", None, None),)))
    """
    match expr:
        case ast.Call("IRI" | "URI", (ast.Call("CONCAT", args),)):
            pass
        case _:
            return None
    texts, name, in_str = ["", ""], None, False
    for arg in args:
        match arg:
            case ast.Literal(str(text), None, None):
                texts[name is not None] += text
            case ast.Var(variable) | ast.Call("STR", (ast.Var(variable),)) if name is None:
                name, in_str = variable, isinstance(arg, ast.Call)
            case _:
                return None
    if name is None or not is_absolute_iri(texts[0]):
        return None
    return SpelledIri(texts[0], name, texts[1], in_str)


_SWAPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}


def comparison(expr: ast.Expr) -> tuple[str, ast.Expr, Any] | None:
    """(operator, operand, value) of a comparison with a constant, which may stand on either side.

    >>> comparison(ast.Compare("<", ast.Literal("x"), ast.Var("f")))
    ('>', Var(name='f'), 'x')
    """
    match expr:
        case ast.Compare(op, operand, ast.Literal() as constant):
            return op, operand, decode(constant_text(constant))
        case ast.Compare(op, ast.Literal() as constant, operand):
            return _SWAPPED[op], operand, decode(constant_text(constant))
    return None
