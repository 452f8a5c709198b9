"""`spaseq explain`: the plan of a query, and the measures of its parts in a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import click

from spaseq.api.queries import check_queries, plans_of
from spaseq.cli.checked_options import why_options
from spaseq.cli.option_groups import Chosen, InputTexts, OptionGroup, PartOption, grouped_command
from spaseq.cli.queries import QUERY_FILES, QueryOptions
from spaseq.cli.run_options import RUNTIME, WHY_OPTIONS
from spaseq.errors import UsageError
from spaseq.measures import Measures
from spaseq.options import PlanningOptions, RuntimeOptions
from spaseq.plan.changing_graphs import connected
from spaseq.plan.query_plan import QueryPlan
from spaseq.records import record
from spaseq.render.explain import FORMATS, explained, together


@record
class ExplainOptions:
    """The contents and the format of the explanation."""

    form: str = "text"
    full: bool = False
    analyze: bool = False
    rate: float | None = None


SHOWN = OptionGroup(
    "Options",
    (
        PartOption(
            ExplainOptions,
            "--format",
            "form",
            type=click.Choice(FORMATS),
            show_default=True,
            help="text, json: plan and automaton; mermaid, dot, svg: a picture of the automaton.",
        ),
        PartOption(
            ExplainOptions,
            "--full",
            is_flag=True,
            help="Text and JSON with the canonical text, the syntax tree and the algebra, too.",
        ),
        PartOption(
            ExplainOptions,
            "--analyze",
            is_flag=True,
            help="Run the query over its streams, without printing answers, and show the rows, the "
            "time and the memory of each part.",
        ),
        PartOption(
            ExplainOptions,
            "--rate",
            type=click.FloatRange(min=0),
            metavar="N",
            help="Solutions of its graph patterns per second, to say how much memory the query "
            "needs.",
        ),
    ),
)

WHERE = OptionGroup(
    "Runtime of --analyze",
    (
        PartOption(
            RuntimeOptions,
            "--runtime",
            field="name",
            default="local",
            type=click.Choice(("spark", "local")),
            show_default=True,
            help="local: measures every part; spark: measures whole stages.",
        ),
        *(option for option in RUNTIME.options if option.name in ("master", "verbose")),
    ),
)


@grouped_command(SHOWN, *WHY_OPTIONS, WHERE)
@QUERY_FILES
def explain(queries: tuple[Path, ...], chosen: Chosen) -> None:
    """Show the plan of each query and its automaton, as text or as a picture.

    \b
      spaseq explain query.rq --format svg > query.svg
      spaseq explain query.rq --analyze --stream S1=events.nq --kb kb.ttl

    Several queries are explained one after the other. With --analyze each is run by itself, and
    the others make the streams that it reads.

    With --lift the text says how patterns over the lifted rows are evaluated. The options of input,
    knowledge and endpoints are as in `spaseq run`. Except for --lift, they go with --analyze.
    """  # fmt: skip
    show, inputs = chosen[ExplainOptions], chosen[InputTexts]
    if not show.analyze and (inputs.streams or inputs.kbs):
        raise UsageError("--stream and --kb go with --analyze, which runs the query")
    if show.analyze and show.form not in ("text", "json"):
        raise UsageError(f"--analyze gives text or JSON, not {show.form}")
    chosen[QueryOptions].load()
    checked = list(check_queries(queries, chosen[PlanningOptions]))
    plans = connected(plans_of(checked))
    checked = [replace(each, plan=plan) for each, plan in zip(checked, plans, strict=True)]
    shown = [explained(each, show.full, show.rate) for each in checked]
    if inputs.lifts:
        from spaseq.cli.run_inputs import lift_plans

        lifts = tuple(lift_plans(plans, chosen))
        shown = [replace(each, lifts=lifts) for each in shown]
    if show.analyze:
        pairs = zip(shown, _measured(plans, chosen), strict=True)
        shown = [replace(each, measures=measures) for each, measures in pairs]
    click.echo(together(shown, show.form), nl=False)


def _measured(plans: Sequence[QueryPlan], chosen: Chosen) -> Iterator[Measures]:
    """The measures of a run of each query; the others make the streams that it reads."""
    from spaseq.api.explain import measured
    from spaseq.api.prepare import load_knowledge
    from spaseq.api.why import registered_sources
    from spaseq.cli.run_inputs import kb_source, stream_sources
    from spaseq.runtime.job.job import Job
    from spaseq.runtime.job.unit_graph import reading_order
    from spaseq.scratch import ScratchDirectory
    from spaseq.startup import keep_arrow_from_pandas

    options = replace(why_options(chosen), runtime=chosen[RuntimeOptions])
    if options.runtime.name == "spark" and len(plans) > 1:
        raise UsageError("--analyze --runtime spark takes one query; --runtime local takes several")
    if options.runtime.name == "spark" and options.reading.threads is not None:
        raise UsageError("--threads goes with --runtime local; on Spark tasks read side by side")
    if options.runtime.name == "local":
        keep_arrow_from_pandas()
    inputs = chosen[InputTexts]
    streams = stream_sources(reading_order(plans), inputs, options)
    sources = [kb_source(kb, plans) for kb in inputs.kbs]
    knowledge = load_knowledge(plans, sources, options.knowledge, streams)
    with ScratchDirectory("explain") as directory:
        if len(plans) > 1:
            streams = tuple(stream.shared(Path(directory)) for stream in streams)
        for number, plan in enumerate(plans):
            read = [s for s in streams if s.iri in plan.inputs.streams]
            read += registered_sources(plans, number, streams, knowledge, options.stages)
            yield measured(Job((plan,), tuple(read), knowledge, options.stages), options.runtime)
