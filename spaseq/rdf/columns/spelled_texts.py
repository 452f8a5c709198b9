"""Texts that are made of a prefix, a value and a suffix only when somebody reads them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from spaseq.rdf.columns.term_columns import TextArray
from spaseq.records import record


@record
class SpelledTexts:
    """n texts, with the methods of an Arrow array that callers of text arrays use.

    >>> SpelledTexts("http://e/", pa.array([7, 8]), "#it").take(pa.array([1])).to_pylist()
    ['http://e/8#it']
    """

    prefix: str
    values: Any  # Arrow array [n] of strings or integers, without null
    suffix: str

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, place: int) -> Any:
        return pa.scalar(f"{self.prefix}{self.values[place].as_py()}{self.suffix}")

    @property
    def nbytes(self) -> int:
        """The bytes of the values."""
        return int(self.values.nbytes)

    def take(self, rows: Any) -> SpelledTexts:
        """The texts at these rows (an Arrow array)."""
        return SpelledTexts(self.prefix, self.values.take(rows), self.suffix)

    def slice(self, start: int, size: int) -> SpelledTexts:
        """At most `size` texts from `start` on."""
        return SpelledTexts(self.prefix, self.values.slice(start, size), self.suffix)

    def to_pylist(self) -> list[str]:
        """The texts."""
        return [f"{self.prefix}{value}{self.suffix}" for value in self.values.to_pylist()]

    def tolist(self) -> list[str]:
        """The texts."""
        return self.to_pylist()

    def spelled(self) -> TextArray:
        """The texts as an Arrow array of large strings."""
        import pyarrow.compute as pc

        ends = pa.scalar(self.prefix, pa.large_string()), pa.scalar(self.suffix, pa.large_string())
        empty = pa.scalar("", pa.large_string())
        inner = self.values.cast(pa.large_string())
        return pc.binary_join_element_wise(ends[0], inner, ends[1], empty)


def text_arrays(arrays: list[Any]) -> list[TextArray]:
    """Texts, spelled or not, as Arrow arrays of large strings."""
    return [each.spelled() if isinstance(each, SpelledTexts) else each for each in arrays]


def concat_names(arrays: list[Any]) -> Any:
    """Texts one after the other; not spelled if all have the same prefix and suffix."""
    if len(arrays) == 1:
        return arrays[0]
    first, own = arrays[0], [each for each in arrays if isinstance(each, SpelledTexts)]
    kinds = {(each.prefix, each.values.type, each.suffix) for each in own}
    if len(own) == len(arrays) and len(kinds) == 1:
        values = pa.concat_arrays([each.values for each in own])
        return SpelledTexts(first.prefix, values, first.suffix)
    return pa.concat_arrays(text_arrays(arrays))
