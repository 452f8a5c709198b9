"""State of objects: a class names the fields that are its state; one walk saves and restores them.

The state of an object is the values of these fields. Where a field holds further objects with state
(one, a sequence or a mapping), their states replace them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any, ClassVar, TypeVar
from weakref import WeakMethod

K = TypeVar("K")
P = TypeVar("P")


class Stateful:
    """An object with state.

    A new object, constructed in the same way, continues from a snapshot.

    >>> class Counter(Stateful):
    ...     STATE = ("count",)
    ...     count = 0
    >>> one, other = Counter(), Counter()
    >>> one.count = 3
    >>> other.restore(one.snapshot())
    >>> other.count
    3
    """

    __slots__ = ()

    STATE: ClassVar[Sequence[str | tuple[str, str]]] = ()
    """The fields that are state, without fields derived from others.

    A pair is a field, and the property that gives its used part.
    """

    def snapshot(self) -> Any:
        """The state, for `restore`."""
        self._before_snapshot()
        used = [name if isinstance(name, str) else name[1] for name in self.STATE]
        return tuple([state_of(getattr(self, name)) for name in used])

    def restore(self, state: Any) -> None:
        """Continue from a state; the object is new.

        Raises:
            any of `safe_pickles.BROKEN`: it is damaged.
        """
        fields = [name if isinstance(name, str) else name[0] for name in self.STATE]
        for field, kept in zip(fields, state, strict=True):
            if not go_on(getattr(self, field), kept):
                setattr(self, field, kept)
        self._after_restore()

    def _before_snapshot(self) -> None:
        """Bring the fields into the form in which a snapshot holds them."""

    def _after_restore(self) -> None:
        """Compute the derived fields."""


class Parts(dict[K, P]):
    """Objects by key, each made when its key is first asked for.

    If `make` is a method, the reference to its object is weak.

    >>> parts = Parts(lambda key: [key])
    >>> parts["a"], [*parts]
    (['a'], ['a'])
    """

    def __init__(self, make: Callable[[K], P]) -> None:
        super().__init__()
        self._maker = WeakMethod(make) if isinstance(make, MethodType) else lambda: make

    def __missing__(self, key: K) -> P:
        make = self._maker()
        assert make is not None, "the object whose method makes parts is gone"
        part = self[key] = make(key)
        return part


def state_of(value: Any) -> Any:
    """The state of a field's value: the states of the objects in it, or the value itself."""
    if isinstance(value, Stateful):
        return value.snapshot()
    if _has_keyed_parts(value):
        return {key: part.snapshot() for key, part in value.items()}
    if isinstance(value, list | tuple) and _has_parts(value):
        return [part.snapshot() for part in value]
    return value


def go_on(value: Any, state: Any) -> bool:
    """Restore the objects in a field's value from their states; False if it holds no such objects.

    Raises:
        any of `safe_pickles.BROKEN`: the state is damaged.
    """
    if isinstance(value, Stateful):
        value.restore(state)
    elif _has_keyed_parts(value):
        for key, kept in state.items():
            value[key].restore(kept)
    elif isinstance(value, list | tuple) and _has_parts(value):
        for part, kept in zip(value, state, strict=True):
            part.restore(kept)
    else:
        return False
    return True


def _has_keyed_parts(value: Any) -> bool:
    return isinstance(value, Parts) or (isinstance(value, dict) and _has_parts(value.values()))


def _has_parts(values: Any) -> bool:
    return isinstance(next(iter(values), None), Stateful)
