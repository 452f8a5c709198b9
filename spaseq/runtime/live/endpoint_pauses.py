"""Endpoints that have failed: they are left alone for a while, so that a run does not stand still.

While an endpoint is asked, nothing else is evaluated. One that hangs would cost its timeout in each
batch. So after a failure that may pass it is not asked for as long as the failure took, at least
half a second; after more failures, for longer, up to 30 seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from spaseq.back_off import BackOff
from spaseq.kb.service_failure import ServiceFailure


@dataclass(slots=True)
class _Pause:
    back_off: BackOff
    until: float
    reason: str


class EndpointPauses:
    """Says which endpoints may be asked.

    Args:
        clock: seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._pauses: dict[str, _Pause] = {}

    def check(self, url: str) -> None:
        """ServiceFailure if an endpoint must not be asked now."""
        pause = self._pauses.get(url)
        if pause is not None and self._clock() < pause.until:
            raise ServiceFailure(f"it has failed a moment ago ({pause.reason})", False)

    @contextmanager
    def watching(self, url: str) -> Iterator[None]:
        """Watch a request to an endpoint."""
        begun = self._clock()
        try:
            yield
        except ServiceFailure as failure:
            if failure.again:
                known = self._pauses.get(url)
                back_off, now = BackOff() if known is None else known.back_off, self._clock()
                until = now + max(back_off.failed(), now - begun)
                self._pauses[url] = _Pause(back_off, until, str(failure))
            raise
        self._pauses.pop(url, None)
