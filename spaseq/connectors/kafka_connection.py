"""What sources and sinks at Kafka share: the login, quiet logging, and messages without secrets."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any

from spaseq.connectors.address import Address
from spaseq.errors import UsageError

silent = logging.getLogger("spaseq.kafka")
"""A logger for librdkafka, whose messages may have secrets."""
silent.addHandler(logging.NullHandler())
silent.propagate = False


_OWN = ("group", "start")
"""The parameters of a source that are no settings of librdkafka."""
_STARTS = ("earliest", "latest")
_KEPT = frozenset(
    {"group.id", "enable.auto.commit", "auto.offset.reset", "bootstrap.servers", "isolation.level"}
)
"""The settings that the URL of a source may not change: the promises of a run rest on them."""


def check_address(address: Address, ours: Collection[str], own: Collection[str] = ()) -> None:
    """UsageError unless there is a topic, and settings of librdkafka that are not `ours`.

    `own` are parameters that are no such settings.
    """
    if not address.path or "/" in address.path:
        raise UsageError(f"{address}: give a topic, kafka://HOST/TOPIC")
    for name in address.parameters:
        if name in own:
            continue
        if "." not in name:
            known = ", ".join([*own, "settings of librdkafka"])
            raise UsageError(f"{address}: unknown parameter {name} ({known})")
        if name in ours:
            raise UsageError(f"{address}: {name} cannot be set; a run keeps its place itself")


def check_source(address: Address) -> None:
    """UsageError unless the address is one of a topic to read."""
    check_address(address, _KEPT, _OWN)
    start = address.parameters.get("start", "earliest")
    if start not in _STARTS:
        raise UsageError(f"{address}: start is {' or '.join(_STARTS)}, not {start}")


def starts_late(address: Address) -> bool:
    """Whether a run that has read nothing yet leaves out the messages that are there."""
    return address.parameters.get("start") == "latest"


def reading_settings(address: Address) -> dict[str, Any]:
    """The settings of a consumer that is told where to read, and commits nothing."""
    return {
        "bootstrap.servers": address.host,
        "group.id": address.parameters.get("group", "spaseq"),  # no consumer joins it
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        "isolation.level": "read_committed",
        "queued.max.messages.kbytes": 16_384,
        **login(address),
        **{name: value for name, value in address.parameters.items() if name not in _OWN},
    }


def login(address: Address) -> dict[str, Any]:
    """The settings of a user and a password."""
    if not address.user:
        return {}
    return {
        "sasl.username": address.user,
        "sasl.password": address.password,
        "sasl.mechanisms": "PLAIN",
        "security.protocol": "sasl_ssl",
    }


def without_secrets(text: str, address: Address) -> str:
    """A message of the library without the password, and the values of settings."""
    for secret in (address.password, *address.parameters.values()):
        text = text.replace(secret, "***") if len(secret) > 3 else text
    return text
