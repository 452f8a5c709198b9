"""Live runs of fixed queries over the messages of brokers, and replays of the logs of a run."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from spaseq.errors import InputError, RunError
from spaseq.logs.segment_log import SegmentLog
from spaseq.options import FollowOptions, StateLimits
from spaseq.runtime.job.interrupts import until_interrupted
from spaseq.runtime.job.job import Job
from spaseq.runtime.live.answer_records import LoggedAnswer
from spaseq.runtime.live.deliveries import SinkSettings
from spaseq.runtime.live.delivery import Terms
from spaseq.runtime.live.graph_changes import open_graphs
from spaseq.runtime.live.graph_log import GraphLog, first_hash, folded_so_far
from spaseq.runtime.live.intakes import LiveStream
from spaseq.runtime.live.live_directory import LiveDirectory, Persistence
from spaseq.runtime.live.live_engine import EngineMaker, LiveEngine
from spaseq.runtime.live.live_loop import LiveLoop
from spaseq.runtime.live.query_changes import Planner
from spaseq.sources.broker_stream import BrokerStream


@dataclass(frozen=True, slots=True)
class LoggedRun:
    """Settings of a run over brokers' messages.

    Attributes:
        engine: makes the engine that evaluates the queries.
        stop: ends the run once it is set; by default SIGINT and SIGTERM do.
    """

    engine: EngineMaker = LiveEngine
    stop: threading.Event | None = None

    def run(
        self,
        job: Job,
        options: FollowOptions,
        *,
        out: str,
        form: str,
        columns: Sequence[str],
        sides: Mapping[str, TextIO] | None = None,
    ) -> None:
        """Evaluate a job over brokers' messages until it is interrupted; a later run continues.

        Args:
            job: the job; its streams are all `BrokerStream`s.
            options: the checkpoint, and the maximum delay of events.
            out: a file, `-`, or the URL of a broker.
            form: the format of a file.
            columns: the columns of a table.
            sides: further output files, open for appending; a resumed run cuts them to their size
                at the saved state.

        Raises:
            UsageError: the checkpoint belongs to another run, or options exclude each other.
            InputError: a broker cannot be reached at the start.
            RunError: a limit is exceeded, or the disk is full. Accepted messages are in the logs.
        """
        sources = [stream for stream in job.streams if isinstance(stream, BrokerStream)]
        settings = _settings(job, sources, options)
        if job.graphs:
            first = first_hash(options.checkpoint / "graphs")
            settings["knowledge base"] = first or job.knowledge.hash
        directory = LiveDirectory.open(options.checkpoint, settings)
        with ExitStack() as stack:
            stack.callback(directory.release)
            stop = self.stop or stack.enter_context(until_interrupted())
            terms = Terms(patient=False)
            output = SinkSettings(
                out, terms, form, tuple(columns), overwrites=not directory.resumed
            )
            streams = [LiveStream(s.describe(), s, options.arrivals) for s in sources]
            graphs = open_graphs(directory.graphs, job)
            keeping = Persistence(sides=sides or {}, rebuilds=options.rebuild, graphs=graphs)
            loop = LiveLoop(job, directory, keeping, streams, self.engine, options.limits)
            loop.run(stop, lambda: loop.deliveries_to({"out": output}))


def _settings(job: Job, sources: Iterable[BrokerStream], options: FollowOptions) -> dict[str, Any]:
    """The parts of a job that a resumed run must not change, as JSON values."""
    return {
        "queries": [[p.identity.name, p.signature.canonical] for p in job.plans],
        "knowledge base": job.knowledge.hash,
        "streams": [source.identity() for source in sources],
        "watermark": options.arrivals.delay_ms,
    }


_EVER = 2**50  # ms: no record is dropped meanwhile


def replayed(
    data: Path,
    scratch: Path,
    job: Job,
    streams: Sequence[LiveStream],
    engine: EngineMaker,
    planner: Planner | None = None,
    instead: Collection[str] = (),
) -> Iterator[LoggedAnswer]:
    """The answers over the logs of a data directory, which may be in use.

    Args:
        data: the directory.
        scratch: an empty directory for copies of the logs.
        job: its queries are evaluated over the whole logs, unless there is a `planner`.
        streams: all streams of the run.
        engine: makes the engine that evaluates the queries.
        planner: plans the queries that the run itself had, each of which comes and goes where it
            did.
        instead: graphs of the job that count in the place of those that are logged.

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
        _copy_graphs(data / "graphs", directory / "graphs")
        graphs = open_graphs(opened.graphs, job, instead=instead)
        keeping = Persistence(planner=planner, retain_ms=_EVER, graphs=graphs)
        loop = LiveLoop(job, opened, keeping, streams, engine, StateLimits())
        logs = {} if planner is None else {"the answers of endpoints": loop.endpoints.log}
        _check_whole(loop, logs, graphs.log if graphs else None, directory, data)
        loop.replay(threading.Event())
    yield from _logged(directory)


def _check_whole(
    loop: LiveLoop,
    further: Mapping[str, SegmentLog],
    graphs: GraphLog | None,
    directory: Path,
    data: Path,
) -> None:
    """RunError if the first records of a log have been dropped; `directory` has the copies."""
    logs = {f"the stream {s.name}": loop.logs[iri].log for iri, s in loop.streams.items()}
    if loop.queries.log is not None:
        logs["the changes of the queries"] = loop.queries.log
    firsts = [(name, log.directory, log.first) for name, log in {**logs, **further}.items()]
    if graphs is not None:
        firsts.append(("the graphs", graphs.directory, graphs.folded.count))
    for name, copy, first in firsts:
        if first:
            raise RunError(
                f"{data / copy.relative_to(directory)}: the first {first:,} records of {name} "
                "have been dropped, so a replay would give other answers; a larger retain under "
                "[server] keeps such records, but brings none back"
            )


def _logged(directory: Path) -> Iterator[LoggedAnswer]:
    with closing(SegmentLog(directory / "answers")) as log:
        for _, record in log.records():
            yield LoggedAnswer.of_bytes(record)


def _copy_graphs(given: Path, to: Path) -> None:
    """Copy the log of graphs, even while old changes are folded into its base."""
    while True:
        before = folded_so_far(given)
        try:
            _copy(given, to)
        except InputError:
            if folded_so_far(given) == before:
                raise
        if folded_so_far(given) == before:
            return
        shutil.rmtree(to)


def _copy(given: Path, to: Path) -> None:
    """Copy logs. Complete segments are linked, where possible; the last segment may still grow."""
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
