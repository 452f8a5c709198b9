"""Regular expressions: all engines find what plain backtracking finds, and all end."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.budget import Budget, LimitExceeded, spending
from spaseq.expr.functions import regex_engines, unicode_classes
from spaseq.expr.functions.regex_engines import XPathPattern
from spaseq.expr.functions.xpath_regex import PatternError
from spaseq.limits import Limits
from tests.expr import backtracking_regex as reference
from tests.hostile import run_bounded

ENGINES = ("python", "linear", "backtracking")


def engine(name: str, pattern: str, flags: str = "") -> XPathPattern:
    """A pattern that uses one engine, where that can match it at all."""
    found = XPathPattern(pattern, flags)
    if name == "python":
        found.few = 10**9
    else:
        found.few = -1
        if name == "backtracking":
            found._back_references = True  # so RE2 cannot match it
    return found


LETTERS = st.sampled_from([*"abcABkKsS019 \n\r-", "é", "ſ", "\U0001f600"])
CLASSES = st.sampled_from(
    [
        *(
            ".",
            "[ab]",
            "[^a]",
            "[a-c]",
            r"\d",
            r"\w",
            r"\s",
            r"\S",
            r"\p{L}",
            r"\P{Nd}",
            r"[\w-[a]]",
        ),
        *("[a-c-[b]]", "[^ab-[\n]]", r"\p{IsGreek}", r"\i", r"\c", "[a-a-[a]]", r"\n", r"\."),
        *("[k-s]", r"[\w-[a]]"),
    ]
)
ATOMS = st.one_of(LETTERS.map(re.escape), LETTERS, CLASSES, st.sampled_from(["^", "$"]))
QUANTIFIERS = st.sampled_from(
    ["", "", "", "?", "*", "+", "{2}", "{1,3}", "{0,2}", "{1,}", "*?", "+?"]
)


def nested(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    items = st.tuples(inner, QUANTIFIERS).map("".join)
    sequence = st.lists(items, min_size=1, max_size=3).map("".join)
    choice = st.lists(sequence, min_size=1, max_size=3).map("|".join)
    group = choice.map(lambda text: f"({text})")
    return st.one_of(sequence, group, choice.map(lambda text: f"(?:{text})"))


PATTERNS = st.recursive(st.tuples(ATOMS, QUANTIFIERS).map("".join), nested, max_leaves=6)
TEXTS = st.text(LETTERS, max_size=12)
FLAGS = st.sampled_from(["", "", "s", "m", "i", "im", "x", "smi"])


def by_reference(pattern: str, flags: str) -> re.Pattern[str] | None:
    try:
        return reference.translate(pattern, flags)
    except reference.PatternError:
        return None


@given(
    PATTERNS, st.sampled_from(["", "", r"\1", r"\1+", r"\1?b"]), FLAGS, st.lists(TEXTS, max_size=4)
)
def test_all_engines_agree_with_backtracking(
    pattern: str, again: str, flags: str, texts: list[str]
) -> None:
    pattern += again
    expected = by_reference(pattern, flags)
    if expected is None:
        with pytest.raises(PatternError):
            XPathPattern(pattern, flags).matches("")
        return
    for name in ENGINES:
        found = engine(name, pattern, flags)
        assert found.groups == expected.groups
        for text in texts:
            assert found.matches(text) == (expected.search(text) is not None), name
            if not expected.search(""):
                ours = [[m.group(g) for g in range(found.groups + 1)] for m in found.found(text)]
                theirs = [
                    [m.group(g) for g in range(found.groups + 1)] for m in expected.finditer(text)
                ]
                assert ours == theirs, name


def test_flag_i_adds_case_variants_to_letters_and_classes_only() -> None:
    """As XPath functions 3.1 section 5.6.1.1 says, where Python's own flag goes further."""
    for name in ENGINES:
        assert engine(name, "[A-Z-[IO]]", "i").matches("x")
        assert not engine(name, "[A-Z-[IO]]", "i").matches("i")
        assert not engine(name, "[^Q]", "i").matches("q")
        assert not engine(name, r"\p{Lu}", "i").matches("a")
        assert engine(name, "ß", "i").matches("ẞ")
        assert engine(name, "q.x", "qi").matches("AQ.X")
        assert not engine(name, "q.x", "qi").matches("qax")
    assert engine("python", r"(a)\1", "i").matches("aA")


def test_case_variants_are_complete() -> None:
    cased = {code for code in range(0x110000) if chr(code).lower() != chr(code).upper()}
    ranges = unicode_classes._CASED
    alike: dict[str, set[int]] = {}
    for code in cased:
        for text in {chr(code).lower(), chr(code).upper()}:
            alike.setdefault(text, set()).add(code)
    apart = {c for codes in alike.values() if len(codes) > 1 for c in codes}
    assert all(any(low <= code <= high for low, high in ranges) for code in apart)


