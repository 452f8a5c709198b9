"""`spaseq run`: queries over stream files, with knowledge, streams, a job, and where its answers
go.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from spaseq.api.prepare import load_knowledge, watch_knowledge
from spaseq.api.queries import plans_of
from spaseq.cli.checked_options import (
    check_logged,
    check_output_place,
    check_replay,
    given_checkpoint,
    given_outputs,
    run_options,
)
from spaseq.cli.messages import ProgressLine, summary, tell
from spaseq.cli.option_groups import (
    Chosen,
    InputTexts,
    OutputOptions,
    QuerySet,
    SideOptions,
    grouped_command,
)
from spaseq.cli.output_files import (
    STDOUT,
    answer_file,
    check_columns,
    check_format,
    check_outputs,
    columns_of,
)
from spaseq.cli.queries import QueryOptions, checked_files, query_files
from spaseq.cli.run_inputs import given_inputs, kb_source, stream_sources, through_logs
from spaseq.cli.run_options import RUN_OPTIONS
from spaseq.cli.side_outputs import SideOutputs
from spaseq.compile import Checked
from spaseq.errors import SpaseqError, UsageError
from spaseq.options import RunOptions, RuntimeOptions
from spaseq.plan.changing_graphs import connected
from spaseq.plan.query_plan import QueryPlan
from spaseq.runtime.bounded_run import batches_of
from spaseq.runtime.job.job import Job
from spaseq.runtime.job.unit_graph import reading_order
from spaseq.scratch import ScratchDirectory
from spaseq.sinks import open_sink
from spaseq.sinks.base import WriteBehind, open_lines, standard_lines
from spaseq.sources.base import Source
from spaseq.startup import keep_arrow_from_pandas

if TYPE_CHECKING:
    from spaseq.kb.watched_graphs import KeptGraph
    from spaseq.runtime.job.graph_dumps import GraphDumps


def run_streams(
    queries: tuple[Path, ...], checked: list[Checked], options: RunOptions, chosen: Chosen
) -> None:
    """Run checked queries, the ones of the files `queries`, over streams."""
    output = chosen[OutputOptions]
    plans = reading_order(plans_of(checked), options.knowledge.kb_changes)
    _check_answers(plans, queries, chosen)
    progress = ProgressLine()
    with ExitStack() as stack:
        sides = stack.enter_context(SideOutputs(chosen[SideOptions], options.follow is not None))
        streams = _streams(plans, options, chosen, stack)
        job = _job(plans, streams, options, chosen, sides, progress)
        stack.enter_context(_metrics(job, output.metrics_port))
        stack.push(partial(_write_stats, job, output.stats))
        stack.callback(progress.clear)
        number = _answer(job, options, output, sides)
        progress.clear()
        tell(summary(job.stats))
        bounded = options.follow is None and not number
        only_bad = bounded and sides.only_bad(job.stats, [plan.identity.name for plan in plans])
        sides.report(only_bad)
        has_changed = bool(job.stats.changes) and all(plan.maintained for plan in plans)
        if options.follow is None and not (number or only_bad or has_changed):
            from spaseq.cli.no_answers import no_answer_line

            tell(no_answer_line(queries, checked, job, chosen))
        if output.why is not None:
            from spaseq.cli.no_answers import write_report

            write_report(output.why, checked, job)
        sides.refuse(only_bad)


def _job(
    plans: tuple[QueryPlan, ...],
    streams: tuple[Source, ...],
    options: RunOptions,
    chosen: Chosen,
    sides: SideOutputs,
    progress: ProgressLine,
) -> Job:
    """The job of a run, with its knowledge base loaded."""
    sources = [kb_source(text, plans) for text in chosen[InputTexts].kbs]
    known = streams if options.follow is None else (None,)
    graphs: dict[str, KeptGraph] = {}
    kept, refreshes = frozenset[str](), options.knowledge.kb_refresh
    is_logged = through_logs(streams) or chosen[QuerySet].directory is not None
    if options.follow is not None and (
        options.runtime.name == "local" or (is_logged and refreshes)
    ):
        from spaseq.kb.watched_graphs import kept_graphs
        from spaseq.runtime.live.graph_log import first_graphs

        graphs = kept_graphs(sources)
        kept = first_graphs(options.follow.checkpoint / "graphs") & graphs.keys()
    return Job(
        plans=plans,
        streams=streams,
        knowledge=load_knowledge(plans, sources, options.knowledge, known, kept),
        graphs=graphs,
        dumps=_dumps(chosen[OutputOptions].dumps, plans),
        options=options.stages,
        watch=None if graphs else watch_knowledge(sources, options.knowledge),
        on_bad=sides.on_bad,
        on_lost=sides.on_lost,
        on_late=sides.on_late,
        on_partial=sides.on_partial,
        on_note=progress.note,
        on_progress=progress,
    )


def follow_directory(
    queries: Sequence[Path], files: Sequence[Path], options: RunOptions, chosen: Chosen
) -> None:
    """Run the queries of a directory, as it changes, until it is interrupted."""
    from spaseq.cli.run_standing import first_queries, follow_set

    if queries:
        raise UsageError("--queries DIR with --follow has all queries; leave the others out")
    if options.runtime.name == "local":
        keep_arrow_from_pandas()
    chosen[QueryOptions].load()
    plans = plans_of(first_queries(files, options))
    _check_answers(plans, files, chosen)
    progress = ProgressLine()
    with ExitStack() as stack:
        sides = stack.enter_context(SideOutputs(chosen[SideOptions], append=True))
        job = _job(connected(plans), (), options, chosen, sides, progress)
        job = replace(job, plans=())
        stack.enter_context(_metrics(job, chosen[OutputOptions].metrics_port))
        stack.push(partial(_write_stats, job, chosen[OutputOptions].stats))
        stack.callback(progress.clear)
        follow_set(job, plans, options, chosen, sides, progress)
        progress.clear()
        tell(summary(job.stats))
        sides.report(False)


def replay(
    queries: tuple[Path, ...], checked: list[Checked], options: RunOptions, chosen: Chosen
) -> None:
    """Run checked queries, the ones of the files `queries`, over the logs of a server."""
    from spaseq.cli.run_logs import run_logs

    plans = reading_order(plans_of(checked))
    if plans:
        _check_answers(plans, queries, chosen)
    progress = ProgressLine()
    with ExitStack() as stack:
        sides = stack.enter_context(SideOutputs(chosen[SideOptions]))
        stack.callback(progress.clear)
        run_logs(plans, options, chosen, sides, progress)


def _check_answers(plans: Sequence[QueryPlan], queries: Sequence[Path], chosen: Chosen) -> None:
    """Check that the format suits the answers, and that no output is an input or another output."""
    check_output_place(chosen)
    inputs = given_inputs(plans, tuple(queries), chosen)
    check_outputs(given_outputs(chosen), inputs, given_checkpoint(chosen))
    check_format(chosen[OutputOptions].form, plans)
    check_columns(chosen[OutputOptions], plans)


def _metrics(job: Job, port: int | None) -> AbstractContextManager[object]:
    """Serves the counts of a job, if there is a port for them."""
    if port is None:
        return nullcontext()
    from spaseq.runtime.job.metrics import metrics_served

    return metrics_served(job.stats, port)


def _dumps(files: Mapping[str, str], plans: Sequence[QueryPlan]) -> GraphDumps | None:
    """The writer of graphs that queries maintain, if there are any to write."""
    if not files:
        return None
    from spaseq.runtime.job.graph_dumps import GraphDumps

    return GraphDumps(files, plans)


def _streams(
    plans: Sequence[QueryPlan], options: RunOptions, chosen: Chosen, stack: ExitStack
) -> tuple[Source, ...]:
    """The sources of the streams; with --why they can be read again after the run."""
    streams = stream_sources(plans, chosen[InputTexts], options)
    if options.follow is not None and through_logs(streams):
        check_logged(chosen)
    if chosen[OutputOptions].why is None:
        return streams
    directory = Path(stack.enter_context(ScratchDirectory("why")))
    return tuple(stream.shared(directory) for stream in streams)


def _answer(job: Job, options: RunOptions, output: OutputOptions, sides: SideOutputs) -> int:
    """Write the answers of a job, to its end or until it is interrupted; their number."""
    variables = columns_of(job.plans, output.columns)
    if options.follow is not None:
        follow = _follower(options, job.streams)
        follow(
            job,
            options.follow,
            out=output.out,
            form=output.form,
            columns=variables,
            sides=sides.files(),
        )
        return job.stats.matches
    number = 0
    with (
        closing(batches_of(job, options.runtime)) as batches,
        answer_file(output.out) as out,
        open_sink(output.form, out, variables) as sink,
        WriteBehind(sink) as writer,
    ):
        for query, answers in batches:
            number += len(answers)
            writer.write_all(job.plans[query].identity.name, answers)
    return number


def _follower(options: RunOptions, streams: Sequence[Source]) -> Callable[..., None]:
    """The follower of streams in the runtime of a run."""
    if options.runtime.name == "local" or through_logs(streams):
        from spaseq.cli.run_standing import engine_of
        from spaseq.runtime.live.live_run import LoggedRun

        return LoggedRun(engine_of(options.runtime)).run
    from spaseq.runtime.spark.following import follow

    return partial(follow.run, runtime=options.runtime)


def _write_stats(
    job: Job, path: str | None, kind: object, error: BaseException | None, at: object
) -> None:
    """Write the counts of a run that has ended, perhaps with an error, which is raised again."""
    if path is None:
        return
    try:
        with standard_lines() if path == STDOUT else open_lines(path) as file:
            json.dump(asdict(job.stats), file, indent=2)
            file.write("\n")
    except SpaseqError as failure:
        if error is None:
            raise
        tell(f"spaseq: {failure}")


@grouped_command(*RUN_OPTIONS)
@query_files(required=False)
def run(queries: tuple[Path, ...], chosen: Chosen) -> None:
    """Run queries over streams and print their answers.

    \b
    Bounded input is replayed to its end; with --follow, directories are watched:
      spaseq run congestion.rq --stream S1=s1.nq --stream S2=s2.nq --kb kb.ttl
      spaseq run fraud.rq --stream Cards=incoming/ --follow --checkpoint state/ --out alerts.jsonl
      zcat big.nq.gz | spaseq run query.rq --stream S=- --runtime local --format csv

    A stream that one query registers (REGISTER STREAM <iri> AS CONSTRUCT ...) is read by the other
    queries of the run that say FROM STREAM NAME <iri>; it takes no --stream.

    Only answers go to stdout; progress, warnings and a summary go to stderr.
    """  # fmt: skip
    options = run_options(chosen)
    files = chosen[QuerySet].files()
    if chosen[QuerySet].directory is not None and options.follow is not None:
        follow_directory(queries, files, options, chosen)
        return
    queries = (*queries, *files)
    if chosen[QuerySet].logs is not None:
        check_replay(chosen)
        replay(queries, _loaded(queries, options, chosen) if queries else [], options, chosen)
        return
    if not queries:
        raise UsageError("there is no query: give query files, or --queries DIR with some")
    checked = _loaded(queries, options, chosen)
    with _java_starts(options):
        run_streams(queries, checked, options, chosen)


def _java_starts(options: RunOptions) -> AbstractContextManager[None]:
    """Lets Java start for a bounded run in a local session of Spark."""
    runtime = options.runtime
    if runtime != RuntimeOptions("spark", runtime.master) or options.follow is not None:
        return nullcontext()
    from spaseq.runtime.spark.session.spark_session import java_starts, local_cores

    cores = local_cores(runtime.master)
    return nullcontext() if cores is None else java_starts(cores)


def _loaded(queries: tuple[Path, ...], options: RunOptions, chosen: Chosen) -> list[Checked]:
    """The checked queries, with the functions that they call."""
    if options.runtime.name == "local":
        keep_arrow_from_pandas()
    chosen[QueryOptions].load()
    return checked_files(queries, options.planning)
