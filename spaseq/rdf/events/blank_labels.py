"""Labels for blank nodes that have none in a document: numbered within their event."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import count

import numpy as np

from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.rdf.columns.term_columns import distinct
from spaseq.rdf.columns.term_tables import ExtendedTerms, TermTable
from spaseq.rdf.terms.triple_terms import blank_nodes, is_triple_term, with_blank_nodes

_MADE_UP = re.compile(r"_:[a-f][0-9a-f]{23,31}")
"""Labels of oxrdf: 128 random bits in hexadecimal. A label of this form in the input is replaced,
too. That does no harm, as a label has no meaning beyond its event."""


def relabelled(
    start: Int64s, s: Int32s, o: Int32s, terms: TermTable
) -> tuple[Int32s, Int32s, TermTable]:
    """Subjects and objects int32 [m] with random labels replaced, and their table.

    Event i has the rows start[i]:start[i + 1]. A new label differs from all labels that the input
    gives in the same event. The time is linear in the number of rows and terms.
    """
    if not terms.has_blank:
        return s, o, terms
    codes = distinct(np.concatenate((s, o)))
    codes = codes[terms.may_have_blank_nodes(codes)]
    texts = dict(zip(codes.tolist(), terms.take(codes), strict=True))
    made_up = np.zeros(len(terms), np.bool_)
    made_up[[code for code, text in texts.items() if _has_made_up(text)]] = True
    rows = np.flatnonzero(made_up[s] | made_up[o])
    if not len(rows):
        return s, o, terms
    s, o, size = s.copy(), o.copy(), len(terms)
    added: dict[str, int] = {}  # new texts, and size plus their place among them
    for event in distinct(np.searchsorted(start, rows, side="right") - 1).tolist():
        here = slice(int(start[event]), int(start[event + 1]))
        subjects, objects = s[here].tolist(), o[here].tolist()
        own = {
            code: texts[code]
            for row in zip(subjects, objects, strict=True)
            for code in row
            if code in texts
        }
        new = {c: added.setdefault(t, size + len(added)) for c, t in _renamed(own).items()}
        s[here] = [new.get(code, code) for code in subjects]
        o[here] = [new.get(code, code) for code in objects]
    extended = ExtendedTerms(terms)
    known = extended.encode(list(added))
    for column in (s, o):
        is_new = column >= size
        column[is_new] = known[column[is_new] - size]
    return s, o, extended


def _has_made_up(text: str) -> bool:
    if is_triple_term(text):
        return _MADE_UP.search(text) is not None
    return _MADE_UP.fullmatch(text) is not None


def _renamed(texts: dict[int, str]) -> dict[int, str]:
    """The new text of each term of an event that has a random label, by code.

    `texts` are the event's terms with blank nodes. Labels are numbered in order of first
    appearance.
    """
    written = {blank for text in texts.values() for blank in blank_nodes(text)}
    names = numbered_labels(written)
    return {c: with_blank_nodes(text, names) for c, text in texts.items() if _has_made_up(text)}


def numbered_labels(written: set[str]) -> Callable[[str], str]:
    """Gives each random label the next one that is not `written`; other labels stay."""
    names: dict[str, str] = {}
    free: Iterator[str] = (label for i in count() if (label := f"_:anon{i}") not in written)

    def name(blank: str) -> str:
        if _MADE_UP.fullmatch(blank) is None:
            return blank
        if blank not in names:
            names[blank] = next(free)
        return names[blank]

    return name
