"""Term codes while patterns are evaluated: those of a given dictionary, and those added to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np

from spaseq.kb.terms import ABSENT, KbTerms
from spaseq.rdf.batches import EventBatch, Int32s

_FEW = 8
"""Terms are looked up by a scan if they are fewer than one in so many of a batch's terms."""


class BatchLexicon:
    """The terms of an event batch; new ones get the codes after them.

    Hashing all terms of a batch costs more than most patterns do, so it is put off: a constant is
    found by scanning the terms, a few terms by scanning for any of them.
    """

    def __init__(self, batch: EventBatch) -> None:
        self.texts: list[str] = batch.terms
        self._own = False  # whether `texts` is a list of our own
        self._complete = False  # whether `_known` has every text
        self._known: dict[str, int] = {}  # codes of the terms looked up so far, or ABSENT

    def code(self, text: str) -> int:
        """A term's code, ABSENT if it is not known."""
        code = self._known.get(text)
        if code is None:
            code = ABSENT if self._complete else self._scanned(text)
            self._known[text] = code
        return code

    def take(self, codes: Int32s) -> list[str]:
        """The texts of some codes."""
        texts = self.texts
        return [texts[code] for code in codes.tolist()]

    def find(self, texts: Sequence[str]) -> Int32s:
        """The codes of some texts, ABSENT for those that are not known."""
        unseen = [] if self._complete else [t for t in texts if t not in self._known]
        if len(unseen) * _FEW > len(self.texts):
            self._known = dict(zip(self.texts, range(len(self.texts)), strict=True))
            self._complete = True
        elif unseen:
            self._known.update(dict.fromkeys(unseen, ABSENT))
            for text in set(unseen).intersection(self.texts):
                self._known[text] = self._scanned(text)
        known = self._known
        return np.fromiter((known.get(t, ABSENT) for t in texts), np.int32, len(texts))

    def encode(self, texts: Sequence[str]) -> Int32s:
        """The codes of some texts, which are added if need be."""
        codes = self.find(texts)
        new = np.flatnonzero(codes == ABSENT).tolist()
        if new and not self._own:
            self.texts, self._own = list(self.texts), True
        for i in new:
            text = texts[i]
            if self._known.get(text, ABSENT) == ABSENT:
                self._known[text] = len(self.texts)
                self.texts.append(text)
            codes[i] = self._known[text]
        return codes

    def _scanned(self, text: str) -> int:
        try:
            return self.texts.index(text)
        except ValueError:
            return ABSENT


class KbLexicon:
    """The terms of a knowledge base, which stay where they are, and further ones after them."""

    def __init__(self, terms: KbTerms) -> None:
        self._terms = terms
        self._added: dict[str, int] = {}
        self.texts: Sequence[str] = _Chained(terms, [])

    def code(self, text: str) -> int:
        """A term's code, ABSENT if it is not known."""
        return int(self.find([text])[0])

    def take(self, codes: Int32s) -> list[str]:
        """The texts of some codes."""
        return [self.texts[code] for code in codes.tolist()]

    def find(self, texts: Sequence[str]) -> Int32s:
        """The codes of some texts, ABSENT for those that are not known."""
        codes = self._terms.find(texts)
        if self._added:
            for i in np.flatnonzero(codes < 0).tolist():
                codes[i] = self._added.get(texts[i], ABSENT)
        return codes

    def encode(self, texts: Sequence[str]) -> Int32s:
        """The codes of some texts, which are added if need be."""
        codes = self.find(texts)
        for i in np.flatnonzero(codes < 0).tolist():
            if texts[i] not in self._added:
                self._added[texts[i]] = len(self._terms) + len(self._added)
                self.texts.added.append(texts[i])  # type: ignore[attr-defined]
            codes[i] = self._added[texts[i]]
        return codes


class _Chained(Sequence[str]):
    """A dictionary's texts and those added to it."""

    def __init__(self, terms: KbTerms, added: list[str]) -> None:
        self.terms, self.added = terms, added

    def __len__(self) -> int:
        return len(self.terms) + len(self.added)

    @overload
    def __getitem__(self, code: int) -> str: ...
    @overload
    def __getitem__(self, code: slice) -> list[str]: ...
    def __getitem__(self, code: int | slice) -> str | list[str]:
        if isinstance(code, slice):
            return [self[i] for i in range(*code.indices(len(self)))]
        beyond = int(code) - len(self.terms)
        return self.terms[code] if beyond < 0 else self.added[beyond]

    def __iter__(self) -> Iterator[str]:
        yield from self.terms
        yield from self.added


Lexicon = BatchLexicon | KbLexicon


def translated(codes: Int32s, source: Lexicon, target: Lexicon, *, add: bool) -> Int32s:
    """The same terms' codes in another lexicon; unbound stays unbound.

    Terms that the target does not know are added to it, or become ABSENT.
    """
    if source is target or not len(codes):
        return codes
    distinct, where = np.unique(codes, return_inverse=True)
    bound = distinct >= 0
    texts = source.take(distinct[bound])
    there = distinct.copy()
    there[bound] = target.encode(texts) if add else target.find(texts)
    return there[where]
