"""Term codes while patterns are evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from spaseq.compiled.arrays import Int32s
from spaseq.rdf.columns.term_columns import UNBOUND, distinct_codes
from spaseq.rdf.columns.term_tables import ExtendedTerms

Lexicon: TypeAlias = ExtendedTerms
"""The terms of an event batch or a knowledge base, and the terms that an evaluation adds."""


def translated(codes: Int32s, source: Lexicon, target: Lexicon, *, add: bool) -> Int32s:
    """The codes [n] of the same terms in another lexicon; unbound stays unbound.

    Terms that the target does not have are added to it, or (`add=False`) become ABSENT.
    """
    if source is target or not len(codes):
        return codes
    used, where = distinct_codes(codes, len(source))
    distinct = used.astype(np.int32)
    bound = distinct >= 0
    texts = source.take(distinct[bound])
    there = distinct.copy()
    there[bound] = target.encode(texts) if add else target.find(texts)
    return there[where]


def encoded(lexicon: Lexicon, texts: Sequence[str | None]) -> Int32s:
    """The codes [n] of some terms, which the lexicon may get."""
    if None not in texts:
        return lexicon.encode(texts)  # type: ignore[arg-type]
    codes = np.full(len(texts), UNBOUND, np.int32)
    bound = [i for i, text in enumerate(texts) if text is not None]
    codes[bound] = lexicon.encode([text for text in texts if text is not None])
    return codes
