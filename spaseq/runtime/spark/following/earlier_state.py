"""The state of an earlier run in a checkpoint, and how to rebuild it.

The state of another version of the package, or of another evaluator, is not read. Then Spark's part
of the checkpoint is removed, and Spark restarts after a batch of the file source log. The batches
whose answers the earlier run has given are *repeated*: they rebuild the state, and their output is
dropped. The next batch gives answers.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from spaseq.errors import InputError, UsageError
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.logs.segment_log import SegmentLog
from spaseq.records import record
from spaseq.runtime.arrivals.file_source_log import FileSourceLog
from spaseq.runtime.arrivals.input_splits import Repetition
from spaseq.runtime.arrivals.log_depth import depths
from spaseq.runtime.job.binding import asks_endpoints
from spaseq.runtime.job.job import Job
from spaseq.runtime.spark.stages.bucket_state import STATE_FORMAT
from spaseq.sources.files import GrowingFiles
from spaseq.stages.state_pickles import STATE_VERSION
from spaseq.storage.checksums import damaged, read_json, write_json

FORMAT = [STATE_FORMAT, STATE_VERSION]
"""The format of the state: of its layout in Spark's state store, and of snapshots."""

RENUMBERED = -1
"""In files about the last batch: the next batch repeats it under another number."""

DRAIN = (
    "Let the version that wrote it read its input to the end, and then start this version with an "
    "empty directory"
)


@record
class SparkBatches:
    """The batches that Spark has planned and committed, in its part of a checkpoint.

    Attributes:
        directory: Spark's part of the checkpoint.
    """

    directory: Path

    @property
    def last(self) -> int | None:
        """The number of the last batch that was planned."""
        return _last(self.directory / "offsets")

    @property
    def committed(self) -> int | None:
        """The number of the last batch that was committed."""
        return _last(self.directory / "commits")

    def logged(self, number: int) -> int:
        """The batch of the file source log at which a Spark batch ends.

        The file source is the only source of the run.

        Raises:
            RunError: the file of the offset is damaged.
        """
        path = self.directory / "offsets" / str(number)
        try:
            return int(json.loads(path.read_text("utf-8").splitlines()[2])["batch"])
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise damaged(path, error) from error


def _last(directory: Path) -> int | None:
    names = [path.name for path in directory.glob("[0-9]*")]
    return max((int(name) for name in names if name.isdigit()), default=None)


@record
class UnreadState:
    """An earlier run whose state cannot be read.

    Attributes:
        directory: the checkpoint.
        spark: Spark's part of it.
        job: the job of this run.
        repetition: the batches that the earlier run itself had to repeat.
    """

    directory: Path
    spark: SparkBatches
    job: Job
    repetition: Repetition

    def plan(self) -> tuple[Repetition, int | None]:
        """The batches to repeat, and Spark's number of a batch whose output may be incomplete.

        Raises:
            UsageError: the state cannot be rebuilt; the message is the reason.
            RunError: the directory is damaged.
        """
        self._check()
        streams = [each for each in self._followed if isinstance(each, GrowingFiles)]
        needed = depths(self.job.plans, [stream.iri for stream in streams])
        log = FileSourceLog(self.directory / "arrivals", streams, depths=needed)
        end, half_written = self._end()
        begin, first = end, log.begin()
        reads_all = any(depth.is_chained or depth.is_endless for depth in needed)
        lost: str | None = None
        while begin > first and (reads_all or not log.reaches_back(begin, end)):
            lost = self._lost(log, begin)
            if lost is not None:
                break
            begin -= 1
        is_endless = any(depth.is_endless for depth in needed)
        if begin and (is_endless or not log.reaches_back(begin, end)):
            raise UsageError(lost or "the log of its files no longer has all events that it needs")
        return Repetition(begin, end), half_written

    @property
    def _followed(self) -> Sequence[object]:
        return [stream.followed() for stream in self.job.streams]

    def _check(self) -> None:
        """UsageError if the state depends on data that no log has."""
        if not all(isinstance(each, GrowingFiles) for each in self._followed):
            raise UsageError("streams at brokers have no log from which it can be rebuilt")
        for plan in self.job.plans:
            if asks_endpoints(plan, self.job.knowledge):
                title = plan.identity.title
                raise UsageError(f"query {title} asks endpoints, whose answers are in no log")

    def _end(self) -> tuple[int, int | None]:
        """The last batch of the log with all answers given, and the batch after it.

        The second is a number of Spark's; None if it has not begun.
        """
        last, told = self.spark.last, self.repetition.end
        if last is None:
            return told, None
        if self.spark.committed == last or _has_answers(self.directory, last):
            return max(told, self.spark.logged(last)), None
        before = self.spark.logged(last - 1) if last else 0
        return max(told, before), last

    def _lost(self, log: FileSourceLog, number: int) -> str | None:
        """The reason why a batch cannot be repeated; None if it can."""
        batch = log.batch(number)
        for piece in (piece for stream in batch.streams for piece in stream.slices):
            path, end = piece.range.file.path, piece.range.end
            try:
                size = os.stat(path).st_size
            except OSError as error:
                return f"its events are needed again, and {path} is gone: {error.strerror}"
            if size < (piece.size if end is None else end):
                return f"its events are needed again, and {path} is shorter than it was"
        if batch.knowledge and self.job.watch is not None:
            try:
                KnowledgeBase.open(self.directory / batch.knowledge)
            except InputError as error:
                return f"an earlier knowledge base cannot be read: {error}"
        return None


def _has_answers(directory: Path, batch: int) -> bool:
    """Whether the log of answers has the answers of a batch; see `logged_output`."""
    place = directory / "logged.json"
    if not place.exists():
        return False
    number, before = read_json(place, lambda value: (int(value[0]), int(value[1])))
    with closing(SegmentLog(directory / "answers")) as log:
        return number == batch and log.end > before


def begin_anew(directory: Path, spark: SparkBatches, half_written: int | None) -> None:
    """Remove Spark's part of the checkpoint, and the numbers of its batches; idempotent.

    Args:
        directory: the checkpoint.
        spark: Spark's part of it.
        half_written: the number of the batch whose output may be incomplete.
    """
    output, positions = directory / "output.json", None
    if output.exists():
        number, sizes = read_json(output, lambda value: (int(value[0]), dict(value[1])))
        positions = sizes if number in (half_written, RENUMBERED) else None
    if positions is None:
        output.unlink(missing_ok=True)
    else:
        write_json(output, [RENUMBERED, positions])
    (directory / "logged.json").unlink(missing_ok=True)
    (directory / "offsets.json").unlink(missing_ok=True)
    if spark.directory.exists():
        shutil.rmtree(spark.directory)
