"""Replies to requests with an `Idempotency-Key`, which may come again.

A reply goes into the log of its stream together with the events. So it is known again after a
restart.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from spaseq.serve.requests import Refused

LONGEST_KEY = 255

_MARK = "reply:"


class KeptReplies:
    """The replies of a while, by stream and key.

    A reply is a mark of the stream's log (`StreamLog.marks`), which goes when its time is over.

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
        self._access = threading.Lock()

    def recall(self, stream: str, marks: Mapping[str, str]) -> None:
        """Take the replies that the log of a stream has."""
        kept = [(name[len(_MARK) :], json.loads(t)) for name, t in marks.items() if _is_own(name)]
        for key, (at, digest, reply) in sorted(kept, key=lambda item: item[1][0]):
            self._kept[stream, key] = at, digest, reply

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
        kept = self._kept.get((stream, key))
        if kept is None or kept[0] < self._oldest():
            return None
        if kept[1] != digest:
            raise Refused(
                422,
                "another body came with this Idempotency-Key",
                "give each body a key, and send it again as it was",
            )
        return kept[2]

    def marks(
        self, stream: str, key: str, digest: str, reply: dict[str, Any]
    ) -> tuple[tuple[str, str], ...]:
        """What goes into the log along with the events of a request: also, which replies go."""
        kept = json.dumps([self._now(), digest, reply], separators=(",", ":"))
        with self._access:
            gone = [
                k for (s, k), (at, *_) in self._kept.items() if s == stream and at < self._oldest()
            ]
        return (*((_MARK + old, "") for old in gone if old != key), (_MARK + key, kept))

    def keep(self, stream: str, marks: Iterable[tuple[str, str]]) -> None:
        """Take note of marks that are in the log."""
        with self._access:
            for name, text in marks:
                self._kept.pop((stream, name[len(_MARK) :]), None)
                if text:
                    self.recall(stream, {name: text})

    def _oldest(self) -> int:
        return self._now() - self._retain_ms


def _is_own(mark: str) -> bool:
    return mark.startswith(_MARK)


def digest_of(media_type: str, body: bytes) -> str:
    """What tells a body from others."""
    return hashlib.sha256(media_type.encode() + b"\0" + body).hexdigest()
