"""Which terms a template's columns keep: the same as are kept one by one."""

from __future__ import annotations

import pytest

from spaseq.algebra.construct import can_be_object, can_be_predicate, can_be_subject
from spaseq.algebra.graph_batch import are_allowed
from spaseq.rdf.columns.term_columns import TermColumn

XSD = "http://www.w3.org/2001/XMLSchema#"
TRIPLE = '<<( <http://e/s> <http://e/p> "o" )>>'
COLUMNS = {
    "one datatype": [f'"{n}"^^<{XSD}integer>' for n in range(3)],
    "several datatypes": ['"1"', f'"2"^^<{XSD}integer>', f'"x\\"y"^^<{XSD}decimal>', '"chat"@fr'],
    "a datatype that is no IRI": ['"1"^^<a b>', '"2"^^<a b>'],
    "one of two is none": [f'"1"^^<{XSD}integer>', '"2"^^<relative>', f'"3"^^<{XSD}integer>'],
    "a datatype in a lexical form": [f'"^^<{XSD}integer>"^^<a b>', f'"\\"^^<{XSD}integer>"'],
    "literals that end alike": [f'"1"^^<{XSD}integer>', f"<http://e/1\"^^<{XSD}integer>"],
    "IRIs": ["<http://e/a>", "<http://e/b>"],
    "IRIs that are none": ["<http://e/a>", "<http://e/a b>", "<relative>", "<é:x>"],
    "all kinds": ["<http://e/a>", "_:b", '"c"', f'"1"^^<{XSD}integer>', TRIPLE],
    "unbound": [None, '"1"', None],
    "nothing": [None, None],
}  # fmt: skip


@pytest.mark.parametrize("texts", COLUMNS.values(), ids=COLUMNS)
def test_columns_keep_what_is_kept_one_by_one(texts: list[str | None]) -> None:
    column = TermColumn.of(texts)
    iris = TermColumn.of(["<http://e/p>"] * len(texts))
    for place, test in enumerate((can_be_subject, can_be_predicate, can_be_object)):
        triple = [iris, iris, iris]
        triple[place] = column
        expected = [text is not None and test(text) for text in texts]
        assert are_allowed((triple[0], triple[1], triple[2])).tolist() == expected
