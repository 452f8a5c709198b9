"""Canonical text of a block of triples, with `;`, `,`, `[ ]`, `( )` and `<< >>` where possible.

A blank node is written as a bracket only if the parser would put the bracket's triples in the same
places. So the text parses to the same triples in the same order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from spaseq.lang import ast
from spaseq.lang.format_terms import TermText
from spaseq.lang.unresolved import RDF, REIFIES
from spaseq.lang.variables import leaves, walk_patterns
from spaseq.records import record

_FIRST, _REST, _NIL = (ast.Iri(RDF + name) for name in ("first", "rest", "nil"))
_REIFIES = ast.Iri(REIFIES)
_CELL_USES = 3  # the cell of a list is an object, the subject of rdf:first, and that of rdf:rest


def uses_of_blank_nodes(nodes: Sequence[ast.Node]) -> Counter[str]:
    """How often each blank node occurs in the trees, by label."""
    below = (inner for node in nodes for inner in walk_patterns(node))
    terms = (term for node in below for t in _triples(node) for term in (t.subject, t.object))
    found = (leaf for term in terms for leaf in leaves(term))
    return Counter(leaf.label for leaf in found if isinstance(leaf, ast.BlankNode))


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
