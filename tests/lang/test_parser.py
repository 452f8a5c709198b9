"""Syntax trees of queries (docs/lookup.md#grammar; SPARQL 1.1 sections 4, 5, 9 and 17)."""

from __future__ import annotations

import pytest

from spaseq.errors import QueryError, QueryText
from spaseq.lang import ast
from spaseq.lang.parser import parse, parse_source
from tests.lang.good_queries import good_queries, query

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
EX, NS = "http://example.org/", "http://example.org/ns#"


def iri(value: str) -> ast.Iri:
    return ast.Iri(value)


def var(name: str) -> ast.Var:
    return ast.Var(name)


def integer(lexical: str) -> ast.Literal:
    return ast.Literal(lexical, XSD + "integer")


def elements(pattern: str) -> tuple[ast.Element, ...]:
    return parse(query(pattern=pattern)).gpms[0].pattern.elements


def triples(pattern: str) -> list[tuple[object, object, object]]:
    (block,) = elements(pattern)
    assert isinstance(block, ast.Triples)
    return [(t.subject, t.predicate, t.object) for t in block.triples]


def expression(text: str) -> ast.Expr:
    (element,) = elements(f"FILTER({text})")
    assert isinstance(element, ast.Filter)
    return element.expr


def sequence(text: str) -> ast.Sequence:
    return parse(query(sequence=text)).sequence


def ref(name: str) -> ast.Step:
    return ast.Step(ast.Ref(name))


def of(*steps: ast.Step, ops: str = "") -> ast.Sequence:
    return ast.Sequence(steps, tuple(ast.Op(op) for op in ops))  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "text"), list(good_queries()))
def test_good_queries_have_no_errors(name: str, text: str) -> None:
    parsed = parse_source(QueryText(text, name))
    assert parsed.errors == ()
    assert not parsed.broken_gpms and not parsed.broken_clauses


# --- sequences -------------------------------------------------------------------------------


def test_operators_stand_between_steps_from_left_to_right() -> None:
    steps = (ref("A"), ref("B"), ref("C"), ref("D"))
    assert sequence("A, B; C: D") == of(*steps, ops=",;:")


def test_a_gap_bound_belongs_to_its_operator() -> None:
    gap = ast.TimeSpan(5, "MINUTES")
    assert sequence("A;[5 MINUTES] B; C").ops == (ast.Op(";", gap), ast.Op(";"))
    assert gap.ms == 300_000


@pytest.mark.parametrize(
    ("suffix", "step"),
    [
        ("+", ast.Step(ast.Ref("B"), ast.Quantifier(1, None))),
        ("*", ast.Step(ast.Ref("B"), ast.Quantifier(0, None))),
        ("?", ast.Step(ast.Ref("B"), ast.Quantifier(0, 1))),
        ("{2}", ast.Step(ast.Ref("B"), ast.Quantifier(2, 2))),
        ("{2,}", ast.Step(ast.Ref("B"), ast.Quantifier(2, None))),
        ("{2,3}", ast.Step(ast.Ref("B"), ast.Quantifier(2, 3))),
        ("!", ast.Step(ast.Ref("B"), negated=True)),
    ],
)
def test_quantifiers_and_negation(suffix: str, step: ast.Step) -> None:
    assert sequence(f"A; B{suffix}; C").steps[1] == step


@pytest.mark.parametrize(
    ("text", "kind", "count"),
    [("A|B", "|", 2), ("A & B & C", "&", 3), ("A and B", "AND", 2), ("A; B", None, 1)],
)
def test_brackets(text: str, kind: str | None, count: int) -> None:
    bracket = sequence(f"({text})").steps[0].atom
    assert isinstance(bracket, ast.Bracket)
    assert (bracket.kind, len(bracket.operands)) == (kind, count)


def test_and_is_an_operator_but_names_may_begin_with_it() -> None:
    both = ast.Bracket("AND", (of(ref("ANDA")), of(ref("And_"))))
    assert sequence("(ANDA AND And_)") == of(ast.Step(both))
    with pytest.raises(QueryError):
        sequence("AND; B")


# --- the header ------------------------------------------------------------------------------


