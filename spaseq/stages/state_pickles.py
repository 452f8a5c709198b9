"""Pickles of state that refers to a machine: its static parts are written as numbers."""

from __future__ import annotations

import io
import pickle
from typing import Any, TypeAlias, cast

from spaseq.automaton.run.machine import Machine

_MACHINE = -1
"""The number of the machine itself."""


Head: TypeAlias = tuple[int | str, str]
"""The version of the state's format, and the fingerprint of the plan."""


def dumps(head: Head, state: tuple[Any, ...], machine: Machine) -> bytes:
    """Two pickles, one after the other: the head can be read whatever the state holds."""
    out = io.BytesIO()
    pickle.dump(head, out, pickle.HIGHEST_PROTOCOL)
    _StatePickler(out, machine).dump(state)
    return out.getvalue()


class StatePickle:
    """A pickle written by `dumps`; the loaded state refers to `machine`."""

    def __init__(self, data: bytes, machine: Machine) -> None:
        self._data = io.BytesIO(data)
        self._machine = machine

    def head(self) -> Head:
        """The head. Formats before 4 have none, and name modules that have moved since."""
        try:
            match _StateUnpickler(self._data, self._machine).load():
                case (int() as version, str() as fingerprint):
                    return version, fingerprint
        except (ImportError, AttributeError, IndexError, KeyError):
            pass
        return "3 or older", ""

    def state(self) -> tuple[Any, ...]:
        """The state; call `head` first."""
        return cast("tuple[Any, ...]", _StateUnpickler(self._data, self._machine).load())


class _StatePickler(pickle.Pickler):
    def __init__(self, out: io.BytesIO, machine: Machine) -> None:
        super().__init__(out, protocol=pickle.HIGHEST_PROTOCOL)
        self._machine = machine

    def persistent_id(self, obj: object) -> int | None:
        if obj is self._machine:
            return _MACHINE
        return self._machine.numbers.get(id(obj))


class _StateUnpickler(pickle.Unpickler):
    def __init__(self, data: io.BytesIO, machine: Machine) -> None:
        super().__init__(data)
        self._machine = machine

    def persistent_load(self, pid: int) -> object:
        return self._machine if pid == _MACHINE else self._machine.statics[pid]
