"""Many xsd:integers at a time: their texts as numbers, and their sums."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spaseq.compiled.arrays import Bools, Int64s
from spaseq.lang import ast
from spaseq.rdf.columns.term_columns import INTEGER_TYPE
from spaseq.rdf.terms.vocabulary import XSD

_DIGITS = 15
"""The most digits of a number that is read here; a sum of two is exact in float64."""

_SMALL = rf'^"-?[0-9]{{1,{_DIGITS}}}"\^\^<{XSD}integer>$'


def whole_numbers(texts: Sequence[str | None]) -> tuple[Bools, Int64s]:
    """(which texts [n] are small xsd:integers, their values [n], 0 for the others)."""
    array = pa.array(texts, pa.large_string())
    small = pc.fill_null(pc.match_substring_regex(array, _SMALL), False)
    is_small: Bools = small.to_numpy(zero_copy_only=False)
    values = np.zeros(len(texts), np.int64)
    digits = pc.utf8_slice_codeunits(array.filter(small), 1, -len(INTEGER_TYPE) - 1)
    values[is_small] = pc.cast(digits, pa.int64()).to_numpy(zero_copy_only=False)
    return is_small, values


def sum_of(expr: ast.Expr) -> ast.Arithmetic | None:
    """The sum or difference of two variables that an expression is, unless it is an error."""
    match expr:
        case ast.Call("COALESCE", (ast.Arithmetic() as first, *_)):
            return sum_of(first)
        case ast.Arithmetic(op, ast.Var(), ast.Var()) if op in "+-":
            return expr
    return None
