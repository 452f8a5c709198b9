"""`spaseq lift`: the graphs that a lift makes of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import click
import numpy as np

from spaseq.api.queries import read_query
from spaseq.cli.messages import tell
from spaseq.cli.option_groups import SideOptions
from spaseq.cli.side_outputs import SideOutputs
from spaseq.errors import InputError, QueryError
from spaseq.expr.extension import load_functions
from spaseq.lift.cells import field_types
from spaseq.lift.lift_checks import check_lift
from spaseq.lift.lifted_source import LiftedFiles
from spaseq.lift.template_graphs import LiftedBatch
from spaseq.rdf.columns.term_tables import term_table
from spaseq.rdf.inputs.csv_dialect import DEFAULT_DIALECT, csv_dialect
from spaseq.rdf.inputs.formats import MESSAGE_END, VERSION
from spaseq.rdf.inputs.stream_options import BadInput, StreamOptions
from spaseq.rdf.terms.term import GENERATED_AT_TIME, iri_text
from spaseq.rdf.terms.times import TIME_UNITS


def event_texts(batch: LiftedBatch, form: str, time_predicate: str, number: int) -> Iterator[str]:
    """The text of each event; `form` is one of `FORMATS`.

    An event without a name gets a blank node, labelled by its number in the stream; `number` is
    the number of the batch's first event.
    """
    events, write = batch.events, _WRITERS[form]
    names = events.names(np.arange(len(events))).texts()
    predicate = iri_text(time_predicate)
    texts = term_table(events.terms)
    used = [texts.take(column) for column in (events.s, events.p, events.o)]
    starts = events.start.tolist()
    for i, time in enumerate(batch.time_texts()):
        name = names[i]
        graph = f"_:event{number + i}" if name is None else iri_text(name)
        rows = slice(starts[i], starts[i + 1])
        lines = [f"{s} {p} {o}" for s, p, o in zip(*(c[rows] for c in used), strict=True)]
        if form == "rdfm" and name is None:
            yield ("".join(f"{line} .\n" for line in lines) + MESSAGE_END)
            continue
        yield write(graph, f"{graph} {predicate} {time} .\n", lines)


def _nquads(graph: str, time: str, lines: list[str]) -> str:
    return time + "".join(f"{line} {graph} .\n" for line in lines)


def _trig(graph: str, time: str, lines: list[str]) -> str:
    triples = "".join(f"  {line} .\n" for line in lines)
    return f"{time}{graph} {{\n{triples}}}\n"


def _rdfm(graph: str, time: str, lines: list[str]) -> str:
    return _nquads(graph, time, lines) + MESSAGE_END


_WRITERS: dict[str, Callable[[str, str, list[str]], str]] = {
    "nquads": _nquads,
    "trig": _trig,
    "rdfm": _rdfm,
}

FORMATS = tuple(_WRITERS)
"""The formats of `spaseq lift`."""

HEADS = {"rdfm": VERSION}
"""The text before the first event."""

_UNNAMED = "urn:spaseq:lifted"
"""The IRI of the stream, a placeholder that is not shown."""


def _load(context: click.Context, option: click.Parameter, places: tuple[str, ...]) -> None:
    for module in places:
        load_functions(module)


@click.command(context_settings={"max_content_width": 100})
@click.argument("lift", metavar="LIFT.rq", type=click.Path(path_type=Path))
@click.argument("data", nargs=-1, required=True, metavar="DATA...")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="nquads",
    show_default=True,
    help="The format of the graphs.",
)
@click.option(
    "--types",
    default="",
    metavar="FIELD=TYPE,...",
    help="XSD types of fields of CSV and TSV, such as volume=integer,price=decimal.",
)
@click.option(
    "--csv",
    "dialect",
    default=None,
    metavar="KEY=VALUE,...",
    help="How CSV and TSV are written: delimiter, quote, header, decimal, encoding.",
)
@click.option(
    "--time-predicate",
    default=GENERATED_AT_TIME,
    show_default=True,
    metavar="IRI",
    help="The predicate whose object is an event's time.",
)
@click.option(
    "--time-unit",
    type=click.Choice(list(TIME_UNITS)),
    default="ms",
    show_default=True,
    help="The unit of integer times: milliseconds or seconds since 1970.",
)
@click.option(
    "--functions",
    multiple=True,
    expose_value=False,
    callback=_load,
    metavar="MODULE|FILE.py",
    help="A Python module that registers extension functions with @spaseq.function(IRI). "
    "Repeatable.",
)
@click.option("--bad", metavar="FILE", help="Bad rows, as JSON lines (file, line, reason).")
def lift(
    lift: Path,
    data: tuple[str, ...],
    form: str,
    types: str,
    dialect: str | None,
    bad: str | None,
    **times: str,
) -> None:
    """Write the graphs that a lift makes of tables and JSON lines.

    DATA is files, directories or globs: CSV, TSV, JSON lines (each also with .gz), Parquet, Arrow.
    Each graph comes with its time in the default graph right before it, so `spaseq run` reads the
    result as a stream.
    """
    checked = check_lift(read_query(lift), str(lift), **times)
    if checked.plan is None:
        raise QueryError(checked.diagnostics)
    for warning in checked.warnings:
        tell(warning.render())
    csv = DEFAULT_DIALECT if dialect is None else csv_dialect(dialect)
    options = StreamOptions(_UNNAMED, data, times["time_predicate"], times["time_unit"], csv=csv)
    source = LiftedFiles(options, checked.plan, field_types(types))
    try:
        source.check()
    except InputError as error:
        raise InputError(str(error).removeprefix(f"stream <{_UNNAMED}>: ")) from None
    number, refused = 0, 0
    with SideOutputs(SideOptions(bad=bad)) as sides:

        def on_bad(row: BadInput) -> None:
            nonlocal refused
            if row.lost is not None:
                sides.on_lost(row)
                return
            refused += 1
            sides.on_bad(row)

        maker = source.maker()
        click.echo(HEADS.get(form, ""), nl=False)
        for batch in source.lifted(on_bad, maker):
            for text in event_texts(batch, form, options.time_predicate, number):
                click.echo(text, nl=False)
            number += len(batch.events)
        tell(f"{number:,} events, {maker.filtered:,} rows filtered, {refused:,} bad")
        sides.report(not number and refused > 0)
        sides.refuse(not number and refused > 0)
