"""What is made of an array of texts is made once, as many batches share the array."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

from spaseq.rdf.columns.term_columns import TextArray

Made = TypeVar("Made")


class TextMemo(Generic[Made]):
    """A function of arrays of texts that keeps its results as long as the arrays live."""

    def __init__(self, make: Callable[[TextArray], Made]) -> None:
        self._make = make
        self._known: dict[int, Made] = {}  # by the id of an array

    def __call__(self, texts: TextArray) -> Made:
        """The result for an array of texts; it must not be changed."""
        found = self._known.get(id(texts))
        if found is None:
            found = self._known[id(texts)] = self._make(texts)
            weakref.finalize(texts, self._known.pop, id(texts), None)
        return found
