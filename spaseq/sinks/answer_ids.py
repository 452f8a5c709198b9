"""Ids of answers: the same in every run and runtime, so that receivers know repetitions."""

from __future__ import annotations

import hashlib
import json

from spaseq.algebra.answers import Answer

_encoded = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def answer_id(query: str, canonical: str, answer: Answer) -> str:
    """The id of an answer, 32 hexadecimal digits.

    It is a hash of the query's name and its canonical text, of the answer's trace, its single
    variables and its lists. The values of PARTITION BY are among the bindings of single variables,
    or follow from the trace.

    Args:
        query: the name of the query.
        canonical: the hash of its canonical text, `Signature.canonical`.
        answer: the answer.

    >>> len(answer_id("jams", "", Answer((0, 0), (9, 0), (), (("road", "<http://e/a1>"),))))
    32
    """
    parts = [query, canonical, answer.trace, answer.bindings, answer.singles, answer.lists]
    text = _encoded([*parts, answer.end])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
