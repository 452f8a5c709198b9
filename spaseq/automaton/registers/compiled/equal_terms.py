"""Ids of terms such that terms that are equal in the sense of `=` have the same id."""

from __future__ import annotations

from spaseq.automaton.batch.row_store import Interner, Key
from spaseq.expr.numbers import is_number
from spaseq.expr.temporal import Duration, Moment
from spaseq.expr.values import TripleTermValue, decode


class EqualTerms(Interner):
    """Numbers terms. Equal terms have one number; so do some that are not equal.

    All numbers have one, all durations, all triple terms, and all dates and times but dateTimes.
    """

    __slots__ = ()

    def number(self, key: Key) -> int:
        """The number of a term."""
        return super().number(_class_of(key))

    def _of_keys(self, keys: list[Key]) -> list[int]:
        classes = [*map(_class_of, keys)]
        distinct = [*dict.fromkeys(classes)]
        number = dict(zip(distinct, super()._of_keys(distinct), strict=True))
        return [number[known] for known in classes]


def _class_of(key: Key) -> Key:
    """The key that a term shares with all terms that it may equal."""
    (text,) = key
    if text is None or text.startswith("_") or (text.startswith("<") and not text.startswith("<<")):
        return key
    value = decode(text)
    if isinstance(value, str):
        return (f'"{value}"',)
    if isinstance(value, Moment) and value.kind == "dateTime":
        return (f"dateTime {float(value.instant)}",)
    if is_number(value):
        return ("number",)
    if isinstance(value, bool | Moment | Duration | TripleTermValue):
        return (str(value) if isinstance(value, bool) else type(value).__name__,)
    return (text.lower(),)
