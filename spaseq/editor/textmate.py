"""The TextMate grammar of the language, made from the tables of words.

`python -m spaseq.editor.textmate` writes `GRAMMAR_FILE`, and a test compares the two. Its regular
expressions use only what Oniguruma and `re` have in common.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from spaseq.editor.words import FUNCTIONS, KEYWORDS

GRAMMAR_FILE = Path(__file__).with_name("spaseq.tmLanguage.json")

_CONSTANTS = ("TRUE", "FALSE", "UNDEF")


def _any(words: Iterable[str]) -> str:
    """An expression for any of some words, in any case; longer ones come first."""
    return "|".join(sorted(words, key=lambda word: (-len(word), word)))


def _match(pattern: str, name: str) -> dict[str, Any]:
    return {"match": pattern, "name": f"{name}.spaseq"}


def _refer(*names: str) -> list[dict[str, Any]]:
    return [{"include": f"#{name}"} for name in names]


def _string(begin: str, end: str, name: str) -> dict[str, Any]:
    return {
        "begin": begin,
        "end": end,
        "name": f"string.quoted.{name}.spaseq",
        "patterns": [_match(r"\\(?:[tbnrf\"'\\]|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8})", _ESCAPE)],
    }


_ESCAPE = "constant.character.escape"


def grammar() -> dict[str, Any]:
    """The grammar as a JSON object."""
    everywhere = _refer(
        "comment", "string", "iri", "variable", "sequence", "gpm", "stream", "function", "keyword"
    )
    return {
        "$schema": "https://raw.githubusercontent.com/martinring/tmlanguage/master/tmlanguage.json",
        "name": "SPAseq",
        "scopeName": "source.spaseq",
        "fileTypes": ["spaseq"],
        "patterns": [
            *everywhere,
            *_refer("constant", "blank", "prefixed", "language", "number", "operator"),
        ],
        "repository": {**_texts(), **_sequences(), **_names(), **_words()},
    }


def _texts() -> dict[str, Any]:
    """Comments, strings and IRIs, in which no other rule matches."""
    return {
        "comment": _match("#.*$", "comment.line.number-sign"),
        "string": {
            "patterns": [
                _string('"""', '"""', "triple"),
                _string("'''", "'''", "triple"),
                _string('"', '"|$', "double"),
                _string("'", "'|$", "single"),
            ]
        },
        "iri": _match(r"<[^<>\"{}|^`\\\s]*>", "string.other.link.iri"),
    }


def _sequences() -> dict[str, Any]:
    """SEQ and the text in its brackets."""
    inside = _refer("comment", "bracket", "gap", "step", "sign")
    return {
        "sequence": {
            "begin": r"(?i:\b(SEQ))\s*(\()",
            "beginCaptures": {"1": {"name": "keyword.control.spaseq"}},
            "end": r"\)",
            "patterns": inside,
        },
        "bracket": {"begin": r"\(", "end": r"\)", "patterns": inside},
        "gap": {
            "begin": r"\[",
            "end": r"\]",
            "patterns": _refer("comment", "keyword", "number", "sign"),
        },
        "step": {
            "patterns": [
                _match(r"(?i:\b(?:AND|UNTIL)\b)", "keyword.operator.word"),
                _match(r"\b[^\W\d]\w*", "entity.name.function.gpm"),
                _match(r"\{\s*\d+\s*(?:,\s*\d*\s*)?\}", "keyword.operator.quantifier"),
            ]
        },
        "sign": _match(r"[,;:|&!+*?]", "keyword.operator.sequence"),
    }


def _names() -> dict[str, Any]:
    """Names with a meaning: variables, GPMs, streams, prefixed names."""
    return {
        "variable": _match(r"[?$]\w+", "variable.other"),
        "gpm": _named(r"(?i:\b(DEFINE)\s+(GPM))\s+([^\W\d]\w*)", "function.gpm"),
        "stream": _named(r"(?i:\b(FROM)\s+(STREAM))\s+([^\W\d]\w*)(?![\w:])", "type.stream"),
        "blank": _match(r"_:[\w.-]*\w", "variable.other.blank"),
        "prefixed": {
            "match": r"((?:[^\W\d_][\w.-]*)?:)((?:[\w:-]|\.(?=[\w:-])|%[0-9A-Fa-f]{2}|\\[^\s])*)",
            "captures": {
                "1": {"name": "entity.name.namespace.spaseq"},
                "2": {"name": "entity.name.tag.local.spaseq"},
            },
        },
    }


def _named(pattern: str, kind: str) -> dict[str, Any]:
    """Two keywords, and a name of a kind."""
    names = ("keyword.control", "keyword.control", f"entity.name.{kind}")
    captures = {str(n): {"name": f"{name}.spaseq"} for n, name in enumerate(names, 1)}
    return {"match": pattern, "captures": captures}


def _words() -> dict[str, Any]:
    """Keywords, functions, numbers and signs."""
    keywords = [word for word in KEYWORDS if word not in _CONSTANTS]
    return {
        "function": _match(rf"(?i:\b(?:{_any(FUNCTIONS)})\b)(?=\s*\()", "support.function"),
        "keyword": _match(rf"(?i:\b(?:{_any(keywords)})\b)(?![:\w])", "keyword.control"),
        "constant": _match(rf"(?i:\b(?:{_any(_CONSTANTS)})\b)(?![:\w])", "constant.language"),
        "language": _match(
            r"@[A-Za-z]+(?:-[A-Za-z0-9]+)*(?:--(?:ltr|rtl))?", "storage.modifier.language"
        ),
        "number": _match(r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", "constant.numeric"),
        "operator": _match(
            r"<<\(?|\)?>>|\{\||\|\}|~|\^\^|&&|\|\||[<>!]=|[=<>!+*/|^-]|\ba\b", "keyword.operator"
        ),
    }


def grammar_text() -> str:
    """The text of `GRAMMAR_FILE`."""
    return json.dumps(grammar(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    GRAMMAR_FILE.write_text(grammar_text(), encoding="utf-8")
