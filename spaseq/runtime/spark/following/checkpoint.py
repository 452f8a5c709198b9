"""The checkpoint directory of a followed run.

`spaseq.json` describes the job of the state, and the format of the state. `spark/` is the
checkpoint of Structured Streaming, and `offsets.json` has checksums of its offsets. `arrivals/` is
the file source log, from which the state can be rebuilt (`earlier_state`). `topics/` has the
results of tasks for partitions at Kafka. `output.json` has the sizes of output files at the start
of the last batch. The run that uses the directory locks `.lock`.
"""

from __future__ import annotations

import os
import uuid
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from spaseq.errors import RunError, UsageError
from spaseq.plan.families import QueryUnits, families_of, split_key
from spaseq.plan.query_plan import QueryPlan
from spaseq.records import record
from spaseq.runtime.arrivals.input_splits import Repetition
from spaseq.runtime.job.job import Job
from spaseq.runtime.spark.following.earlier_state import (
    DRAIN,
    FORMAT,
    RENUMBERED,
    SparkBatches,
    UnreadState,
    begin_anew,
)
from spaseq.runtime.spark.stages.shipped_units import ShippedUnits
from spaseq.storage import directories
from spaseq.storage.checksums import cut_to, damaged, is_regular, read_json, size_of, write_json

_READ_BACK = 2  # Spark reads the offsets of the last batch and of the one before


@record
class OffsetChecks:
    """The checksums, in a file of the checkpoint.

    Attributes:
        path: the file.
        offsets: the directory of Spark's offset files, whose names are the numbers of batches.
    """

    path: Path
    offsets: Path

    def note(self, batch: int) -> None:
        """Store the checksums at the beginning of a batch."""
        numbers = range(max(batch - _READ_BACK + 1, 0), batch + 1)
        sums = {str(n): _checksum(self.offsets / str(n)) for n in numbers}
        write_json(self.path, {name: known for name, known in sums.items() if known is not None})

    def check(self) -> None:
        """Check the files before Spark reads them.

        Raises:
            RunError: one of them is damaged.
        """
        if not self.path.exists():
            return
        for name, known in read_json(self.path, lambda value: dict(value.items())).items():
            file = self.offsets / name
            if _checksum(file) not in (known, None):
                raise damaged(file, "its checksum is wrong")


def _checksum(file: Path) -> int | None:
    """The CRC-32 of a file, None if it is missing."""
    try:
        return zlib.crc32(file.read_bytes())
    except FileNotFoundError:
        return None


FORMAT_VERSION = 3
"""Version of everything in the directory, Spark's own part left out."""

_FINGERPRINTS = 2  # the version whose queries have fingerprints, which name evaluators

_MANIFEST = "spaseq.json"
_SPARK = "spark"

BUCKETS = 8
"""Default number of buckets of a query with a key."""


