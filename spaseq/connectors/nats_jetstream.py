"""NATS JetStream: `nats://[user:password@]host[:port]/subject[?stream=S]`.

The place of a message is its sequence number in the stream, in partition 0. A source reads with an
ephemeral consumer that acknowledges nothing, so any number of runs can read one stream. A sink
publishes each answer with its id as `Nats-Msg-Id`: the server drops an answer that comes again
within the stream's duplicate window.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from spaseq.back_off import BackOff
from spaseq.connectors.address import Address
from spaseq.connectors.base import (
    HEADER,
    Intake,
    MessageSource,
    NotTaken,
    Parcel,
    Refusal,
    media_of,
)
from spaseq.connectors.reconnecting import AsyncSink
from spaseq.errors import InputError, RunError, SpaseqError, UsageError
from spaseq.logs.messages import Message
from spaseq.rdf.inputs.formats import with_headers

_PARTS = 9  # of the reply subject of a message, without a domain
_TOGETHER = 2000  # messages that are offered at once
_ROOM_S = 0.01  # before messages are offered again
_LOOK_S = 2.0  # how often a quiet source looks whether its consumer is still there
_TIMEOUT_S = 5.0

_PARAMETERS = ("stream",)
_ID = "Nats-Msg-Id"
_TOO_LARGE = 10054
"""JetStream's error for a message that is larger than its stream allows."""


class _ConnectionLost(Exception):
    """The server went away, or its consumer did."""


def _check(address: Address) -> None:
    address.check_parameters(_PARAMETERS)
    if not address.path or any(c.isspace() for c in address.path):
        raise UsageError(f"{address}: give a subject, nats://HOST/SUBJECT?stream=STREAM")


async def _connected(address: Address, on_closed: Any = None) -> Any:
    """A connection that is not repaired: the caller makes another one.

    Raises:
        InputError: the server refuses the user, or is no NATS server.
        OSError, asyncio.TimeoutError: it cannot be reached.
    """
    import nats

    given: dict[str, Any] = {}
    if address.user and not address.password:
        given["token"] = address.user
    elif address.user:
        given["user"], given["password"] = address.user, address.password
    refusals: list[Exception] = []

    async def on_error(error: Exception) -> None:
        refusals.append(error)

    try:
        return await nats.connect(
            f"nats://{address.host}",
            allow_reconnect=False,
            max_reconnect_attempts=1,  # also bounds the attempts of this call
            reconnect_time_wait=0,
            connect_timeout=_TIMEOUT_S,
            ping_interval=10,
            max_outstanding_pings=2,
            closed_cb=on_closed,
            error_cb=on_error,
            **given,
        )
    except (TimeoutError, OSError):
        raise
    except Exception as error:
        said = " ".join(map(str, [*refusals, error])).lower()
        if "authorization" in said or "authentication" in said:
            raise InputError(
                f"{address}: the server refuses this user and password; write "
                "nats://USER:PASSWORD@HOST/..., or nats://TOKEN@HOST/..."
            ) from None
        last = refusals[-1] if refusals else error
        raise OSError(str(last) or type(last).__name__) from None


def _unreachable(address: Address, error: BaseException) -> str:
    reason = str(error) or type(error).__name__
    return (
        f"{address}: no NATS server answers at {address.host} ({reason}): check the host and the "
        "port, and that the server runs"
    )


class NatsSource(MessageSource):
    """The messages of a subject in a JetStream stream."""

    has_times, extra = True, "nats"

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        _check(address)

    def read(self, intake: Intake) -> None:
        asyncio.run(_NatsReading(self.address, intake).run())


