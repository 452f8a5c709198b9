"""From group graph patterns to algebra (SPARQL 1.1 section 18.2.2)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count

from spaseq.algebra import nodes as n
from spaseq.algebra.constants import TermReader, all_joined, folded
from spaseq.algebra.nodes import possible, visible
from spaseq.lang import ast
from spaseq.lang.constants import constant_text
from spaseq.lang.variables import conjuncts, group_function_uses, rewritten
from spaseq.rdf.terms.term import iri_text


def select_clauses(
    select: ast.SubSelect, pattern: n.Pattern, star: tuple[str, ...], values: n.Table | None
) -> n.Pattern:
    """The sub-SELECT over its translated WHERE clause.

    `star` are the variables of SELECT *; `values` is its VALUES clause.
    """
    grouping = _Grouping(select, pattern)
    pattern = grouping.pattern
    for expr in select.having:
        pattern = n.Filter(grouping.after(expr), pattern)
    if values is not None:
        pattern = n.Join(pattern, values)
    names = star
    if select.items is not None:
        names = tuple(i.var.name for i in select.items if i.var)
        for item in select.items:
            if item.var and item.expr is not None:
                pattern = n.Extend(pattern, item.var.name, grouping.after(item.expr))
    if select.order_by:
        order = (ast.OrderCondition(grouping.after(c.expr), c.descending) for c in select.order_by)
        pattern = n.OrderBy(pattern, tuple(order))
    pattern = n.Project(pattern, names)
    if select.distinct:
        pattern = n.Distinct(pattern)
    if select.limit is not None or select.offset:
        pattern = n.Slice(pattern, select.offset or 0, select.limit)
    return pattern


class _Grouping:
    """GROUP BY with its aggregates, which become variables named `_:#n`."""

    def __init__(self, select: ast.SubSelect, pattern: n.Pattern) -> None:
        self._fresh = count()
        self._keys: dict[ast.Expr, str] = {}
        self._aggregates: dict[ast.Aggregate, str] = {}
        self._grouped = bool(select.group_by) or any(
            group_function_uses(e) for e in _after_grouping(select)
        )
        keys = []
        for item in select.group_by:
            name, expr = self._key(item)
            keys.append(name)
            if expr != ast.Var(name):
                self._keys[expr] = name
                pattern = n.Extend(pattern, name, expr)
        if self._grouped:
            for expr in _after_grouping(select):
                self.after(expr)
            aggregates = tuple((name, a) for a, name in self._aggregates.items())
            pattern = n.Group(pattern, tuple(keys), aggregates)
        self.pattern = pattern

    def _key(self, item: ast.SelectItem) -> tuple[str, ast.Expr]:
        if item.expr is None:
            assert item.var is not None
            return item.var.name, ast.Var(item.var.name)
        if item.var is None and isinstance(item.expr, ast.Var):
            return item.expr.name, item.expr
        return (item.var.name if item.var else self._name()), item.expr

    def _name(self) -> str:
        return f"{n.RESERVED}#{next(self._fresh)}"

    def after(self, expr: ast.Expr) -> ast.Expr:
        """The expression over the groups, with variables for its keys and aggregates."""
        return rewritten(expr, self._change) if self._grouped else expr

    def _change(self, node: ast.Node) -> ast.Node | None:
        if isinstance(node, ast.Aggregate):
            if node not in self._aggregates:
                self._aggregates[node] = self._name()
            return ast.Var(self._aggregates[node])
        name = self._keys.get(node)  # type: ignore[call-overload]
        return None if name is None else ast.Var(name)


def _after_grouping(select: ast.SubSelect) -> tuple[ast.Expr, ...]:
    items = tuple(i.expr for i in select.items or () if i.expr is not None)
    return items + select.having + tuple(c.expr for c in select.order_by)


def translate_group(group: ast.GroupGraphPattern) -> n.Pattern:
    """The algebra of a group graph pattern. Its FILTERs apply to the whole group.

    Blank nodes become variables named `_:label`. A path that is a sequence becomes joined patterns
    over new variables, named `_:/n`.
    """
    return _GroupTranslation().group(group)


def pattern_term(term: ast.Var | ast.Iri) -> n.PatternTerm:
    """The name of a graph or endpoint as a term of a pattern."""
    return ast.Var(term.name) if isinstance(term, ast.Var) else iri_text(term.value)


def conjoined(exprs: Iterable[ast.Expr]) -> ast.Expr | None:
    """The expressions joined by `&&`; None if there are none."""
    operands = tuple(conjuncts(exprs))
    return ast.And(operands) if len(operands) > 1 else (operands[0] if operands else None)


_Triple = tuple[n.PatternTerm, ast.Var | ast.Path | str, n.PatternTerm]


class _GroupTranslation:
    """The translation of one GPM, with a count of the variables that it makes."""

    def __init__(self) -> None:
        self._fresh = count()
        self._reader = TermReader()

    def group(self, group: ast.GroupGraphPattern, first: tuple[n.Pattern, ...] = ()) -> n.Pattern:
        """The algebra of a group that begins with the patterns `first`."""
        pattern, condition = self.parts(group, first)
        return pattern if condition is None else n.Filter(condition, pattern)

    def parts(
        self, group: ast.GroupGraphPattern, first: tuple[n.Pattern, ...] = ()
    ) -> tuple[n.Pattern, ast.Expr | None]:
        """A group without its FILTERs, and the FILTERs joined by `&&`."""
        operands: list[n.Pattern] = [*first]  # of a join
        triples: list[_Triple] = []
        filters: list[ast.Expr] = []
        for element in group.elements:
            if isinstance(element, ast.Filter):
                filters.append(element.expr)
            elif isinstance(element, ast.Triples):
                triples += self.triples(element)
            else:
                operands += self.basic(triples)
                operands = self.with_element(operands, element)
                triples = []
        return all_joined([*operands, *self.basic(triples)]), conjoined(filters)

    def with_element(self, before: list[n.Pattern], element: ast.Element) -> list[n.Pattern]:
        """The operands of a join after one more element of the group."""
        match element:
            case ast.OptionalGraphPattern(group):
                # Only the group's direct FILTERs are the condition, not FILTERs of inner groups.
                return [n.LeftJoin(all_joined(before), *self.parts(group))]
            case ast.MinusGraphPattern(group):
                return [n.Minus(all_joined(before), self.group(group))]
            case ast.Bind(expr, var):
                return [n.Extend(all_joined(before), var.name, expr)]
            case _:
                return [*before, self.joinable(element)]

    def joinable(self, element: ast.Element) -> n.Pattern:
        match element:
            case ast.GroupGraphPattern():
                return self.group(element)
            case ast.GroupOrUnionGraphPattern(alternatives):
                return folded(n.Union, [self.group(each) for each in alternatives])
            case ast.GraphGraphPattern(name, group):
                return n.Graph(pattern_term(name), self.group(group))
            case ast.ServiceGraphPattern(name, group, silent):
                return n.Service(pattern_term(name), self.group(group), silent)
            case ast.EventGraphPattern(stream, event, time, group):
                names = n.EventName(*(None if v is None else v.name for v in (event, time)))
                inner = self.group(group, (names,) if names.variables else ())
                of = None if stream is None else stream.name
                return n.EventBlock(inner, of, next(self._fresh))
            case ast.Values():
                return table(element)
            case ast.SubSelect(pattern=group, values=values):
                inner = self.group(group)
                star = tuple(sorted(visible(possible(inner))))
                return select_clauses(element, inner, star, table(values) if values else None)
            case _:
                raise AssertionError(f"{type(element).__name__} is no operand of Join")

    # --- triples and paths ---

    def triples(self, block: ast.Triples) -> Iterator[_Triple]:
        """The triples of a block; a triple's parts follow it."""
        for t in block.triples:
            yield self._reader.term(t.subject), t.predicate, self._reader.term(t.object)
            for part in self._reader.take_parts():
                yield part.subject, part.predicate, part.object

    def basic(self, triples: Iterable[_Triple]) -> Iterator[n.Pattern]:
        """The basic graph patterns and the paths of some triples, in order."""
        bgp: list[n.TriplePattern] = []
        for subject, predicate, object_ in triples:
            if isinstance(predicate, ast.Var | str):
                name = predicate if isinstance(predicate, str) else ast.Var(predicate.name)
                bgp.append(n.TriplePattern(subject, name, object_))
                continue
            for part in self.path(subject, predicate, object_):
                if isinstance(part, n.TriplePattern):
                    bgp.append(part)
                    continue
                yield n.BGP(tuple(bgp))
                yield part
                bgp = []
        yield n.BGP(tuple(bgp))

    def path(
        self, subject: n.PatternTerm, path: ast.Path, object_: n.PatternTerm
    ) -> Iterator[n.TriplePattern | n.Pattern]:
        """A path pattern (section 18.2.2.4). Repetitions and negated sets stay paths."""
        match path:
            case ast.Iri(value):
                yield n.TriplePattern(subject, iri_text(value), object_)
            case ast.PathInverse(inner):
                yield from self.path(object_, inner, subject)
            case ast.PathSequence(parts):
                for part in parts[:-1]:
                    middle = ast.Var(f"{n.RESERVED}/{next(self._fresh)}")
                    yield from self.path(subject, part, middle)
                    subject = middle
                yield from self.path(subject, parts[-1], object_)
            case ast.PathAlternative(parts):
                arms = [self.joined_path(subject, part, object_) for part in parts]
                yield folded(n.Union, arms)
            case _:
                yield n.Path(subject, path, object_)

    def joined_path(
        self, subject: n.PatternTerm, path: ast.Path, object_: n.PatternTerm
    ) -> n.Pattern:
        return all_joined([*self.basic([(subject, path, object_)])])


def table(values: ast.Values) -> n.Table:
    """VALUES as algebra."""
    rows = tuple(tuple(constant_text(t) if t else None for t in row) for row in values.rows)
    return n.Table(tuple(v.name for v in values.variables), rows)
