"""The contract of connectors: sources bring messages with their positions, sinks take answers.

The run calls `MessageSource.read` in a separate thread. A source must not acknowledge a message
that is not in the log on disk. The log keeps the position of the last message, and a source begins
after it, whatever the broker's state. A source without positions gives messages that are
`UNNUMBERED`. It acknowledges them once the intake says that they are committed.

A message may be a heartbeat: no event at or before a time follows. A broker's message is one if it
has the header `spaseq-heartbeat` with the time, and no body. Its media type says so in the log.

>>> media = media_of("2026-01-31T08:00:00Z", b"", "")
>>> media, heartbeat_time(media)
('application/x-spaseq-heartbeat; time=2026-01-31T08:00:00Z', 1769846400000)
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Protocol

from spaseq.connectors.address import Address
from spaseq.errors import RunError
from spaseq.logs.messages import Message, MessageColumns
from spaseq.rdf.terms.times import LIMIT_MS, parse_datetime

LOST, BACK = "connection lost; connecting again", "connected again"
"""Notes on a lost and a restored connection to a broker."""

HEADER = "spaseq-heartbeat"
"""The header, or user property, of a message that is a heartbeat."""

_WHOLE_NUMBER = re.compile("-?[0-9]{1,18}")
_TYPE = "application/x-spaseq-heartbeat; time="


class NotTaken(RunError):
    """A broker has not taken answers, and may take them later."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """An answer on its way.

    Attributes:
        id: the id of the answer.
        text: the answer as one line of JSON that begins with the id, or the text of a template.
        query: the name of its query.
        index: its number in the answer log. No two answers have the same.
    """

    id: str
    text: str
    query: str
    index: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer that an output refuses for good, and why."""

    parcel: Parcel
    reason: str


class Intake(Protocol):
    """Takes the messages of a source."""

    @property
    def places(self) -> Mapping[int, int]:
        """The offset of the last logged message of each partition, when the source began."""
        ...

    @property
    def marks(self) -> Mapping[str, str]:
        """The last text of each mark of the logged messages, when the source began."""
        ...

    @property
    def stopped(self) -> bool:
        """Whether the source must end."""
        ...

    def identity(self) -> str:
        """A random name of the stream's log: the same in each run over it, and no other log's."""
        ...

    def has_partitions(self, count: int) -> None:
        """Say how many partitions there are, before the first message, and when they are more."""
        ...

    def offer(self, messages: Sequence[Message]) -> bool:
        """Give messages in order; False if there is no room: offer them again a little later."""
        ...

    def tell_committed(self, listener: Callable[[int], None]) -> None:
        """Let a function know how many of the offered messages are in the log on disk.

        It is called with their number whenever that has grown, in another thread, and must return
        at once.
        """
        ...

    def connected(self, is_behind: bool = False) -> None:
        """Say that the connection stands: before the first message, and when it is back.

        From then on silence means that there are no messages, unless the source `is_behind`: it
        says so again once it has offered what its broker kept. It may say so more often.
        """
        ...

    def lost(self) -> None:
        """Say that the connection is lost, and that the source connects again."""
        ...

    def note(self, text: str) -> None:
        """Tell the user something."""
        ...


class MessageSource(ABC):
    """The messages of one stream at a broker. Making one connects to nothing.

    `has_times` says whether the broker gives each message a time, and `extra` which extra of the
    package has its library.
    """

    has_times: bool = False
    extra: ClassVar[str] = ""

    def __init__(self, address: Address) -> None:
        """Check an address; UsageError if it lacks something."""
        self.address = address

    @abstractmethod
    def read(self, intake: Intake) -> None:
        """Give all messages after the positions of an intake, until it is stopped.

        If the broker goes away, the source connects again, and continues after the last message
        that it gave.

        Raises:
            InputError: the broker cannot be reached at the start, or has no such stream.
        """


class MessageSink(ABC):
    """A place that takes answers. Making one connects to nothing.

    Attributes:
        extra: the extra of the package that has its library.
        options: the names of the options that it has, besides what its address says.
        together: how many answers `send` gets at most.
        note: what a later run must know to send no answer twice; a value of JSON. The caller keeps
            it after each `resume` and `send`.
    """

    extra: ClassVar[str] = ""
    options: frozenset[str] = frozenset()
    together: int = 2000
    note: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, address: Address, given: Mapping[str, Any] = MappingProxyType({})) -> None:
        """Check an address and the options that were given; UsageError if it lacks something."""
        self.address = address

    def resume(self, identity: str, note: Mapping[str, Any]) -> None:  # noqa: B027
        """Prepare for `send`: before the first one, and after each failed one.

        Args:
            identity: a unique name of this output, the same in all runs with the same answer log.
            note: the last `note` that was kept; empty at first.

        Raises:
            NotTaken, RunError: as from `send`.
        """

    @abstractmethod
    def send(self, parcels: Sequence[Parcel]) -> list[Refusal]:
        """Send answers in order; they have been taken or refused when this returns.

        It connects if there is no connection. Answers that are sent again have the same ids.

        Returns:
            The answers that are refused for good.

        Raises:
            NotTaken: the output cannot be reached, or does not take them now.
            RunError: the output can take no answer at all.
        """

    def close(self) -> None:  # noqa: B027 - some sinks keep no connection
        """Release the connection."""


def media_of(time: str | None, payload: bytes, media_type: str) -> str:
    """The media type of a message with the header's text, if it has the header."""
    return media_type if time is None or payload else f"{_TYPE}{time[:100]}"


def is_heartbeat(media_type: str) -> bool:
    """Whether a message is a heartbeat."""
    return media_type.startswith(_TYPE)


def heartbeat_time(media_type: str) -> int | None:
    """The time (ms) of a message that is a heartbeat; None if it is no time."""
    return time_of(media_type.removeprefix(_TYPE))


def time_of(text: str) -> int | None:
    """A time (ms) as users write it: an xsd:dateTime, or milliseconds since 1970."""
    text = text.strip()
    time_ms = int(text) if _WHOLE_NUMBER.fullmatch(text) else parse_datetime(text)
    return None if time_ms is None or abs(time_ms) >= LIMIT_MS else time_ms


def by_kind(messages: MessageColumns) -> list[MessageColumns]:
    """The messages in order; heartbeats stand apart from others."""
    if not any(map(is_heartbeat, set(messages.media_type))):
        return [messages]
    return messages.runs_of_types()
