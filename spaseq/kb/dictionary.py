"""The dictionary of a knowledge base: term texts by code, codes by text, over Arrow memory."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, overload

import numpy as np
import pyarrow as pa

from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.kb.kernels.search import find_sorted
from spaseq.rdf.columns.term_columns import TextArray, text_array
from spaseq.rdf.columns.term_tables import ABSENT, encoded

__all__ = ["ABSENT", "KbTerms"]


class KbTerms(Sequence[str]):
    """Distinct N-Triples texts in order of their code points, a text's code being its position.

    They never become Python objects all at once, and there is no index beside them, so a dictionary
    that lies in a mapped file stays there.
    """

    def __init__(self, texts: TextArray) -> None:
        """`texts` is an Arrow array of large strings, sorted."""
        self.texts = texts

    @classmethod
    def of(cls, texts: Sequence[str]) -> KbTerms:
        """The dictionary of these texts, which are sorted."""
        return cls(text_array(texts))

    @cached_property
    def buffers(self) -> tuple[Int64s, Any]:
        """(offsets int64 [n + 1], bytes): text i is bytes[offsets[i]:offsets[i + 1]]."""
        _, offsets, data = self.texts.buffers()
        first, size = self.texts.offset, len(self.texts)
        places = np.zeros(1, np.int64)
        if size:
            places = np.frombuffer(offsets, np.int64)[first : first + size + 1]
        found = places, np.frombuffer(b"" if data is None else data, np.uint8)
        for array in found:
            array.setflags(write=False)  # one type, so one kernel
        return found

    def __len__(self) -> int:
        return len(self.texts)

    @overload
    def __getitem__(self, code: int) -> str: ...
    @overload
    def __getitem__(self, code: slice) -> list[str]: ...
    def __getitem__(self, code: int | slice) -> str | list[str]:
        if isinstance(code, slice):
            picked: list[str] = self.texts[code].to_pylist()
            return picked
        text: str = self.texts[int(code)].as_py()
        return text

    def take(self, codes: Int32s) -> list[str]:
        """The texts of some codes."""
        texts: list[str] = self.texts.take(pa.array(codes)).to_pylist()
        return texts

    def find(self, texts: Sequence[str]) -> Int32s:
        """The codes of some texts, ABSENT for those that are not here."""
        wanted, ends = encoded(texts)
        codes: Int32s = find_sorted(*self.buffers, ends, wanted, ABSENT)
        return codes

    def __getstate__(self) -> TextArray:
        return self.texts

    def __setstate__(self, texts: TextArray) -> None:
        self.texts = texts
