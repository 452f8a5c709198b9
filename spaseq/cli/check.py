"""`spaseq check`: all errors and warnings of query files."""

from __future__ import annotations

import json
from pathlib import Path

import click

from spaseq.api.queries import read_query
from spaseq.cli.checked_options import why_options
from spaseq.cli.option_groups import Chosen, InputTexts, grouped_command
from spaseq.cli.queries import QUERY_FILES, QueryOptions, check_file
from spaseq.cli.run_options import WHY_OPTIONS
from spaseq.lift.lift_checks import check_lift, is_lift


@grouped_command(*WHY_OPTIONS)
@QUERY_FILES
@click.option("--json", "as_json", is_flag=True, help="One JSON array of findings on stdout.")
def check(queries: tuple[Path, ...], as_json: bool, chosen: Chosen) -> int:
    """Check query files, and lifts, without running them.

    Every error and warning is reported with its place, what was expected and the nearest valid
    name. Exit status 1 if there is an error.

    With --stream the streams are read, and patterns that nothing in them and in the knowledge
    bases matches are warnings, too. With --lift, so are those that no graph of the lift can match,
    whatever the rows are. Further warnings are about fields of CSV and TSV that a lift compares
    with numbers or takes as times without a cast.
    """
    chosen[QueryOptions].load()
    planning = why_options(chosen).planning
    lifts = {path: text for path in queries if is_lift(text := read_query(path), path.name)}
    of_lifts = [check_lift(text, str(path)).diagnostics for path, text in lifts.items()]
    if lifts or chosen[InputTexts].lifts:
        from spaseq.cli.stream_findings import uncast_findings  # loads Arrow

        of_lifts += uncast_findings(lifts, chosen)
    checked = [check_file(path, planning) for path in queries if path not in lifts]
    findings = [d for each in (*of_lifts, *(c.diagnostics for c in checked)) for d in each]
    if checked and (chosen[InputTexts].streams or chosen[InputTexts].lifts):
        from spaseq.cli.stream_findings import with_inputs

        findings = with_inputs([d for each in of_lifts for d in each], checked, chosen)
    errors = sum(d.severity == "error" for d in findings)
    if as_json:
        click.echo(json.dumps([d.to_json() for d in findings], indent=2))
    else:
        for finding in findings:
            click.echo(finding.render())
        files = f"{len(queries)} quer{'y' if len(queries) == 1 else 'ies'}"
        click.echo(f"{files}: {errors} error(s), {len(findings) - errors} warning(s)", err=True)
    return 1 if errors else 0
