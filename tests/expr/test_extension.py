"""Extension functions: their arguments, results and errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rdflib

import spaseq
from spaseq.errors import QueryError, RunError, UsageError
from spaseq.expr import extension
from spaseq.expr.columns import TermRows, extend_column, filter_rows
from spaseq.expr.compile import Options, compile_term
from spaseq.expr.env import DictEnv
from tests.expr.sparql import expression

F = "http://example.org/"  # the prefix `:` in `expression`
XSD = "http://www.w3.org/2001/XMLSchema#"


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    before = {f.iri for f in extension.registered()}
    yield
    for known in extension.registered():
        if known.iri not in before:
            extension.unregister(known.iri)


def options() -> Options:
    return Options(functions=extension.registered())


def call(text: str, **bindings: str) -> str | None:
    return compile_term(expression(text), options())(DictEnv(bindings))


@pytest.mark.parametrize(
    ("term", "value"),
    [
        ('"a"', "a"),
        (f'"1"^^<{XSD}integer>', 1),
        (f'"1.50"^^<{XSD}decimal>', Decimal("1.50")),
        (f'"1e0"^^<{XSD}double>', 1.0),
        (f'"true"^^<{XSD}boolean>', True),
        (f'"2020-01-02T03:04:05Z"^^<{XSD}dateTime>', datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("<http://e/x>", spaseq.Term("<http://e/x>")),
        ("_:b", spaseq.Term("_:b")),
    ],
)
def test_arguments_are_python_values(term: str, value: object) -> None:
    seen: list[Any] = []
    spaseq.function(F + "see")(seen.append)
    call(":see(?x)", x=term)
    assert seen == [value]
    assert isinstance(seen[0], type(value))


def test_arguments_are_terms_if_so_wished() -> None:
    @spaseq.function(F + "datatype", arguments="terms")
    def datatype(term: spaseq.Term) -> spaseq.Term:
        assert isinstance(term, spaseq.Term)
        return spaseq.Term(term.n3().rpartition("^^")[2])

    assert call(":datatype(?x)", x=f'"01"^^<{XSD}byte>') == f"<{XSD}byte>"


@pytest.mark.parametrize(
    ("result", "term"),
    [
        ("a\n", '"a\\n"'),
        (True, f'"true"^^<{XSD}boolean>'),
        (2, f'"2"^^<{XSD}integer>'),
        (Decimal("2.50"), f'"2.5"^^<{XSD}decimal>'),
        (2.5, f'"2.5E0"^^<{XSD}double>'),
        (np.float64(2.5), f'"2.5E0"^^<{XSD}double>'),
        (np.int32(2), f'"2"^^<{XSD}integer>'),
        (np.bool_(False), f'"false"^^<{XSD}boolean>'),
        (datetime(2020, 1, 2, tzinfo=UTC), f'"2020-01-02T00:00:00Z"^^<{XSD}dateTime>'),
        (date(2020, 1, 2), f'"2020-01-02"^^<{XSD}date>'),
        (spaseq.Term(f'"a"^^<{XSD}string>'), '"a"'),
        (spaseq.Term('"a"@EN'), '"a"@en'),
        (rdflib.URIRef("http://e/x"), "<http://e/x>"),
        (rdflib.Literal("a", lang="en"), '"a"@en'),
        (None, None),
        (object(), None),
        (spaseq.Term("<no iri>"), None),
    ],
)
def test_results_become_terms(result: object, term: str | None) -> None:
    spaseq.function(F + "give")(lambda: result)
    assert call(":give()") == term


def test_errors_of_data_are_errors_of_sparql() -> None:
    spaseq.function(F + "root")(math.sqrt)
    assert call(":root(?x)", x=f'"-1"^^<{XSD}integer>') is None  # ValueError
    assert call(":root(?x)", x='"a"') is None  # TypeError
    assert call(":root(?x)") is None  # unbound
    assert call("COALESCE(:root(?x), 'none')", x='"a"') == '"none"'


def test_other_errors_end_the_run() -> None:
    @spaseq.function(F + "broken")
    def broken() -> str:
        raise OSError("no disk")

    with pytest.raises(RunError, match="broken> failed: OSError: no disk"):
        call(":broken()")


def column(text: str, terms: list[str], codes: list[int]) -> list[str | None]:
    columns = {"x": np.array(codes, np.int32)}
    results, which = extend_column(expression(text), TermRows.of(columns, terms), options())
    return [results[i] for i in which]


def squares(calls: list[list[Any]]) -> Callable[[list[Any]], list[Any]]:
    def square(xs: list[Any]) -> list[Any]:
        calls.append(xs)
        return [x * x if isinstance(x, int) else None for x in xs]

    return square


ONE, TWO, FOUR = (f'"{n}"^^<{XSD}integer>' for n in (1, 2, 4))


def test_a_vectorised_function_is_called_once_for_the_distinct_values() -> None:
    calls: list[list[Any]] = []
    spaseq.function(F + "square", vectorised=True)(squares(calls))
    terms = [ONE, TWO, '"a"']
    assert column(":square(?x)", terms, [0, 1, 1, 2, -1]) == [ONE, FOUR, FOUR, None, None]
    assert [sorted(map(str, xs)) for xs in calls] == [["1", "2", "a"]]


def test_vectorised_calls_inside_each_other_and_other_expressions() -> None:
    calls: list[list[Any]] = []
    spaseq.function(F + "square", vectorised=True)(squares(calls))
    text = "IF(:square(:square(?x)) > 1, STR(:square(?x)), 'small')"
    assert column(text, [ONE, TWO, '"a"'], [1, 0, 2]) == ['"4"', '"small"', None]
    filters = expression(":square(?x) = 4 && ?x > 0")
    columns = {"x": np.array([0, 1, 1] * 20, np.int32)}
    held = filter_rows(filters, TermRows.of(columns, [ONE, TWO]), options())
    assert held.tolist() == [False, True, True] * 20


def test_a_vectorised_function_for_one_solution() -> None:
    spaseq.function(F + "square", vectorised=True)(squares([]))
    assert call(":square(?x)", x=TWO) == FOUR
    assert call(":square(?x)", x='"a"') is None


def test_a_vectorised_function_must_answer_for_all() -> None:
    spaseq.function(F + "few", vectorised=True)(lambda xs: xs[:1])
    with pytest.raises(RunError, match="1 results for 2 rows"):
        column(":few(?x)", [ONE, TWO], [0, 1])


QUERY = """PREFIX : <http://example.org/>
SELECT ?x (:twice(?x) AS ?y) WITHIN 1 MINUTES FROM STREAM S <http://example.org/s>
WHERE { SEQ(A; B)
  DEFINE GPM A ON S { ?s :p ?x FILTER (:twice(?x) > 2) }
  DEFINE GPM B ON S { ?s :p ?z FILTER (?z = :twice(?x)) BIND (:twice(?z) AS ?w) FILTER (?w > 0) }
}"""


def answers(query: str) -> list[tuple[Any, Any]]:
    engine = spaseq.Engine(query)
    found = []
    for time, value in enumerate((1, 2, 3, 4, 8)):
        found += engine.push("S", f"<http://e/s> <{F}p> {value} .".replace(f" {value} ",
            f' "{value}"^^<{XSD}integer> '), time)  # fmt: skip
    found += engine.close()
    return [(m.bindings["x"].to_python(), m.bindings["y"].to_python()) for m in found]


@pytest.mark.parametrize("vectorised", [False, True])
def test_a_query_calls_functions_everywhere(vectorised: bool) -> None:
    if vectorised:
        spaseq.function(F + "twice", vectorised=True)(lambda xs: [2 * x for x in xs])
    else:
        spaseq.function(F + "twice")(lambda x: 2 * x)
    assert answers(QUERY) == [(2, 4), (4, 8)]


def test_a_query_keeps_the_functions_it_was_compiled_with() -> None:
    spaseq.function(F + "twice")(lambda x: 2 * x)
    engine = spaseq.Engine(QUERY)
    extension.unregister(F + "twice")
    for time, value in enumerate((2, 4)):
        engine.push("S", f'<http://e/s> <{F}p> "{value}"^^<{XSD}integer> .', time)
    assert len(engine.close()) == 1


def test_an_unknown_function_is_found_by_the_check_with_the_nearest_name() -> None:
    spaseq.function(F + "twice")(lambda x: 2 * x)
    with pytest.raises(QueryError) as error:
        spaseq.Engine(QUERY.replace(":twice(?z)", ":twize(?z)"))
    (found,) = error.value.diagnostics
    assert found.message == "unknown function <http://example.org/twize>"
    assert found.suggestion == "<http://example.org/twice>"


def test_a_wrong_number_of_arguments_is_found_by_the_check() -> None:
    spaseq.function(F + "twice")(lambda x: 2 * x)
    with pytest.raises(QueryError, match="does not take 2 arguments"):
        spaseq.Engine(QUERY.replace(":twice(?z)", ":twice(?z, ?x)"))


def test_what_cannot_be_registered() -> None:
    with pytest.raises(UsageError, match="not an absolute IRI"):
        spaseq.function("twice")
    with pytest.raises(UsageError, match="a str cannot be called"):
        spaseq.function(F + "twice")("abc")  # type: ignore[type-var]


def test_a_file_with_functions(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(
        f"import spaseq\n@spaseq.function('{F}twice')\ndef twice(x):\n    return x + x\n"
    )
    extension.load_functions(str(file))
    assert call(":twice(?x)", x=TWO) == FOUR
    (tmp_path / "none.py").write_text("x = 1\n")
    with pytest.raises(UsageError, match="registers no function"):
        extension.load_functions(str(tmp_path / "none.py"))
    with pytest.raises(UsageError, match="FileNotFoundError"):
        extension.load_functions(str(tmp_path / "absent.py"))
    with pytest.raises(UsageError, match="ModuleNotFoundError"):
        extension.load_functions("no_such_module_of_functions")
