"""Queries that must parse: all of docs/lookup.md#grammar and of SPARQL's group patterns.

Each query contains one fragment and is otherwise minimal, so a failure names the production.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

PREFIXES = "PREFIX ex: <http://example.org/>\nPREFIX : <http://example.org/ns#>"

PROLOGUES = (
    "",
    PREFIXES,
    "BASE <http://b.example/dir/>",
    "BASE <http://b.example/dir/> PREFIX r: <rel#> BASE <../other/>",
    "prefix ex: <http://one/> Prefix ex: <http://two/>",
    "PREFIX a.b-c: <http://example.org/> # a comment 'with a quote\n",
)
FORMS = (
    "SELECT *",
    "select ?x",
    "SELECT ?x $y",
    "SELECT DISTINCT *",
    "SELECT ALL ?x",
    "SELECT NEXT ?x",
    "SELECT LAST ?x",
    "SELECT MAX ?x",
    "SELECT STRICT ?x",
    "SELECT DISTINCT LAST ?x",
    "SELECT (LAST(?x) AS ?l)",
    "SELECT ?x (COUNT(?y) AS ?n) (1 + AVG(?y) AS ?m)",
    "SELECT (LIST(?y) AS ?ys) (TIMESTAMP(A) AS ?t)",
    "SELECT (GROUP_CONCAT(DISTINCT ?y; SEPARATOR='*') AS ?text)",
    "CONSTRUCT { }",
    "CONSTRUCT { ?x a <http://example.org/Alert> }",
    "CONSTRUCT { ?x <http://p> ?y, ?z ; a <http://c> . _:a <http://q> [ <http://r> (1 2) ] . }",
    "CONSTRUCT { [] <http://p> _:a . [ <http://q> 1 ] . (1 2) <http://p> () }",
    "REGISTER STREAM <http://example.org/out> AS SELECT *",
    "REGISTER STREAM <http://example.org/out> AS CONSTRUCT { ?x ?y ?z }",
)
CLAUSES = (
    "",
    "WITHIN 5 MILLISECONDS",
    "WITHIN 1 MILLISECOND",
    "WITHIN 5 SECONDS",
    "WITHIN 1 SECOND",
    "within 1 seconds",
    "WITHIN 5 MINUTES",
    "WITHIN 1 MINUTE",
    "WITHIN 2 HOURS",
    "WITHIN 1 HOUR",
    "WITHIN 7 DAYS",
    "WITHIN 1 DAY",
    "WITHIN 10 EVENTS",
    "WITHIN 1 EVENT",
    "WITHIN 1 HOURS TUMBLING",
    "WITHIN 1 HOURS TUMBLING FROM '2014-08-01T00:00:00Z'",
    "WITHIN 1 HOURS TUMBLING FROM 2014-08-01T00:00:00+02:00",
    'WITHIN 1 HOURS TUMBLING FROM "2014-08-01T00:00:00"^^xsd:dateTime',
    "WITHIN 1 HOURS TUMBLING FROM STREAM S2 <http://s2>",
    "WITHIN 1 HOURS PARTITION BY (?x)",
    "WITHIN 1 HOURS PARTITION BY ?x",
    "WITHIN 1 HOURS Partition by (?x ?y)",
    "WITHIN 1 HOURS PARTITION BY (?x, ?y, ?z)",
    "PARTITION BY ?x WITHIN 1 HOURS",
    "AFTER MATCH NO SKIP",
    "AFTER MATCH CONSUME",
    "AFTER MATCH SKIP TO NEXT EVENT",
    "AFTER MATCH SKIP PAST LAST EVENT",
    "AFTER MATCH SKIP TO FIRST A",
    "AFTER MATCH SKIP TO LAST A",
    "after match skip to last Last",
    "AFTER MATCH MUTE 10 MINUTES",
    "AFTER MATCH NO SKIP MUTE 1 DAY",
    "after match skip to first A mute 5 seconds",
    "FROM STREAM From <http://s2> FROM STREAM Select <http://s3>",
    "FROM NAMED <http://kb>",
    "FROM NAMED <http://kb1> FROM STREAM S2 <http://s2> FROM NAMED <http://kb2>",
)
SEQUENCES = (
    "A",
    "A; B",
    "A , B",
    "A:B",
    "A : B;C,D",
    "A;[5 MINUTES] B",
    "A,[1 SECOND]B :[2 HOURS] C",
    "A+",
    "A*; B",
    "A; B?",
    "A; B!; C",
    "A!; B",
    "A; B{2}",
    "A; B{2,}",
    "A; B{2,5}; C",
    "A; B{ 2 , 5 }",
    "(A)",
    "(A; B)",
    "(A; B)+, C",
    "(A | B)",
    "(A|B|C)",
    "(A & B)",
    "(A AND B)",
    "(A and B And C)",
    "A; (B; C | D, E)+; F",
    "((A | B) & (C AND D)); E",
    "A; (B | (C & D))*; E!",
    "((((A))))",
    "AND_; ANDROID, BAND",
    "SEQ; Select, FILTER",
    "A; (B; C)!; D",
    "A; (B{2,3}; C?)+; D",
    "A; B+[:]; C{2,5}[, 10 SECONDS]; D",
    "A; B++; C*+; D{2,5}+",
    "A; B?+; (C, D)+[; 2 MINUTES]",
    "A; B+ UNTIL U; C*+[:] until U; D",
    "A?; B!; C; D!; E*; F",
    "# a comment ) } {\n A; # another\n B",
)
PATTERNS = (
    "",
    "?s ?p ?o",
    "?s ?p ?o .",
    "$s ?p ?o . ?s ?q ?r .",
    "?s a :C",
    "?s a :C ; :p 1 ; ; :q 2 ;",
    "?s :p 1, 2, 3 ; :q 4",
    ":s :p 1, -1, +1, 1.5, -.5, 1e3, 1.0E-3, .1e+2, true, FALSE",
    """:s :p "a", 'b', \"\"\"c "quoted"\nline\"\"\", '''d 'e' ''', "", '' """,
    r""":s :p "tab\t quote\" back\\slash \u00e9 \U0001F600", 'it\'s' """,
    ':s :p "chat"@fr, "colour"@en-GB, "1"^^ex:type, "2"^^<http://t> , "3"^^xsd:string',
    "?s :p [] . [] :q ?o",
    "?s :p [ :q ?x ; :r [ :s 1 ] , 2 ]",
    "[ :p ?x ] . [ :p 1 ] :q 2",
    "?s :p () . () :q ?o",
    "?s :p (1 ?x (2 3) [ :q 4 ])",
    "(1 2) :p ?o . (1) .",
    "_:a :p _:b . _:b :q _:a",
    "_:a :p ?x FILTER(?x > 1) _:a :q ?y",
    "<http://s> <http://p> <http://o>",
    "ex:a.b ex:c-d ex:e:f . ex: : ex:0",
    r"ex:a\,b ex:%41 ex:\~tilde",
    "?s :p/:q ?o",
    "?s :p|:q/:r ?o",
    "?s ^:p ?o",
    "?s :p+ ?o . ?s :p* ?o . ?s :p? ?o",
    "?s (:p/:q)+ ?o",
    "?s ^(:p|^:q)/a? ?o",
    "?s !:p ?o . ?s !^:p ?o . ?s !a ?o",
    "?s !(:p|^:q|a) ?o . ?s !() ?o",
    "?s :p+5 . ?s :p ?q",
    "?s (^:p)* ?o . ?s ((:p*)?)+ ?o",
    "FILTER(?x > 5)",
    "FILTER regex(?x, 'a')",
    "FILTER ex:f(?x)",
    "FILTER ex:f()",
    "FILTER EXISTS { ?s ?p ?o }",
    "FILTER NOT EXISTS { ?s ?p ?o }",
    "FILTER(?x > 5) . FILTER(?x < 9) .",
    "?s :p ?x . Filter(?x > '16.0'^^<http://www.w3.org/2001/XMLSchema#double>).",
    "?s :p ?x filter(?x = 1). ?s :q ?y",
    "OPTIONAL { ?s ?p ?o }",
    "?s :p ?x OPTIONAL { ?s :q ?y FILTER(?y > ?x) } . ?s :r ?z",
    "{ ?s :p ?o } UNION { ?s :q ?o }",
    "{ } UNION { } UNION { }",
    "{ ?s :p ?o } { ?s :q ?o }",
    "{ { { } } }",
    "?s :p ?o MINUS { ?s :q ?o }",
    "GRAPH <http://kb> { ?s ?p ?o }",
    "GRAPH ?g { ?s ?p ?o }",
    "SERVICE <http://sparql> { ?s ?p ?o }",
    "SERVICE SILENT ?endpoint { }",
    "?s :p ?x BIND(?x * 2 AS ?y)",
    "BIND(1 AS ?x) BIND(2 AS ?y)",
    "VALUES ?x { }",
    "VALUES ?x { 1 'a' <http://i> :p true UNDEF }",
    "VALUES (?x ?y) { (1 2) (UNDEF 'b'@en) }",
    "VALUES (?x) { (1) }",
    "VALUES () { () ( ) }",
    "SELECT * { ?s ?p ?o }",
    "{ SELECT ?s WHERE { ?s ?p ?o } }",
    "SELECT DISTINCT ?s { ?s ?p ?o }",
    "SELECT REDUCED ?s { ?s ?p ?o } LIMIT 10",
    "SELECT ?s (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?s HAVING (COUNT(*) > 1)",
    "SELECT (SUM(?o) AS ?t) (SAMPLE(?p) AS ?q) { ?s ?p ?o }",
    "SELECT (MIN(DISTINCT ?o) AS ?a) (MAX(?o) AS ?b) (AVG(?o) AS ?c) { ?s ?p ?o }",
    "SELECT (GROUP_CONCAT(?o) AS ?t) (COUNT(DISTINCT ?s) AS ?n) { ?s ?p ?o }",
    "SELECT (COUNT(?o) AS ?t) { ?s ?p ?o } GROUP BY STR(?s)",
    "SELECT ?t { ?s ?p ?o } GROUP BY (STR(?s) AS ?t) (?o + 1) ex:f(?p)",
    "SELECT ?s { ?s ?p ?o } ORDER BY ?s DESC(?o) ASC(?p) (?o + 1) STR(?s) OFFSET 5 LIMIT 3",
    "SELECT ?s { ?s ?p ?o } LIMIT 3 OFFSET 5 VALUES ?s { ex:a }",
    "{ SELECT ?s { { SELECT * { ?s ?p ?o } } } } UNION { ?s a :C }",
)
EXPRESSIONS = (
    "?x",
    "1",
    "'a'@en",
    "true",
    "<http://i>",
    "?x || ?y && ?z || ?v",
    "(?x || ?y) && (?z || ?v)",
    "(?x || ?y) || ?z",
    "(?x && ?y) && ?z",
    "!?x",
    "!(?x = 1) && !bound(?y)",
    "?x = 1",
    "?x != 1 || ?x < 1 || ?x > 1 || ?x <= 1 || ?x >= 1",
    "(?x = ?y) = (?z < 3)",
    "?x IN (1, 2, ?y)",
    "?x NOT IN ()",
    "?x + 1 in (?y, 'a') && ?z",
    "?x + 1 - 2 + 3",
    "?x - (1 - 2)",
    "?x + 1 * 2 / ?y - 3",
    "(?x + 1) * (2 / (?y / 3))",
    "?x+1",
    "?x-1",
    "?x -1*-2",
    "?x - -1 + +1",
    "-?x + -(1) * +?y",
    "- (?x + 1) < -3",
    "?x*?y",
    "BOUND(?x) && isIRI(?x) || isURI(?x) || isBlank(?x) || isLiteral(?x) || isNumeric(?x)",
    "STR(?x) = LANG(?x) && DATATYPE(?x) = IRI('a') && URI('b') = BNODE() && BNODE('c') = ?x",
    "STRDT('1', ex:t) = STRLANG('a', 'en') || UUID() = STRUUID()",
    "STRLEN(?x) + ABS(?x) + ROUND(?x) + CEIL(?x) + FLOOR(?x) + RAND() > 0",
    "SUBSTR(?x, 1) = SUBSTR(?x, 1, 2) && UCASE(?x) = LCASE(?x)",
    "STRSTARTS(?x, 'a') || STRENDS(?x, 'a') || CONTAINS(?x, 'a') || langMatches(?x, '*')",
    "STRBEFORE(?x, 'a') = STRAFTER(?x, 'a') && ENCODE_FOR_URI(?x) = CONCAT() && CONCAT('a', 'b')",
    "REGEX(?x, 'a.*', 'i') && REPLACE(?x, 'a', 'b') = REPLACE(?x, 'a', 'b', 'i')",
    "YEAR(?x) + MONTH(?x) + DAY(?x) + HOURS(?x) + MINUTES(?x) + SECONDS(?x) = 0",
    "TIMEZONE(?x) = TZ(?x) && NOW() > ?x",
    "MD5(?x) = SHA1(?x) || SHA256(?x) = SHA384(?x) || SHA512(?x)",
    "COALESCE(?x, 1) + IF(?x, 1, 2) = 3 && sameTerm(?x, ?y)",
    "EXISTS { ?a ?b ?c } || NOT EXISTS { ?a ?b ?c FILTER(?a = ?x) }",
    "xsd:integer(?x) = 1 && ex:f(DISTINCT ?x, 2)",
    "PREV(?x) < ?x",
    "?x > prev(?x) + 1",
    "FIRST(?x) <= LAST(?x)",
    "LIST(?x) = ?y",
    "COUNT(?x) > 2 && COUNT(DISTINCT ?x) < 3 && COUNT(*) = 1",
    "SUM(?x) + AVG(?x) + MIN(?x) + MAX(?x) > SAMPLE(?x)",
    "GROUP_CONCAT(?x; separator=', ') = GROUP_CONCAT(DISTINCT ?x)",
    "SUM(?x * 2) > 10",
    "TIMESTAMP(A) < '2014-08-01T00:00:00Z'^^xsd:dateTime",
)


