"""Texts that are made of a prefix, a value and a suffix only when somebody reads them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

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


Spelling: TypeAlias = "tuple[str, Any, str]"
"""The prefix, the Arrow type of the values, and the suffix of `SpelledTexts`."""


def common_spelling(arrays: Iterable[Any]) -> Spelling | None:
    """The spelling that all of some texts have; None if they differ or are not spelled."""
    found = {
        (each.prefix, each.values.type, each.suffix) if isinstance(each, SpelledTexts) else None
        for each in arrays
    }
    return found.pop() if len(found) == 1 else None


def text_arrays(arrays: list[Any]) -> list[TextArray]:
    """Texts, spelled or not, as Arrow arrays of large strings."""
    return [each.spelled() if isinstance(each, SpelledTexts) else each for each in arrays]


def copied_names(names: Any, start: int, size: int) -> Any:
    """Some texts in memory of their own: a slice keeps and pickles what it was cut from."""
    if isinstance(names, SpelledTexts):
        values = pa.concat_arrays([names.values.slice(start, size)])
        return SpelledTexts(names.prefix, values, names.suffix)
    return pa.concat_arrays([names.slice(start, size)])


def concat_names(arrays: list[Any]) -> Any:
    """Texts one after the other; not spelled if all have the same prefix and suffix."""
    if len(arrays) == 1:
        return arrays[0]
    spelling = common_spelling(arrays)
    if spelling is not None:
        values = pa.concat_arrays([each.values for each in arrays])
        return SpelledTexts(spelling[0], values, spelling[2])
    return pa.concat_arrays(text_arrays(arrays))
