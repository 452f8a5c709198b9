"""Deterministic labels for blank nodes that the input writes without a label.

The parser gives such nodes random labels. This module numbers them in order of first appearance in
their event, so that equal input gives equal text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import count

import numpy as np

from spaseq.compiled.arrays import Bools, Int32s, Int64s
from spaseq.rdf.terms.triple_terms import is_triple_term, with_blank_nodes

_MADE_UP = re.compile(r"_:[a-f][0-9a-f]{23,31}")
"""Labels of oxrdf: 128 random bits in hexadecimal. A label of this form in the input is replaced,
too. That does no harm, as a label has no meaning beyond its event."""


def relabel(starts: Int64s, s: Int32s, o: Int32s, terms: list[str]) -> tuple[Int32s, Int32s]:
    """Subjects and objects int32 [m] with random labels replaced; new labels are added to `terms`.

    Event i has the rows starts[i]:starts[i + 1]. A new label differs from all labels that the input
    gives in the same event. The time is linear in the number of rows and terms.
    """
    made_up = np.fromiter((_has_made_up(t) for t in terms), np.bool_, len(terms))
    rows = np.flatnonzero(made_up[s] | made_up[o])
    if not len(rows):
        return s, o
    s, o = s.copy(), o.copy()
    codes = {text: code for code, text in enumerate(terms)}
    for event in np.unique(np.searchsorted(starts, rows, side="right") - 1).tolist():
        here = slice(int(starts[event]), int(starts[event + 1]))
        subjects, objects = s[here].tolist(), o[here].tolist()
        new = {}
        for code, text in _texts(subjects, objects, made_up, terms).items():
            new[code] = codes.setdefault(text, len(terms))
            if new[code] == len(terms):
                terms.append(text)
        s[here] = [new.get(code, code) for code in subjects]
        o[here] = [new.get(code, code) for code in objects]
    return s, o


def _has_made_up(text: str) -> bool:
    if is_triple_term(text):
        return _MADE_UP.search(text) is not None
    return _MADE_UP.fullmatch(text) is not None


def _texts(s: list[int], o: list[int], made_up: Bools, terms: list[str]) -> dict[int, str]:
    """The new text of each term of an event that has a random label, by code.

    Labels are numbered in order of first appearance.
    """
    in_order = dict.fromkeys(code for row in zip(s, o, strict=True) for code in row)
    written: set[str] = set()
    for code in in_order:
        if terms[code][:2] in ("_:", "<<"):
            written.update(_blank_nodes(terms[code]))
    names = _names(written)
    return {c: with_blank_nodes(terms[c], names) for c in in_order if made_up[c]}


def _blank_nodes(text: str) -> list[str]:
    """The blank nodes in a term."""
    found: list[str] = []

    def add(blank: str) -> str:
        found.append(blank)
        return blank

    with_blank_nodes(text, add)
    return found


def _names(written: set[str]) -> Callable[[str], str]:
    """Gives each random label the next free one; other labels stay."""
    names: dict[str, str] = {}
    free = (label for i in count() if (label := f"_:anon{i}") not in written)

    def name(blank: str) -> str:
        if _MADE_UP.fullmatch(blank) is None:
            return blank
        if blank not in names:
            names[blank] = next(free)
        return names[blank]

    return name
