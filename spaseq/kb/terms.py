"""The dictionary of a knowledge base: term texts by code, codes by text, over Arrow memory."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, overload
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spaseq.rdf.batches import Int32s

ABSENT = -2
"""What `KbTerms.find` gives for a text that is no term of the dictionary."""


class KbTerms(Sequence[str]):
    """Distinct N-Triples texts, a text's code being its position.

    Texts are found by a checksum, and compared then; neither the texts nor the index become Python
    objects, so a dictionary that lies in a mapped file stays there.
    """

    def __init__(self, texts: Any, index: tuple[npt.NDArray[np.uint32], Int32s] | None = None):
        """`texts` is an Arrow array of large strings; `index` its sorted checksums and the codes
        they belong to, made here if it is None."""
        self.texts = texts
        self._index = index

    @classmethod
    def of(cls, texts: Sequence[str]) -> KbTerms:
        """The dictionary of these texts."""
        return cls(pa.array(texts, pa.large_string()))

    @cached_property
    def checksums(self) -> tuple[npt.NDArray[np.uint32], Int32s]:
        """Sorted checksums [n], and the code of each."""
        if self._index is not None:
            return self._index
        checks = _checksums(self.texts.to_pylist())
        order = np.argsort(checks, kind="stable").astype(np.int32)
        return checks[order], order

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
        found = np.full(len(texts), ABSENT, np.int32)
        checks, codes = self.checksums
        wanted = _checksums(texts)
        low = np.searchsorted(checks, wanted, "left")
        high = np.searchsorted(checks, wanted, "right")
        for i in np.flatnonzero(low < high).tolist():
            for code in codes[low[i] : high[i]].tolist():
                if self[code] == texts[i]:
                    found[i] = code
        return found

    def __getstate__(self) -> tuple[Any, Any]:
        return self.texts, self.checksums

    def __setstate__(self, state: tuple[Any, Any]) -> None:
        self.texts, self._index = state


def _checksums(texts: Sequence[str]) -> npt.NDArray[np.uint32]:
    return np.fromiter((crc32(t.encode()) for t in texts), np.uint32, len(texts))
