"""Pickles of state that refers to a machine: its static parts are written as numbers."""

from __future__ import annotations

import io
import pickle

from spaseq.automaton.run.machine import Machine

_MACHINE = -1
"""The number of the machine itself."""


def dumps(state: object, machine: Machine) -> bytes:
    """The pickle of some state."""
    out = io.BytesIO()
    _StatePickler(out, machine).dump(state)
    return out.getvalue()


def loads(data: bytes, machine: Machine) -> object:
    """The state of a pickle, which refers to this machine."""
    return _StateUnpickler(io.BytesIO(data), machine).load()


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
