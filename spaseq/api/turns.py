"""One call at a time: calls of several threads wait for each other.

A call inside another one, from a callback for instance, would find the state half changed. It is
refused.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import RLock
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from spaseq.errors import UsageError

P = ParamSpec("P")
R = TypeVar("R")


class Turn:
    """Whose turn it is to call an object."""

    __slots__ = ("is_taken", "lock")

    def __init__(self) -> None:
        self.lock = RLock()  # of the thread that calls
        self.is_taken = False


class TakesTurns(Protocol):
    """An object whose calls take turns."""

    _turn: Turn


S = TypeVar("S", bound=TakesTurns)


def one_at_a_time(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Let a method wait until no other thread is in such a method of the object.

    Raises:
        UsageError: this thread is in one already.
    """

    @wraps(method)
    def call(self: S, /, *arguments: P.args, **options: P.kwargs) -> R:
        turn = self._turn
        with turn.lock:
            if turn.is_taken:
                raise UsageError(
                    f"{method.__qualname__.lstrip('_')} was called inside another call of the same "
                    "object, by a callback or an extension function: call it after that call has "
                    "returned"
                )
            turn.is_taken = True
            try:
                return method(self, *arguments, **options)
            finally:
                turn.is_taken = False

    return call
