"""Warnings say what is true: each claim is checked against the answers of the engine."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from spaseq.compile import Checked, check_query
from spaseq.testing import Harness

NEVER = "can never hold"
EVENTS = (':a :v 5 ; :w 7 ; :t "x" .', ":b :v 6 ; :w 4 .", ":a :v 9 ; :w 1 .", ":a :v 3 ; :w 2 .")


@dataclass(frozen=True)
class Case:
    """A sequence over GPMs, and a part of the warning to expect, "" for none.

    A warning that says that a FILTER can never hold means that there are no answers. In all other
    cases the events above give some.
    """

    sequence: str
    gpms: dict[str, str]
    warning: str = ""
    having: str = ""

    @property
    def text(self) -> str:
        gpms = "\n".join(f"DEFINE GPM {n} ON S {{ {p} }}" for n, p in self.gpms.items())
        return (
            "PREFIX : <http://e/>\nSELECT * WITHIN 1 HOURS FROM STREAM S <http://e/s>\n"
            f"WHERE {{ SEQ({self.sequence})\n{gpms} }} {self.having}"
        )


def one(pattern: str, warning: str = "") -> Case:
    return Case("A", {"A": pattern}, warning)


TRUE = [
    # A FILTER sees its own group.
    one("?a :v ?x { SELECT ?a { ?a :w ?y FILTER(?y > 3) } }"),
    one("?a :v ?x { SELECT ?a (MAX(?y) AS ?m) { ?a :w ?y FILTER(?y > 3) } GROUP BY ?a }"),
    one("?a :v ?x { SELECT * { ?a :w ?y FILTER(?y > 3) } }"),
    one("?a :v ?x MINUS { ?a :w ?y FILTER(?y > 3) }"),
    one("?a :v ?x MINUS { ?a :w ?y OPTIONAL { ?a :t ?z FILTER(?y > 3) } FILTER(!BOUND(?z)) }"),
    one("?a :v ?x OPTIONAL { ?a :w ?y FILTER(?x > ?y) }"),
    one("?a :v ?x FILTER EXISTS { ?a :w ?y FILTER(?y < ?x || ?y > 3) }"),
    one("?a :v ?x FILTER NOT EXISTS { ?a :t ?t MINUS { ?a :w ?y FILTER(?y > 9) } }"),
    one("{ ?a :v ?x FILTER(?x > 3) } UNION { ?a :u ?z FILTER(?z > 3) }"),
    one("?a :v ?x BIND(?x + 1 AS ?z) FILTER(?z > 3)"),
    one("?a :v ?x VALUES ?z { 3 } FILTER(?x > ?z)"),
    one("FILTER(?x > 3) ?a :v ?x"),
    one("?a :v ?x { ?a :w ?y FILTER(?x > 3) }", NEVER),
    one("?a :v ?x { SELECT ?a { ?a :w ?y } } FILTER(?y > 3)", NEVER),
    one("?a :v ?x { SELECT ?a { ?a :w ?y FILTER(?x > 3) } }", NEVER),
    one("?a :v ?x MINUS { ?b :w ?y } FILTER(?y > 3)", NEVER),
    one("?a :v ?x FILTER EXISTS { ?a :w ?y FILTER(?yy > 3) }", NEVER),
    one("{ ?a :v ?x FILTER(?z > 3) } UNION { ?a :u ?z }", NEVER),
    # What BOUND, COALESCE, IF, || and ! make of an unbound variable.
    one("?a :v ?x FILTER(!BOUND(?zz))", "nothing binds ?zz"),
    one("?a :v ?x FILTER(?x > 3 || ?zz > 3)", "nothing binds ?zz"),
    one("?a :v ?x FILTER(COALESCE(?zz, 3) > 2)", "nothing binds ?zz"),
    one("?a :v ?x FILTER(IF(BOUND(?zz), ?zz > 1, ?x > 3))", "nothing binds ?zz"),
    one("?a :v ?x FILTER(!(?x > 90 && ?zz > 1))", "nothing binds ?zz"),
    one("?a :v ?x FILTER(?zz NOT IN (1, 2))", NEVER),
    one("?a :v ?x FILTER(?x > 3 && ?zz > 3)", NEVER),
    one("?a :v ?x FILTER(!(?zz > 3))", NEVER),
    one("?a :v ?x FILTER(BOUND(?zz))", NEVER),
    one("?a :v ?x FILTER(COALESCE(?zz, ?zz + 1) > 2)", NEVER),
    one("?a :v ?x FILTER(?x IN (?zz))", NEVER),
    # Earlier steps, loops and negated steps.
    Case("A; B", {"A": "?a :v ?x", "B": "?b :v ?y FILTER(?y > ?x)"}),
    Case("A; B", {"A": "?a :v ?x FILTER(?y > ?x)", "B": "?b :v ?y"}, "move it to B"),
    Case("A; B", {"A": "?a :v ?x FILTER(!BOUND(?y))", "B": "?b :v ?y"}, "?y is bound only later"),
    Case("A; (B; C)+", {"A": "?a :v ?x", "B": "?b :v ?y FILTER(!BOUND(PREV(?z)) || ?y > PREV(?z))",
                        "C": "?c :w ?z"}),
    Case("A; B+", {"A": "?a :v ?x", "B": "?b :v ?y FILTER(SUM(?y) < 100)"}),
    Case("A; N!; B", {"A": "?a :v ?x", "B": "?b :v ?y", "N": "?n :v ?z FILTER(?z > ?y + 90)"}),
    Case("A; B", {"A": "?a :v ?x", "B": "?b :v ?y { SELECT ?b { ?b :w ?w FILTER(?w > ?x) } }"},
         NEVER),
    Case("A; B", {"A": "?a :v ?x", "B": "?b :v ?y { ?b :w ?w FILTER(?w < ?x) }"}),
    Case("A; B", {"A": "?a :v ?x", "B": "?b :v ?y MINUS { ?b :w ?w FILTER(?w > ?x + 1) }"}),
    Case("A", {"A": "?a :v ?x"}, "HAVING can never hold", "HAVING (?y > 3)"),
    Case("A", {"A": "?a :v ?x"}, "nothing binds ?y", "HAVING (!BOUND(?y))"),
    # Comparisons.
    one('?a :v ?x FILTER(?x > "4")', "write 4 without quotation marks"),
    one('?a :v ?x FILTER("4" <= ?x)', "write 4 without quotation marks"),
    one("?a :v ?x FILTER(STR(?x) > 4)", "this never holds"),
    one('?a :v ?x FILTER(?x + 1 = "6")', "this never holds"),
    one('?a :v ?x FILTER(?x + 1 != "6")', "this always holds"),
    one("?a :v ?x FILTER(NOW() > 5)", "write a time as"),
    one('?a :t ?x FILTER(?x > "a")'),
    one('?a :v ?x FILTER(STR(?x) = "5")'),
    one('?a :v ?x FILTER(STR(?x) > "4")'),
    one("?a :v ?x FILTER(?x + 1 > 4)"),
    one("?a :v ?x FILTER(STRLEN(STR(?x)) = 1)"),
    Case("A; B", {"A": "?a :v ?x", "B": "?b :v ?y FILTER(NOW() - TIMESTAMP(A) > 1)"},
         "write a duration as"),
]  # fmt: skip


def checked(case: Case) -> Checked:
    found = check_query(case.text)
    assert found.errors == ()
    return found


def answers(case: Case) -> int:
    with Harness(case.text) as bench:
        for second, event in enumerate(EVENTS):
            bench.push("S", event, at=second)
    return len(bench.matches)


@pytest.mark.parametrize("case", TRUE, ids=lambda c: f"{c.sequence}: {' '.join(c.gpms.values())}")
def test_what_a_warning_says_is_true(case: Case) -> None:
    messages = [warning.message for warning in checked(case).warnings]
    assert len(messages) == bool(case.warning)
    assert case.warning in "".join(messages)
    never = NEVER in "".join(messages) or "never holds" in "".join(messages)
    assert bool(answers(case)) is not never


def query(sequence: str, gpms: str, within: str = "5 MINUTES", clauses: str = "") -> Checked:
    text = (
        f"PREFIX : <http://e/>\nSELECT *\nWITHIN {within} {clauses}\nFROM STREAM S <http://e/s>\n"
        f"WHERE {{\n  SEQ({sequence})\n{gpms}\n}}"
    )
    return check_query(text)


ABC = """DEFINE GPM A ON S { ?s :v ?a }
DEFINE GPM B ON S { ?s :w ?b }
DEFINE GPM C ON S { ?c :w ?d }"""


@pytest.mark.parametrize(
    ("sequence", "within", "message"),
    [
        ("A ;[10 MINUTES] B; C", "5 MINUTES", "write WITHIN 10 MINUTES or more"),
        ("A; B+[: 2 HOURS]; C", "5 MINUTES", "write WITHIN 2 HOURS or more"),
        ("A ;[5 MINUTES] B; C", "5 MINUTES", ""),
        ("A ;[10 MINUTES] B; C", "5 EVENTS", ""),
        ("A; B; C", "2 EVENTS", "a match has at least 3 events"),
        ("A; B{3}; C", "4 EVENTS", "a match has at least 5 events"),
        ("A; (B | C)*", "1 EVENTS", ""),
        ("(A & B); C", "2 EVENTS", ""),
        ("(A AND B); C", "2 EVENTS", "a match has at least 3 events"),
    ],
)
def test_windows_that_are_too_small(sequence: str, within: str, message: str) -> None:
    gpms = ABC if "C" in sequence else ABC.rpartition("DEFINE")[0]
    found = query(sequence, gpms, within).diagnostics
    assert len(found) == bool(message)
    assert message in "".join(warning.message for warning in found)


@pytest.mark.parametrize(
    ("sequence", "clauses", "warned"),
    [
        ("A, B", "", True),
        ("A, B+", "", True),
        ("A; B", "", False),
        ("A: B", "", False),
        ("A, B", "PARTITION BY (?s)", False),
        ("A, B, C", "", False),  # C does not bind ?s, so PARTITION BY would be refused
    ],
)
def test_strict_contiguity_of_joined_steps(sequence: str, clauses: str, warned: bool) -> None:
    gpms = ABC if "C" in sequence else ABC.rpartition("DEFINE")[0]
    codes = [d.code for d in query(sequence, gpms, clauses=clauses).diagnostics]
    assert codes == ["strict-join"] * warned
