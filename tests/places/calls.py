"""Calls of GeoSPARQL's functions as a query makes them: from terms to a term."""

from __future__ import annotations

from typing import Any

from spaseq.expr.env import ExpressionError
from spaseq.expr.extension import known_functions
from spaseq.rdf.terms.term import Term, literal_text

GEO = "http://www.opengis.net/ont/geosparql#"
GEOF = "http://www.opengis.net/def/function/geosparql/"
UOM = "http://www.opengis.net/def/uom/OGC/1.0/"
EPSG_4326 = "<http://www.opengis.net/def/crs/EPSG/0/4326>"

_FUNCTIONS = {function.iri: function for function in known_functions()}


def wkt(text: str) -> str:
    return literal_text(text, GEO + "wktLiteral")


def geojson(text: str) -> str:
    return literal_text(text, GEO + "geoJSONLiteral")


def call(name: str, *arguments: str | float) -> Any:
    """The result as a Python value, a geometry as its text; None for an error.

    A text is WKT, a literal or an IRI; "uom:metre" is a unit.
    """
    try:
        found = Term(_FUNCTIONS[GEOF + name]([_term(a) for a in arguments]))
    except ExpressionError:
        return None
    return found.to_python()


def _term(argument: str | float) -> str:
    if not isinstance(argument, str):
        return literal_text(repr(argument), "http://www.w3.org/2001/XMLSchema#double")
    if argument.startswith("uom:"):
        return f"<{UOM}{argument[4:]}>"
    is_term = argument.startswith('"') or (argument.startswith("<") and argument.endswith(">"))
    return argument if is_term else wkt(argument)
