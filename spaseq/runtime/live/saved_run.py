"""What a live run saves now and then, so that a later run need not read its logs from the start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from spaseq.errors import RunError


@dataclass(frozen=True, slots=True)
class SavedRun:
    """The state of a run between two batches; all values are numbers, texts, bytes and lists.

    Attributes:
        engine: what `LiveEngine.snapshot` gave.
        places: the next record of each stream's log, by IRI.
        answers: the next record of the answer log.
        endpoints: the next record of the log of endpoints.
        sides: the size of each further output file, by path.
        changes: the next change of queries to take effect.
        queries: what `as_values` gave of the queries.
        answered: how many answers each query has given, by title.
        points: what `PastPoints.as_values` gave.
        catch_ups: where the queries began that have not caught up.
        knowledge: the hash of the knowledge base.
        knowledge_since: when a run first had it, ms since the epoch; 0 if there was no other one.
    """

    engine: list[Any]
    places: Mapping[str, int]
    answers: int
    endpoints: int
    sides: Mapping[str, int]
    changes: int
    queries: list[Any]
    answered: Mapping[str, int]
    points: list[Any]
    catch_ups: list[Any]
    knowledge: str
    knowledge_since: int

    def as_value(self) -> dict[str, Any]:
        """A value for `LiveDirectory.save_state`; `of_value` is the inverse."""
        return {name: getattr(self, name) for name in _NAMES}

    @classmethod
    def of_value(cls, value: Any) -> SavedRun:
        """The inverse of `as_value`.

        Raises:
            RunError: it has other fields.
        """
        if not isinstance(value, dict) or value.keys() != {*_NAMES}:
            raise RunError("the state of the run is not one that this version of spaseq saves")
        return cls(**value)


_NAMES = [field.name for field in fields(SavedRun)]
