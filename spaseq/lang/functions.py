"""The functions that expressions call by name: SPARQL 1.2 section 17.4 and SPAseq's own."""

from __future__ import annotations

from collections.abc import Mapping

from spaseq.places.vocabulary import AGGREGATE_IRIS

_ANY = (0, None)

# Upper-case name -> least and greatest number of arguments (None: no limit).
BUILT_INS: Mapping[str, tuple[int, int | None]] = {
    **dict.fromkeys(("NOW", "RAND", "UUID", "STRUUID"), (0, 0)),
    **dict.fromkeys(("STR", "LANG", "DATATYPE", "BOUND", "IRI", "URI"), (1, 1)),
    **dict.fromkeys(("ISIRI", "ISURI", "ISBLANK", "ISLITERAL", "ISNUMERIC"), (1, 1)),
    **dict.fromkeys(("ABS", "CEIL", "FLOOR", "ROUND"), (1, 1)),
    **dict.fromkeys(("STRLEN", "UCASE", "LCASE", "ENCODE_FOR_URI"), (1, 1)),
    **dict.fromkeys(("YEAR", "MONTH", "DAY", "HOURS", "MINUTES", "SECONDS"), (1, 1)),
    **dict.fromkeys(("TIMEZONE", "TZ"), (1, 1)),
    **dict.fromkeys(("MD5", "SHA1", "SHA256", "SHA384", "SHA512"), (1, 1)),
    "BNODE": (0, 1),
    **dict.fromkeys(("LANGMATCHES", "SAMETERM", "STRLANG", "STRDT"), (2, 2)),
    **dict.fromkeys(("CONTAINS", "STRSTARTS", "STRENDS", "STRBEFORE", "STRAFTER"), (2, 2)),
    **dict.fromkeys(("SUBSTR", "REGEX"), (2, 3)),
    "REPLACE": (3, 4),
    **dict.fromkeys(("SUBJECT", "PREDICATE", "OBJECT", "ISTRIPLE"), (1, 1)),
    **dict.fromkeys(("LANGDIR", "HASLANG", "HASLANGDIR"), (1, 1)),
    **dict.fromkeys(("TRIPLE", "STRLANGDIR"), (3, 3)),
    "IF": (3, 3),
    **dict.fromkeys(("CONCAT", "COALESCE"), _ANY),
}

AGGREGATES = frozenset({"COUNT", "SUM", "AVG", "MIN", "MAX", "GROUP_CONCAT", "SAMPLE"})
GROUP_PICKS = frozenset({"FIRST", "LAST", "LIST"})  # SPAseq's functions of a group variable
SET_FUNCTIONS = AGGREGATES | AGGREGATE_IRIS
SPASEQ = GROUP_PICKS | {"PREV", "TIMESTAMP"}
ALL_FUNCTIONS = frozenset(BUILT_INS) | AGGREGATES | SPASEQ
