"""`spaseq why`: why a query has no answers."""

from __future__ import annotations

import json
from pathlib import Path

import click

from spaseq.api.prepare import load_knowledge
from spaseq.api.queries import check_queries, plans_of
from spaseq.api.why import report_on
from spaseq.cli.checked_options import why_options
from spaseq.cli.option_groups import Chosen, InputTexts, grouped_command
from spaseq.cli.option_values import DURATION
from spaseq.cli.queries import QUERY_FILES, QueryOptions
from spaseq.cli.run_inputs import kb_source, stream_sources
from spaseq.cli.run_options import WHY_OPTIONS
from spaseq.diagnosis.watched_event import AskedEvent
from spaseq.errors import UsageError
from spaseq.runtime.job.unit_graph import reading_order
from spaseq.scratch import ScratchDirectory
from spaseq.startup import keep_arrow_from_pandas


@grouped_command(*WHY_OPTIONS)
@QUERY_FILES
@click.option("--json", "as_json", is_flag=True, help="The report as one JSON object.")
@click.option(
    "--event",
    metavar="IRI",
    help="Say why no answer holds this event, the graph of that name: an IRI, or a name with a "
    "prefix of the query.",
)
@click.option(
    "--watermark",
    type=DURATION,
    help="With --event: the watermark of the run with --follow that may lack its answers.  "
    "[default: 0 SECONDS]",
)
def why(
    queries: tuple[Path, ...],
    as_json: bool,
    event: str | None,
    watermark: int | None,
    chosen: Chosen,
) -> None:
    """Find the reason why a query has no answers.

    \b
    The first query is asked about; the others make the streams that it reads:
      spaseq why congestion.rq --stream S1=s1.nq --stream S2=s2.nq --kb kb.ttl

    The streams are read to their ends in this process. The exit status is 0 whatever the report
    says.
    """  # fmt: skip
    options, inputs = why_options(chosen), chosen[InputTexts]
    if event is None and watermark is not None:
        raise UsageError("--watermark goes with --event")
    keep_arrow_from_pandas()
    chosen[QueryOptions].load()
    checked = list(check_queries(queries, options.planning))
    plans = reading_order(plans_of(checked), options.knowledge.kb_changes)
    sources = [kb_source(text, plans) for text in inputs.kbs]
    with ScratchDirectory("why") as directory:
        streams = stream_sources(plans, inputs, options)
        shared = [stream.shared(Path(directory)) for stream in streams]
        knowledge = load_knowledge(plans, sources, options.knowledge, streams)
        asked = None if event is None else AskedEvent(event, watermark or 0)
        report = report_on(checked, 0, shared, knowledge, options.stages, asked)
    click.echo(json.dumps(report.as_json(), ensure_ascii=False) if as_json else report.as_text())
