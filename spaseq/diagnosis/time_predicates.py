"""A suggestion for events without a time: the predicate that may hold it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pyoxigraph

from spaseq.errors import InputError
from spaseq.rdf.inputs.files import READ_ERRORS, InputFile
from spaseq.rdf.inputs.formats import Format, format_of
from spaseq.rdf.terms.term import XSD_DATE_TIME, XSD_DATE_TIME_STAMP

_READ = 2**20
"""How many bytes of the file are looked at."""

_TIMES = (XSD_DATE_TIME, XSD_DATE_TIME_STAMP)


def time_predicate(path: str) -> str | None:
    """The predicate that gives most named graphs one `xsd:dateTime`, at the start of a file.

    If there is none, the one that most often describes a graph by a literal.
    """
    times: dict[tuple[str, str], set[str]] = {}  # by predicate and graph
    numbers = Counter[str]()
    for quad in _quads(path):
        in_default = isinstance(quad.graph_name, pyoxigraph.DefaultGraph)
        if _is_time(quad) and (in_default or quad.subject == quad.graph_name):
            values = times.setdefault((quad.predicate.value, str(quad.subject)), set())
            values.add(str(quad.object))
        elif in_default and isinstance(quad.object, pyoxigraph.Literal):
            numbers[quad.predicate.value] += 1
    single = Counter(predicate for (predicate, _), values in times.items() if len(values) == 1)
    for counts in (single, numbers):
        if counts:
            return counts.most_common(1)[0][0]
    return None


def misplaced_time(path: str) -> str | None:
    """What to say of a file whose times are those of things in the graphs; None if it is not so."""
    for quad in _quads(path):
        if _is_time(quad) and isinstance(quad.graph_name, pyoxigraph.NamedNode):
            return (
                f"{quad.predicate} is a time of {quad.subject}, and the time of an event must be "
                f"of its graph, {quad.graph_name}"
            )
    return None


def _is_time(quad: pyoxigraph.Quad) -> bool:
    return isinstance(quad.object, pyoxigraph.Literal) and quad.object.datatype.value in _TIMES


def _quads(path: str) -> Iterator[pyoxigraph.Quad]:
    """The quads at the start of a file, up to the first that cannot be read."""
    form = format_of(path)
    if form not in _FORMATS:
        return
    try:
        with InputFile(path, form).open() as file:
            start = file.read(_READ)
        yield from pyoxigraph.parse(start, _FORMATS[form])
    except (InputError, *READ_ERRORS, SyntaxError, ValueError):
        return


_FORMATS = {
    Format.NQUADS: pyoxigraph.RdfFormat.N_QUADS,
    Format.TRIG: pyoxigraph.RdfFormat.TRIG,
    Format.JSONLD: pyoxigraph.RdfFormat.JSON_LD,
}
