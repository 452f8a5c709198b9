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


def check_address(address: Address, ours: Collection[str]) -> None:
    """UsageError unless there is a topic, and settings of librdkafka that are not `ours`."""
    if not address.path or "/" in address.path:
        raise UsageError(f"{address}: give a topic, kafka://HOST/TOPIC")
    for name in address.parameters:
        if "." not in name:
            raise UsageError(f"{address}: unknown parameter {name} (settings of librdkafka)")
        if name in ours:
            raise UsageError(f"{address}: {name} cannot be set; a run keeps its place itself")


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
