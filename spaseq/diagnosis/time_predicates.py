"""A suggestion for events without a time: the predicate that may hold it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pyoxigraph

from spaseq.errors import InputError
from spaseq.rdf.inputs.files import READ_ERRORS, InputFile
from spaseq.rdf.inputs.formats import Format, format_of
from spaseq.rdf.terms.vocabulary import XSD_DATE_TIME, XSD_DATE_TIME_STAMP

_READ = 2**20
"""How many bytes of the file are looked at."""

_TIMES = (XSD_DATE_TIME, XSD_DATE_TIME_STAMP)


def time_predicate(path: str) -> str | None:
    """The predicate that most often has an `xsd:dateTime`, at the start of a file of named graphs.

    If there is none, the one that most often describes a graph by a literal.
    """
    times, numbers = Counter[str](), Counter[str]()
    for quad in _quads(path):
        if not isinstance(quad.object, pyoxigraph.Literal):
            continue
        if quad.object.datatype.value in _TIMES:
            times[quad.predicate.value] += 1
        elif isinstance(quad.graph_name, pyoxigraph.DefaultGraph):
            numbers[quad.predicate.value] += 1
    for found in (times, numbers):
        if found:
            return found.most_common(1)[0][0]
    return None


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


_FORMATS = {Format.NQUADS: pyoxigraph.RdfFormat.N_QUADS, Format.TRIG: pyoxigraph.RdfFormat.TRIG}
