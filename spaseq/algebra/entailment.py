"""Entailment by rewriting: patterns are rewritten with an ontology's schema, events are not.

A triple pattern becomes the union of all patterns whose matches entail a match of it. Entailed
triples are a set, so the union is distinct. These are the rules, with their names in RDF 1.1
Semantics (section 9.2.1) and in OWL 2 Profiles (section 4.3):

    rdfs2, rdfs3      domain and range        cax-eqc1, cax-eqc2    owl:equivalentClass
    rdfs5, rdfs7      subproperties           prp-eqp1, prp-eqp2    owl:equivalentProperty
    rdfs9, rdfs11     subclasses              prp-inv1, prp-inv2    owl:inverseOf
    prp-symp          owl:SymmetricProperty   prp-trp               owl:TransitiveProperty

The rules hold in each event and in each graph of the knowledge base. The solutions are the same as
over the graph with all entailed triples added, also for patterns with a variable class (`?x a ?c`)
or a variable predicate (`?x ?p ?y`).

The ontology's own triples belong to no event. Axioms in events or in the knowledge base are data.
The axiomatic triples of RDFS (everything is an rdfs:Resource) are left out. A triple whose subject
would be a literal is left out, too, but counts where a transitive property and its inverse lead
from it to other triples. Paths of length zero start and end at nodes of the event.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spaseq.algebra import nodes as n
from spaseq.algebra.constants import folded
from spaseq.algebra.nodes import mapped, possible, triple_variables
from spaseq.lang import ast
from spaseq.rdf.schema import TYPE, Schema, Signed
from spaseq.rdf.terms.term import iri_text
from spaseq.records import record

_CLASS, _PROPERTY, _ANY, _INSTANCE, _OTHER = (
    ast.Var(n.RESERVED + "e." + name) for name in ("c", "p", "any", "i", "o")
)
"""Variables of the rewriting. The rewritten triple pattern projects them away."""


def entailed(pattern: n.Pattern, schema: Schema | None) -> n.Pattern:
    """Rewrite `pattern`: over a graph, the result has the solutions over the entailed graph."""
    return pattern if schema is None or not schema.axioms else _Rewriting(schema).pattern(pattern)


@record
class _Rewriting:
    """The rewriting of patterns with one schema."""

    schema: Schema

    def pattern(self, pattern: n.Pattern) -> n.Pattern:
        match pattern:
            case n.BGP(triples):
                return self.bgp(triples)
            case n.Path(subject, ast.PathNegated(forward, inverse), object_):
                return self.negated(pattern, subject, forward, inverse, object_)
            case n.Path(subject, path, object_):
                return n.Path(subject, self.path(path), object_)
            case n.Service():
                return pattern
            case _:
                return mapped(pattern, self.pattern)

    def bgp(self, triples: tuple[n.TriplePattern, ...]) -> n.Pattern:
        plain: list[n.TriplePattern] = []
        others: list[n.Pattern] = []
        for triple in triples:
            ways = list(self.ways(triple))
            if ways == [n.BGP((triple,))]:
                plain.append(triple)
            else:
                others.append(_together(ways, triple))
        parts = ([n.BGP(tuple(plain))] if plain or not others else []) + others
        return folded(n.Join, parts)

    # --- triple patterns ------------------------------------------------------------------------

    def ways(self, triple: n.TriplePattern) -> Iterator[n.Pattern]:
        """Patterns over the graph, whose distinct union has the solutions of the triple."""
        s, p, o = triple.terms
        if isinstance(p, ast.Var):
            yield from self.any_property(s, p, o)
        elif p == TYPE:
            yield from self.types(s, o)
        else:
            yield from self.properties(s, p, o)

    def properties(self, s: n.PatternTerm, p: str, o: n.PatternTerm) -> Iterator[n.Pattern]:
        below = self.schema.subproperties(p)
        for q, backwards in below:
            if q == TYPE:
                yield from self.signed_types(s, o, backwards)
            else:
                yield from _step(s, q, o, backwards)
        for q, turned in self.schema.transitive(p):
            yield from self.closure(s, q, o, turned)

    def signed_types(
        self, s: n.PatternTerm, o: n.PatternTerm, backwards: bool
    ) -> Iterator[n.Pattern]:
        """rdf:type, or its inverse."""
        if backwards:
            if not _is_literal(s):
                yield from (_without_literal(s, way) for way in self.types(o, s, literals=True))
        else:
            yield from self.types(s, o)

    def types(
        self, s: n.PatternTerm, o: n.PatternTerm, *, literals: bool = False
    ) -> Iterator[n.Pattern]:
        """Patterns for rdf:type: stated, by subclasses, and by domains and ranges.

        With `literals`, literals have types, too. No triple states the type of a literal, but the
        inverse of rdf:type can entail triples that have the literal as their object.
        """
        yield from self.own_types(s, o, literals)
        classes = self.schema.types_of_classes
        if classes and (literals or not _is_literal(s)):
            for way in self.own_types(_INSTANCE, s, literals=True):
                way = way if literals else _without_literal(s, way)
                yield from _one_of(way, (o,), [(c,) for c in classes])
            for way in self.own_types(_INSTANCE, _OTHER, literals=True):
                yield from _one_of(way, (s, o), [(c, d) for c in classes for d in classes])

    def own_types(self, s: n.PatternTerm, o: n.PatternTerm, literals: bool) -> Iterator[n.Pattern]:
        """The patterns of `types` without those derived from the range of rdf:type for classes."""
        for q, backwards in self.schema.subproperties(TYPE):
            yield from self.said_types(s, q, o, backwards, literals)
        for (q, backwards), classes in self.schema.typings.items():
            for step in _step(s, q, _ANY, backwards, literals):
                yield from _one_of(step, (o,), [(c,) for c in sorted(classes)])

    def said_types(
        self, s: n.PatternTerm, q: str, o: n.PatternTerm, backwards: bool, literals: bool
    ) -> Iterator[n.Pattern]:
        if isinstance(o, ast.Var):
            yield from _step(s, q, o, backwards, literals)
            if pairs := self.schema.class_pairs:
                for step in _step(s, q, _CLASS, backwards, literals):
                    yield n.Join(step, n.Table((_CLASS.name, o.name), pairs))
            return
        below = sorted(self.schema.subclasses(o))
        if len(below) == 1:
            yield from _step(s, q, o, backwards, literals)
            return
        for step in _step(s, q, _CLASS, backwards, literals):
            yield n.Join(step, n.Table((_CLASS.name,), tuple((c,) for c in below)))

    def any_property(self, s: n.PatternTerm, p: ast.Var, o: n.PatternTerm) -> Iterator[n.Pattern]:
        yield n.BGP((n.TriplePattern(s, p, o),))
        for turned in (False, True):
            pairs = tuple((q, r) for q, r, t in self.schema.property_pairs if t is turned)
            if pairs:
                for step in _step(s, _PROPERTY, o, turned):
                    yield n.Join(step, n.Table((_PROPERTY.name, p.name), pairs))
        for q, r, turned in self.schema.transitive_pairs:
            for way in self.closure(s, q, o, turned):
                yield n.Join(way, n.Table((p.name,), ((r,),)))
        above = {(r, turned) for q, r, turned in self.schema.property_pairs if q == TYPE}
        for backwards in (False, True):
            rows = tuple((r,) for r, b in sorted({(TYPE, False), *above}) if b is backwards)
            for way in self.signed_types(s, o, backwards) if rows else ():
                yield n.Join(way, n.Table((p.name,), rows))

    def closure(
        self, s: n.PatternTerm, transitive: str, o: n.PatternTerm, turned: bool
    ) -> Iterator[n.Pattern]:
        """One or more steps of a transitive property."""
        start, end = (o, s) if turned else (s, o)
        if not _is_literal(s):
            yield _without_literal(s, n.Path(start, self.steps(transitive), end))

    def steps(self, transitive: str) -> ast.Path:
        """One or more steps of a transitive property, by way of literals if it has an inverse.

        No RDF triple has a literal as its subject, but two such triples can entail an RDF triple.
        """
        return ast.PathRepeat(_alternative(self.schema.subproperties(transitive)), "+")

    # --- paths ----------------------------------------------------------------------------------

    def path(self, path: ast.Path) -> ast.Path:
        """A path inside a repetition, where the checker refuses rdf:type and negated sets."""
        match path:
            case ast.Iri(value):
                name = iri_text(value)
                options = [_alternative(self.schema.subproperties(name))]
                for q, turned in self.schema.transitive(name):
                    steps = self.steps(q)
                    options.append(ast.PathInverse(steps) if turned else steps)
                whole = options[0] if len(options) == 1 else ast.PathAlternative(tuple(options))
                inverses = any(backwards for _, backwards in self.schema.subproperties(name))
                return ast.PathFromNode(whole) if inverses else whole
            case ast.PathInverse(inner):
                return ast.PathInverse(self.path(inner))
            case ast.PathSequence(parts):
                return ast.PathSequence(tuple(map(self.path, parts)))
            case ast.PathAlternative(parts):
                return ast.PathAlternative(tuple(map(self.path, parts)))
            case ast.PathRepeat(inner, modifier):
                return ast.PathRepeat(self.path(inner), modifier)
            case _:
                return path

    def negated(
        self,
        pattern: n.Path,
        subject: n.PatternTerm,
        forward: tuple[ast.Iri, ...],
        inverse: tuple[ast.Iri, ...],
        object_: n.PatternTerm,
    ) -> n.Pattern:
        """A negated property set: stated and entailed triples with any other predicate."""
        arms: list[n.Pattern] = []
        both = [(forward, (subject, object_)), (inverse, (object_, subject))]
        for number, (names, ends) in enumerate(both):
            if names or not (number or inverse):
                triple = n.TriplePattern(ends[0], _PROPERTY_READ, ends[1])
                others = _together(list(self.ways(triple)), triple)
                if names:
                    others = n.Filter(ast.In(_PROPERTY_READ, names, negated=True), others)
                arms.append(n.Project(others, tuple(sorted(possible(pattern)))))
        return folded(n.Union, arms)


_PROPERTY_READ = ast.Var(n.RESERVED + "e.q")


def _together(ways: list[n.Pattern], triple: n.TriplePattern) -> n.Pattern:
    names = tuple(sorted(triple_variables(triple)))
    return n.Distinct(n.Project(folded(n.Union, ways), names))


def _one_of(
    pattern: n.Pattern, terms: Sequence[n.PatternTerm], rows: Sequence[Sequence[str]]
) -> Iterator[n.Pattern]:
    """The pattern in which the terms have the values of one of the rows; None if they cannot."""
    solutions = []
    for row in rows:
        values: dict[str, str] = {}
        pairs = zip(terms, row, strict=True)
        if all((t if isinstance(t, str) else values.setdefault(t.name, v)) == v for t, v in pairs):
            solutions.append(values)
    if solutions:
        names = tuple(solutions[0])
        table = n.Table(names, tuple(tuple(s.values()) for s in solutions))
        yield n.Join(pattern, table) if names else pattern


def _step(
    s: n.PatternTerm, p: n.PatternTerm, o: n.PatternTerm, backwards: bool, literals: bool = False
) -> Iterator[n.Pattern]:
    """The triple pattern of a signed property.

    Without `literals`, no literal may become a subject.
    """
    if not backwards:
        yield n.BGP((n.TriplePattern(s, p, o),))
    elif literals:
        yield n.BGP((n.TriplePattern(o, p, s),))
    elif not _is_literal(s):
        yield _without_literal(s, n.BGP((n.TriplePattern(o, p, s),)))


def _is_literal(term: n.PatternTerm) -> bool:
    return isinstance(term, str) and term[0] == '"'


def _without_literal(s: n.PatternTerm, pattern: n.Pattern) -> n.Pattern:
    if isinstance(s, str):
        return pattern
    var = ast.Var(s.name)
    return n.Filter(ast.Or((ast.Call("ISIRI", (var,)), ast.Call("ISBLANK", (var,)))), pattern)


def _alternative(properties: tuple[Signed, ...]) -> ast.Path:
    options: list[ast.Path] = []
    for name, backwards in properties:
        iri = ast.Iri(name[1:-1])
        options.append(ast.PathInverse(iri) if backwards else iri)
    return options[0] if len(options) == 1 else ast.PathAlternative(tuple(options))
