"""From group graph patterns to algebra (SPARQL 1.1 section 18.2.2)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count

from spaseq.algebra import nodes as n
from spaseq.algebra.constants import constant_text
from spaseq.algebra.folding import all_joined, folded
from spaseq.algebra.scope import possible, visible
from spaseq.algebra.subselect import select_clauses
from spaseq.algebra.triple_terms import TermReader
from spaseq.lang import ast
from spaseq.rdf.terms.term import iri_text


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


def conjuncts(exprs: Iterable[ast.Expr]) -> Iterator[ast.Expr]:
    """The operands of the expressions that are a `&&`, at any depth, and the other expressions."""
    for expr in exprs:
        if isinstance(expr, ast.And):
            yield from conjuncts(expr.operands)
        else:
            yield expr


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
