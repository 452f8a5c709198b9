"""What finds slow callbacks of a server's event loop, in other tests, finds one."""

from __future__ import annotations

import asyncio
import time

import pytest

from tests.serve.servers import no_slow_callbacks


def test_a_slow_callback_is_found() -> None:
    async def busy() -> None:
        end = time.thread_time() + 0.1
        while time.thread_time() < end:
            pass

    with pytest.raises(AssertionError, match=r"0\.1\d\d s: <Handle"), no_slow_callbacks():
        asyncio.run(busy())
