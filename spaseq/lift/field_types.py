"""The types that a user gives to fields of CSV and TSV: `volume=integer,price=decimal`."""

from __future__ import annotations

from collections.abc import Mapping

from spaseq.errors import UsageError
from spaseq.expr.casts import CASTS
from spaseq.lang.spelling import suggested
from spaseq.lift.cells import variable_of
from spaseq.rdf.terms.vocabulary import XSD

TYPES = tuple(sorted(iri.removeprefix(XSD) for iri in CASTS))
"""The local names of the datatypes."""


def field_types(text: str) -> tuple[tuple[str, str], ...]:
    """(variable, datatype) of each field that a text names.

    Raises:
        UsageError: the text is no list of assignments, or names an unknown type.

    >>> field_types("volume=integer, unit price=decimal")
    (('volume', 'integer'), ('unit_price', 'decimal'))
    """
    pairs = {}
    for part in filter(None, map(str.strip, text.split(","))):
        name, equals, datatype = part.rpartition("=")
        if not equals or not name.strip():
            raise UsageError(f"--types {part}: expected FIELD=TYPE")
        pairs[name.strip()] = datatype.strip()
    return checked_types(pairs)


def checked_types(types: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """(variable, datatype) of each field.

    Raises:
        UsageError: a type is unknown.
    """
    for name, datatype in types.items():
        if datatype not in TYPES:
            near = suggested(datatype, TYPES)
            hint = f"; did you mean {near}?" if near else f"; types are {', '.join(TYPES)}"
            raise UsageError(f"the field {name} has the unknown type {datatype!r}{hint}")
    return tuple((variable_of(name), datatype) for name, datatype in types.items())
