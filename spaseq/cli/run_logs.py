"""`spaseq run --logs DATA`: the logs of a server are read again, to their ends."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from spaseq.api.prepare import StandingPlanner, load_knowledge
from spaseq.cli.messages import ProgressLine, summary, tell
from spaseq.cli.option_groups import Chosen, InputTexts, OutputOptions, QuerySet
from spaseq.cli.output_files import answer_file, columns_of
from spaseq.cli.run_inputs import kb_source
from spaseq.cli.run_standing import engine_of
from spaseq.cli.side_outputs import SideOutputs
from spaseq.errors import UsageError
from spaseq.options import RunOptions
from spaseq.plan.query_plan import QueryPlan
from spaseq.runtime.job.job import Job
from spaseq.runtime.live.graph_log import first_graphs
from spaseq.runtime.live.intakes import LiveStream
from spaseq.runtime.live.live_run import replayed
from spaseq.scratch import ScratchDirectory
from spaseq.serve.configured_streams import RecordedStreams, recorded
from spaseq.sinks import SINKS, open_sink


def run_logs(
    plans: Sequence[QueryPlan],
    options: RunOptions,
    chosen: Chosen,
    sides: SideOutputs,
    progress: ProgressLine,
) -> None:
    """Write the answers over the logs of a server's data directory.

    Args:
        plans: the queries; without any, the queries of the server.
        options: the options of the run.
        chosen: the options of the command line.
        sides: its further output files.
        progress: its progress line.

    Raises:
        UsageError: options exclude each other, or a query reads no stream of the logs.
        SpaseqError: as from `replayed`.
    """
    output, data = chosen[OutputOptions], Path(chosen[QuerySet].logs or "")
    started = time.monotonic()
    if not plans and SINKS[output.form].one_query:
        raise UsageError(f"--format {output.form} holds the answers of one query; use jsonl")
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(ScratchDirectory("logs")))
        known = recorded(data, scratch / "inputs")
        _check_streams(plans, known.streams)
        job = _job(plans, known, options, chosen, sides, data)
        job.on_note = progress.note
        planner = None if plans else StandingPlanner(options.planning, job.knowledge)
        named = {iri for iri, _ in (kb_source(text, plans) for text in chosen[InputTexts].kbs)}
        how = engine_of(options.runtime), planner, {iri for iri in named if iri is not None}
        answers = replayed(data, scratch, job, known.streams, *how)
        variables = columns_of(plans, output.columns)
        out = stack.enter_context(answer_file(output.out))
        sink = stack.enter_context(open_sink(output.form, out, variables))
        for logged in answers:
            sink.write(logged.query, logged.answer)
        progress.clear()
        job.stats.seconds = time.monotonic() - started
        tell(summary(job.stats))
        sides.report(False)


def _job(
    plans: Sequence[QueryPlan],
    known: RecordedStreams,
    options: RunOptions,
    chosen: Chosen,
    sides: SideOutputs,
    data: Path,
) -> Job:
    """The job of a replay, with the knowledge base that the server had, or that --kb gives."""
    given = [kb_source(text, plans) for text in chosen[InputTexts].kbs]
    named = {iri for iri, _ in given}
    sources = [*given, *((iri, path) for iri, path in known.kb.items() if iri not in named)]
    kept = first_graphs(data / "graphs") - named
    return Job(
        plans=tuple(plans),
        streams=(),
        knowledge=load_knowledge(plans, sources, options.knowledge, (None,), kept),
        options=options.stages,
        on_bad=sides.on_bad,
        on_late=sides.on_late,
        on_partial=sides.on_partial,
    )


def _check_streams(plans: Sequence[QueryPlan], streams: Sequence[LiveStream]) -> None:
    """UsageError if a query reads a stream that the logs do not have."""
    there = {stream.iri for stream in streams} | {plan.identity.register for plan in plans}
    for plan in plans:
        for iri in plan.inputs.streams:
            if iri not in there:
                names = ", ".join(f"<{stream.iri}>" for stream in streams)
                raise UsageError(
                    f"query {plan.identity.title} reads <{iri}>, which is not in the logs; they "
                    f"have {names}"
                )
