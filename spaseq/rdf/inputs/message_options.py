"""How the messages of a stream become events."""

from __future__ import annotations

from spaseq.errors import UsageError
from spaseq.rdf.inputs.message_formats import message_format
from spaseq.records import record

ARRIVAL = "arrival"

TIME_RULES = ("message", ARRIVAL)
"""The times that an event may get whose graph has none: its message's, or that of its arrival."""


@record
class MessageOptions:
    """How to read the messages of a stream, besides what `StreamOptions` says.

    Attributes:
        format: the format of all messages, whatever their media types say: the name or extension
            of a format, or a media type. None leaves it to each message.
        time: a name of `TIME_RULES`; None makes an event without a time bad input.
        dedup_ms: an event is dropped if its graph's IRI was seen in this time before its arrival.
            None drops nothing.
        max_bytes: a larger message is bad input. None sets no bound.

    Raises:
        UsageError: a format or a time rule is unknown.
    """

    format: str | None = None
    time: str | None = None
    dedup_ms: int | None = None
    max_bytes: int | None = None

    def __post_init__(self) -> None:
        if self.time is not None and self.time not in TIME_RULES:
            raise UsageError(f"the time of an event is {' or '.join(TIME_RULES)}, not {self.time}")
        if self.format is not None:
            message_format(self.format)

    @property
    def identity(self) -> list[str]:
        """What must stay the same for a run to resume; empty for the defaults."""
        given = (self.format, self.time, self.dedup_ms, self.max_bytes)
        return [] if self == DEFAULT_MESSAGES else [repr(given)]


DEFAULT_MESSAGES = MessageOptions()
