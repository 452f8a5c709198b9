"""Canonical text of RDF terms, property paths and blocks of triples, with `;`, `,`, `[ ]`, `( )`
and `<< >>` where possible.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from spaseq.lang import ast, lexical
from spaseq.lang.names import RDF, REIFIES, XSD
from spaseq.lang.variables import leaves, walk_patterns
from spaseq.records import record
from spaseq.text_patterns import late_pattern

_LOCAL = lexical.NamePattern(f"(?:{lexical.LOCAL})?")
_BARE = {
    XSD + "integer": late_pattern(lexical.INTEGER),
    XSD + "decimal": late_pattern(lexical.DECIMAL),
    XSD + "double": late_pattern(lexical.DOUBLE),
    XSD + "boolean": late_pattern("true|false"),
}
_ESCAPES = {character: "\\" + letter for letter, character in lexical.CHARACTERS.items()}
_ESCAPES["'"] = "'"  # between double quotes it needs no escape

# Precedences, loosest first. An operand that binds more loosely than its place gets brackets.
_ALTERNATIVE, _SEQUENCE, _INVERSE, _REPEAT, _PRIMARY = range(5)


@record
class TermText:
    """Writes terms with the prefixes of one prologue."""

    prologue: ast.Prologue

    def iri(self, iri: str) -> str:
        """A prefixed name with the longest namespace that gives a valid one, else `<iri>`."""
        by_length = sorted(self.prologue.prefixes, key=lambda prefix: -len(prefix.iri))
        for prefix in by_length:
            local = iri[len(prefix.iri) :]
            if iri.startswith(prefix.iri) and _LOCAL.fullmatch(local):
                return f"{prefix.prefix}:{local}"
        return f"<{iri}>"

    def term(self, term: ast.Term) -> str:
        """A variable or RDF term."""
        match term:
            case ast.Var(name):
                return f"?{name}"
            case ast.Iri(value):
                return self.iri(value)
            case ast.BlankNode(label):
                return f"_:{label}"
            case ast.Literal():
                return self.literal(term)
            case ast.TripleTerm(subject, predicate, object_):
                verb = self.verb(predicate)  # type: ignore[arg-type]
                return f"<<( {self.term(subject)} {verb} {self.term(object_)} )>>"

    def literal(self, literal: ast.Literal) -> str:
        """A literal; numbers and booleans stand without quotes where SPARQL allows it."""
        bare = _BARE.get(literal.datatype or "")
        if bare is not None and bare.fullmatch(literal.lexical):
            return literal.lexical
        text = string(literal.lexical)
        if literal.language is not None:
            return f"{text}@{literal.language}"
        return text if literal.datatype is None else f"{text}^^{self.iri(literal.datatype)}"

    def verb(self, verb: ast.Var | ast.Path) -> str:
        """A predicate: a variable or a property path."""
        return self.term(verb) if isinstance(verb, ast.Var) else self.path(verb)

    def path(self, path: ast.Path, place: int = _ALTERNATIVE) -> str:
        """A property path, in brackets if it binds more loosely than `place`."""
        match path:
            case ast.Iri(value):
                return "a" if value == RDF + "type" else self.iri(value)
            case ast.PathAlternative(parts):
                text = "|".join(self.path(part, _SEQUENCE) for part in parts)
                return _bracketed(text, place > _ALTERNATIVE)
            case ast.PathSequence(parts):
                text = "/".join(self.path(part, _INVERSE) for part in parts)
                return _bracketed(text, place > _SEQUENCE)
            case ast.PathInverse(inner):
                return _bracketed(f"^{self.path(inner, _REPEAT)}", place > _INVERSE)
            case ast.PathFromNode(inner):
                return self.path(inner, place)
            case ast.PathRepeat(inner, modifier):
                text = f"{self.path(inner, _PRIMARY)}{modifier}"
                return _bracketed(text, place > _REPEAT)
            case ast.PathNegated(forward, inverse):
                members = [self.path(iri) for iri in forward]
                members += [f"^{self.path(iri)}" for iri in inverse]
                return f"!{_bracketed('|'.join(members), len(members) != 1)}"


def flag(keyword: str, written: bool) -> str:
    """A keyword with a space after it, or nothing."""
    return f"{keyword} " if written else ""


def string(text: str) -> str:
    """A string between double quotes, on one line."""
    return '"' + "".join(_ESCAPES.get(character, character) for character in text) + '"'


def _bracketed(text: str, condition: bool) -> str:
    return f"({text})" if condition else text


_FIRST, _REST, _NIL = (ast.Iri(RDF + name) for name in ("first", "rest", "nil"))
_REIFIES = ast.Iri(REIFIES)
_CELL_USES = 3  # the cell of a list is an object, the subject of rdf:first, and that of rdf:rest


def uses_of_blank_nodes(nodes: Sequence[ast.Node]) -> Counter[str]:
    """Number of occurrences of each blank node in the trees, by label."""
    below = (inner for node in nodes for inner in walk_patterns(node))
    terms = (term for node in below for t in _triples(node) for term in (t.subject, t.object))
    all_leaves = (leaf for term in terms for leaf in leaves(term))
    return Counter(leaf.label for leaf in all_leaves if isinstance(leaf, ast.BlankNode))


def _triples(node: ast.Node) -> tuple[ast.Triple, ...]:
    match node:
        case ast.Triples(triples):
            return triples
        case ast.Triple():
            return (node,)
    return ()


@record
class TriplesText:
    """Writes the triples of one block.

    `uses` counts the uses of blank nodes in the whole pattern. A method takes the index of the
    first triple that it writes, and also returns the index after the last.
    """

    triples: Sequence[ast.Triple]
    uses: Counter[str]
    terms: TermText

    def statements(self) -> list[str]:
        """One text per subject, each ending in a dot."""
        statements, index = [], 0
        while index < len(self.triples):
            text, index = self._statement(index)
            statements.append(f"{text} .")
        return statements

    def _statement(self, index: int) -> tuple[str, int]:
        subject = self.triples[index].subject
        text, after, own = self._subject(index, subject)
        properties, end = self._properties(after, subject)
        if own + self._own(after, end, subject) != self._count(subject):  # it also occurs elsewhere
            text = "()" if subject == _NIL else self.terms.term(subject)
            reified = self._reified(index, subject)
            if reified is not None:
                text = f"<< {reified} ~ {text} >>"
            properties, end = self._properties(index + (reified is not None), subject)
        return " ".join([text, " ;\n  ".join(properties)]).rstrip(), end

    def _subject(self, index: int, subject: ast.Term) -> tuple[str, int, int]:
        """A subject as a bracket, the index after it, and the number of its uses in the bracket."""
        collection = self._collection(index, subject)
        if collection:
            return *collection, _CELL_USES - 1
        reified = self._reified(index, subject)
        return ("[]", index, 0) if reified is None else (f"<< {reified} >>", index + 1, 1)

    def _reified(self, index: int, subject: ast.Term) -> str | None:
        """The triple that a subject reifies, if the triple at `index` says so."""
        triple = self.triples[index]
        term = triple.object
        if triple.predicate != _REIFIES or not isinstance(term, ast.TripleTerm):
            return None
        if isinstance(subject, ast.Literal | ast.TripleTerm):
            return None
        s, o = self.terms.term(term.subject), self.terms.term(term.object)
        return f"{s} {self.terms.verb(term.predicate)} {o}"  # type: ignore[arg-type]

    def _properties(self, index: int, subject: ast.Term) -> tuple[list[str], int]:
        """`verb object, object` for each run of triples with this subject and the same verb."""
        properties: list[str] = []
        verb: ast.Var | ast.Path | None = None
        while index < len(self.triples) and self.triples[index].subject == subject:
            triple = self.triples[index]
            text, index = self._object(index + 1, triple.object)
            if triple.predicate == verb:
                properties[-1] += f", {text}"
            else:
                verb = triple.predicate
                properties.append(f"{self.terms.verb(verb)} {text}")
        return properties, index

    def _object(self, index: int, term: ast.Term) -> tuple[str, int]:
        """The object of the triple before `index`."""
        uses = self._count(term)
        if uses == 1 or term == _NIL:
            return "()" if term == _NIL else "[]", index
        collection = self._collection(index, term) if uses == _CELL_USES else None
        if collection is not None:
            return collection
        properties, end = self._properties(index, term)
        if uses and uses == 1 + self._own(index, end, term):
            return f"[ {' ; '.join(properties)} ]", end
        return self.terms.term(term), index

    def _collection(self, index: int, cell: ast.Term) -> tuple[str, int] | None:
        """`( ... )`, if the triples from `index` on describe a list whose first cell is `cell`."""
        items: list[str] = []
        while self._is(index, cell, _FIRST):
            text, index = self._object(index + 1, self.triples[index].object)
            if not self._is(index, cell, _REST):
                return None
            items.append(text)
            cell, index = self.triples[index].object, index + 1
            if cell == _NIL:
                return f"({' '.join(items)})", index
            if self._count(cell) != _CELL_USES:
                return None
        return None

    def _is(self, index: int, subject: ast.Term, predicate: ast.Iri) -> bool:
        if index >= len(self.triples):
            return False
        triple = self.triples[index]
        return triple.subject == subject and triple.predicate == predicate

    def _own(self, start: int, end: int, subject: ast.Term) -> int:
        """The number of triples in [start, end) that have this subject."""
        return sum(triple.subject == subject for triple in self.triples[start:end])

    def _count(self, term: ast.Term) -> int:
        """The number of uses of a blank node; 0 for any other term."""
        return self.uses[term.label] if isinstance(term, ast.BlankNode) else 0