def test_clauses_may_come_in_any_order() -> None:
    one = "SELECT ?x WITHIN 1 HOURS PARTITION BY ?x AFTER MATCH CONSUME FROM STREAM S <http://s>"
    other = "FROM STREAM S <http://s> AFTER MATCH CONSUME PARTITION BY ?x WITHIN 1 HOURS SELECT ?x"
    body = " SEQ(A) { DEFINE GPM A ON S { } }"
    assert parse(one + body) == parse(other + body)


def test_seq_inside_and_outside_the_braces_and_where_are_the_same() -> None:
    header, gpm = "SELECT * WITHIN 1 HOURS FROM STREAM S <http://s>", "DEFINE GPM A ON S { }"
    bodies = (f"{{ SEQ(A) {gpm} }}", f"SEQ(A) {{ {gpm} }}", f"WHERE {{ SEQ(A) {gpm} }}")
    assert len({parse(f"{header} {body}") for body in bodies}) == 1


def test_select() -> None:
    form = parse(query(form="SELECT DISTINCT STRICT ?x (?y + 1 AS ?z)")).form
    total = ast.Arithmetic("+", var("y"), integer("1"))
    items = (ast.SelectItem(var("x")), ast.SelectItem(var("z"), total))
    assert form == ast.Select(items, distinct=True, strategy="STRICT")


def test_construct_and_register() -> None:
    tree = parse(query(form="REGISTER STREAM ex:out AS CONSTRUCT { ?x a ex:C }"))
    assert tree.register == iri(EX + "out")
    assert tree.form == ast.Construct((ast.Triple(var("x"), iri(RDF + "type"), iri(EX + "C")),))


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("WITHIN 1 SECONDS", ast.TimeWindow(ast.TimeSpan(1, "SECONDS"))),
        ("WITHIN 1 second", ast.TimeWindow(ast.TimeSpan(1, "SECONDS"))),
        ("WITHIN 2 DAYS TUMBLING", ast.TimeWindow(ast.TimeSpan(2, "DAYS"), True)),
        (
            "WITHIN 2 DAYS TUMBLING FROM '2014-08-01T00:00:00Z'",
            ast.TimeWindow(ast.TimeSpan(2, "DAYS"), True, "2014-08-01T00:00:00Z"),
        ),
        ("WITHIN 7 EVENTS", ast.CountWindow(7)),
        ("", None),
    ],
)
def test_windows(text: str, window: object) -> None:
    assert parse(query(clauses=text)).window == window


@pytest.mark.parametrize(
    ("text", "skip"),
    [
        ("NO SKIP", ast.Skip("NO SKIP")),
        ("CONSUME", ast.Skip("CONSUME")),
        ("SKIP TO NEXT EVENT", ast.Skip("TO NEXT EVENT")),
        ("SKIP PAST LAST EVENT", ast.Skip("PAST LAST EVENT")),
        ("SKIP TO FIRST A", ast.Skip("TO FIRST", ast.Ref("A"))),
        ("SKIP TO LAST A", ast.Skip("TO LAST", ast.Ref("A"))),
        ("MUTE 10 MINUTES", ast.Skip("NO SKIP", mute=ast.TimeSpan(10, "MINUTES"))),
        ("CONSUME MUTE 1 DAY", ast.Skip("CONSUME", mute=ast.TimeSpan(1, "DAYS"))),
    ],
)
def test_after_match(text: str, skip: ast.Skip) -> None:
    assert parse(query(clauses=f"AFTER MATCH {text}")).skip == skip


def test_partition_streams_kbs_and_having() -> None:
    tree = parse(
        query(clauses="PARTITION BY (?x, ?y) FROM NAMED ex:kb", having="HAVING(COUNT(?x) > 2)")
    )
    assert tree.partition == (var("x"), var("y"))
    assert tree.streams == (ast.FromStream("S", iri("http://s")),)
    assert tree.kbs == (ast.FromKb(iri(EX + "kb")),)
    count = ast.Aggregate("COUNT", var("x"))
    assert tree.having == ast.Compare(">", count, integer("2"))


def test_a_gpm_may_stand_on_several_streams() -> None:
    tree = parse("SELECT * SEQ(A) { DEFINE GPM A ON S, T { } }")
    assert tree.gpms == (
        ast.Gpm("A", (ast.GpmSource("S"), ast.GpmSource("T")), ast.GroupGraphPattern(())),
    )


