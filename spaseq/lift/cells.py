"""Cells of rows, and the names of fields as variables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from spaseq.lang import lexical
from spaseq.lang.lexical import NamePattern
from spaseq.rdf.terms.term import is_rdf_term


@dataclass(frozen=True, slots=True)
class Wrong:
    """A value that is no RDF term; a lift that reads it makes the row bad."""

    reason: str


@dataclass(frozen=True, slots=True)
class Items:
    """A list. An element is its cells, by what the name of its variable has after UNNEST's.

    The key of the element itself is "", of the field `f` of an object `_f`.
    """

    elements: tuple[Mapping[str, Cell], ...]


Cell: TypeAlias = "str | Wrong | Items | None"
"""The N-Triples text of a term, None for null, a list, or what cannot be a term."""


_NAME = NamePattern(lexical.VARIABLE)


@lru_cache(4096)
def variable_of(field: str) -> str:
    """The name of the variable for a field.

    >>> variable_of("unit price"), variable_of("größe"), variable_of("a.b-c")
    ('unit_price', 'größe', 'a_b_c')
    """
    return "".join(
        c if _NAME.fullmatch(f"?{'x' if i else ''}{c}") else "_" for i, c in enumerate(field)
    )


@lru_cache(4096)
def inner_name(field: str) -> str:
    """The part of a variable's name for a field of an object, with the `_` before it."""
    return "_" + variable_of("x" + field)[1:]


def is_term(text: str) -> bool:
    """`is_rdf_term`, faster for literals, whose few datatypes are looked at once."""
    if text[0] != '"':
        return is_rdf_term(text)
    return text[-1] != ">" or _has_valid_datatype(text[text.rfind('"') + 1 :])


@lru_cache(256)
def _has_valid_datatype(end: str) -> bool:
    return is_rdf_term(f'""{end}')


_SURROGATE = re.compile("[\ud800-\udfff]")


def has_surrogate(text: str) -> bool:
    """Whether a text has a lone surrogate, which is no character."""
    return not text.isascii() and _SURROGATE.search(text) is not None
