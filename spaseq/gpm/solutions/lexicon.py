"""Term codes while patterns are evaluated: those of a given dictionary, and those added to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np

from spaseq.compiled.arrays import Int32s
from spaseq.kb.dictionary import ABSENT, KbTerms
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.term_tables import ExtendedTerms, term_table


class BatchLexicon:
    """The terms of an event batch; new ones get the codes after them."""

    def __init__(self, batch: EventBatch) -> None:
        self.texts = ExtendedTerms(term_table(batch.terms))

    def code(self, text: str) -> int:
        """A term's code, ABSENT if it is not known."""
        return self.texts.code(text)

    def take(self, codes: Int32s) -> list[str]:
        """The texts of some codes."""
        return self.texts.take(codes)

    def find(self, texts: Sequence[str]) -> Int32s:
        """The codes of some texts, ABSENT for those that are not known."""
        return self.texts.find(texts)

    def encode(self, texts: Sequence[str]) -> Int32s:
        """The codes of some texts, which are added if need be."""
        return self.texts.encode(texts)


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
        if not self._added or (codes < len(self._terms)).all():
            return self._terms.take(codes)
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
