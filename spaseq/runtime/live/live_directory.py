"""The directory of a live run: its logs, its state, and the progress of its outputs.

`live.json` has the settings that stay the same. `streams/` has a log for each stream, `answers/`
the log of answers, `queries/` the log of queries that come and go, `endpoints/` the log of answers
of SPARQL endpoints, `graphs/` the log of external changes of graphs. `state` is the last snapshot
of the engine, and `replay.json` has the point of the logs from which it can be rebuilt. `sent/` has
the position of each output, and `failed/` the answers that it did not take. The run that uses the
directory locks `.lock`.
"""

from __future__ import annotations

import hashlib
import json
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TextIO

from spaseq.errors import RunError, UsageError
from spaseq.options import StateLimits
from spaseq.rdf.inputs.stream_options import ignore
from spaseq.runtime.live.graph_changes import MOST_BYTES, KeptGraphs, OnFiles
from spaseq.runtime.live.live_engine import EngineMaker, LiveEngine
from spaseq.runtime.live.query_changes import Planner
from spaseq.stages.state_pickles import STATE_VERSION
from spaseq.storage import directories
from spaseq.storage.checksums import damaged, read_json, with_checksum_line, write_durably
from spaseq.storage.safe_pickles import BROKEN, dump_plain, load_plain


@dataclass(frozen=True, slots=True)
class SavedRun:
    """The state of a run between two batches; all values are numbers, texts, bytes and lists.

    Attributes:
        engine: the result of `LiveEngine.snapshot`.
        places: the next record of each stream's log, by IRI.
        answers: the next record of the answer log.
        endpoints: the next record of the log of endpoints.
        sides: the size of each further output file, by path.
        changes: the next change of queries to take effect.
        queries: the result of `as_values` for the queries.
        answered: number of answers of each query, by title.
        points: the result of `PastPoints.as_values`.
        catch_ups: the points where queries that have not caught up began.
        knowledge: the hash of the knowledge base.
        knowledge_since: when a run first had it, ms since the epoch; 0 if there was no other one.
    """

    engine: list[Any]
    places: Mapping[str, int]
    answers: int
    endpoints: int
    sides: Mapping[str, int]
    changes: int
    queries: list[Any]
    answered: Mapping[str, int]
    points: list[Any]
    catch_ups: list[Any]
    knowledge: str
    knowledge_since: int

    def as_value(self) -> dict[str, Any]:
        """A value for `LiveDirectory.save_state`; `of_value` is the inverse."""
        return {name: getattr(self, name) for name in _NAMES}

    @classmethod
    def of_value(cls, value: Any) -> SavedRun:
        """The inverse of `as_value`.

        Raises:
            RunError: the value has other fields.
        """
        if not isinstance(value, dict) or value.keys() != {*_NAMES}:
            raise RunError("the state of the run is not one that this version of spaseq saves")
        return cls(**value)


