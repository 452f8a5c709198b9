"""Term tables of every kind: texts by code, and codes by text."""

from __future__ import annotations

import gc
import io
import pickle
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.rdf.columns.term_tables import ABSENT, ExtendedTerms, ListedTerms, TermTable, term_table
from spaseq.rdf.lines.arenas import ArenaPool, BufferGraphNames, BufferTerms, ReadArena
from spaseq.rdf.lines.chunks import BeforeGraphs
from spaseq.rdf.lines.line_events import line_statements
from spaseq.rdf.lines.statements import StatementReader

TEXTS = [*(f"<http://e/{i}>" for i in range(40)), '"é"@fr', '"漢字"', '""', "_:b"]


def lazy(texts: list[str]) -> TermTable:
    """A table of terms as the tokenizer makes it."""
    data = "".join(f"<a:s> <a:p> {text} .\n" for text in texts)
    reader = StatementReader(True, ArenaPool(1))
    cut = BeforeGraphs(reader)
    [(statements, _, _)] = line_statements(io.BytesIO(data.encode()), "f", reader, cut, 1, print)
    return statements.terms


def extended(texts: list[str]) -> TermTable:
    table = ExtendedTerms(ListedTerms(texts[:10]))
    table.encode(texts)
    return table


MAKERS: list[Callable[[list[str]], TermTable]] = [ListedTerms, lazy, extended]


@pytest.mark.parametrize("make", MAKERS)
def test_texts_and_codes(make: Callable[[list[str]], TermTable]) -> None:
    terms = make(TEXTS)
    codes = terms.find(TEXTS)
    assert sorted(terms.take(codes)) == sorted(TEXTS)
    assert terms.take(codes) == [terms[c] for c in codes.tolist()] == TEXTS
    assert [terms.code(text) for text in TEXTS] == codes.tolist()
    assert terms.code("<http://e/none>") == ABSENT
    assert terms.find(["<http://e/", '"', "<http://e/none>"]).tolist() == [ABSENT] * 3
    assert list(terms)[codes[3]] == TEXTS[3]
    assert terms[: len(terms)] == list(terms)
    assert terms.has_blank


def test_texts_of_every_length() -> None:
    iris = ["x" * size + ":" for size in range(1, 100)]
    terms = lazy([f"<{iri}>" for iri in iris])
    assert isinstance(terms, BufferTerms)
    codes = terms.find([f"<{iri}>" for iri in iris])
    assert terms.iris(codes).to_pylist() == iris
    assert terms.strings(codes).to_pylist() == [f"<{iri}>" for iri in iris]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("repeat", [1, 30])
def test_texts_by_the_million(make: Callable[[list[str]], TermTable], repeat: int) -> None:
    terms = make(TEXTS)
    codes = np.tile(terms.find(TEXTS[:3]), repeat)
    assert terms.take(codes) == terms.strings(codes).to_pylist() == TEXTS[:3] * repeat


def test_texts_of_a_table_and_of_those_added_to_it() -> None:
    terms = ExtendedTerms(lazy(TEXTS))
    texts = ["<a:x>", TEXTS[0], "<a:y>", TEXTS[1], "<a:x>"]
    assert terms.strings(terms.encode(texts)).to_pylist() == texts


@pytest.mark.parametrize("make", MAKERS)
def test_a_table_without_blank_nodes(make: Callable[[list[str]], TermTable]) -> None:
    assert not make([t for t in TEXTS if t[0] != "_"]).has_blank


def test_added_texts_get_the_codes_after_the_others() -> None:
    terms = ExtendedTerms(lazy(TEXTS))
    size = len(terms)
    codes = terms.encode(["<a:x>", TEXTS[0], "<a:y>", "<a:x>"])
    assert codes.tolist() == [size, terms.base.code(TEXTS[0]), size + 1, size]
    assert terms.take(codes) == ["<a:x>", TEXTS[0], "<a:y>", "<a:x>"]
    assert terms.code("<a:y>") == size + 1


@given(st.lists(st.text(), unique=True, max_size=40), st.lists(st.text(), max_size=5))
def test_listed_and_extended_agree(known: list[str], asked: list[str]) -> None:
    listed, other = ListedTerms(known), ExtendedTerms(ListedTerms(known[:3]))
    other.encode(known)
    assert listed.find(asked).tolist() == other.find(asked).tolist()
    assert term_table(listed) is listed
    assert list(term_table(known)) == known


def test_a_pickled_table_is_a_list_of_texts() -> None:
    terms = lazy(TEXTS)
    again = pickle.loads(pickle.dumps(terms))
    assert isinstance(again, ListedTerms)
    assert again == terms


def test_names_of_graphs() -> None:
    terms = lazy(TEXTS)
    names = BufferGraphNames(terms, terms.find(["<http://e/1>", "_:b", "<http://e/2>"]))
    assert list(names) == ["http://e/1", None, "http://e/2"]
    assert list(names[1:]) == [None, "http://e/2"]
    assert names.read(np.array([2, 1])).texts() == ["http://e/2", None]
    assert pickle.loads(pickle.dumps(names)).texts() == ["http://e/1", None, "http://e/2"]


def test_an_arena_comes_back_when_nobody_has_its_terms() -> None:
    pool = ArenaPool(1)
    arena = ReadArena(100)
    user = ListedTerms([])
    pool.lend(arena, user)
    assert pool.take(100) is not arena
    del user
    gc.collect()
    assert pool.take(100) is arena
    assert pool.take(100) is not arena


def test_a_lookup_goes_by_the_whole_text() -> None:
    texts = [f'"{"x" * n}"' for n in range(100)]
    terms = lazy(texts)
    assert terms.take(terms.find(texts)) == texts
    assert len(set(terms.find(texts).tolist())) == 100