# --- terms -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("1", ast.Literal("1", XSD + "integer")),
        ("-01", ast.Literal("-01", XSD + "integer")),
        ("1.0", ast.Literal("1.0", XSD + "decimal")),
        (".5", ast.Literal(".5", XSD + "decimal")),
        ("1e0", ast.Literal("1e0", XSD + "double")),
        ("+1.5E-3", ast.Literal("+1.5E-3", XSD + "double")),
        ("TRUE", ast.Literal("true", XSD + "boolean")),
        ("'a'", ast.Literal("a")),
        ("'a'^^xsd:string", ast.Literal("a")),
        ("'a'@EN-us", ast.Literal("a", language="en-us")),
        ("'16.0'^^<http://www.w3.org/2001/XMLSchema#double>", ast.Literal("16.0", XSD + "double")),
        (r"'\t\n\r\b\f\"\'\\'", ast.Literal("\t\n\r\b\f\"'\\")),
        ('"""a "b" \n c"""', ast.Literal('a "b" \n c')),
        (r"'\u00e9\U0001F600'", ast.Literal("é😀")),
        (r"'\\u0041'", ast.Literal(r"\u0041")),
    ],
)
def test_literals(text: str, literal: ast.Literal) -> None:
    assert triples(f"?s ?p {text}")[0][2] == literal


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("ex:a", EX + "a"),
        (":a.b", NS + "a.b"),
        ("ex:", EX),
        (r"ex:a\,b\~c", EX + "a,b~c"),
        ("ex:%41", EX + "%41"),
        ("<http://x/../y>", "http://x/../y"),
        (r"<http://x/\u00e9>", "http://x/é"),
        ("a", RDF + "type"),
        ("rdfs:label", "http://www.w3.org/2000/01/rdf-schema#label"),
    ],
)
def test_iris(text: str, value: str) -> None:
    assert triples(f"?s {text} ?o")[0][1] == iri(value)


def test_base_and_relative_prefixes() -> None:
    text = query(prologue="BASE <http://b/dir/> PREFIX r: <rel#>", pattern="<s> r:p <../o>")
    (block,) = parse(text).gpms[0].pattern.elements
    assert isinstance(block, ast.Triples)
    triple = block.triples[0]
    values = (triple.subject, triple.predicate, triple.object)
    assert values == tuple(map(iri, ("http://b/dir/s", "http://b/dir/rel#p", "http://b/o")))


def test_predicate_and_object_lists() -> None:
    a, p, q = iri(RDF + "type"), iri(NS + "p"), iri(NS + "q")
    assert triples("?s a :C ; :p 1, ?x ; ; :q 2 . ?x :q ?s") == [
        (var("s"), a, iri(NS + "C")),
        (var("s"), p, integer("1")),
        (var("s"), p, var("x")),
        (var("s"), q, integer("2")),
        (var("x"), q, var("s")),
    ]


def test_blank_nodes_are_labelled_in_the_order_of_the_text() -> None:
    b0, b1, p = ast.BlankNode("b0"), ast.BlankNode("b1"), iri(NS + "p")
    assert triples("?s :p [ :p _:z ] . _:z :p []") == [
        (var("s"), p, b0),
        (b0, p, b1),
        (b1, p, ast.BlankNode("b2")),
    ]


def test_a_label_in_two_gpms_names_two_blank_nodes() -> None:
    gpms = "DEFINE GPM A ON S { _:x ?p 1 } DEFINE GPM B ON S { _:x ?p 1 }"
    one, other = (gpm.pattern for gpm in parse(f"SELECT * SEQ(A) {{ {gpms} }}").gpms)
    assert one != other


def test_collections_are_lists_of_cells() -> None:
    c0, c1 = ast.BlankNode("b0"), ast.BlankNode("b1")
    first, rest, nil = iri(RDF + "first"), iri(RDF + "rest"), iri(RDF + "nil")
    assert triples("?s ?p (1 ?x)") == [
        (var("s"), var("p"), c0),
        (c0, first, integer("1")),
        (c0, rest, c1),
        (c1, first, var("x")),
        (c1, rest, nil),
    ]
    assert triples("?s ?p ()") == [(var("s"), var("p"), nil)]


