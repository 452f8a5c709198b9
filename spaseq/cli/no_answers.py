"""Runs without answers: the line at their end, and the report of --why."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path

from spaseq.api.queries import plans_of
from spaseq.cli.option_groups import Chosen
from spaseq.cli.run_options import WHY_OPTIONS
from spaseq.compile import Checked
from spaseq.diagnosis.report import plural
from spaseq.lang.sequence import needed_gpms
from spaseq.message_text import public_address
from spaseq.plan.query_plan import QueryPlan
from spaseq.runtime.job.job import Job, Stats
from spaseq.sinks.base import open_lines


def no_answer_line(
    queries: Sequence[Path], checked: Sequence[Checked], job: Job, chosen: Chosen
) -> str:
    """The line at the end of a run without answers: the cause that its counts show, and the command
    that says more.

    It is about the first query that writes answers; if all maintain graphs, about the first one.

    Args:
        queries: the files of the queries.
        checked: the queries.
        job: the run.
        chosen: its options.
    """
    plans, stats = plans_of(checked), job.stats
    number = next((n for n, plan in enumerate(plans) if plan.maintained is None), 0)
    name = plans[number].identity.name
    plan = next(plan for plan in job.plans if plan.identity.name == name)  # knows changing graphs
    nothing = "no answers" if plan.maintained is None else "no changes"
    text = f"{plan.identity.title}: {nothing}, because {_cause(plan, stats)}"
    if stats.bad:
        text += f"; {plural(stats.bad, 'bad input')} {'was' if stats.bad == 1 else 'were'} left out"
    others = (*queries[:number], *queries[number + 1 :])
    return f"{text}. For more: {_command_for_more((queries[number], *others), chosen)}"


def _cause(plan: QueryPlan, stats: Stats) -> str:
    """The first stage of a query at which nothing is left."""
    if not stats.events:
        return "its streams have no events"
    counts = stats.solutions.get(plan.identity.title, {})
    on_windows = {gpm.name for gpm in plan.patterns.gpms if gpm.windows}  # they count no events
    for name in needed_gpms(plan.sequence.chain, lambda name: counts.get(name, 0) > 0):
        if not counts.get(name) and name not in on_windows:
            return f"GPM {name} matches no event"
    if on_windows:
        return "no window event matches, or no sequence with one is an answer"
    text = "its GPMs match events, but no sequence of them "
    if plan.changing is not None:  # its graphs are joined with rows that count as solutions
        text += "with what the graphs have then "
    return f"{text}is an answer"


def _command_for_more(queries: Sequence[Path], chosen: Chosen) -> str:
    """The command that says why the first query has no answers, without passwords."""
    words = ["spaseq", "why", *map(str, queries)]
    for option in (option for group in WHY_OPTIONS for option in group.options):
        value = getattr(chosen[option.part], option.field)
        if not value or value == getattr(option.part(), option.field):
            continue
        if value is True:
            words.append(option.opts[0])
        elif isinstance(value, str | int | tuple):
            values = value if isinstance(value, tuple) else (value,)
            words += [word for each in values for word in (option.opts[0], _public(str(each)))]
    return shlex.join(words)


def _public(value: str) -> str:
    """The value of an option; an endpoint's address, also after `IRI=`, keeps its secrets."""
    graph, scheme, rest = value.rpartition("http")
    if graph and not graph.endswith("="):
        return value
    return graph + public_address(scheme + rest) if scheme else value


def write_report(path: str, checked: Sequence[Checked], job: Job) -> None:
    """Write the report on each query of a run to a file.

    A file whose name ends in `.json` or `.jsonl` gets one JSON object a line, another one text.

    Raises:
        RunError: the file cannot be written.
    """
    from spaseq.api.why import report_on  # loads kernels, which other runs may do without

    plans, several = plans_of(checked), len(checked) > 1
    with open_lines(path) as file:
        for number, plan in enumerate(plans):
            report = report_on(checked, number, job.streams, job.knowledge, job.options)
            if path.endswith((".json", ".jsonl")):
                title = {"query": plan.identity.title} if several else {}
                file.write(json.dumps(title | report.as_json(), ensure_ascii=False) + "\n")
            else:
                head = f"query {plan.identity.title}\n" if several else ""
                file.write(f"{head}{report.as_text()}\n")
