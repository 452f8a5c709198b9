"""`spaseq run --queries DIR --follow`: the queries of a directory, as it changes."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from spaseq.api.prepare import StandingPlanner
from spaseq.api.queries import check_queries
from spaseq.cli.messages import ProgressLine, tell
from spaseq.cli.option_groups import Chosen, InputTexts, OutputOptions, QuerySet
from spaseq.cli.run_inputs import standing_streams
from spaseq.cli.side_outputs import SideOutputs
from spaseq.compile import Checked
from spaseq.errors import UsageError
from spaseq.options import RunOptions, RuntimeOptions
from spaseq.plan.query_plan import QueryPlan
from spaseq.runtime.job.interrupts import until_interrupted
from spaseq.runtime.job.job import Job
from spaseq.runtime.live.deliveries import SinkSettings
from spaseq.runtime.live.delivery import Terms
from spaseq.runtime.live.intakes import LiveStream
from spaseq.runtime.live.live_directory import StandingOptions
from spaseq.runtime.live.live_engine import EngineMaker, LiveEngine
from spaseq.runtime.live.standing_run import StandingRun
from spaseq.serve.query_files import QueryFiles
from spaseq.sinks import SINKS

_LOOK_S = 0.5


def first_queries(files: Sequence[Path], options: RunOptions) -> list[Checked]:
    """The queries of a directory without errors; the errors of the others are reported."""
    good = []
    for checked in check_queries(files, options.planning, several=True):
        if checked.errors:
            for diagnostic in checked.errors:
                tell(diagnostic.render())
        else:
            good.append(checked)
    return good


def follow_set(
    job: Job,
    plans: Sequence[QueryPlan],
    options: RunOptions,
    chosen: Chosen,
    sides: SideOutputs,
    progress: ProgressLine,
) -> None:
    """Evaluate the queries of a directory over live streams, until an interrupt.

    A file that comes, changes or goes takes effect between two batches. Its mistakes are reported,
    and the running query of its name continues.

    Args:
        job: the knowledge base, and the callbacks.
        plans: of the present queries; they give the names of streams.
        options: the options of the run.
        chosen: the options of the command line.
        sides: its further output files.
        progress: its progress line.

    Raises:
        SpaseqError: as from `spaseq.runtime.live.live_run.run`.
    """
    follow, output, directory = options.follow, chosen[OutputOptions], chosen[QuerySet].directory
    assert follow is not None and directory is not None
    streams = _streams(plans, options, chosen)
    if SINKS[output.form].one_query:
        raise UsageError(f"--format {output.form} holds the answers of one query; use jsonl")
    new = not (follow.checkpoint / "live.json").exists()
    sink = SinkSettings(output.out, Terms(patient=False), output.form, overwrites=new)

    plan = StandingPlanner(options.planning, job.knowledge)
    how = StandingOptions(retain_ms=0, endures=False, engine=engine_of(options.runtime))
    kept = replace(how, limits=follow.limits, rebuilds=follow.rebuild)
    run = StandingRun(follow.checkpoint, streams, job, plan, {"out": sink}, kept, sides.files())
    with ExitStack() as stack:
        stack.enter_context(_told(progress))
        stop = stack.enter_context(until_interrupted())
        run.start(sources=False)
        stack.callback(run.stop)
        files = QueryFiles(Path(directory), run, plan, lambda name: None)
        files.begin()
        run.start_sources()
        files.watch(_LOOK_S)
        stack.callback(files.close)
        while not stop.wait(_LOOK_S) and not run.wait(0.0):
            pass


def _streams(plans: Sequence[QueryPlan], options: RunOptions, chosen: Chosen) -> list[LiveStream]:
    """The streams of a run, whose logs are here, wherever its queries are evaluated."""
    assert options.follow is not None
    here = replace(options, runtime=RuntimeOptions("local"))
    sources = standing_streams(plans, chosen[InputTexts], here)
    return [LiveStream(name, source, options.follow.arrivals) for name, source in sources.items()]


def engine_of(runtime: RuntimeOptions) -> EngineMaker:
    """The maker of the engine for queries over logs in a runtime."""
    if runtime.name == "local":
        return LiveEngine
    from spaseq.runtime.spark.standing.standing_engine import SparkEngines

    return SparkEngines(runtime.master, runtime.verbose)


@contextmanager
def _told(progress: ProgressLine) -> Iterator[None]:
    """Lets log messages appear among the progress."""

    class Told(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            progress.note(record.getMessage())

    logger, handler = logging.getLogger("spaseq"), Told(logging.INFO)
    level, spreads = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = spreads