P, Q = iri(NS + "p"), iri(NS + "q")


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (":p/:q", ast.PathSequence((P, Q))),
        (":p|:q", ast.PathAlternative((P, Q))),
        (":p|:q/:p", ast.PathAlternative((P, ast.PathSequence((Q, P))))),
        ("(:p|:q)/:p", ast.PathSequence((ast.PathAlternative((P, Q)), P))),
        ("^:p", ast.PathInverse(P)),
        ("^:p*", ast.PathInverse(ast.PathRepeat(P, "*"))),
        ("(^:p)*", ast.PathRepeat(ast.PathInverse(P), "*")),
        ("^:p/:q", ast.PathSequence((ast.PathInverse(P), Q))),
        (":p?", ast.PathRepeat(P, "?")),
        ("!:p", ast.PathNegated((P,), ())),
        ("!(:p|^:q)", ast.PathNegated((P,), (Q,))),
    ],
)
def test_property_paths(text: str, path: ast.Path) -> None:
    assert triples(f"?s {text} ?o")[0][1] == path


# --- expressions -----------------------------------------------------------------------------

X, Y, Z, ONE = var("x"), var("y"), var("z"), integer("1")


@pytest.mark.parametrize(
    ("text", "expr"),
    [
        ("?x || ?y && ?z", ast.Or((X, ast.And((Y, Z))))),
        ("?x && ?y || ?z", ast.Or((ast.And((X, Y)), Z))),
        ("(?x || ?y) && ?z", ast.And((ast.Or((X, Y)), Z))),
        ("?x || ?y || ?z", ast.Or((X, Y, Z))),
        ("!?x && ?y", ast.And((ast.Not(X), Y))),
        ("?x + ?y * ?z", ast.Arithmetic("+", X, ast.Arithmetic("*", Y, Z))),
        ("?x * ?y + ?z", ast.Arithmetic("+", ast.Arithmetic("*", X, Y), Z)),
        ("?x - ?y - ?z", ast.Arithmetic("-", ast.Arithmetic("-", X, Y), Z)),
        ("?x / ?y * ?z", ast.Arithmetic("*", ast.Arithmetic("/", X, Y), Z)),
        ("?x-1", ast.Arithmetic("-", X, ONE)),
        ("-?x + -1", ast.Arithmetic("+", ast.Sign("-", X), integer("-1"))),
        ("?x + 1 < ?y", ast.Compare("<", ast.Arithmetic("+", X, ONE), Y)),
        ("?x <= ?y && ?z", ast.And((ast.Compare("<=", X, Y), Z))),
        ("?x NOT IN (1, ?y)", ast.In(X, (ONE, Y), negated=True)),
        ("?x IN ()", ast.In(X, ())),
        ("isiri(?x)", ast.Call("ISIRI", (X,))),
        ("now()", ast.Call("NOW", ())),
        ("xsd:integer(?x)", ast.FunctionCall(iri(XSD + "integer"), (X,))),
        ("not exists { }", ast.Exists(ast.GroupGraphPattern(()), negated=True)),
        ("count(*)", ast.Aggregate("COUNT", None)),
        ("count(distinct ?x)", ast.Aggregate("COUNT", X, distinct=True)),
        ("group_concat(?x; separator='*')", ast.Aggregate("GROUP_CONCAT", X, separator="*")),
        ("prev(?x)", ast.Prev(X)),
        ("first(?x)", ast.Aggregate("FIRST", X)),
        ("Last(?x)", ast.Aggregate("LAST", X)),
        ("LIST(?x)", ast.Aggregate("LIST", X)),
        ("timestamp(A)", ast.Timestamp(ast.Ref("A"))),
    ],
)
def test_expressions(text: str, expr: ast.Expr) -> None:
    assert expression(text) == expr


# --- group graph patterns --------------------------------------------------------------------

ALL = ast.GroupGraphPattern((ast.Triples((ast.Triple(var("s"), var("p"), var("o")),)),))


@pytest.mark.parametrize(
    ("text", "element"),
    [
        ("OPTIONAL { ?s ?p ?o }", ast.OptionalGraphPattern(ALL)),
        ("MINUS { ?s ?p ?o }", ast.MinusGraphPattern(ALL)),
        ("{ ?s ?p ?o }", ALL),
        (
            "{ ?s ?p ?o } UNION { } UNION { }",
            ast.GroupOrUnionGraphPattern(
                (ALL, ast.GroupGraphPattern(()), ast.GroupGraphPattern(()))
            ),
        ),
        ("GRAPH <http://kb> { ?s ?p ?o }", ast.GraphGraphPattern(iri("http://kb"), ALL)),
        (
            "SERVICE SILENT ?x { }",
            ast.ServiceGraphPattern(X, ast.GroupGraphPattern(()), silent=True),
        ),
        ("BIND(1 AS ?x)", ast.Bind(ONE, X)),
        ("VALUES ?x { 1 UNDEF }", ast.Values((X,), ((ONE,), (None,)))),
        ("VALUES (?x ?y) { (1 UNDEF) }", ast.Values((X, Y), ((ONE, None),))),
        ("FILTER EXISTS { ?s ?p ?o }", ast.Filter(ast.Exists(ALL))),
        ("SELECT * { ?s ?p ?o }", ast.SubSelect(None, ALL)),
    ],
)
def test_elements(text: str, element: ast.Element) -> None:
    assert elements(text) == (element,)


