"""Columns that share their tables of terms: what is done with the terms is done once for all."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from spaseq.rdf.columns.term_columns import TermColumn


def concat_columns(parts: Sequence[Sequence[TermColumn]]) -> list[TermColumn]:
    """`TermColumn.concat` of each column, given the columns of several parts.

    Columns that share their terms in every part still do.
    """
    return _by_table(parts, lambda own: TermColumn.concat(own) if len(own) > 1 else own[0])


def compact_columns(columns: Sequence[TermColumn]) -> list[TermColumn]:
    """The same columns; a table loses its unused terms if its columns together use few of them."""
    return _by_table([columns], lambda own: own[0].compact())


def texts_of_columns(columns: Sequence[TermColumn]) -> list[list[str | None]]:
    """The texts of each column, None where unbound; a table that they mostly use is read once."""
    tables: dict[int, list[str | None]] = {}
    found = []
    for column in columns:
        terms = column.terms
        if len(terms) > len(columns) * len(column):
            found.append(column.texts())
            continue
        table = tables.get(id(terms))
        if table is None:
            table = tables[id(terms)] = [*terms.to_pylist(), None]  # the last is UNBOUND's
        found.append([table[code] for code in column.codes.tolist()])
    return found


def _by_table(
    parts: Sequence[Sequence[TermColumn]], of: Callable[[Sequence[TermColumn]], TermColumn]
) -> list[TermColumn]:
    """What `of` makes of the parts of each column; those with the same tables are one for it."""
    alike: dict[object, list[int]] = {}
    for place, own in enumerate(zip(*parts, strict=True)):
        tables = tuple([column.table for column in own])
        alike.setdefault(place if None in tables else tables, []).append(place)
    found: dict[int, TermColumn] = {}
    for places in alike.values():
        if len(places) == 1:
            found[places[0]] = of([part[places[0]] for part in parts])
            continue
        whole = of([_stacked([part[place] for place in places]) for part in parts])
        split, first = [], 0
        for part in parts:
            end = first + len(places) * len(part[places[0]])
            split.append(whole.codes[first:end].reshape(len(places), -1))
            first = end
        codes = split[0] if len(split) == 1 else np.concatenate(split, axis=1)
        found |= {p: TermColumn(own, whole.terms) for p, own in zip(places, codes, strict=True)}
    return [found[place] for place in range(len(found))]


def _stacked(columns: Sequence[TermColumn]) -> TermColumn:
    """The rows of columns that share their terms, one column after the other."""
    return TermColumn(np.concatenate([column.codes for column in columns]), columns[0].terms)
