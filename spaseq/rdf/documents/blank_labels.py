"""Deterministic labels for blank nodes that the input writes without a label.

The parser gives such nodes random labels. This module numbers them in order of first appearance in
their event, so that equal input gives equal text.
"""

from __future__ import annotations

import re

import numpy as np

from spaseq.compiled.arrays import Bools, Int32s, Int64s

_MADE_UP = re.compile(r"_:[a-f][0-9a-f]{23,31}")
"""Labels of oxrdf: 128 random bits in hexadecimal. A label of this form in the input is replaced,
too. That does no harm, as a label has no meaning beyond its event."""


def relabel(starts: Int64s, s: Int32s, o: Int32s, terms: list[str]) -> tuple[Int32s, Int32s]:
    """Subjects and objects int32 [m] with random labels replaced; new labels are added to `terms`.

    Event i has the rows starts[i]:starts[i + 1]. A new label differs from all labels that the input
    gives in the same event.
    """
    made_up = np.fromiter((_MADE_UP.fullmatch(t) is not None for t in terms), np.bool_, len(terms))
    rows = np.flatnonzero(made_up[s] | made_up[o])
    if not len(rows):
        return s, o
    s, o = s.copy(), o.copy()
    codes = {text: code for code, text in enumerate(terms)}
    for event in np.unique(np.searchsorted(starts, rows, side="right") - 1).tolist():
        here = slice(int(starts[event]), int(starts[event + 1]))
        names = _names(s[here].tolist(), o[here].tolist(), made_up, terms)
        for code, text in names.items():
            if text not in codes:
                codes[text] = len(terms)
                terms.append(text)
            for column in (s[here], o[here]):
                column[column == code] = codes[text]
    return s, o


def _names(s: list[int], o: list[int], made_up: Bools, terms: list[str]) -> dict[int, str]:
    """The new text of each random label of an event, by code, in order of first appearance."""
    in_order = dict.fromkeys(code for row in zip(s, o, strict=True) for code in row)
    known = len(made_up)
    fresh = [c for c in in_order if c < known and made_up[c]]
    written = {terms[c] for c in in_order if c >= known or not made_up[c]}
    names: dict[int, str] = {}
    ordinal = 0
    for code in fresh:
        while f"_:anon{ordinal}" in written:
            ordinal += 1
        names[code] = f"_:anon{ordinal}"
        ordinal += 1
    return names
