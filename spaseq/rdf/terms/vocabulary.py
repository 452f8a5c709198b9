"""IRIs of the RDF, RDFS, OWL, XSD, CDT and PROV vocabularies that several modules use."""

from __future__ import annotations

from typing import Final

XSD: Final = "http://www.w3.org/2001/XMLSchema#"
RDF: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS: Final = "http://www.w3.org/2000/01/rdf-schema#"
OWL: Final = "http://www.w3.org/2002/07/owl#"

XSD_STRING: Final = XSD + "string"
XSD_DATE_TIME: Final = XSD + "dateTime"
XSD_DATE_TIME_STAMP: Final = XSD + "dateTimeStamp"
LANG_STRING: Final = RDF + "langString"
DIR_LANG_STRING: Final = RDF + "dirLangString"
CDT_LIST: Final = "http://w3id.org/awslabs/neptune/SPARQL-CDTs/List"

GENERATED_AT_TIME: Final = "http://www.w3.org/ns/prov#generatedAtTime"

INTEGER_TYPES: Final = frozenset(
    XSD + name
    for name in (
        "integer",
        "long",
        "int",
        "short",
        "byte",
        "nonNegativeInteger",
        "positiveInteger",
        "nonPositiveInteger",
        "negativeInteger",
        "unsignedLong",
        "unsignedInt",
        "unsignedShort",
        "unsignedByte",
    )
)
"""`xsd:integer` and the datatypes derived from it (XML Schema part 2, section 3.4)."""
