"""A live run: queries over brokers' messages, until it is interrupted."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, TextIO

from spaseq.options import FollowOptions
from spaseq.runtime.job.interrupts import until_interrupted
from spaseq.runtime.job.job import Job
from spaseq.runtime.live.deliveries import SinkSettings
from spaseq.runtime.live.delivery import Terms
from spaseq.runtime.live.endpoint_log import EndpointLog
from spaseq.runtime.live.live_directory import LiveDirectory
from spaseq.runtime.live.live_engine import EngineMaker, LiveEngine
from spaseq.runtime.live.live_loop import LiveLoop
from spaseq.runtime.live.live_stream import LiveStream
from spaseq.runtime.live.persistence import Persistence
from spaseq.runtime.pushed import Tolerated
from spaseq.sources.broker_stream import BrokerStream


@dataclass(frozen=True, slots=True)
class LoggedRun:
    """How queries over brokers' messages are run.

    Attributes:
        engine: makes what evaluates the queries.
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
        """Evaluate a job over brokers' messages until it is interrupted; a later run goes on.

        Args:
            job: what to run; its streams are all `BrokerStream`s.
            options: the checkpoint, and how late events may be.
            out: a file, `-`, or the URL of a broker.
            form: the format of a file.
            columns: the columns of a table.
            sides: further output files, open for appending; a resumed run cuts them to what they
                were when the state was saved.

        Raises:
            UsageError: the checkpoint belongs to another run, or options do not go together.
            InputError: a broker cannot be reached at the start.
            RunError: a limit is exceeded, or the disk is full. What was accepted is in the logs.
        """
        sources = [stream for stream in job.streams if isinstance(stream, BrokerStream)]
        directory = LiveDirectory.open(options.checkpoint, _settings(job, sources, options))
        with ExitStack() as stack:
            stack.callback(directory.release)
            stop = self.stop or stack.enter_context(until_interrupted())
            terms = Terms(patient=False)
            output = SinkSettings(
                out, terms, form, tuple(columns), overwrites=not directory.resumed
            )
            streams = [LiveStream(s.describe(), s, options.arrivals) for s in sources]
            endpoints = EndpointLog(directory.endpoints, job.knowledge.services)
            job.knowledge = endpoints.used_by(job.knowledge)
            engine = self.engine(job, streams, options.limits, Tolerated.NONE)
            keeping = Persistence(sides=sides or {}, rebuilds=options.rebuild)
            loop = LiveLoop(job, engine, streams, directory, endpoints, keeping)
            loop.run(stop, lambda: loop.deliveries_to({"out": output}))


def _settings(job: Job, sources: Iterable[BrokerStream], options: FollowOptions) -> dict[str, Any]:
    """The parts of a job that a resumed run must not change, as JSON values."""
    return {
        "queries": [[p.identity.name, p.signature.fingerprint] for p in job.plans],
        "knowledge base": job.knowledge.hash,
        "streams": [source.identity() for source in sources],
        "watermark": options.arrivals.delay_ms,
    }
