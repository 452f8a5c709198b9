"""Outputs with asynchronous libraries: a loop of their own, and a connection that is kept."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from spaseq.connectors.address import Address
from spaseq.connectors.base import MessageSink, Parcel, Refusal
from spaseq.errors import SpaseqError


class AsyncSink(MessageSink):
    """An output whose `send` runs in an event loop. After a failure it connects anew."""

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._connection: Any = None

    def send(self, parcels: Sequence[Parcel]) -> list[Refusal]:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        try:
            return self._loop.run_until_complete(self._send(parcels))
        except SpaseqError:
            self.close()
            raise

    @abstractmethod
    async def _send(self, parcels: Sequence[Parcel]) -> list[Refusal]:
        """Send answers over `_connection`, which it makes if there is none, as `send` does."""

    @abstractmethod
    async def _disconnect(self) -> None:
        """Close `_connection`, which may be closed already."""

    def close(self) -> None:
        if self._loop is not None:
            if self._connection is not None:
                self._loop.run_until_complete(self._disconnect())
            self._loop.close()
        self._loop = self._connection = None
