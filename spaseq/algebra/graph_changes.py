"""Changes of a graph, as events carry them from the query that maintains it to its readers.

The event of an answer has a triple for each pattern to remove and each triple to add, in this
order; its name is the query's. A mark before the predicate distinguishes them, and a wildcard
matches any term.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spaseq.rdf.terms.term import Triple
from spaseq.rdf.terms.triple_terms import is_triple_term, triple_term_parts
from spaseq.records import record

DELETED, INSERTED = "-", "+"
"""The marks before a predicate."""

_WILDCARD = "?"


@record
class GraphChange:
    """Triple patterns to remove, then triples to add. A wildcard is `?` and a name."""

    deleted: tuple[Triple, ...] = ()
    inserted: tuple[Triple, ...] = ()


def together(changes: Iterable[GraphChange]) -> GraphChange:
    """The combined effect of consecutive changes without wildcards."""
    comes = dict[Triple, bool]()
    for change in changes:
        comes.update(dict.fromkeys(change.deleted, False))
        comes.update(dict.fromkeys(change.inserted, True))
    gone = tuple(triple for triple, does_come in comes.items() if not does_come)
    return GraphChange(gone, tuple(triple for triple, does_come in comes.items() if does_come))


def changes_of(graph: str) -> str:
    """The IRI of the stream of a graph's changes, given the graph's IRI."""
    return f"urn:spaseq:changes:{graph}"


def wildcard(name: str) -> str:
    """A wildcard for any term, the same one for each occurrence of the name in a pattern."""
    return _WILDCARD + name


def is_wildcard(term: str) -> bool:
    """Whether a term of a pattern is a wildcard."""
    return term.startswith(_WILDCARD)


def inner(term: str) -> str:
    """A term of a pattern inside a triple term: a wildcard is `<?name>`."""
    return f"<{term}>" if is_wildcard(term) else term


def looks_inside(term: str) -> bool:
    """Whether a term of a pattern is a triple term with a wildcard inside."""
    return is_triple_term(term) and f"<{_WILDCARD}" in term


def fits(pattern: Sequence[str], terms: Sequence[str], known: dict[str, str]) -> bool:
    """Whether terms fit a pattern; a wildcard is one term, which goes into `known`.

    >>> fits(("?a", "<p>", "<<( <?a> <p> <?b> )>>"), ("<s>", "<p>", "<<( <s> <p> <o> )>>"), {})
    True
    """
    for wanted, term in zip(pattern, terms, strict=True):
        variable = wanted[1:-1] if wanted.startswith(f"<{_WILDCARD}") else wanted
        if is_wildcard(variable):
            if known.setdefault(variable, term) != term:
                return False
        elif looks_inside(variable):
            if not is_triple_term(term):
                return False
            if not fits(triple_term_parts(variable), triple_term_parts(term), known):
                return False
        elif variable != term:
            return False
    return True


def deletion(s: str, p: str, o: str) -> Triple:
    """The triple of an event for a triple to remove."""
    return s, DELETED + p, o


def insertion(s: str, p: str, o: str) -> Triple:
    """The triple of an event for a triple to add."""
    return s, INSERTED + p, o


def change_of(event: Iterable[Triple]) -> GraphChange:
    """The change that an event says.

    >>> change_of([deletion("<a>", "<p>", "?o"), insertion("<a>", "<p>", "<b>")])
    GraphChange(deleted=(('<a>', '<p>', '?o'),), inserted=(('<a>', '<p>', '<b>'),))
    """
    by_verb: dict[str, list[Triple]] = {DELETED: [], INSERTED: []}
    for s, p, o in event:
        by_verb[p[0]].append((s, p[1:], o))
    return GraphChange(tuple(by_verb[DELETED]), tuple(by_verb[INSERTED]))
