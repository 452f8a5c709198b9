"""The schema of an ontology: the closure of its axioms under RDFS and some rules of OWL 2 RL.

The rewriting of patterns uses it backwards: which triples of an event entail a match of a triple
pattern? A property is *signed*: `(p, False)` is p and `(p, True)` is its inverse. So
`owl:inverseOf` and `owl:SymmetricProperty` are subproperty axioms between signed properties.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from spaseq.rdf.terms.term import OWL, RDF, RDFS

TYPE = f"<{RDF}type>"

Signed: TypeAlias = tuple[str, bool]
"""A property's text, and whether it is read backwards."""

_Edges: TypeAlias = Mapping[str, frozenset[str]]


def _rdfs(name: str) -> str:
    return f"<{RDFS}{name}>"


def _owl(name: str) -> str:
    return f"<{OWL}{name}>"


_SUBCLASS, _SUBPROPERTY = _rdfs("subClassOf"), _rdfs("subPropertyOf")
_DOMAIN, _RANGE = _rdfs("domain"), _rdfs("range")
_SAME_CLASS, _SAME_PROPERTY = _owl("equivalentClass"), _owl("equivalentProperty")
_INVERSE = _owl("inverseOf")
_SYMMETRIC, _TRANSITIVE = _owl("SymmetricProperty"), _owl("TransitiveProperty")
_OBJECT_PROPERTY = _owl("ObjectProperty")

_AXIOMS = frozenset(
    {_SUBCLASS, _SUBPROPERTY, _DOMAIN, _RANGE, _SAME_CLASS, _SAME_PROPERTY, _INVERSE}
)

AXIOM_PREDICATES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(sorted(_AXIOMS), ()),
    TYPE: (_SYMMETRIC, _TRANSITIVE),
}
"""The predicates of axioms, each with the objects that make an axiom; empty for all."""


