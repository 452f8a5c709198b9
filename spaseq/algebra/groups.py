"""From group graph patterns to algebra (SPARQL 1.1 section 18.2.2)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count

from spaseq.algebra import nodes as n
from spaseq.algebra.folding import all_joined, folded
from spaseq.algebra.scope import possible, visible
from spaseq.algebra.subselect import select_clauses
from spaseq.lang import ast
from spaseq.rdf.terms.term import iri_text, literal_text
from spaseq.rdf.terms.vocabulary import XSD_STRING


def translate_group(group: ast.GroupGraphPattern) -> n.Pattern:
    """The algebra of a group graph pattern. Its FILTERs apply to the whole group.

    Blank nodes become variables named `_:label`. A path that is a sequence becomes joined patterns
    over new variables, named `_:/n`.
    """
    return _GroupTranslation().group(group)


def constant_text(term: ast.Iri | ast.Literal) -> str:
    """The canonical N-Triples text of a constant."""
    if isinstance(term, ast.Iri):
        return iri_text(term.value)
    return literal_text(term.lexical, term.datatype or XSD_STRING, term.language)


def pattern_term(term: ast.Term) -> n.PatternTerm:
    """A term of the syntax tree as a term of a pattern."""
    match term:
        case ast.Var(name):
            return ast.Var(name)
        case ast.BlankNode(label):
            return ast.Var(n.RESERVED + label)
        case ast.Iri() | ast.Literal():
            return constant_text(term)


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


_Triple = tuple[n.PatternTerm, ast.Var | ast.Path, n.PatternTerm]


class _GroupTranslation:
    """The translation of one GPM, with a count of the variables that it makes."""

    def __init__(self) -> None:
        self._fresh = count()

    def group(self, group: ast.GroupGraphPattern) -> n.Pattern:
        pattern, condition = self.parts(group)
        return pattern if condition is None else n.Filter(condition, pattern)

    def parts(self, group: ast.GroupGraphPattern) -> tuple[n.Pattern, ast.Expr | None]:
        """A group without its FILTERs, and the FILTERs joined by `&&`."""
        operands: list[n.Pattern] = []  # of a join
        triples: list[_Triple] = []
        filters: list[ast.Expr] = []
        for element in group.elements:
            if isinstance(element, ast.Filter):
                filters.append(element.expr)
            elif isinstance(element, ast.Triples):
                triples.extend(
                    (pattern_term(t.subject), t.predicate, pattern_term(t.object))
                    for t in element.triples
                )
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
            case ast.Values():
                return table(element)
            case ast.SubSelect(pattern=group, values=values):
                inner = self.group(group)
                star = tuple(sorted(visible(possible(inner))))
                return select_clauses(element, inner, star, table(values) if values else None)
            case _:
                raise AssertionError(f"{type(element).__name__} is no operand of Join")

    # --- triples and paths ---

    def basic(self, triples: Iterable[_Triple]) -> Iterator[n.Pattern]:
        """The basic graph patterns and the paths of some triples, in order."""
        bgp: list[n.TriplePattern] = []
        for subject, predicate, object_ in triples:
            if isinstance(predicate, ast.Var):
                bgp.append(n.TriplePattern(subject, ast.Var(predicate.name), object_))
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
