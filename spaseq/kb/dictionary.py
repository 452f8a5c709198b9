"""The dictionary of a knowledge base: its terms as sorted texts in Arrow memory."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from spaseq import thresholds
from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.kb.kernels.search import find_hashed, find_sorted, hash_slots
from spaseq.rdf.columns.term_columns import TextArray, text_array
from spaseq.rdf.columns.term_tables import ABSENT, TermTable, encoded

__all__ = ["ABSENT", "KbTerms"]


class KbTerms(TermTable):
    """Distinct N-Triples texts in order of code points. The code of a text is its position.

    Lookup is a binary search in the texts, so a dictionary in a memory-mapped file stays there.
    Once many texts were sought, it goes by a hash table of their codes. There is no Python object
    per text.
    """

    def __init__(self, texts: TextArray) -> None:
        """`texts` is an Arrow array of large strings, sorted."""
        self.texts = texts
        self._sought = 0  # texts that were looked for

    @classmethod
    def of(cls, texts: Sequence[str]) -> KbTerms:
        """The dictionary of sorted texts."""
        return cls(text_array(texts))

    @cached_property
    def buffers(self) -> tuple[Int64s, Any]:
        """(offsets int64 [n + 1], bytes): text i is bytes[offsets[i]:offsets[i + 1]]."""
        _, offsets, data = self.texts.buffers()
        first, size = self.texts.offset, len(self.texts)
        places = np.zeros(1, np.int64)
        if size:
            places = np.frombuffer(offsets, np.int64)[first : first + size + 1]
        arrays = places, np.frombuffer(b"" if data is None else data, np.uint8)
        for array in arrays:
            array.setflags(write=False)  # one type, so one kernel
        return arrays

    def __len__(self) -> int:
        return len(self.texts)

    def text(self, code: int) -> str:
        text: str = self.texts[int(code)].as_py()
        return text

    def take(self, codes: Int32s) -> list[str]:
        texts: list[str] = self.strings(codes).to_pylist()
        return texts

    def strings(self, codes: Int32s) -> TextArray:
        return self.texts.take(pa.array(codes))

    @property
    def has_blank(self) -> bool:
        return True

    def find(self, texts: Sequence[str]) -> Int32s:
        wanted, ends = encoded(texts)
        return self._found(ends, wanted)

    def find_strings(self, texts: TextArray) -> Int32s:
        _, offsets, data = texts.buffers()
        if not len(texts) or data is None:
            return self.find(texts.to_pylist())
        ends = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
        wanted = np.frombuffer(data, np.uint8)[ends[0] :]
        wanted.setflags(write=False)
        return self._found(ends[1:] - ends[0], wanted)

    def _found(self, ends: Int64s, wanted: Any) -> Int32s:
        self._sought += len(ends)
        codes: Int32s
        if self._sought * 100 <= len(self) * thresholds.current.hashed_terms:
            codes = find_sorted(*self.buffers, ends, wanted, ABSENT)
        else:
            codes = find_hashed(*self.buffers, *self._hashed, ends, wanted, ABSENT)
        return codes

    @cached_property
    def _hashed(self) -> tuple[np.uint64, Int32s]:
        """(seed, slots) of a hash table. As the seed is random, nobody can choose equal hashes."""
        seed = np.uint64(secrets.randbits(64))
        slots = np.full(2 << len(self).bit_length(), -1, np.int32)
        hash_slots(*self.buffers, seed, slots)
        return seed, slots

    def __getstate__(self) -> TextArray:
        return self.texts

    def __setstate__(self, texts: TextArray) -> None:
        KbTerms.__init__(self, texts)
