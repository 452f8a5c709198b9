"""The built-in functions of SPARQL 1.1 section 17.4, one file per subsection."""

from spaseq.expr.functions import numeric, rdf_terms, strings
from spaseq.expr.functions.registry import BUILTINS, Builtin

__all__ = [
    "BUILTINS",
    "Builtin",
    "moments",
    "numeric",
    "patterns",
    "rdf_terms",
    "strings",
]