@pytest.mark.parametrize(
    "pattern",
    [
        *(
            "(" * 101 + ")" * 101,
            "[a-[" * 101,
            "a" * 20_001,
            r"\w" * 1_000,
            "a{1000000000}",
            "a{3,2}",
        ),
        *(r"(a)\2", "(" * 10_000, "[z-a]", r"\999999999999", "a{3,2}"),
    ],
    ids=lambda pattern: pattern[:12],
)
def test_patterns_that_are_wrong_or_too_large_are_errors(pattern: str) -> None:
    with pytest.raises(PatternError):
        XPathPattern(pattern).matches("a")


def test_a_pattern_that_only_backtracking_can_match_has_limited_time() -> None:
    slow = XPathPattern(r"^(a|aa)+\1\1b")
    with spending(Budget(Limits(), seconds=0.05)), pytest.raises(LimitExceeded, match="--timeout"):
        slow.matches("a" * 60)


def test_few_steps_are_taken_by_python() -> None:
    """The patterns of daily use run as fast as before."""
    for pattern in ("abc", "^[a-z]+$", "a.*b", "[0-9]{4}-[0-9]{2}", "^(abc|def)$", r"\.csv$"):
        assert XPathPattern(pattern).few >= 200
    for pattern in ("(a+)+$", "(a|a)*b", "(a|ab)+c"):
        assert XPathPattern(pattern).few < 0
    for pattern in ("(a|b)+c", "^[0-9]+(,[0-9]+)*$", r"^([a-z]+\.)+com$", "(ab?c|d){2,}e"):
        assert XPathPattern(pattern).few >= 60
    for pattern in ("(a|[a-c])+d", "(a+b?)+c", "(a*b?)+c", "(,[0-9,]+)*;", r"((a)|\2b)+c"):
        assert XPathPattern(pattern).few < 0
    assert regex_engines._steps(XPathPattern("a*a*a*b")._tree).degree == 3


@given(PATTERNS, st.sampled_from(["a", "ab", "ba0", "aab ", "a9\n"]))
def test_python_ends_on_all_texts_that_it_gets(pattern: str, unit: str) -> None:
    """A part again and again, and then what does not fit, takes the most steps."""
    if by_reference(f"({pattern})+~", "") is not None:
        found = XPathPattern(f"({pattern})+~")
        length = max(min(found.few, 400), 0)
        found.python.search((unit * length)[:length])  # a pattern like (a+)+~ would never end


HOSTILE = r"""
import time
from spaseq.expr.functions.strings import matches, replaced
from spaseq.budget import Budget, LimitExceeded, spending
from spaseq.expr.env import ExpressionError
from spaseq.limits import Limits
texts = ["a" * 30_000 + "!", "ab" * 1_000_000, "\n" * 100_000 + " ", "a" * 16_000_000]
patterns = ["^(a+)+$", "(a|a)*b", "(a|b|ab)*c", "(a*)*b", "a*a*a*a*a*b", "(.*)(.*)(.*)(.*)x",
            "^(a?){60}a{60}$", "(a{1000}){1000}", "((a{0,100}){0,100}){0,100}b",
            "(a|b)*a(a|b){20}c", "[^b]*[^c]*d+", r"(\s*\n)*x", r"^(a+)+\1$",
            r"(a*)(a*)(a*)\3\2\1b", r"(\w+\s?)*!$", "a{500}{2}", "(((((a*)*)*)*)*)*b",
            "x*" * 5_000, "(a|b|c|d)" * 1_000 + "e", "a?" * 1_000 + "a" * 1_000]
for pattern in patterns:
    for text in texts:
        for run in (lambda: matches(text, pattern, "m"),
                    lambda: replaced(text, pattern, "$1$0x" * 100)):
            start = time.monotonic()
            try:
                with spending(Budget(Limits(), seconds=0.5)):
                    run()
            except (ExpressionError, LimitExceeded) as error:
                pass
            if time.monotonic() - start > 8:
                print(pattern[:40], len(text), time.monotonic() - start)
for replacement in ("$1" * 2_000_000, "x" * 16_000_000, "$" + "9" * 5_000):
    try:
        replaced("a" * 1_000_000, "(a+)", replacement)
    except LimitExceeded:
        pass
try:
    replaced("a" * 1_000_000, "a", "x" * 1_000)
except LimitExceeded as error:
    print(error)
for i in range(3_000):
    matches("a" * 2_000, f"(a+)+{i}(\\w|\\p{{L}})*", "")
print("done")
"""


@pytest.mark.thorough
def test_hostile_patterns_and_replacements_end() -> None:
    done = run_bounded(HOSTILE, seconds=400)
    assert done.stdout == (
        "a computed literal has more than 16,777,216 bytes (--max-literal)\ndone\n"
    ), done.stderr