def test_filters_part_blocks_of_triples() -> None:
    kinds = [type(e) for e in elements("?s ?p ?o . FILTER(?o > 1) . ?s ?q ?r . ?s ?q ?t")]
    assert kinds == [ast.Triples, ast.Filter, ast.Triples]


def test_a_sub_query_with_all_its_clauses() -> None:
    (query_node,) = elements(
        "SELECT DISTINCT ?s (COUNT(*) AS ?n) WHERE { ?s ?p ?o } GROUP BY ?s (?o AS ?k) "
        "HAVING (COUNT(*) > 1) ORDER BY DESC(?n) ?s LIMIT 3 OFFSET 4 VALUES ?s { 1 }"
    )
    count = ast.Aggregate("COUNT", None)
    assert query_node == ast.SubSelect(
        items=(ast.SelectItem(var("s")), ast.SelectItem(var("n"), count)),
        pattern=ALL,
        distinct=True,
        group_by=(ast.SelectItem(var("s")), ast.SelectItem(var("k"), var("o"))),
        having=(ast.Compare(">", count, ONE),),
        order_by=(ast.OrderCondition(var("n"), True), ast.OrderCondition(var("s"))),
        limit=3,
        offset=4,
        values=ast.Values((var("s"),), ((ONE,),)),
    )


# --- spans -----------------------------------------------------------------------------------


def nodes_of(value: object) -> list[ast.Node]:
    if isinstance(value, tuple):
        return [node for item in value for node in nodes_of(item)]
    if not isinstance(value, ast.Node):
        return []
    names = type(value).__dataclass_fields__
    return [value, *(node for name in names for node in nodes_of(getattr(value, name)))]


def test_spans_lead_to_the_text_of_a_node() -> None:
    text = query(sequence="A; (B, C)+", pattern="?s :p ?x . FILTER(PREV(?x) + 1 < 'é')")
    tree = parse(text)
    found = {text[n.span.start : n.span.end]: type(n) for n in nodes_of(tree) if n.span.end}
    for written, kind in {
        "A": ast.Ref,
        "(B, C)+": ast.Step,
        "(B, C)": ast.Bracket,
        "B, C": ast.Sequence,
        "?s :p ?x": ast.Triple,
        "PREV(?x)": ast.Prev,
        "PREV(?x) + 1": ast.Arithmetic,
        "PREV(?x) + 1 < 'é'": ast.Compare,
        "'é'": ast.Literal,
        "FILTER(PREV(?x) + 1 < 'é')": ast.Filter,
        "WITHIN 1 HOURS": ast.TimeWindow,
        "1 HOURS": ast.TimeSpan,
        "FROM STREAM S <http://s>": ast.FromStream,
    }.items():
        assert found[written] is kind


def test_spans_count_characters_of_the_source_after_escapes() -> None:
    text = query(pattern=r"?s <http://x/\u00e9> ?x . FILTER(?x = '\U0001F600' && ?y)")
    (variable,) = (n for n in nodes_of(parse(text)) if n == var("y"))
    assert text[variable.span.start : variable.span.end] == "?y"
    (literal,) = (n for n in nodes_of(parse(text)) if n == ast.Literal("😀"))
    assert text[literal.span.start : literal.span.end] == r"'\U0001F600'"


def test_every_node_lies_within_the_node_above_it() -> None:
    for _, text in good_queries():
        for node in nodes_of(parse(text).gpms):
            for child in nodes_of(node):
                inside = node.span.start <= child.span.start <= child.span.end <= node.span.end
                # several triples share a subject or a blank node that is written once
                assert inside or isinstance(node, ast.Triple), (text, node, child)