class _NatsReading:
    """One source while it reads; `last` is the sequence number of the last message given."""

    def __init__(self, address: Address, intake: Intake) -> None:
        self._address, self._intake = address, intake
        self._last = intake.places.get(0, 0)
        self._waiting: list[Message] = []
        self._arrived = asyncio.Event()
        self._room = asyncio.Event()
        self._lost = asyncio.Event()
        self._consumed = 0  # the consumer's own number of its last message

    async def run(self) -> None:
        """Read until the intake stops; connect again where the connection is lost."""
        try:
            await self._once()
            return
        except _ConnectionLost:
            pass
        except (TimeoutError, OSError) as error:
            raise InputError(_unreachable(self._address, error)) from error
        await self._again()

    async def _again(self) -> None:
        self._intake.lost()
        back_off = BackOff()
        while not self._intake.stopped:
            await self._pause(back_off.failed())
            before = self._last
            try:
                await self._once(again=True)
                return
            except (TimeoutError, _ConnectionLost, OSError):
                if self._last > before:
                    back_off.succeeded()

    async def _pause(self, seconds: float) -> None:
        while seconds > 0 and not self._intake.stopped:
            await asyncio.sleep(min(seconds, 0.1))
            seconds -= 0.1

    async def _once(self, again: bool = False) -> None:
        """Read over one connection, until the intake stops or the connection is lost."""
        self._waiting, self._consumed = [], 0
        self._lost.clear()
        self._arrived.clear()

        async def closed() -> None:
            self._lost.set()
            self._arrived.set()

        connection = await _connected(self._address, closed)
        try:
            subscription = await self._subscribed(connection.jetstream(timeout=_TIMEOUT_S))
            self._intake.connected(is_behind=True)
            await self._pass_on(subscription)
        except SpaseqError as error:
            if again and not isinstance(error, InputError):
                raise _ConnectionLost from error
            raise
        finally:
            await connection.close()

    async def _subscribed(self, stream: Any) -> Any:
        """A subscription to all messages behind the last one."""
        from nats.js import api, errors

        name = await self._stream_name(stream)
        try:
            state = (await stream.stream_info(name)).state
        except errors.NotFoundError:
            raise InputError(f"{self._address}: the server has no stream {name}") from None
        except errors.ServiceUnavailableError:
            raise OSError("JetStream is not available") from None
        self._check_state(name, state)
        config = api.ConsumerConfig(
            deliver_policy=api.DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=self._last + 1,
            ack_policy=api.AckPolicy.NONE,
            flow_control=True,
            idle_heartbeat=_TIMEOUT_S,
            inactive_threshold=60.0,
        )
        try:
            return await stream.subscribe(
                self._address.path, stream=name, cb=self._receive, config=config, manual_ack=True
            )
        except errors.Error as error:
            raise InputError(f"{self._address}: stream {name}: {error}") from None

    async def _stream_name(self, stream: Any) -> str:
        from nats.js import errors

        given = self._address.parameters.get("stream")
        if given:
            return given
        try:
            return str(await stream.find_stream_name_by_subject(self._address.path))
        except errors.NotFoundError:
            raise InputError(
                f"{self._address}: no stream of the server keeps this subject; make one, or "
                "name it with ?stream=NAME"
            ) from None
        except errors.ServiceUnavailableError:
            raise InputError(
                f"{self._address}: JetStream is not enabled at {self._address.host}; start "
                "nats-server with --jetstream"
            ) from None

    def _check_state(self, name: str, state: Any) -> None:
        if state.last_seq < self._last:
            raise InputError(
                f"{self._address}: stream {name} ends at message {state.last_seq}, but message "
                f"{self._last} has been read: it has been recreated. Begin with an empty checkpoint"
            )
        gone = state.first_seq - 1 - self._last
        if self._last and gone > 0:
            self._intake.note(
                f"{self._address}: the server has dropped messages {self._last + 1} to "
                f"{state.first_seq - 1} of stream {name}, which had not been read"
            )

    async def _receive(self, message: Any) -> None:
        """Take a message from the subscription; waits while too many wait already."""
        number, consumed, time = _place(message.reply)
        if consumed != self._consumed + 1:
            self._lost.set()  # messages are missing: read again behind the last one
        if not self._lost.is_set():
            self._consumed = consumed
            headers = {name.lower(): text for name, text in (message.headers or {}).items()}
            media, data = with_headers(headers, headers.get("content-type", ""), message.data)
            media = media_of(headers.get(HEADER), data, media)
            more = {"time": time, "topic": message.subject}
            self._waiting.append(Message(data, 0, number, media, **more))
        self._arrived.set()
        while len(self._waiting) >= _TOGETHER and not self._lost.is_set():
            self._room.clear()
            await self._room.wait()

    async def _pass_on(self, subscription: Any) -> None:
        """Offer arriving messages to the intake."""
        loop = asyncio.get_running_loop()
        looked, is_behind = loop.time(), True
        info = await self._look(subscription)
        kept = info.delivered.consumer_seq + info.num_pending
        while not self._intake.stopped:
            if is_behind and self._consumed >= kept and not self._waiting:
                self._intake.connected()
                is_behind = False
            if not self._waiting and not self._lost.is_set():
                await self._next_arrival()
            given, self._waiting = self._waiting, []
            self._room.set()
            while given and not self._intake.offer(given):
                if self._intake.stopped:
                    return
                await asyncio.sleep(_ROOM_S)
            if given:
                self._last = given[-1].offset
            if self._lost.is_set():
                raise _ConnectionLost
            if not given and loop.time() - looked > _LOOK_S:
                looked = loop.time()
                await self._look(subscription)

    async def _next_arrival(self) -> None:
        self._arrived.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._arrived.wait(), 0.1)

    async def _look(self, subscription: Any) -> Any:
        """The server's information on the consumer, if the consumer still exists."""
        from nats.js import errors

        try:
            return await subscription.consumer_info()
        except (TimeoutError, errors.Error) as error:
            raise _ConnectionLost from error