def query(
    *,
    prologue: str = PREFIXES,
    form: str = "SELECT *",
    clauses: str = "WITHIN 1 HOURS",
    sequence: str = "A",
    pattern: str = "?s ?p ?o",
    having: str = "",
) -> str:
    """A minimal query except for the given parts."""
    return (
        f"{prologue}\n{form}\n{clauses}\nFROM STREAM S <http://s>\nWHERE {{\n"
        f"  SEQ({sequence})\n  DEFINE GPM A ON S {{ {pattern} }}\n}}\n{having}"
    )


def layouts() -> Iterator[str]:
    """Ways to write the same body."""
    gpm = "DEFINE GPM A ON S { ?s ?p ?o }"
    header = "SELECT * WITHIN 1 HOURS FROM STREAM S <http://s>"
    for where in ("", "WHERE", "where"):
        yield f"{header} {where} {{ SEQ(A) {gpm} }}"
        yield f"{header} {where} SEQ(A) {{ {gpm} }}"
    yield f"{header} SEQ(A) {{ }}"
    yield f"{header} SEQ(A) {{ DEFINE GPM A ON S, T, U {{ }} define gpm B on S {{ }} }}"
    yield f"{header} {{ SEQ(A) {gpm} }} HAVING(COUNT(?s) > 1)"
    yield f"{header} SEQ(A) {{ {gpm} }} having (?s = 1 || ?o > 2)"
    yield f"{header}\r\n{{\r\n\tSEQ(A)\t# done\r\n{gpm}\r\n}}"


def good_queries() -> Iterator[tuple[str, str]]:
    """(name, text) of every query."""
    yield from ((f"prologue {p!r}", query(prologue=p)) for p in PROLOGUES)
    yield from ((f"form {f!r}", query(form=f)) for f in FORMS)
    yield from ((f"clauses {c!r}", query(clauses=c)) for c in CLAUSES)
    yield from ((f"sequence {s!r}", query(sequence=s)) for s in SEQUENCES)
    yield from ((f"pattern {p!r}", query(pattern=p)) for p in PATTERNS)
    yield from ((f"filter {e!r}", query(pattern=f"FILTER({e})")) for e in EXPRESSIONS)
    yield from ((f"having {e!r}", query(having=f"HAVING({e})")) for e in EXPRESSIONS)
    yield from ((f"select {e!r}", query(form=f"SELECT ({e} AS ?r)")) for e in EXPRESSIONS)
    yield from ((f"layout {number}", text) for number, text in enumerate(layouts()))
    for path in sorted((Path(__file__).parent / "queries").glob("*.rq")):
        yield path.name, path.read_text(encoding="utf-8")
