"""The contract of a source of the events of one stream.

A source is a description. It is small and holds no open file, so that it can be made, checked and
printed before anything is read. A runtime reads it in one of three ways:

* The local runtime calls `open` once and reads all events in order of arrival.
* A bounded run on Spark calls `shared`, then `splits`, and opens each split in a task.
* A followed run on Spark calls `followed` and reads what arrives, batch by batch.

A new kind of source is one file with a subclass of `Source` and one line in
`spaseq.sources.SOURCES`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, ClassVar

from spaseq.errors import UsageError

if TYPE_CHECKING:
    from concurrent.futures import Executor
    from pathlib import Path

    from spaseq.rdf.columns.event_batch import EventBatch
    from spaseq.rdf.inputs.stream_options import OnBad, StreamOptions


class SplitNumbering(Enum):
    """How events of equal time are numbered in a split; a runtime adds missing counts."""

    WHOLE = auto()
    """As in the whole stream."""
    ORDERED = auto()
    """As if none came before; the splits of the stream seem to follow each other in time."""
    APART = auto()
    """As if none came before; the splits of the stream may overlap in time."""


class Split(ABC):
    """A part of a bounded source that a task reads by itself.

    A split is small and can be pickled: it travels from the driver to the task. Only the source
    that made it looks inside. Splits of one source follow each other in order of arrival.
    """

    @property
    @abstractmethod
    def numbering(self) -> SplitNumbering:
        """How `Source.open` numbers the events of this split that have equal times."""


class Source(ABC):
    """The input of one stream.

    Subclasses that run on Spark can be pickled, at the latest after `shared`.

    Attributes:
        not_followed: why Spark cannot follow the input, for `followed`.
    """

    not_followed: ClassVar[str] = "it has an end"

    @property
    @abstractmethod
    def iri(self) -> str:
        """The stream whose events these are."""

    @classmethod
    def of(cls, given: object, options: StreamOptions) -> Source | None:
        """The source for a user's input of a stream; None if the input is of another kind.

        Args:
            given: a tuple of paths (texts), or an iterable of anything else.
            options: the reading options of the stream; its `paths` are empty.
        """
        return None  # sources that users do not give by themselves

    @abstractmethod
    def describe(self) -> str:
        """The input as messages name it, such as `standard input`."""

    @abstractmethod
    def open(self, on_bad: OnBad, split: Split | None = None) -> Iterator[EventBatch]:
        """Read events in order of arrival.

        Events of equal time are numbered from 0 (`EventBatch.k`), in a split as `Split` says.

        Args:
            on_bad: called for input that cannot become an event, before the batch that is read
                together with it.
            split: read this part only; all of the input if None.

        Raises:
            InputError: the input is missing or cannot be read at all.
        """

    def check(self) -> None:  # noqa: B027 - sources that cannot tell have nothing to check
        """Find out early whether the input is there; it is not read.

        Raises:
            InputError: it is not; the message names the stream and the input.
        """

    def size(self) -> int | None:
        """About how many bytes the events have as text; None if that is not known.

        Raises:
            InputError: the input is missing.
        """
        return None

    def keeping(self, predicates: tuple[str, ...] | None) -> Source:
        """The same source for readers of these predicates (IRIs) only; None: all predicates.

        It may leave out other triples, but not their events.
        """
        return self

    def matched_by(self, patterns: Callable[[], tuple[Any, ...] | None]) -> Source:
        """The same source for readers that need events with a solution of one of these patterns.

        They are nodes of the algebra. Of other events only the times are needed. None means that
        all events are needed, as in `keeping`. A source that does not use them must not call
        `patterns`, which members of families compute on demand.
        """
        return self

    def in_batches(self, larger: int) -> Source:
        """The same source, whose batches may be this many times as large as usual."""
        return self

    def splits(
        self, pool: Executor, *, split_bytes: int | None = None, time_scan: bool = True
    ) -> Iterable[Split] | None:
        """The parts that tasks read at the same time; None if one task must read everything.

        Args:
            pool: threads for work that can be done in parallel.
            split_bytes: about how many bytes a split has; chosen by the source if None.
            time_scan: if False, a stream that seems to be in order of time is not read for its
                times first; its splits are then `SplitNumbering.ORDERED`.

        Raises:
            InputError: the input is missing.
        """
        return None

    def shared(self, directory: Path) -> Source:
        """A source of the same events that other processes can open.

        That is the source itself, unless only this process has the input. Then the input is copied
        to `directory`, which must last as long as the run.
        """
        return self

    def followed(self) -> Source:
        """The same input, read as it grows: files, or a topic at Kafka.

        A batch that is run again must read the same bytes. A source whose input does not stay is to
        write it to files, and to follow these.

        Raises:
            UsageError: the input has an end, or does not stay.
        """
        what = f"stream <{self.iri}>: {self.describe()}"
        raise UsageError(f"{what} cannot be followed on Spark: {self.not_followed}")

    def identity(self) -> Any:
        """The parts that must stay the same for a followed run to resume, as JSON values.

        None for sources that are not followed.
        """
        return None