@dataclass(frozen=True, eq=False)
class Schema:
    """The axioms of an ontology between named classes and properties, and their consequences.

    Two schemas with equal axioms are equal. Class expressions (blank nodes) are ignored.
    `object_properties` are the properties declared as owl:ObjectProperty; they entail nothing.
    """

    axioms: tuple[tuple[str, str, str], ...]
    object_properties: frozenset[str] = frozenset()
    fingerprint: str = field(init=False)

    def __post_init__(self) -> None:
        text = "\n".join(" ".join(axiom) for axiom in self.axioms)
        object.__setattr__(self, "fingerprint", hashlib.sha256(text.encode()).hexdigest())

    @classmethod
    def of(cls, triples: Iterable[tuple[str, str, str]]) -> Schema:
        """The schema in an ontology's triples (N-Triples texts). Other triples are ignored."""
        axioms, objects = set(), set()
        for s, p, o in triples:
            if _is_axiom(s, p, o):
                axioms.add((s, p, o))
            elif p == TYPE and o == _OBJECT_PROPERTY:
                objects.add(s)
        return cls(tuple(sorted(axioms)), frozenset(objects))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __getstate__(self) -> dict[str, object]:
        names = ("axioms", "object_properties", "fingerprint")
        return {name: getattr(self, name) for name in names}

    # --- classes --------------------------------------------------------------------------------

    @cached_property
    def _superclasses(self) -> _Edges:
        """The reflexive and transitive superclasses of each class that an axiom names."""
        edges = self._pairs(_SUBCLASS)
        for a, b in self._pairs(_SAME_CLASS):
            edges |= {(a, b), (b, a)}
        return _closed(edges)

    def superclasses(self, name: str) -> frozenset[str]:
        """The class and its superclasses."""
        return self._superclasses.get(name, frozenset({name}))

    @cached_property
    def _subclasses(self) -> _Edges:
        return _turned(self._superclasses)

    def subclasses(self, name: str) -> frozenset[str]:
        """The class and its subclasses."""
        return self._subclasses.get(name, frozenset({name}))

    @cached_property
    def class_pairs(self) -> tuple[tuple[str, str], ...]:
        """(class, another class above it)."""
        ups = self._superclasses.items()
        return tuple(sorted((c, d) for c, above in ups for d in above if c != d))

    @cached_property
    def typings(self) -> Mapping[Signed, frozenset[str]]:
        """For each signed property the classes of its subjects, by domain and range.

        The inverse of rdf:type is left out: see `types_of_classes`.
        """
        typings = dict(self._typings)
        typings.pop((TYPE, True), None)
        return typings

    @cached_property
    def types_of_classes(self) -> tuple[str, ...]:
        """The classes of all classes with an instance, by the range of rdf:type."""
        return tuple(sorted(self._typings.get((TYPE, True), ())))

    @cached_property
    def _typings(self) -> Mapping[Signed, frozenset[str]]:
        by_signed: dict[Signed, set[str]] = {}
        for axiom, backwards in ((_DOMAIN, False), (_RANGE, True)):
            for name, cls in self._pairs(axiom):
                for below, sign in self.subproperties(name):
                    signed = below, sign != backwards
                    by_signed.setdefault(signed, set()).update(self.superclasses(cls))
        for classes in by_signed.values():  # subjects of rdf:type are in its domain
            classes |= by_signed.get((TYPE, False), set())
        return {signed: frozenset(classes) for signed, classes in sorted(by_signed.items())}

    # --- properties -----------------------------------------------------------------------------

    @cached_property
    def _superproperties(self) -> Mapping[Signed, frozenset[Signed]]:
        edges: set[tuple[Signed, Signed]] = set()

        def below(a: str, b: str, turned: bool = False) -> None:
            edges.update({((a, False), (b, turned)), ((a, True), (b, not turned))})

        for a, b in self._pairs(_SUBPROPERTY):
            below(a, b)
        for a, b in self._pairs(_SAME_PROPERTY):
            below(a, b)
            below(b, a)
        for a, b in self._pairs(_INVERSE):
            below(a, b, True)
            below(b, a, True)
        for a in self._instances(_SYMMETRIC):
            below(a, a, True)
        return _closed(edges)

    @cached_property
    def _subproperties(self) -> Mapping[Signed, frozenset[Signed]]:
        return _turned(self._superproperties)

    def subproperties(self, name: str) -> tuple[Signed, ...]:
        """The property itself and all signed properties below it."""
        return tuple(sorted(self._subproperties.get((name, False), {(name, False)})))

    @cached_property
    def property_pairs(self) -> tuple[tuple[str, str, bool], ...]:
        """(property, another property above it or above its inverse, whether its inverse)."""
        ups = self._superproperties.items()
        return tuple(
            sorted(
                (p, q, sign)
                for (p, turned), above in ups
                if not turned
                for q, sign in above
                if (q, sign) != (p, False)
            )
        )

    def transitive(self, name: str) -> tuple[Signed, ...]:
        """The transitive properties among a property and the signed properties below it."""
        transitive = self._instances(_TRANSITIVE)
        return tuple(signed for signed in self.subproperties(name) if signed[0] in transitive)

    def holds_types(self, name: str) -> bool:
        """Whether triples with rdf:type entail triples with the property."""
        return any(q == TYPE for q, _ in self.subproperties(name))

    @cached_property
    def transitive_types(self) -> tuple[str, ...]:
        """Transitive properties above or below rdf:type, which cannot be rewritten."""
        below = {q for q, _ in self.subproperties(TYPE)}
        transitive = self._instances(_TRANSITIVE)
        return tuple(sorted(name for name in transitive if name in below or self.holds_types(name)))

    @cached_property
    def transitive_pairs(self) -> tuple[tuple[str, str, bool], ...]:
        """(transitive property, property above it or above its inverse, whether its inverse)."""
        names = sorted(self._instances(_TRANSITIVE))
        themselves = {(name, name, False) for name in names}
        above = {pair for pair in self.property_pairs if pair[0] in names}
        return tuple(sorted(themselves | above))

    def _pairs(self, predicate: str) -> set[tuple[str, str]]:
        return {(s, o) for s, p, o in self.axioms if p == predicate}

    def _instances(self, cls: str) -> frozenset[str]:
        return frozenset(s for s, p, o in self.axioms if p == TYPE and o == cls)


def _is_axiom(s: str, p: str, o: str) -> bool:
    if s[0] != "<" or o[0] != "<":
        return False
    return p in _AXIOMS or (p == TYPE and o in (_SYMMETRIC, _TRANSITIVE))


def _closed(edges: Iterable[tuple[object, object]]) -> dict:  # type: ignore[type-arg]
    """The reflexive and transitive closure, by first node."""
    after: dict[object, set[object]] = {}
    for a, b in edges:
        after.setdefault(a, set()).add(b)
        after.setdefault(b, set())
    return {node: frozenset(_reached(node, after)) for node in after}


def _reached(start: object, after: Mapping[object, set[object]]) -> set[object]:
    reached, todo = {start}, [start]
    while todo:
        for node in after[todo.pop()] - reached:
            reached.add(node)
            todo.append(node)
    return reached


def _turned(edges: Mapping) -> dict:  # type: ignore[type-arg]
    turned: dict[object, set[object]] = {}
    for a, above in edges.items():
        for b in above:
            turned.setdefault(b, set()).add(a)
    return {node: frozenset(below) for node, below in turned.items()}
