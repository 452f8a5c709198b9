"""REGEX and REPLACE by the rules of XPath functions 3.1 section 5.6."""

from __future__ import annotations

import pytest

from tests.expr.sparql import ntriples, term


def regex(text: str, pattern: str, flags: str = "") -> bool | None:
    result = term("REGEX(?t, ?p, ?f)", t=_quoted(text), p=_quoted(pattern), f=_quoted(flags))
    return None if result is None else result == ntriples("true")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


@pytest.mark.parametrize(
    ("text", "pattern", "flags", "found"),
    [
        ("abracadabra", "bra", "", True),
        ("abracadabra", "^a.*a$", "", True),
        ("abracadabra", "^bra", "", False),
        ("a\nb", "a.b", "", False),
        ("a\rb", "a.b", "", False),
        ("a\nb", "a.b", "s", True),
        ("a\n", "a$", "", False),  # unlike in Python, $ matches only at the very end
        ("a\nb", "^b$", "", False),
        ("a\nb", "^b$", "m", True),
        ("a\n", "^$", "m", False),  # no line begins after the last newline
        ("HELLO", "hello", "i", True),
        ("HELLO", "[^h]ello", "i", False),
        ("hello world", "hello\\ sworld", "x", True),
        ("hello world", "hello[ ]world", "x", True),
        ("helloworld", "hello world", "x", True),
        ("a.c", "a.c", "q", True),
        ("abc", "a.c", "q", False),
        ("A.C", "a.c", "iq", True),
        ("x1", "\\p{L}\\p{Nd}", "", True),
        ("é", "^\\p{Ll}$", "", True),
        ("é", "^\\P{Ll}$", "", False),
        ("é", "^\\p{IsLatin-1Supplement}$", "", True),
        ("a+b", "^\\w+$", "", True),  # a symbol is a word character in XSD
        ("a_b", "^\\w+$", "", False),  # punctuation is not
        ("a_b", "^\\W", "", False),
        ("٣", "^\\d$", "", True),
        ("\u00a0", "\\s", "", False),
        ("p:q", "^\\i\\c*$", "", True),
        ("-p", "^\\i", "", False),
        ("b", "^[a-z-[aeiou]]$", "", True),
        ("e", "^[a-z-[aeiou]]$", "", False),
        ("E", "^[a-z-[aeiou]]$", "i", False),
        ("-", "^[a-]$", "", True),
        ("]", "^[\\]]$", "", True),
        ("5", "^[^\\D]$", "", True),
        ("aa", "^(a)\\1$", "", True),
        ("ab", "^(a)\\1$", "", False),
        ("b", "^(a)?\\1b$", "", True),  # a group that did not match is empty
        ("a1", "^(a)\\11?$", "", False),
        ("aa1", "^(a)\\11$", "", True),  # group 1, then the digit 1
        ("ab", "^(?:a)b$", "", True),
        ("aaa", "^a{2,3}?$", "", True),
        ("", "", "", True),
        ("a|b", "^a\\|b$", "", True),
        ("b", "^(a|b|)$", "", True),
    ],
)
def test_matches(text: str, pattern: str, flags: str, found: bool) -> None:
    assert regex(text, pattern, flags) is found


@pytest.mark.parametrize(
    ("pattern", "flags"),
    [
        ("a", "g"),
        ("(a", ""),
        ("a)", ""),
        ("[a", ""),
        ("[]", ""),
        ("a]", ""),
        ("a**", ""),
        ("a*+", ""),  # possessive in Python
        ("*a", ""),
        ("a{2,1}", ""),
        ("a{", ""),
        ("}", ""),
        ("[z-a]", ""),
        ("[\\d-z]", ""),
        ("[a-z-[b]c]", ""),
        ("\\b", ""),
        ("\\1", ""),
        ("(a\\1)", ""),
        ("\\", ""),
        ("\\p{Xx}", ""),
        ("\\p{IsNoSuchBlock}", ""),
        ("(?=a)", ""),
        ("(?P<n>a)", ""),
    ],
)
def test_invalid_patterns_are_errors(pattern: str, flags: str) -> None:
    assert regex("a", pattern, flags) is None


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ('REPLACE("abracadabra", "bra", "*")', '"a*cada*"'),
        ('REPLACE("abracadabra", "a.*a", "*")', '"*"'),
        ('REPLACE("abracadabra", "a.*?a", "*")', '"*c*bra"'),
        ('REPLACE("abracadabra", "a", "")', '"brcdbr"'),
        ('REPLACE("abracadabra", "a(.)", "a$1$1")', '"abbraccaddabbra"'),
        ('REPLACE("AAAA", "A+", "b")', '"b"'),
        ('REPLACE("AAAA", "A+?", "b")', '"bbbb"'),
        ('REPLACE("darted", "^(.*?)d(.*)$", "$1c$2")', '"carted"'),
        ('REPLACE("abracadabra", ".*?", "$1")', "error"),  # matches the empty string
        ('REPLACE("abc", "b", "$0$0")', '"abbc"'),
        ('REPLACE("abc", "(b)", "$12")', '"ab2c"'),
        ('REPLACE("abc", "(x)?b", "[$1]")', '"a[]c"'),
        ('REPLACE("abc", "b", "\\\\$\\\\\\\\")', '"a$\\\\c"'),
        ('REPLACE("abc", "b", "$")', "error"),
        ('REPLACE("abc", "b", "\\\\n")', "error"),
        ('REPLACE("a.c", ".", "$1", "q")', '"a$1c"'),
        ('REPLACE("ABC"@en, "b", "-", "i")', '"A-C"@en'),
        ('REPLACE(1, "b", "c")', "error"),
        ('REGEX("a"@en, "A", "i")', "true"),
        ('REGEX(1, "1")', "error"),
        ('REGEX("1", 1)', "error"),
        ('REGEX("a", "a"@en)', "error"),
    ],
)
def test_functions(text: str, result: str) -> None:
    assert term(text) == ntriples(result)
