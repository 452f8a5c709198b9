"""Replies to requests with an `Idempotency-Key`, which may come again.

A reply goes into the log of its stream together with the events, as a note. So it is known again
after a restart, for as long as the log has it.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Callable, Iterable
from typing import Any

from spaseq.serve.refusals import Refused

LONGEST_KEY = 255


class KeptReplies:
    """The replies of a while, by stream and key.

    Args:
        retain_ms: how long a reply is kept.
        now: ms since the epoch.
    """

    def __init__(
        self, retain_ms: int, now: Callable[[], int] = lambda: int(time.time() * 1000)
    ) -> None:
        self._retain_ms, self._now = retain_ms, now
        self._kept: dict[tuple[str, str], tuple[int, str, dict[str, Any]]] = {}
        self._locks: dict[tuple[str, str], asyncio.Lock] = {}

    def recall(self, stream: str, notes: Iterable[bytes]) -> None:
        """Take the notes that the log of a stream has, in their order."""
        for note in notes:
            found = json.loads(note)
            self._kept[stream, found["key"]] = found["at"], found["hash"], found["reply"]

    def lock(self, stream: str, key: str) -> asyncio.Lock:
        """Held while a request with this key is served, so that its like waits."""
        return self._locks.setdefault((stream, key), asyncio.Lock())

    def unlocked(self, stream: str, key: str) -> None:
        """Forget a lock that nobody holds any more."""
        lock = self._locks.get((stream, key))
        if lock is not None and not lock.locked():
            del self._locks[stream, key]

    def reply(self, stream: str, key: str, digest: str) -> dict[str, Any] | None:
        """The reply to an earlier request with this key.

        Raises:
            Refused: that request had another body.
        """
        self._forget()
        found = self._kept.get((stream, key))
        if found is None:
            return None
        if found[1] != digest:
            raise Refused(
                422,
                "another body came with this Idempotency-Key",
                "give each body a key, and send it again as it was",
            )
        return found[2]

    def note(self, key: str, digest: str, reply: dict[str, Any]) -> bytes:
        """What goes into the log along with the events of a request."""
        kept = {"key": key, "at": self._now(), "hash": digest, "reply": reply}
        return json.dumps(kept, separators=(",", ":")).encode()

    def keep(self, stream: str, note: bytes) -> None:
        """Keep the reply of a note that is in the log."""
        self.recall(stream, [note])

    def _forget(self) -> None:
        """Drop the oldest replies; they are in the order of their times."""
        old = self._now() - self._retain_ms
        while self._kept:
            first = next(iter(self._kept))
            if self._kept[first][0] >= old:
                return
            del self._kept[first]


def digest_of(media_type: str, body: bytes) -> str:
    """What tells a body from others."""
    return hashlib.sha256(media_type.encode() + b"\0" + body).hexdigest()