def _place(reply: str) -> tuple[int, int, int]:
    """(number in the stream, number for the consumer, time in ms) of a message, by its reply.

    The subject to which a message is acknowledged says it, also to those who do not acknowledge.

    >>> _place("$JS.ACK.STREAM.consumer.1.17.3.1767225600123456789.0")
    (17, 3, 1767225600123)
    >>> _place("$JS.ACK.domain.account.STREAM.consumer.1.17.3.1767225600123456789.0.token")
    (17, 3, 1767225600123)
    """
    parts = reply.split(".")
    number, consumed, time = parts[5:8] if len(parts) == _PARTS else parts[7:10]
    return int(number), int(consumed), int(time) // 1_000_000


class NatsSink(AsyncSink):
    """A subject that a JetStream stream keeps."""

    extra = "nats"

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        _check(address)
        if not all(address.path.split(".")) or {"*", ">"} & {*address.path.split(".")}:
            raise UsageError(f"{address}: answers go to one subject, without * and >")

    async def _send(self, parcels: Sequence[Parcel]) -> list[Refusal]:
        try:
            return await self._published(parcels)
        except (TimeoutError, OSError) as error:
            raise NotTaken(_unreachable(self.address, error)) from error

    async def _published(self, parcels: Sequence[Parcel]) -> list[Refusal]:
        from nats import errors

        if self._connection is None or self._connection.is_closed:
            self._connection = await _connected(self.address)
        stream = self._connection.jetstream(timeout=_TIMEOUT_S)
        try:
            refusals = await asyncio.gather(*(self._publish(stream, parcel) for parcel in parcels))
        except errors.Error as error:
            raise OSError(str(error)) from error
        return [refusal for refusal in refusals if refusal is not None]

    async def _publish(self, stream: Any, parcel: Parcel) -> Refusal | None:
        """Publish an answer; a refusal if it is too large for the server or the stream."""
        from nats.errors import MaxPayloadError
        from nats.js import errors

        headers = {_ID: parcel.id, "Content-Type": "application/json"}
        name = self.address.parameters.get("stream")
        try:
            await stream.publish(
                self.address.path, parcel.text.encode(), stream=name, headers=headers
            )
        except errors.NoStreamResponseError:
            raise RunError(
                f"{self.address}: no stream of the server keeps this subject, so the answer would "
                "be lost; make one, for instance: nats stream add --subjects "
                f"{self.address.path}"
            ) from None
        except MaxPayloadError as error:
            return Refusal(parcel, f"{self.address}: {error}")
        except errors.APIError as error:
            if error.err_code != _TOO_LARGE:
                raise
            return Refusal(parcel, f"{self.address}: {error.description}")
        return None

    async def _disconnect(self) -> None:
        if not self._connection.is_closed:
            await self._connection.close()
