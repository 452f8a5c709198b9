"""A replay of a live run: its logs are read again to their ends, for all answers at once.

Heartbeats are in the logs, so time passes as it did, and the same events are late. The end of the
logs closes no window.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from spaseq.errors import InputError, RunError
from spaseq.logs.segment_log import LogReader, SegmentLog
from spaseq.options import StateLimits
from spaseq.runtime.job.job import Job
from spaseq.runtime.live.answer_records import LoggedAnswer
from spaseq.runtime.live.endpoint_log import EndpointLog
from spaseq.runtime.live.live_directory import LiveDirectory
from spaseq.runtime.live.live_engine import EngineMaker
from spaseq.runtime.live.live_loop import LiveLoop
from spaseq.runtime.live.live_stream import LiveStream
from spaseq.runtime.live.persistence import Persistence
from spaseq.runtime.live.query_changes import Planner
from spaseq.runtime.pushed import Tolerated

_EVER = 2**50  # ms: nothing is dropped meanwhile


def replayed(
    data: Path,
    scratch: Path,
    job: Job,
    streams: Sequence[LiveStream],
    engine: EngineMaker,
    planner: Planner | None = None,
) -> Iterator[LoggedAnswer]:
    """The answers over the logs of a data directory, which may be in use.

    Args:
        data: the directory.
        scratch: an empty directory for copies of the logs.
        job: its queries are evaluated over the whole logs, unless there is a `planner`.
        streams: all streams of the run.
        engine: makes what evaluates the queries.
        planner: plans the queries that the run itself had, each of which comes and goes where it
            did.

    Raises:
        InputError: the directory cannot be read.
        RunError: a log is damaged, or its first events have been dropped, or a limit is exceeded.
    """
    directory = scratch / "run"
    parts = ("streams",) if planner is None else ("queries", "endpoints", "streams")
    settings = {"queries": "a set that changes"}
    with ExitStack() as stack:
        opened = LiveDirectory.open(directory, settings)
        stack.callback(opened.release)
        for part in parts:
            _copy(data / part, directory / part)
        endpoints = EndpointLog(opened.endpoints, job.knowledge.services)
        job.knowledge = endpoints.used_by(job.knowledge)
        tolerated = Tolerated.NONE if planner is None else Tolerated.ALL
        keeping = Persistence(planner, retain_ms=_EVER)
        made = engine(job, streams, StateLimits(), tolerated)
        loop = LiveLoop(job, made, streams, opened, endpoints, keeping)
        logs = {"the answers of endpoints": endpoints.log} if planner is not None else {}
        _check_whole(loop, logs, directory, data)
        loop.replay(threading.Event())
    yield from _logged(directory)


def _check_whole(
    loop: LiveLoop, further: Mapping[str, SegmentLog], directory: Path, data: Path
) -> None:
    """RunError if the first records of a log have been dropped; `directory` has the copies."""
    logs = {f"the stream {s.name}": loop.logs[iri].log for iri, s in loop.streams.items()}
    if loop.queries.log is not None:
        logs["the changes of the queries"] = loop.queries.log.log
    for name, log in {**logs, **further}.items():
        if log.first:
            raise RunError(
                f"{data / log.directory.relative_to(directory)}: the first {log.first:,} records "
                f"of {name} have been dropped, so a replay would give other answers; a larger "
                "retain under [server] keeps such records, but brings none back"
            )


def _logged(directory: Path) -> Iterator[LoggedAnswer]:
    log = SegmentLog(directory / "answers")
    reader = LogReader(log, log.first)
    while some := reader.read():
        for _, record in some:
            yield LoggedAnswer.of_bytes(record)
    reader.close()
    log.close()


def _copy(given: Path, to: Path) -> None:
    """Copy logs. What is complete is linked, if that can be; the last segment may still grow."""
    if not given.exists():
        return
    try:
        for directory, _, names in os.walk(given):
            here = to / Path(directory).relative_to(given)
            here.mkdir(parents=True, exist_ok=True)
            segments = sorted(name for name in names if name[0] != ".")
            for name in segments:
                is_last = name == segments[-1] or not name.endswith(".log")
                _copy_file(Path(directory, name), here / name, is_last)
    except OSError as error:
        raise InputError(f"{given}: {error.strerror}") from error


def _copy_file(given: Path, to: Path, grows: bool) -> None:
    if not grows:
        with suppress(OSError):  # on another file system
            os.link(given, to)
            return
    shutil.copyfile(given, to)
