"""Random lifts, tables, and queries over them beside an RDF stream.

The patterns of a query are mostly triples of the lift's template, with variables and constants in
the place of its terms, so that many of them have solutions.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.lift.lifting import PREFIXES
from tests.lift.test_lanes import BINDS, TESTS, tables

KB = """@prefix : <http://e/> .
:a :knows :s , "a" , 1 , 0 . :s :knows :a , 'x' , -3 . <http://e/n/1> :knows "b-1" , 2 .
<http://e/n/0> :knows <http://e/n/0> , 0 .
"""
ONTOLOGY = """@prefix : <http://e/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:p rdfs:subPropertyOf :q . :q rdfs:range :Thing . :p rdfs:domain :a .
"""
_AT = "<http://www.w3.org/ns/prov#generatedAtTime>"
_XSD = "http://www.w3.org/2001/XMLSchema#"
RDF_STREAM = f"""<http://e/t1> {_AT} "1970-01-01T00:00:01Z"^^<{_XSD}dateTime> .
<http://e/s> <http://e/p> "a" <http://e/t1> .
<http://e/s> <http://e/q> "1"^^<{_XSD}integer> <http://e/t1> .
<http://e/t2> {_AT} "1970-01-01T00:00:02Z"^^<{_XSD}dateTime> .
<http://e/n/1> <http://e/p> "-3"^^<{_XSD}integer> <http://e/t2> .
<http://e/n/1> <http://e/q> <http://e/a> <http://e/t2> .
"""
FIELDS = ("?s", "?u", "?i", "?j", "?d", "?c", "?b", "?m", "?_line")
CONSTANTS = ("1", "0", "-3", "'a'", "''", "'b-1'", '"\\n"', "0.5", "true", "1.0E0", ":a", ":s")
FILTERS = (
    "?c > 0",
    "?b < 1",
    "?c = 1",
    "?c != 'a'",
    "?a = :s",
    "?a = ?b",
    "isLITERAL(?c)",
    "STRLEN(STR(?c)) > 1",
    "?b > 0 || ?c = 'a'",
    "BOUND(?b)",
    "?c + 1 > 1",
    "?c IN (1, 'a', true)",
    "?d > ?c",
)
Triple = tuple[str, str, str]


@st.composite
def lifts(draw: Any) -> tuple[str, list[Triple]]:
    """(a lift, the triples of its template); most of its rows are good."""
    bound = draw(st.lists(st.sampled_from(BINDS), max_size=2))
    elements = [f"BIND({expr} AS ?{v})" for expr, v in zip(bound, "xy", strict=False)]
    tests = [t for t in TESTS if "?x" not in t]
    elements += [f"FILTER({draw(st.sampled_from(tests))})"] * draw(st.sampled_from([0, 0, 0, 1]))
    elements.append("BIND(IRI(CONCAT('http://e/n/', STR(?_line))) AS ?name)")
    elements.append("BIND(IRI(CONCAT('http://e/', ?s)) AS ?w)")
    elements.append("BIND(IRI(CONCAT('http://e/n/', STR(?i))) AS ?v)")
    subjects = ["?name", "?name", "?v", "?v", "?w", ":s", ":a", *(["?x"] if bound else [])]
    things = [*FIELDS, "?name", "?v", "?w", *CONSTANTS, *[f"?{v}" for v in "xy"[: len(bound)]]]
    one = st.tuples(
        st.sampled_from(subjects),
        st.sampled_from([":p", ":p", ":q", ":r", "a", "prov:value"]),
        st.sampled_from(things),
    )
    template: list[Triple] = [(":s", ":n", "?_line"), *draw(st.lists(one, max_size=4))]
    inside = " . ".join(map(" ".join, template))
    time = f"prov:generatedAtTime {draw(st.sampled_from(['?m', '?_line', '5', '?_line']))}"
    named = draw(st.booleans())
    if not named:
        template.append((":t", "prov:generatedAtTime", "?_line"))
    body = f"GRAPH ?name {{ {inside} }} ?name {time}" if named else f"{inside} . :t {time}"
    return f"{PREFIXES}CONSTRUCT {{ {body} }} WHERE {{ {' '.join(elements)} }}", template


@st.composite
def triples(draw: Any, template: list[Triple]) -> str:
    """A triple pattern, mostly one that the template may match."""
    subject, predicate, thing = draw(st.sampled_from(template))
    constant = draw(st.sampled_from(CONSTANTS))
    subject = draw(st.sampled_from(["?a", "?a", "?a", subject, ":s", "_:n", "<http://e/n/1>"]))
    path = draw(st.sampled_from([":p|:q", "^:p", ":p/:q", ":p+", ":q*", "!:p", ":q?", "?r"]))
    predicate = draw(st.sampled_from([*[predicate] * 12, ":p", ":q", path]))
    kept = constant if thing[0] == "?" else thing
    thing = draw(st.sampled_from(["?b", "?b", "?c", "?c", "?c", "?a", kept, constant]))
    return f"{'?a' if subject[0] == '?' else subject} {predicate} {thing}"


@st.composite
def patterns(draw: Any, template: list[Triple]) -> str:
    """The patterns of a GPM; two of them may share variables."""
    one = triples(template)
    parts = draw(st.lists(one, min_size=1, max_size=3))
    for _ in range(draw(st.integers(0, 2))):
        inner, variable = draw(one), draw(st.sampled_from("abc"))
        operands = [
            f"OPTIONAL {{ {inner} }}",
            f"FILTER EXISTS {{ {inner} }}",
            f"FILTER NOT EXISTS {{ {inner} }}",
            f"MINUS {{ {inner} }}",
            f"{{ {inner} }} UNION {{ {draw(one)} }}",
            f"GRAPH <http://e/kb> {{ ?{variable} :knows ?d }}",
            f"GRAPH <http://e/kb> {{ ?d :knows ?{variable} }}",
            f"{{ SELECT ?a (COUNT(*) AS ?d) {{ {inner} }} GROUP BY ?a }}",
            f"BIND(STR(?{variable}) AS ?e)",
            f"VALUES ?{variable} {{ {draw(st.sampled_from(CONSTANTS))} :s }}",
        ]
        filters = [f"FILTER({draw(st.sampled_from(FILTERS))})"] * len(operands)
        parts.append(draw(st.sampled_from([*operands, *filters])))
    return " . ".join(parts).replace(". OPTIONAL", " OPTIONAL")


@st.composite
def queries(draw: Any, template: list[Triple]) -> str:
    """A query over the lifted stream S, and mostly the RDF stream T, too."""
    sequence = draw(st.sampled_from(["A", "A", "A", "A; B", "A: B", "A, B", "A; B!; C", "A+; B"]))
    names = [name for name in "ABC" if name in sequence]
    streams = [draw(st.sampled_from(["S", "S", "S, T"])) for _ in names]
    gpms = "\n".join(
        f"DEFINE GPM {name} ON {stream} {{ {draw(patterns(template))} }}"
        for name, stream in zip(names, streams, strict=True)
    )
    other = "FROM STREAM T <http://e/t>" if any("T" in each for each in streams) else ""
    return f"""{PREFIXES}SELECT * WITHIN 100 DAYS FROM STREAM S <http://e/s>
{other} FROM NAMED <http://e/kb>
WHERE {{ SEQ({sequence})
{gpms} }}"""


@st.composite
def cases(draw: Any) -> tuple[str, Any, str]:
    """(lift, table, query)."""
    lift, template = draw(lifts())
    return lift, draw(tables()), draw(queries(template))
