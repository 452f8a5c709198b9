"""Canonical text of RDF terms and property paths."""

from __future__ import annotations

import re

from spaseq.lang import ast, lexical
from spaseq.lang.unresolved import RDF, XSD
from spaseq.records import record

_LOCAL = lexical.NamePattern(f"(?:{lexical.LOCAL})?")
_BARE = {
    XSD + "integer": re.compile(lexical.INTEGER),
    XSD + "decimal": re.compile(lexical.DECIMAL),
    XSD + "double": re.compile(lexical.DOUBLE),
    XSD + "boolean": re.compile("true|false"),
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
