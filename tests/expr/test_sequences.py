"""SPAseq's additions to expressions: PREV, TIMESTAMP and aggregates over group variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from spaseq.expr.compile import Options, compile_filter, compile_term, problems
from spaseq.expr.env import DictEnv, NotCompilable
from spaseq.expr.functions import BUILTINS
from spaseq.expr.uses import is_volatile, timestamp_uses
from spaseq.lang import ast
from spaseq.lang.functions import BUILT_INS
from spaseq.lang.variables import variables_of
from spaseq.rdf.terms.term import split_literal
from tests.expr.sparql import expression, ntriples


@dataclass(frozen=True)
class Match:
    """An environment with all kinds of values."""

    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    singles: Mapping[str, str] = field(default_factory=dict)
    before: Mapping[str, str] = field(default_factory=dict)
    times: Mapping[str, int] = field(default_factory=dict)
    end: int | None = None

    def value(self, name: str) -> str | None:
        group = self.groups.get(name)
        return group[-1] if group else self.singles.get(name)

    def previous(self, name: str) -> str | None:
        return self.before.get(name)

    def group(self, name: str) -> Sequence[str]:
        return self.groups.get(name, ())

    def time(self, gpm: str) -> int | None:
        return self.times.get(gpm)

    def now(self) -> int | None:
        return self.end


def group(*texts: str) -> Match:
    return Match({"x": [t for text in texts if (t := ntriples(text)) is not None]})


def aggregate(
    function: str, operand: str = "?x", distinct: bool = False, separator: str | None = None
) -> ast.Aggregate:
    return ast.Aggregate(function, expression(operand), distinct, separator)


@pytest.mark.parametrize(
    ("function", "values", "result"),
    [
        ("COUNT", ["1", "1", "2"], "3"),
        ("COUNT", [], "0"),
        ("SUM", ["1", "2.5"], "3.5"),
        ("SUM", ["1", "2e0"], '"3.0E0"^^xsd:double'),
        ("SUM", [], "0"),
        ("SUM", ["1", '"a"'], "error"),
        ("AVG", ["1", "2"], "1.5"),
        ("AVG", [], "0"),
        ("AVG", ["1", ":a"], "error"),
        ("MIN", ["2", "01", "1.0"], "01"),  # the first of equals
        ("MIN", [], "error"),
        ("MIN", ['"b"', ":a", "3"], ":a"),  # IRIs come before literals
        ("MAX", ["2", "10", "9.5"], "10"),
        ("MAX", ["1", '"INF"^^xsd:double', '"NaN"^^xsd:double'], '"INF"^^xsd:double'),
        (
            "MAX",
            ['"2020-01-01T00:00:00Z"^^xsd:dateTime', '"2020-01-01T00:30:00+01:00"^^xsd:dateTime'],
            '"2020-01-01T00:00:00Z"^^xsd:dateTime',
        ),
        ("SAMPLE", ["7", "8"], "7"),
        ("FIRST", ["7", "8"], "7"),
        ("LAST", ["7", "8"], "8"),
        ("FIRST", [], "error"),
        ("GROUP_CONCAT", ["1", '"b"@en', ":c"], '"1 b http://example.org/c"'),
        ("GROUP_CONCAT", [], '""'),
    ],
)
def test_aggregates(function: str, values: list[str], result: str) -> None:
    assert compile_term(aggregate(function))(group(*values)) == ntriples(result)


def test_distinct_is_by_term() -> None:
    env = group("1", "01", "1", "2")
    assert compile_term(aggregate("COUNT", distinct=True))(env) == ntriples("3")
    assert compile_term(aggregate("SUM", distinct=True))(env) == ntriples("4")


def test_separator() -> None:
    concat = aggregate("GROUP_CONCAT", separator=", ")
    assert compile_term(concat)(group("1", "2")) == ntriples('"1, 2"')


def test_list() -> None:
    result = compile_term(aggregate("LIST"))(group("1", '"a\\"b"@en', ":c"))
    assert result is not None
    lexical, datatype, _ = split_literal(result)
    assert lexical == (
        '["1"^^<http://www.w3.org/2001/XMLSchema#integer>, "a\\"b"@en, <http://example.org/c>]'
    )
    assert datatype == "http://w3id.org/awslabs/neptune/SPARQL-CDTs/List"


def test_operand_may_be_an_expression_over_the_group_variable() -> None:
    env = group("1", "2", "3")
    assert compile_term(aggregate("SUM", "?x * ?x"))(env) == ntriples("14")
    assert compile_term(aggregate("COUNT", "1 / (?x - 2)"))(env) == ntriples("2")  # one error
    assert compile_term(aggregate("AVG", "1 / (?x - 2)"))(env) is None


def test_operand_over_a_group_and_a_single_variable() -> None:
    env = Match(group("1", "2").groups, {"s": ntriples("10") or ""})
    with pytest.raises(NotCompilable, match="exactly one group variable"):
        compile_term(aggregate("SUM", "?x * ?s"))
    known = Options(groups=frozenset({"x"}))
    assert compile_term(aggregate("SUM", "?x * ?s"), known)(env) == ntriples("30")


def test_plain_variable_beside_an_aggregate_is_the_last_value() -> None:
    total = aggregate("SUM")
    expr = ast.Compare(">", ast.Arithmetic("*", ast.Var("x"), expression("2")), total)
    assert compile_filter(expr)(group("1", "2", "4"))
    assert not compile_filter(expr)(group("4", "2", "1"))


def test_previous_value() -> None:
    expr = ast.Compare("<", ast.Var("p"), ast.Prev(ast.Var("p")))
    now, before = ntriples("10") or "", ntriples("11.5") or ""
    assert compile_filter(expr)(Match(singles={"p": now}, before={"p": before}))
    assert not compile_filter(expr)(Match(singles={"p": now}))  # unbound in the first repetition
    assert compile_term(ast.Prev(ast.Var("p")))(Match(before={"p": before})) == before


def test_timestamp() -> None:
    expr = ast.Timestamp(ast.Ref("A"))
    text = "2014-08-01T07:50:00Z"
    assert compile_term(expr)(Match(times={"A": 1406879400000})) == ntriples(
        f'"{text}"^^xsd:dateTime'
    )
    assert compile_term(expr)(DictEnv()) is None
    gap = ast.Arithmetic("-", ast.Timestamp(ast.Ref("B")), expr)
    assert compile_filter(ast.Compare("<=", gap, expression("'PT1.5S'^^xsd:dayTimeDuration")))(
        Match(times={"A": 1000, "B": 2500})
    )


def test_mentions() -> None:
    expr = ast.And(
        (
            ast.Compare("<", ast.Var("a"), aggregate("SUM", "?g + 1")),
            ast.Compare("=", ast.Prev(ast.Var("b")), ast.Timestamp(ast.Ref("A"))),
        )
    )
    assert variables_of(expr) == {"a", "b", "g"}
    assert timestamp_uses(expr) == {"A"}
    assert not is_volatile(expr)
    assert is_volatile(expression("?a + RAND() > 1"))


EXISTS = ast.Exists(
    ast.GroupGraphPattern((ast.Triples((ast.Triple(ast.Var("s"), ast.Var("p"), ast.Var("o")),)),))
)


def test_exists_needs_someone_to_evaluate_it() -> None:
    with pytest.raises(NotCompilable, match="not supported yet"):
        compile_filter(EXISTS)
    asked = []

    def exists(node: ast.Exists, env: object) -> bool:
        asked.append(node)
        return True

    options = Options(exists=exists)
    assert compile_filter(EXISTS, options)(DictEnv())
    assert not compile_filter(ast.Exists(EXISTS.pattern, negated=True), options)(DictEnv())
    assert len(asked) == 2
    assert variables_of(EXISTS) == {"s", "p", "o"}


@pytest.mark.parametrize(
    "expr",
    [
        ast.Call("NO_SUCH_FUNCTION", ()),
        ast.Call("STRLEN", ()),
        ast.Call("IF", (ast.Var("a"), ast.Var("b"))),
        ast.FunctionCall(ast.Iri("http://e/unknown"), ()),
        ast.FunctionCall(ast.Iri("http://www.w3.org/2001/XMLSchema#integer"), ()),
        ast.Aggregate("COUNT", None),
        ast.Aggregate("MEDIAN", ast.Var("x")),
    ],
)
def test_what_cannot_be_compiled_names_the_node(expr: ast.Expr) -> None:
    with pytest.raises(NotCompilable) as error:
        compile_term(ast.Call("STR", (expr,)))
    assert error.value.node == expr


def test_all_problems_of_an_expression() -> None:
    unknown = ast.FunctionCall(ast.Iri("http://e/unknown"), (ast.Var("x"),))
    wrong = ast.Call("STRLEN", (ast.Var("a"), unknown))
    expr = ast.And((ast.Not(wrong), ast.Compare("=", ast.Var("x"), ast.Aggregate("COUNT", None))))
    assert [p.node for p in problems(expr)] == [wrong, unknown, ast.Aggregate("COUNT", None)]
    assert problems(expression("?x + 1 > STRLEN('a')")) == []


def test_the_parser_and_the_compiler_know_the_same_functions() -> None:
    for name, (fewest, most) in BUILT_INS.items():
        for count in range(5):
            call = ast.Call(name, (ast.Var("x"),) * count)
            known = fewest <= count and (most is None or count <= most)
            assert (not problems(call)) is known, (name, count)
    assert set(BUILTINS) <= set(BUILT_INS)