@record
class Checkpoint:
    """A checkpoint's directory, and its fixed settings."""

    directory: Path
    id: str  # unique to this checkpoint
    buckets: int
    resumed: bool
    limited: bool = False  # whether no partition is split, so that a limit can count its answers
    has_families: bool = True  # older checkpoints have the state of each query by itself
    repetition: Repetition = Repetition()  # rebuilds the state of an earlier run

    @classmethod
    def open(
        cls,
        directory: Path,
        job: Job,
        watermark_ms: int,
        buckets: int | None = None,
        lifts: Mapping[str, Sequence[str]] | None = None,
        makes_anew: bool = False,
    ) -> Checkpoint:
        """Make a checkpoint, or resume from one. `release` it when the run ends.

        Args:
            buckets: number per query with a key. By default the existing checkpoint's number, or
                `BUCKETS` for a new one.
            lifts: the identity of the lift of each stream that is a DataFrame of rows, by IRI.
            makes_anew: whether a state that this version cannot read may be rebuilt.

        Raises:
            UsageError: the checkpoint has other queries, streams, lifts or knowledge, or another
                watermark or number of buckets, or a state that can be neither read nor rebuilt; the
                message says which.
            RunError: the directory cannot be read or written, or another run uses it.
        """
        manifest = directory / _MANIFEST
        wanted = {**_description(job, watermark_ms), "lifts": dict(lifts or {})}
        try:
            directory.mkdir(parents=True, exist_ok=True)
            if not manifest.exists() and any(p.name[0] != "." for p in directory.iterdir()):
                raise UsageError(f"{directory} is not empty and not a checkpoint of spaseq")
            directories.hold(directory)
            try:
                return cls._locked(directory, wanted, buckets, job if makes_anew else None)
            except BaseException:
                directories.release(directory)
                raise
        except OSError as error:
            raise RunError(f"checkpoint {directory}: {error}") from error

    @classmethod
    def _locked(
        cls, directory: Path, wanted: Mapping[str, Any], buckets: int | None, job: Job | None
    ) -> Checkpoint:
        """The checkpoint of a directory that no other run uses.

        Args:
            job: the job whose state may be rebuilt; None if it may not.
        """
        manifest = directory / _MANIFEST
        if not manifest.exists():
            name = uuid.uuid4().hex
            write_json(manifest, {**wanted, "id": name, "buckets": buckets or BUCKETS}, indent=2)
            return cls(directory, name, buckets or BUCKETS, False, wanted["limited"])
        known = read_json(manifest, lambda value: _described(directory, value, wanted))
        _check(directory, known, wanted, buckets)
        stored = _made_anew(directory, known, wanted, job)
        if not stored.get("is_begun", True):
            write_json(manifest, stored, indent=2)
            begin_anew(directory, SparkBatches(directory / _SPARK), stored["half_written"])
            stored = {**stored, "is_begun": True}
            write_json(manifest, stored, indent=2)
        name, count = str(stored["id"]), int(stored["buckets"])
        limited, has_families = stored.get("limited", False), "families" in stored
        repetition = Repetition(*stored["repetition"])
        return cls(directory, name, count, True, limited, has_families, repetition)

    def release(self) -> None:
        """Let other processes use the checkpoint."""
        directories.release(self.directory)

    def units(self, plans: Sequence[QueryPlan]) -> QueryUnits:
        """The units of the job's queries."""
        all_units = QueryUnits.of(plans, None if self.has_families else (), self.limited)
        return ShippedUnits.of_units(all_units)

    @property
    def arrivals(self) -> Path:
        return self.directory / "arrivals"

    @property
    def spark(self) -> Path:
        return self.directory / _SPARK

    def left_to_repeat(self, batch: int) -> int | None:
        """Number of log batches to repeat after a batch of Spark's.

        None if the batch is new, and no earlier run has given its output.
        """
        end = self.repetition.end
        left = end - SparkBatches(self.spark).logged(batch) if end else -1
        return left if left >= 0 else None

    @property
    def lacks_state(self) -> bool:
        """Whether batches must be repeated before the run continues."""
        batches, (begin, end) = SparkBatches(self.spark), self.repetition
        committed = batches.committed
        return (begin if end == begin or committed is None else batches.logged(committed)) < end

    @property
    def offset_checks(self) -> OffsetChecks:
        return OffsetChecks(self.directory / "offsets.json", self.spark / "offsets")


def _description(job: Job, watermark_ms: int) -> dict[str, Any]:
    """The parts of a job that must stay the same in a resumed run, as JSON values."""
    return {
        "version": FORMAT_VERSION,
        "state": FORMAT,
        "queries": {p.identity.name: p.signature.canonical for p in job.plans},
        "fingerprints": {p.identity.name: p.signature.fingerprint for p in job.plans},
        "evaluators": {p.identity.name: p.evaluator for p in job.plans},
        "knowledge": job.knowledge.hash if job.watch is None else "may change",
        "streams": {stream.iri: stream.followed().identity() for stream in job.streams},
        "watermark_ms": watermark_ms,
        "partial": any(p.levels for p in job.plans),
        "limited": job.options.limit_per_event is not None
        and any(split_key(plan, True) != split_key(plan, False) for plan in job.plans),
        "families": [
            [job.plans[n].identity.name for n in family.members]
            for family in families_of(job.plans)
        ],
    }


