"""The formats of answers: our jsonl, and the W3C SPARQL 1.1 result formats."""

from __future__ import annotations

import csv
import io
import json

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.algebra.answers import AFTER_ALL, Answer, TraceItem
from spaseq.errors import UsageError
from spaseq.rdf.terms.term import CDT_LIST, XSD, literal_text
from spaseq.sinks import FORMATS, open_sink

START = 1406879400000
TERMS = {
    "iri": "<http://e/é>",
    "node": "_:b1",
    "plain": '"a, \\"b\\"\\tc\\n"',
    "tagged": '"chat"@fr',
    "number": f'"016"^^<{XSD}integer>',
}
VARIABLES = (*TERMS, "unbound")


def answer(**bindings: str) -> Answer:
    trace = (
        TraceItem(START, 0, "A", "http://e/s", "http://e/g"),
        TraceItem(START + 1500, 2, "B", "http://e/s", None),
    )
    return Answer((START, 0), (START + 1500, 2), trace, tuple(bindings.items()))


def written(form: str, *answers: Answer, variables: tuple[str, ...] = VARIABLES) -> str:
    out = io.StringIO()
    with open_sink(form, out, variables) as sink:
        for each in answers:
            sink.write("q", each)
    return out.getvalue()


def test_a_jsonl_answer() -> None:
    assert written("jsonl", answer(p=TERMS["number"], x=TERMS["iri"])) == (
        '{"query": "q", "start": "2014-08-01T07:50:00Z", "end": "2014-08-01T07:50:01.500Z",'
        ' "bindings": {"p": {"type": "literal", "value": "016",'
        ' "datatype": "http://www.w3.org/2001/XMLSchema#integer"},'
        ' "x": {"type": "uri", "value": "http://e/é"}},'
        ' "trace": [{"gpm": "A", "stream": "http://e/s", "event": "http://e/g",'
        ' "time": "2014-08-01T07:50:00Z", "k": 0},'
        ' {"gpm": "B", "stream": "http://e/s", "event": null,'
        ' "time": "2014-08-01T07:50:01.500Z", "k": 2}]}\n'
    )


def test_an_answer_that_ends_with_its_window() -> None:
    closed = Answer((START, 0), (START + 60_000, AFTER_ALL), (), ())
    assert json.loads(written("jsonl", closed))["end"] == "2014-08-01T07:51:00Z"


def test_a_list_is_an_array_in_jsonl() -> None:
    value = literal_text('["a", null, <http://e/b>]', CDT_LIST)
    assert json.loads(written("jsonl", answer(l=value)))["bindings"]["l"] == [
        {"type": "literal", "value": "a"},
        None,
        {"type": "uri", "value": "http://e/b"},
    ]


def test_a_malformed_list_stays_a_literal() -> None:
    value = literal_text("[a]", CDT_LIST)
    assert json.loads(written("jsonl", answer(l=value)))["bindings"]["l"] == {
        "type": "literal",
        "value": "[a]",
        "datatype": CDT_LIST,
    }


def test_json_results() -> None:
    document = json.loads(written("json", answer(**TERMS), answer()))
    assert document == {
        "head": {"vars": list(VARIABLES)},
        "results": {
            "bindings": [
                {
                    "iri": {"type": "uri", "value": "http://e/é"},
                    "node": {"type": "bnode", "value": "b1"},
                    "plain": {"type": "literal", "value": 'a, "b"\tc\n'},
                    "tagged": {"type": "literal", "value": "chat", "xml:lang": "fr"},
                    "number": {"type": "literal", "value": "016", "datatype": XSD + "integer"},
                },
                {},
            ]
        },
    }


def test_csv_results() -> None:
    assert written("csv", answer(**TERMS), answer()) == (
        "iri,node,plain,tagged,number,unbound\r\n"
        'http://e/é,_:b1,"a, ""b""\tc\n",chat,016,\r\n'
        ",,,,,\r\n"
    )


def test_tsv_results() -> None:
    assert written("tsv", answer(**TERMS), answer()) == (
        "?iri\t?node\t?plain\t?tagged\t?number\t?unbound\n"
        f'<http://e/é>\t_:b1\t"a, \\"b\\"\\tc\\n"\t"chat"@fr\t"016"^^<{XSD}integer>\t\n'
        "\t\t\t\t\t\n"
    )


@pytest.mark.parametrize("form", ["json", "tsv"])
def test_pyoxigraph_reads_the_results_back(form: str) -> None:
    formats = {"json": ox.QueryResultsFormat.JSON, "tsv": ox.QueryResultsFormat.TSV}
    results = ox.parse_query_results(written(form, answer(**TERMS)), formats[form])
    assert isinstance(results, ox.QuerySolutions)
    (row,) = results
    assert {v: str(row[v]) for v in TERMS} == TERMS
    assert row["unbound"] is None


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("jsonl", ""),
        ("json", '{"head": {"vars": ["x"]}, "results": {"bindings": [\n]}}\n'),
        ("csv", "x\r\n"),
        ("tsv", "?x\n"),
    ],
)
def test_no_answers(form: str, text: str) -> None:
    assert written(form, variables=("x",)) == text


VALUE = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=8)


@given(st.lists(st.tuples(VALUE, VALUE), max_size=4))
def test_csv_is_read_back(rows: list[tuple[str, str]]) -> None:
    answers = [answer(a=literal_text(a), b=literal_text(b)) for a, b in rows]
    text = written("csv", *answers, variables=("a", "b"))
    got = list(csv.reader(io.StringIO(text, newline="")))
    assert got == [["a", "b"], *map(list, rows)]


@pytest.mark.parametrize("form", ["json", "csv", "tsv"])
def test_a_table_holds_one_query(form: str) -> None:
    sink = open_sink(form, io.StringIO(), ["x"])
    sink.write("q", answer())
    with pytest.raises(UsageError, match="use jsonl"):
        sink.write("r", answer())


def test_a_document_that_was_interrupted_does_not_look_finished() -> None:
    out = io.StringIO()
    with pytest.raises(KeyboardInterrupt), open_sink("json", out, ["x"]):
        raise KeyboardInterrupt
    with pytest.raises(json.JSONDecodeError):
        json.loads(out.getvalue())


def test_an_unknown_format_names_the_known_ones() -> None:
    with pytest.raises(UsageError, match=", ".join(FORMATS)):
        open_sink("xml", io.StringIO(), [])
