"""Columns that share their tables of terms: what is done with the terms is done once for all."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from spaseq.rdf.columns.term_columns import TermColumn


def concat_columns(parts: Sequence[Sequence[TermColumn]]) -> list[TermColumn]:
    """`TermColumn.concat` of each column, given the columns of several parts.

    Columns that share their terms in every part still do.
    """
    return _by_table(parts, lambda alike: TermColumn.concat(alike) if len(alike) > 1 else alike[0])


def compact_columns(columns: Sequence[TermColumn]) -> list[TermColumn]:
    """The same columns; a table loses its unused terms if its columns together use few of them."""
    return _by_table([columns], lambda alike: alike[0].compact())


def texts_of_columns(columns: Sequence[TermColumn]) -> list[list[str | None]]:
    """The texts of each column, None where unbound; a table that they mostly use is read once."""
    tables: dict[int, list[str | None]] = {}
    texts = []
    for column in columns:
        terms = column.terms
        if len(terms) > len(columns) * len(column):
            texts.append(column.texts())
            continue
        table = tables.get(id(terms))
        if table is None:
            table = tables[id(terms)] = [*terms.to_pylist(), None]  # the last is UNBOUND's
        texts.append([table[code] for code in column.codes.tolist()])
    return texts


def _by_table(
    parts: Sequence[Sequence[TermColumn]], of: Callable[[Sequence[TermColumn]], TermColumn]
) -> list[TermColumn]:
    """What `of` makes of the parts of each column; those with the same tables are one for it."""
    alike: dict[object, list[int]] = {}
    for number, columns in enumerate(zip(*parts, strict=True)):
        tables = tuple([column.table for column in columns])
        alike.setdefault(number if None in tables else tables, []).append(number)
    made: dict[int, TermColumn] = {}
    for places in alike.values():
        if len(places) == 1:
            made[places[0]] = of([part[places[0]] for part in parts])
            continue
        whole = of([_stacked([part[number] for number in places]) for part in parts])
        split, first = [], 0
        for part in parts:
            end = first + len(places) * len(part[places[0]])
            split.append(whole.codes[first:end].reshape(len(places), -1))
            first = end
        codes = split[0] if len(split) == 1 else np.concatenate(split, axis=1)
        made |= {
            p: TermColumn(part_codes, whole.terms)
            for p, part_codes in zip(places, codes, strict=True)
        }
    return [made[number] for number in range(len(made))]


def _stacked(columns: Sequence[TermColumn]) -> TermColumn:
    """The rows of columns that share their terms, one column after the other."""
    return TermColumn(np.concatenate([column.codes for column in columns]), columns[0].terms)
