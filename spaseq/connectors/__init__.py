"""Connectors: brokers that bring the messages of live streams, and take answers.

A new connector is a file with subclasses of `MessageSource` and `MessageSink`, and lines in the
tables below. The broker's library is an extra of the package, and is imported when a run uses it.
"""

from __future__ import annotations

from spaseq.connectors.address import Address, scheme_of
from spaseq.connectors.base import MessageSink, MessageSource
from spaseq.connectors.nats_jetstream import NatsSink, NatsSource
from spaseq.errors import UsageError

__all__ = ["SINK_SCHEMES", "SOURCE_SCHEMES", "is_sink", "is_source", "sink_at", "source_at"]

SOURCE_SCHEMES: dict[str, type[MessageSource]] = {"nats": NatsSource}
"""The source of each URL scheme."""

SINK_SCHEMES: dict[str, type[MessageSink]] = {"nats": NatsSink}
"""The sink of each URL scheme."""


def is_source(text: str) -> bool:
    """Whether a stream's input is the URL of a broker.

    >>> is_source("nats://127.0.0.1/loops?stream=ROAD"), is_source("loops.nq")
    (True, False)
    """
    return scheme_of(text) in SOURCE_SCHEMES


def is_sink(text: str) -> bool:
    """Whether an output is the URL of a broker."""
    return scheme_of(text) in SINK_SCHEMES


def source_at(text: str) -> MessageSource:
    """The source at a URL.

    Raises:
        UsageError: the URL lacks something or says something unknown.
    """
    address = Address.of(text)
    return SOURCE_SCHEMES[address.scheme](address)


def sink_at(text: str) -> MessageSink:
    """The sink at a URL; UsageError as from `source_at`."""
    address = Address.of(text)
    if address.scheme not in SINK_SCHEMES:
        raise UsageError(f"answers cannot go to {address}: use {', '.join(SINK_SCHEMES)} or a file")
    return SINK_SCHEMES[address.scheme](address)
