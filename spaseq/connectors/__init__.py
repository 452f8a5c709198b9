"""Connectors: brokers that bring the messages of live streams, and take answers.

A new connector is a file with subclasses of `MessageSource` and `MessageSink`, and lines in the
tables below. Its file is imported when a URL names it, and the broker's library, an extra of the
package, when a run connects; that it is not installed is told before.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from spaseq.connectors.address import Address, scheme_of
from spaseq.errors import InputError, UsageError
from spaseq.extras import missing

if TYPE_CHECKING:
    from spaseq.connectors.base import MessageSink, MessageSource
    from spaseq.rdf.inputs.stream_options import StreamOptions

__all__ = ["SINKS_OF_SCHEMES", "SOURCES_OF_SCHEMES", "is_sink", "is_source", "sink_at", "source_at"]

SOURCES_OF_SCHEMES = {
    "nats": "nats_jetstream.NatsSource",
    "kafka": "kafka.KafkaSource",
    "mqtt": "mqtt_source.MqttSource",
    "mqtts": "mqtt_source.MqttSource",
    "ws": "websocket.WebSocketSource",
    "wss": "websocket.WebSocketSource",
    "sse+http": "server_sent_events.ServerSentEvents",
    "sse+https": "server_sent_events.ServerSentEvents",
    "ldes+http": "linked_data_feed.LinkedDataFeed",
    "ldes+https": "linked_data_feed.LinkedDataFeed",
}
"""The source of each URL scheme: its file and its class."""

SINKS_OF_SCHEMES = {
    "kafka": "kafka_sink.KafkaSink",
    "mqtt": "mqtt_sink.MqttSink",
    "mqtts": "mqtt_sink.MqttSink",
    "nats": "nats_jetstream.NatsSink",
    "postgresql": "postgresql_sink.PostgresqlSink",
    "http": "webhook.WebhookSink",
    "https": "webhook.WebhookSink",
    "smtp": "mail.MailSink",
    "smtps": "mail.MailSink",
}
"""The sink of each URL scheme: its file and its class."""


def is_source(text: str) -> bool:
    """Whether a stream's input is the URL of a broker.

    >>> is_source("nats://127.0.0.1/loops?stream=ROAD"), is_source("loops.nq")
    (True, False)
    """
    return scheme_of(text) in SOURCES_OF_SCHEMES


def is_sink(text: str) -> bool:
    """Whether an output is the URL of a broker."""
    return scheme_of(text) in SINKS_OF_SCHEMES


def source_at(text: str, options: StreamOptions | None = None) -> MessageSource:
    """The source at a URL that `is_source`.

    Args:
        text: the URL.
        options: of the stream.

    Raises:
        UsageError: the URL lacks something or says something unknown.
        InputError: its library is not installed.
    """
    scheme, address = scheme_of(text), Address.of(text)
    source: MessageSource = _class(SOURCES_OF_SCHEMES[scheme])(
        *((address, options) if scheme.startswith("ldes+") else (address,))
    )
    _check_library(source)
    return source


def sink_at(text: str, options: Mapping[str, Any] = MappingProxyType({})) -> MessageSink:
    """The sink at a URL that `is_sink`; errors as from `source_at`.

    Args:
        text: the URL.
        options: further options, such as the headers of a webhook.
    """
    made, address = _class(SINKS_OF_SCHEMES[scheme_of(text)]), Address.of(text)
    for name in sorted(options.keys() - made.options):
        raise UsageError(f"{address}: {address.scheme}:// has no option {name}")
    sink: MessageSink = made(address, options) if options else made(address)
    _check_library(sink)
    return sink


def _check_library(made: MessageSource | MessageSink) -> None:
    lacks = missing(made.extra) if made.extra else ""
    if lacks:
        raise InputError(f"{made.address}: {made.address.scheme}:// needs {lacks}")


def _class(class_path: str) -> Any:
    """The class of a connector."""
    file, name = class_path.split(".")
    return getattr(import_module(f"spaseq.connectors.{file}"), name)
