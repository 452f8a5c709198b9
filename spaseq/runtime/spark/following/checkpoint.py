"""The directory from which a followed run resumes.

`spaseq.json` describes the job that the state belongs to. `spark/` is the checkpoint of Structured
Streaming, and `offsets.json` has checksums of its offsets. `arrivals/` is the file source log.
`topics/` is what tasks learn of partitions at Kafka. `output.json` has the sizes of output files at
the start of the last batch. `.lock` is locked by the run that uses the directory.
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
from spaseq.runtime.job.job import Job
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
        """Store the checksums when a batch has begun."""
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


FORMAT_VERSION = 2
"""Version of everything in the directory, Spark's own part left out."""

_MANIFEST = "spaseq.json"

BUCKETS = 8
"""The usual number of buckets of a query with a key."""


@record
class Checkpoint:
    """A checkpoint's directory, and its fixed settings."""

    directory: Path
    id: str  # unique to this checkpoint
    buckets: int
    resumed: bool
    limited: bool = False  # whether no partition is split, so that a limit can count its answers
    has_families: bool = True  # older checkpoints have the state of each query by itself

    @classmethod
    def open(
        cls,
        directory: Path,
        job: Job,
        watermark_ms: int,
        buckets: int | None = None,
        lifts: Mapping[str, Sequence[str]] | None = None,
    ) -> Checkpoint:
        """Make a checkpoint, or resume from one. `release` it when the run ends.

        Args:
            buckets: number per query with a key. By default the existing checkpoint's number, or
                `BUCKETS` for a new one.
            lifts: the identity of the lift of each stream that is a DataFrame of rows, by IRI.

        Raises:
            UsageError: the checkpoint has other queries, streams, lifts or knowledge, or another
                watermark or number of buckets; the message says which.
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
                return cls._locked(directory, wanted, buckets)
            except BaseException:
                directories.release(directory)
                raise
        except OSError as error:
            raise RunError(f"checkpoint {directory}: {error}") from error

    @classmethod
    def _locked(cls, directory: Path, wanted: Mapping[str, Any], buckets: int | None) -> Checkpoint:
        """The checkpoint of a directory that no other run uses."""

        def resumed(stored: Any) -> Checkpoint:
            _check(directory, stored, wanted, buckets)
            name, count = str(stored["id"]), int(stored["buckets"])
            limited = stored.get("limited", False)
            return cls(directory, name, count, True, limited, "families" in stored)

        manifest = directory / _MANIFEST
        if manifest.exists():
            return read_json(manifest, resumed)
        name = uuid.uuid4().hex
        write_json(manifest, {**wanted, "id": name, "buckets": buckets or BUCKETS}, indent=2)
        return cls(directory, name, buckets or BUCKETS, False, wanted["limited"])

    def release(self) -> None:
        """Let other processes use the checkpoint."""
        directories.release(self.directory)

    def units(self, plans: Sequence[QueryPlan]) -> QueryUnits:
        """What of the job's queries is evaluated as one."""
        all_units = QueryUnits.of(plans, None if self.has_families else (), self.limited)
        return ShippedUnits.of_units(all_units)

    @property
    def arrivals(self) -> Path:
        return self.directory / "arrivals"

    @property
    def spark(self) -> Path:
        return self.directory / "spark"

    @property
    def offset_checks(self) -> OffsetChecks:
        return OffsetChecks(self.directory / "offsets.json", self.spark / "offsets")


def _description(job: Job, watermark_ms: int) -> dict[str, Any]:
    """The parts of a job that a resumed run must not change, as JSON values."""
    return {
        "version": FORMAT_VERSION,
        "queries": {p.identity.name: p.signature.fingerprint for p in job.plans},
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


def _check(
    directory: Path, stored: Mapping[str, Any], wanted: Mapping[str, Any], buckets: int | None
) -> None:
    if stored.get("version") != wanted["version"]:
        raise UsageError(
            f"checkpoint {directory} has format version {stored.get('version')}; this version of "
            f"spaseq reads {wanted['version']}"
        )
    changes = [*_differences("stream", stored["streams"], wanted["streams"])]
    changes += _differences(
        "the lift of stream", stored.get("lifts", wanted["lifts"]), wanted["lifts"]
    )
    if stored.get("partial", False) != wanted["partial"]:
        before, now = ("with", "without") if stored.get("partial") else ("without", "with")
        changes.append(f"it was started {before} partial matches, and is resumed {now} them")
    else:
        changes += _query_changes(stored, wanted)
    if stored.get("families", wanted["families"]) != wanted["families"] and not changes:
        changes.append("another version of spaseq ran other queries as one, or other options do")
    if list(stored["queries"]) != list(wanted["queries"]) and not changes:
        changes.append("the queries come in another order")
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
        raise UsageError(
            f"checkpoint {directory} cannot be resumed: {'; '.join(changes)}. "
            "Start again with an empty checkpoint directory."
        )


def _query_changes(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[str]:
    """What keeps queries from going on with their state. Older checkpoints name no evaluators."""
    before, now = stored.get("evaluators", {}), wanted["evaluators"]
    yield from _differences("query", stored["queries"], wanted["queries"])
    for name, fingerprint in wanted["queries"].items():
        if stored["queries"].get(name, fingerprint) == fingerprint:
            continue
        if name not in before:
            yield f"or another version of spaseq ran {name} with another evaluator than {now[name]}"
        elif before[name] != now[name]:
            yield (
                f"{name} ran with the evaluator {before[name]}, and this version of spaseq, or "
                f"these options, run it with {now[name]}"
            )


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
        if known is not None and known[0] == batch:
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
