"""Pickles of state that refers to a machine; they hold numbers in place of its static parts.

Loading runs only code of the classes in `STATE_CLASSES`; see `storage.safe_pickles`.
"""

from __future__ import annotations

import io
import pickle
from typing import Any, TypeAlias, cast

from spaseq.automaton.run.machine import Machine
from spaseq.errors import OtherStateError, RunError
from spaseq.plan.query_plan import QueryPlan
from spaseq.storage.checksums import sealed, unsealed
from spaseq.storage.safe_pickles import SafePickler, SafeUnpickler, whole

STATE_VERSION = 9
"""Version of the state that a stage writes, and the only one that it reads."""

STATE_CLASSES = frozenset(
    {
        ("spaseq.automaton.batch.row_store", "Chunk"),
        ("spaseq.automaton.batch.waiting_matches", "ClosingMatches"),
        ("spaseq.automaton.program.nfa", "GreedyExit"),
        ("spaseq.automaton.program.window", "Counted"),
        ("spaseq.automaton.program.window", "Sliding"),
        ("spaseq.automaton.program.window", "Tumbling"),
        ("spaseq.automaton.registers.python.register_evaluator", "RegisterEvaluator"),
        ("spaseq.automaton.run.after_match", "AfterMatchFilter"),
        ("spaseq.automaton.run.after_match", "MutingFilter"),
        ("spaseq.automaton.run.arena", "Arena"),
        ("spaseq.automaton.run.matches", "PartitionMatch"),
        ("spaseq.automaton.run.runs", "BracketFrame"),
        ("spaseq.automaton.run.runs", "Candidate"),
        ("spaseq.automaton.run.runs", "Captured"),
        ("spaseq.automaton.run.runs", "ChoicePoint"),
        ("spaseq.automaton.run.runs", "Groups"),
        ("spaseq.automaton.run.runs", "LeftLoop"),
        ("spaseq.automaton.run.runs", "MeasuredInstant"),
        ("spaseq.automaton.run.runs", "Obligation"),
        ("spaseq.automaton.run.runs", "Outside"),
        ("spaseq.automaton.run.runs", "Rivals"),
        ("spaseq.automaton.run.runs", "Run"),
        ("spaseq.automaton.run.runs", "WaitingRun"),
        ("spaseq.automaton.run.waiting_runs", "WaitingRuns"),
        ("spaseq.rdf.columns.solution_batch", "SolutionBatch"),
        ("spaseq.rdf.columns.term_columns", "NumberColumn"),
        ("spaseq.rdf.columns.term_columns", "TermColumn"),
        ("spaseq.windows.window_runs", "ContentEvent"),
    }
)
"""(module, name) of all classes with instances in the state of a stage."""

_MACHINE = -1
"""The number of the machine itself."""


Head: TypeAlias = tuple[int, str]
"""The version of the state's format, and the fingerprint of the plan."""


def dumps(head: Head, state: tuple[Any, ...], machine: Machine) -> bytes:
    """Two pickles and a checksum: the head is readable whatever the state holds."""
    out = io.BytesIO()
    pickle.dump(head, out, pickle.HIGHEST_PROTOCOL)
    _StatePickler(out, machine).dump(state)
    return sealed(out.getvalue())


class StatePickle:
    """A pickle written by `dumps`.

    Raises:
        Damaged: the checksum is wrong.
    """

    def __init__(self, data: bytes) -> None:
        body = unsealed(data)
        self._data = io.BytesIO(data if body is None else body)

    def head(self) -> Head:
        """The head.

        Raises:
            any of `safe_pickles.BROKEN`: it is no snapshot.
        """
        version, fingerprint = _StateUnpickler(self._data, None).load()
        return version, fingerprint

    def check_head(self, plan: QueryPlan) -> None:
        """Check that the head names this plan and this format.

        Raises:
            OtherStateError: it does not.
            any of `safe_pickles.BROKEN`: it is no snapshot.
        """
        version, fingerprint = self.head()
        if version != STATE_VERSION:
            raise OtherStateError(
                f"the state is of format {version}, and this version of spaseq reads "
                f"{STATE_VERSION}: let the older version read its input to the end, or begin again "
                "without the state"
            )
        if fingerprint != plan.signature.fingerprint:
            raise OtherStateError(
                f"the state is of another query than {plan.identity.name}, or of a version of "
                "spaseq that runs it with another evaluator: begin again without the state"
            )

    def state(self, machine: Machine) -> tuple[Any, ...]:
        """The state, which refers to a machine; call `head` first.

        Raises:
            any of `safe_pickles.BROKEN`: it is damaged, or names classes that are no state.
        """
        load = _StateUnpickler(self._data, machine).load
        return cast("tuple[Any, ...]", whole(load, self._data))


def damaged(plan: QueryPlan, error: BaseException) -> RunError:
    """The error for an unreadable snapshot of a stage."""
    return RunError(f"the state of query {plan.identity.name} is damaged: {error}")


class _StatePickler(SafePickler):
    def __init__(self, out: io.BytesIO, machine: Machine) -> None:
        super().__init__(out)
        self._machine = machine

    def persistent_id(self, obj: object) -> int | None:
        if obj is self._machine:
            return _MACHINE
        return self._machine.numbers.get(id(obj))


class _StateUnpickler(SafeUnpickler):
    classes = STATE_CLASSES

    def __init__(self, data: io.BytesIO, machine: Machine | None) -> None:
        super().__init__(data)
        self._machine = machine

    def persistent_load(self, pid: int) -> object:
        if self._machine is None:
            raise IndexError(pid)
        return self._machine if pid == _MACHINE else self._machine.statics[pid]
