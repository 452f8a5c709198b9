"""Errors leave those warnings that they make no less true."""

from __future__ import annotations

from collections import Counter

import pytest

from spaseq.compile import check_query

PROLOGUE = "PREFIX : <http://e/>\n"
HEAD = "SELECT * WITHIN 1 HOURS FROM STREAM S <http://e/s>"
VAIN = """DEFINE GPM A ON S { ?a :v ?x FILTER(?x > "1") }
DEFINE GPM B ON S { ?b :v ?y FILTER(STR(?y) > 2) }
DEFINE GPM C ON S { ?c :v ?z FILTER(?z > "3") }"""


def codes(sequence: str, gpms: str, head: str = HEAD, tail: str = "") -> Counter[str]:
    """How often each finding is reported, its severity before its code."""
    checked = check_query(f"{PROLOGUE}{head} WHERE {{ SEQ({sequence})\n{gpms} }} {tail}")
    wrong = {error.span for error in checked.errors}
    assert not any(warning.span in wrong for warning in checked.warnings)
    starts = [finding.span.start for finding in checked.diagnostics]
    assert starts == sorted(starts)
    return Counter(f"{finding.severity} {finding.code}" for finding in checked.diagnostics)


def test_one_error_and_three_vain_comparisons() -> None:
    found = codes("A; B; C", VAIN.replace("GPM B ON S", "GPM B ON T"))
    assert found == {"error unknown-stream": 1, "warning vain-comparison": 3}


@pytest.mark.parametrize(
    ("written", "mistake", "error"),
    [
        ("(?z >", "(?z > >", "error syntax"),
        ("?a :v ?x FILTER", "?a :v FILTER", "error syntax"),
        ("?b :v ?y", "?b ex:v ?y", "error undeclared-prefix"),
        ("DEFINE GPM C", "DEFINE GPM B", "error duplicate-GPM"),
    ],
)
def test_vain_comparisons_beside_errors_in_gpms(written: str, mistake: str, error: str) -> None:
    gpms = VAIN.replace(written, mistake)
    found = codes("A; B" if "duplicate" in error else "A; B; C", gpms)
    # The pattern of a GPM with a syntax error is not read.
    vain = 2 if error == "error syntax" else 3
    assert found == {error: 1, "warning vain-comparison": vain}


def test_a_vain_comparison_in_having() -> None:
    gpms = "DEFINE GPM A ON T { ?a :v ?x }"
    found = codes("A", gpms, tail='HAVING (STRLEN(?a) > "3")')
    assert found == {"error unknown-stream": 1, "warning vain-comparison": 1}


SHAPES = [
    ("A, N!, B", HEAD, "warning vacuous-negation"),
    ("A; (N | N); B", HEAD, "warning unreachable-alternative"),
    ("A ;[2 HOURS] B; N", HEAD, "warning vain-gap-bound"),
    ("A; B; N", HEAD.replace("1 HOURS", "2 EVENTS"), "warning small-window"),
]


@pytest.mark.parametrize(("sequence", "head", "warning"), SHAPES)
@pytest.mark.parametrize(
    ("written", "mistake", "error"),
    [("?b :v ?y", "?b :v", "error syntax"), ("GPM B", "GPM D", "error unknown-gpm")],
)
def test_the_shape_of_a_sequence_beside_errors(
    sequence: str, head: str, warning: str, written: str, mistake: str, error: str
) -> None:
    gpms = """DEFINE GPM A ON S { ?a :v ?x }
    DEFINE GPM B ON S { ?b :v ?y }
    DEFINE GPM N ON S { ?n :w ?z }"""
    times = sequence.count("B") if error == "error unknown-gpm" else 1
    found = codes(sequence, gpms.replace(written, mistake), head)
    assert found == {error: times, warning: 1}


def test_a_broken_sequence_has_no_warnings_of_its_shape() -> None:
    gpms = 'DEFINE GPM A ON S { ?a :v ?x FILTER(?x > "1") }'
    assert codes("A ;; (A | A)", gpms) == {"error syntax": 1, "warning vain-comparison": 1}


FOLLOWING = "unused-gpm", "unbound-variable"


def test_other_warnings_beside_errors_that_hide_no_name() -> None:
    """An unknown stream and an undeclared prefix leave all steps and variables as they are."""
    gpms = """DEFINE GPM A ON T { ?a :v ?x FILTER(?other > 1) }
    DEFINE GPM B ON S { ?b ex:v ?y }
    DEFINE GPM C ON S { ?c :v ?z }"""
    head = HEAD.replace("*", "?a ?unbound")
    assert codes("A; B", gpms, head) == {
        "error unknown-stream": 1, "error undeclared-prefix": 1, "warning unused-gpm": 1,
        "warning unbound-variable": 2,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("sequence", "written", "mistake"),
    [
        ("A; B", "?b :v ?y", "?b :v ?y FLITER(?y > 1)"),
        ("A; B", "DEFINE GPM B", "DEFINED GPM B"),
        ("A; D", "", ""),
        ("A; B", "GPM C", "GPM B"),
        ("A! ; B!", "", ""),
        ("A; B{3,2}", "", ""),
        ("A; B) C", "", ""),
    ],
)
def test_an_error_that_may_hide_a_name_leaves_no_warning_about_names(
    sequence: str, written: str, mistake: str
) -> None:
    gpms = """DEFINE GPM A ON S { ?a :v ?x }
    DEFINE GPM B ON S { ?b :v ?y }
    DEFINE GPM C ON S { ?c :v ?z FILTER(?z > ?y) }"""
    found = codes(sequence, gpms.replace(written, mistake), HEAD.replace("*", "?x ?y ?z"))
    assert any(code.startswith("error") for code in found)
    assert not any(code.endswith(FOLLOWING) for code in found)


def test_a_place_with_an_error_has_no_warning() -> None:
    gpms = "DEFINE GPM A ON S { ?a :v ?x } DEFINE GPM B ON S { ?b :v ?y }"
    none = codes("A; B", gpms, HEAD.replace("1 HOURS", "0 EVENTS"))
    assert none == {"error empty-window": 1}
    one = codes("A; B", gpms, HEAD.replace("1 HOURS", "1 EVENTS"))
    assert one == {"warning small-window": 1}