_NAMES = [field.name for field in fields(SavedRun)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Persistence:
    """The storage settings of a loop, besides its logs.

    Attributes:
        planner: plans the queries of an earlier run, whose set may have changed; None if the job
            has all queries.
        sides: further output files, open for appending, by path; a resumed run cuts them to their
            size at the saved state.
        sync_ms: minimum time between two commits of the logs.
        retain_ms: how long messages and answers stay in the logs that no query needs any more.
        endures: whether failures of a disk or a broker are passing problems and do not end the run.
        waits: whether sources bring messages only after `acceptance.start`.
        wall: the clock, in seconds since the epoch.
        rebuilds: whether to rebuild the state from the logs, whatever an earlier run has saved.
        answers_ms: how long answers stay that are not needed any more; None: as long as messages.
        graphs: the graphs that may change externally; None if there are none.
    """

    planner: Planner | None = None
    sides: Mapping[str, TextIO] = field(default_factory=dict)
    sync_ms: int = 0
    retain_ms: int = 0
    endures: bool = False
    waits: bool = False
    wall: Callable[[], float] = time.time
    rebuilds: bool = False
    answers_ms: int | None = None
    graphs: KeptGraphs | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingOptions(Persistence):
    """Options of a standing run; the run itself sets the planner and the sides.

    Attributes:
        limits: of each query's state.
        engine: makes the engine that evaluates the queries.
        record: a file of the data directory with settings for a replay, as (name, data).
        on_files: called for each change of a graph by its files, with the graph before and after.
        most_kb: maximum bytes of the files of a graph, or of a request for one.
    """

    retain_ms: int = 3_600_000
    endures: bool = True
    limits: StateLimits = field(default_factory=StateLimits)
    engine: EngineMaker = LiveEngine
    record: tuple[str, bytes] | None = None
    most_kb: int = MOST_BYTES
    on_files: OnFiles = ignore


FORMAT_VERSION = 5

_FINGERPRINTS = 4  # the version whose queries have fingerprints, which name evaluators

STATE_FORMAT = [3, STATE_VERSION]
"""The format of `state`: of the saved run, and of the state of its queries."""

_MANIFEST = "live.json"
_BYTES = "bytes"  # the key of an object that stands for bytes


@dataclass(frozen=True, slots=True)
class LiveDirectory:
    """A directory that this process has locked; `release` it when the run ends."""

    path: Path
    resumed: bool

    @classmethod
    def open(cls, path: Path, wanted: Mapping[str, Any]) -> LiveDirectory:
        """Make a directory, or resume from one.

        Args:
            path: the directory.
            wanted: the settings of this run as JSON values, under their names in messages. They
                must be equal to the stored settings.

        Raises:
            UsageError: it has other settings; the message says which.
            RunError: it cannot be read or written, or another run uses it.
        """
        try:
            path.mkdir(parents=True, exist_ok=True)
            if not (path / _MANIFEST).exists() and any(p.name[0] != "." for p in path.iterdir()):
                raise UsageError(f"{path} is not empty and no checkpoint of a run on brokers")
            directories.hold(path)
            try:
                return cls(path, _resumed(path / _MANIFEST, {"version": FORMAT_VERSION, **wanted}))
            except BaseException:
                directories.release(path)
                raise
        except OSError as error:
            raise RunError(f"checkpoint {path}: {error}") from error

    def release(self) -> None:
        """Let other processes use the directory."""
        directories.release(self.path)

    def check(self) -> None:
        """RunError if it was deleted or moved."""
        if not (self.path / _MANIFEST).exists():
            raise RunError(f"{self.path} was deleted or moved: put it back, or start again")

    def stream(self, iri: str) -> Path:
        """The directory of a stream's log."""
        return self.path / "streams" / hashlib.sha256(iri.encode()).hexdigest()[:16]

    @property
    def answers(self) -> Path:
        """The directory of the answer log."""
        return self.path / "answers"

    @property
    def changes(self) -> Path:
        """The directory of the log of queries that came, changed and went."""
        return self.path / "queries"

    @property
    def endpoints(self) -> Path:
        """The directory of the log of what endpoints have answered."""
        return self.path / "endpoints"

    @property
    def graphs(self) -> Path:
        """The directory of the graphs that change externally, and of the log of their changes."""
        return self.path / "graphs"

    @property
    def has_state(self) -> bool:
        """Whether there is a saved state, in whatever format."""
        return (self.path / "state").exists()

    def state(self) -> Any:
        """The value of the last `save_state`; None if there is none, or in another format.

        Raises:
            RunError: it is damaged.
        """
        if not self.has_state:
            return None
        path = self.path / "state"
        try:
            saved = load_plain(path.read_bytes())
        except BROKEN as error:
            raise damaged(path, error) from error
        is_ours = isinstance(saved, dict) and saved.get("format") == STATE_FORMAT
        return saved["value"] if is_ours else None

    def write(self, name: str, data: bytes) -> None:
        """Write a file of the directory; RunError if the disk is full."""
        _write(self.path / name, data)

    def save_state(self, value: object) -> None:
        """Save a value of numbers, texts, bytes, lists and dicts; RunError if the disk is full."""
        _write(self.path / "state", dump_plain({"format": STATE_FORMAT, "value": value}))

    def forget_state(self) -> None:
        """Remove the saved state."""
        (self.path / "state").unlink(missing_ok=True)

    def forget_note(self) -> None:
        """Remove the saved note."""
        (self.path / "replay.json").unlink(missing_ok=True)

    def note(self) -> Any:
        """The value of the last `save_note`; None if there is none; RunError if damaged."""
        path = self.path / "replay.json"
        return read_json(path, _with_bytes) if path.exists() else None

    def save_note(self, value: Mapping[str, Any]) -> None:
        """Save JSON values, which may hold bytes; RunError if the disk is full."""
        _write(self.path / "replay.json", with_checksum_line(_without_bytes(value)).encode())


def _without_bytes(value: Mapping[str, Any]) -> str:
    """JSON in which numbers of a list stand for bytes. Points share many; each stands once."""
    numbers: dict[bytes, int] = {}
    text = json.dumps(value, default=lambda data: {_BYTES: numbers.setdefault(data, len(numbers))})
    listed = json.dumps([b64encode(data).decode() for data in numbers])
    return f"[{text}, {listed}]"


def _with_bytes(note: Any) -> Any:
    """The inverse of `_without_bytes`; a note of earlier versions has no bytes."""
    if not isinstance(note, list):
        return note
    value, listed = note
    return _filled(value, [b64decode(text) for text in listed])


def _filled(value: Any, listed: Sequence[bytes]) -> Any:
    """A value in which the bytes replace their numbers."""
    if isinstance(value, list):
        return [_filled(inner, listed) for inner in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {_BYTES}:
        return listed[value[_BYTES]]
    return {key: _filled(inner, listed) for key, inner in value.items()}


def _write(path: Path, data: bytes) -> None:
    try:
        write_durably(path, data)
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror}") from error


def _resumed(manifest: Path, wanted: Mapping[str, Any]) -> bool:
    """Whether a run is resumed; UsageError if it is another one."""
    if not manifest.exists():
        _write(manifest, with_checksum_line(json.dumps(wanted, indent=2)).encode())
        return False
    stored = read_json(manifest, dict)
    is_earlier = stored.get("version") == _FINGERPRINTS
    if is_earlier:
        stored = _with_texts(stored, wanted)
    if stored.get("version") != wanted["version"]:
        raise UsageError(
            f"{manifest} has format version {stored.get('version')}; this version of spaseq reads "
            f"{wanted['version']}"
        )
    changes = [name for name in wanted if stored.get(name) != wanted[name]]
    if changes:
        raise UsageError(
            f"checkpoint {manifest.parent} cannot be resumed: other than at its start are the "
            f"{', the '.join(changes)}. Use what it was started with, or an empty directory"
        )
    if is_earlier:
        _write(manifest, with_checksum_line(json.dumps(stored, indent=2)).encode())
    return True


def _with_texts(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a directory of the version before: the texts of queries are not compared."""
    queries, now = stored.get("queries"), wanted.get("queries")
    if isinstance(queries, list) and isinstance(now, list):
        has_them = [name for name, _ in queries] == [name for name, _ in now]
        queries = now if has_them else queries
    return {**stored, "queries": queries, "version": FORMAT_VERSION}
