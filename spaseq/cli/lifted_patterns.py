"""What `spaseq check` finds in the lifts of streams, and in queries that read these streams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from spaseq.api.queries import plans_of, read_query
from spaseq.cli.lifted_streams import lift_plans, named_value
from spaseq.cli.option_groups import Chosen
from spaseq.cli.run_parts import InputTexts
from spaseq.compile import Checked
from spaseq.errors import Diagnostic
from spaseq.lift.lift_checks import check_lift
from spaseq.lift.table_formats import is_table_input
from spaseq.lift.unmatched_patterns import unmatched_patterns
from spaseq.options import PlanningOptions, ReadingOptions
from spaseq.runtime.job.binding import split_assignment, stream_names


def lift_errors(checked: Sequence[Checked], chosen: Chosen) -> Iterator[Diagnostic]:
    """The errors in the lifts that options give.

    Raises:
        InputError: a lift cannot be read.
    """
    names = stream_names(plans_of(checked))
    files = {named_value(text, names)[1] for text in chosen[InputTexts].lifts}
    for file in sorted(files):
        text = read_query(Path(file))
        found = check_lift(text, file, chosen[ReadingOptions].time_predicate).diagnostics
        yield from (finding for finding in found if finding.severity == "error")


def unmatched_in_lifts(checked: Sequence[Checked], chosen: Chosen) -> Iterator[Diagnostic]:
    """The warnings about patterns that no graph of the lifts of their streams can match.

    There are none under entailment, because what is entailed is not in the template.
    """
    if chosen[PlanningOptions].entailment is not None:
        return
    plans = plans_of(checked)
    lifts = dict(lift_plans(plans, chosen))
    for iri in _no_tables(chosen, stream_names(plans)):
        lifts.pop(iri, None)
    for each, plan in zip(checked, plans, strict=True):
        query = each.query
        assert query is not None, "it has a plan"
        streams = {
            gpm.name: [plan.inputs.streams[number] for number in gpm.streams]
            for gpm in plan.patterns.gpms
        }
        for gpm in query.gpms:
            own = [lifts.get(iri) for iri in streams.get(gpm.name, [])]
            known = [lift for lift in own if lift is not None]
            if own and len(known) == len(own):
                yield from unmatched_patterns(gpm, known, each.source)


def _no_tables(chosen: Chosen, names: dict[str, str]) -> set[str]:
    """The streams whose --stream options give no table, which a lift without NAME is not for."""
    texts = chosen[InputTexts]
    named = {named_value(text, names)[0] for text in texts.lifts}
    pairs = filter(None, (split_assignment(text, names) for text in texts.streams))
    given = {names.get(name, name) for name, path in pairs if not is_table_input(path)}
    return given - named