def _described(directory: Path, stored: Any, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The description of the run that made a checkpoint, as this version writes it.

    An earlier version wrote fingerprints instead of texts, so names identify queries.
    """
    version = stored.get("version")
    if version not in (_FINGERPRINTS, FORMAT_VERSION):
        raise UsageError(
            f"checkpoint {directory} has format version {version}; this version of spaseq reads "
            f"{FORMAT_VERSION}"
        )
    if version == _FINGERPRINTS:
        texts = {name: wanted["queries"].get(name) for name in stored["queries"]}
        stored = {**stored, "queries": texts, "fingerprints": stored["queries"], "state": None}
    usual = {"lifts": wanted["lifts"], "repetition": [], "evaluators": {}}
    return {**usual, **stored}


def _check(
    directory: Path, stored: Mapping[str, Any], wanted: Mapping[str, Any], buckets: int | None
) -> None:
    """UsageError if the checkpoint belongs to another run."""
    changes = [*_differences("stream", stored["streams"], wanted["streams"])]
    changes += _differences("the lift of stream", stored["lifts"], wanted["lifts"])
    if stored.get("partial", False) != wanted["partial"]:
        before, now = ("with", "without") if stored.get("partial") else ("without", "with")
        changes.append(f"it was started {before} partial matches, and is resumed {now} them")
    changes += _differences("query", stored["queries"], wanted["queries"])
    for what in ("streams", "queries"):
        if list(stored[what]) != list(wanted[what]) and not changes:
            changes.append(f"the {what} come in another order")
    if stored["knowledge"] != wanted["knowledge"]:
        changes.append("the knowledge base has changed")
    if stored["watermark_ms"] != wanted["watermark_ms"]:
        changes.append(
            f"the watermark was {stored['watermark_ms']} ms and is now {wanted['watermark_ms']} ms"
        )
    if wanted["limited"] and not stored.get("limited", True):
        changes.append("it was started without --limit-per-event, and is resumed with it")
    if buckets is not None and stored["buckets"] != buckets:
        changes.append(f"it has {stored['buckets']} buckets, not {buckets}")
    if changes:
        end = "Start again with an empty checkpoint directory"
        raise UsageError(_refusal(directory, changes, end))


def _refusal(directory: Path, reasons: Sequence[str], advice: str) -> str:
    return f"checkpoint {directory} cannot be resumed: {'; '.join(reasons)}. {advice}."


def _other_state(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[str]:
    """The reason why this run cannot read the state, if it cannot.

    A worker finds the format of a state that an earlier version wrote without naming it.
    """
    if stored["state"] not in (None, wanted["state"]):
        yield f"its state is of format {stored['state']}, and this version of spaseq reads {FORMAT}"
    before, now = stored["evaluators"], wanted["evaluators"]
    for name, fingerprint in wanted["fingerprints"].items():
        if stored["fingerprints"][name] == fingerprint:
            continue
        if name in before and before[name] != now[name]:
            yield (
                f"{name} ran with the evaluator {before[name]}, and this version of spaseq, or "
                f"these options, run it with {now[name]}"
            )
        else:
            changed = f"query {name} has changed, or " if stored["state"] is None else ""
            other = f"another version of spaseq ran {name} with another evaluator than {now[name]}"
            yield changed + other
    if stored.get("families", wanted["families"]) != wanted["families"]:
        yield "another version of spaseq ran other queries as one, or other options do"


def _made_anew(
    directory: Path, stored: Mapping[str, Any], wanted: Mapping[str, Any], job: Job | None
) -> Mapping[str, Any]:
    """The description of a run whose state is rebuilt, if this run cannot read it.

    A state of unknown format is rebuilt if possible.

    Raises:
        UsageError: the state can be neither read nor rebuilt, or must not be rebuilt.
    """
    reasons = [*_other_state(stored, wanted)]
    if not reasons and (job is None or stored["state"] is not None):
        return stored
    try:
        if job is None:
            raise UsageError("it cannot be rebuilt here")
        before = Repetition(*stored["repetition"])
        earlier = UnreadState(directory, SparkBatches(directory / _SPARK), job, before)
        repetition, half_written = earlier.plan()
    except UsageError as error:
        if reasons:
            raise UsageError(_refusal(directory, [*reasons, str(error)], DRAIN)) from None
        return stored
    kept = {"limited": stored.get("limited", False), "buckets": stored["buckets"]}
    fresh = {"id": uuid.uuid4().hex, "half_written": half_written, "is_begun": False}
    return {**wanted, **kept, **fresh, "repetition": [*repetition]}


def _differences(what: str, stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    return [
        *(f"{what} {name} is new" for name in wanted if name not in stored),
        *(f"{what} {name} is missing" for name in stored if name not in wanted),
        *(f"{what} {n} has changed" for n in wanted if n in stored and stored[n] != wanted[n]),
    ]


class OutputPositions:
    """Makes output files idempotent: a batch that is run again replaces its first output.

    Before a batch writes, the sizes of the files are stored under its number. If they are stored
    already, the batch is run again, and the files are first cut to these sizes. A terminal or a
    pipe cannot be cut and gets such a batch twice.
    """

    def __init__(self, checkpoint: Path, files: Mapping[str, TextIO]) -> None:
        """`files` are open for appending, by a name that stays the same when resuming."""
        self._path = checkpoint / "output.json"
        self._files = {name: file for name, file in files.items() if is_regular(file)}

    def begin(self, batch: int) -> None:
        """Before the first output of a batch.

        Raises:
            RunError: a file is shorter than its stored size.
        """
        known = self._known()
        if known is not None and known[0] in (batch, RENUMBERED):
            for name, size in known[1].items():
                if name in self._files:
                    cut_to(self._files[name], size)
        sizes = {name: size_of(file) for name, file in self._files.items()}
        write_json(self._path, [batch, sizes])

    def end(self, batch: int) -> None:
        """After the last output of a batch. Returns when the output is on disk."""
        for file in self._files.values():
            file.flush()
            os.fsync(file.fileno())

    def _known(self) -> tuple[int, dict[str, int]] | None:
        if not self._path.exists():
            return None
        return read_json(self._path, _positions_of)


def _positions_of(value: list[Any]) -> tuple[int, dict[str, int]]:
    """(batch, sizes by name) of JSON values."""
    batch, sizes = value
    return int(batch), {name: int(size) for name, size in sizes.items()}
