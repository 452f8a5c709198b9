"""The functions that expressions call by name: SPARQL 1.2 section 17.4 and SPAseq's own."""

from __future__ import annotations

from collections.abc import Mapping

from spaseq.rdf.geosparql import AGGREGATE_IRIS

_FORMS: Mapping[str, tuple[int, int | None, str]] = {
    "NOW": (0, 0, "the time of the event"),
    "RAND": (0, 0, "a random number from 0 to 1"),
    "UUID": (0, 0, "a fresh IRI"),
    "STRUUID": (0, 0, "a fresh identifier as text"),
    "STR": (1, 1, "the text of a term"),
    "LANG": (1, 1, "the language tag of a literal, without a base direction"),
    "DATATYPE": (1, 1, "the datatype of a literal"),
    "BOUND": (1, 1, "whether the variable has a value"),
    "IRI": (1, 1, "the IRI with this text"),
    "URI": (1, 1, "the IRI with this text"),
    "ISIRI": (1, 1, "whether a term is an IRI"),
    "ISURI": (1, 1, "whether a term is an IRI"),
    "ISBLANK": (1, 1, "whether a term is a blank node"),
    "ISLITERAL": (1, 1, "whether a term is a literal"),
    "ISNUMERIC": (1, 1, "whether a term is a number"),
    "ABS": (1, 1, "the absolute value"),
    "CEIL": (1, 1, "the next whole number upwards"),
    "FLOOR": (1, 1, "the next whole number downwards"),
    "ROUND": (1, 1, "the nearest whole number"),
    "STRLEN": (1, 1, "the number of characters"),
    "UCASE": (1, 1, "the text in upper case"),
    "LCASE": (1, 1, "the text in lower case"),
    "ENCODE_FOR_URI": (1, 1, "the text with escapes, for a part of an IRI"),
    "YEAR": (1, 1, "the year of a time"),
    "MONTH": (1, 1, "the month of a time"),
    "DAY": (1, 1, "the day of a time"),
    "HOURS": (1, 1, "the hours of a time"),
    "MINUTES": (1, 1, "the minutes of a time"),
    "SECONDS": (1, 1, "the seconds of a time"),
    "TIMEZONE": (1, 1, "the time zone as a duration"),
    "TZ": (1, 1, "the time zone as text"),
    "MD5": (1, 1, "the MD5 checksum of a text"),
    "SHA1": (1, 1, "the SHA-1 checksum of a text"),
    "SHA256": (1, 1, "the SHA-256 checksum of a text"),
    "SHA384": (1, 1, "the SHA-384 checksum of a text"),
    "SHA512": (1, 1, "the SHA-512 checksum of a text"),
    "BNODE": (0, 1, "a fresh blank node"),
    "LANGMATCHES": (2, 2, "whether a language tag matches a range"),
    "SAMETERM": (2, 2, "whether two terms are the same"),
    "STRLANG": (2, 2, "a literal of this text and language"),
    "STRDT": (2, 2, "a literal of this text and datatype"),
    "CONTAINS": (2, 2, "whether a text contains another one"),
    "STRSTARTS": (2, 2, "whether a text begins with another one"),
    "STRENDS": (2, 2, "whether a text ends with another one"),
    "STRBEFORE": (2, 2, "the part of a text before another one"),
    "STRAFTER": (2, 2, "the part of a text after another one"),
    "SUBSTR": (2, 3, "a part of a text, from a place counted from 1"),
    "REGEX": (2, 3, "whether a regular expression matches a text"),
    "REPLACE": (3, 4, "the text with replaced matches of a regular expression"),
    "SUBJECT": (1, 1, "the subject of a triple term"),
    "PREDICATE": (1, 1, "the predicate of a triple term"),
    "OBJECT": (1, 1, "the object of a triple term"),
    "ISTRIPLE": (1, 1, "whether a term is a triple term"),
    "LANGDIR": (1, 1, "the base direction of a literal: ltr, rtl or an empty text"),
    "HASLANG": (1, 1, "whether a term is a literal with a language tag"),
    "HASLANGDIR": (1, 1, "whether a term is a literal with a base direction"),
    "TRIPLE": (3, 3, "the triple term of these terms"),
    "STRLANGDIR": (3, 3, "a literal of this text, language and base direction"),
    "IF": (3, 3, "the second value if the first holds, else the third"),
    "CONCAT": (0, None, "the texts in a row"),
    "COALESCE": (0, None, "the first value that is no error"),
}
"""By upper-case name: least and greatest number of arguments (None: no limit), and the meaning."""

BUILT_INS: Mapping[str, tuple[int, int | None]] = {
    name: (least, most) for name, (least, most, _) in _FORMS.items()
}
"""Least and greatest number of arguments, by upper-case name."""

MEANINGS: Mapping[str, str] = {
    **{name: meaning for name, (_, _, meaning) in _FORMS.items()},
    "COUNT": "how many values there are",
    "SUM": "the sum of the values",
    "AVG": "the mean of the values",
    "MIN": "the least value",
    "MAX": "the greatest value",
    "GROUP_CONCAT": "the values as one text",
    "SAMPLE": "one of the values",
    "FIRST": "the first value of a group variable",
    "LAST": "the last value of a group variable",
    "LIST": "all values of a group variable as a list",
    "PREV": "the value of a group variable in the repetition before",
    "TIMESTAMP": "the time of the last event of a GPM",
}
"""The meaning of each function, by upper-case name."""

AGGREGATES = frozenset({"COUNT", "SUM", "AVG", "MIN", "MAX", "GROUP_CONCAT", "SAMPLE"})
GROUP_PICKS = frozenset({"FIRST", "LAST", "LIST"})  # SPAseq's functions of a group variable
SET_FUNCTIONS = AGGREGATES | AGGREGATE_IRIS
SPASEQ = GROUP_PICKS | {"PREV", "TIMESTAMP"}
ALL_FUNCTIONS = frozenset(BUILT_INS) | AGGREGATES | SPASEQ
