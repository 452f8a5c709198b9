"""Every function answers for every text: queries that are half typed, mutated, or no queries."""

from __future__ import annotations

import random

import pytest

from spaseq.compile import CompileOptions
from spaseq.editor.completion import completions
from spaseq.editor.document import Document
from spaseq.editor.hover import hover
from spaseq.editor.navigation import canonical, definition, findings, outline, references, remedies
from spaseq.editor.vocabulary import Vocabulary
from tests.editor.queries import EXAMPLES, QUERY

NOTHING = Vocabulary()
ODD = [
    "",
    " ",
    "\ud800",
    "?",
    "{" * 3000,
    "SEQ(" * 2000,
    "SELECT * SEQ(" + "(" * 2000,
    "DEFINE",
    "GPM",
    "DEFINE GPM ON ON",
    "FROM STREAM",
    "PREFIX",
    "'''",
    '"',
    "<",
    "\\u0041\\uD800\\U00110000",
    "SELECT ?x ?\U0001d4b3 \U0001f600 WITHIN",
    "\x00\x01",
    "}" * 100,
    "SELECT * WITHIN 5 MINUTES TUMBLING FROM",
    "HAVING(",
]

LONG = ["a", "a:", "?", "<a", "[", "'", '"', "(", "{", "a b ", "SEQ", "GPM a "]


@pytest.mark.parametrize("text", LONG)
def test_long_texts(text: str) -> None:
    """Some squared cost would show as a hang."""
    ask_everything(text * (20_000 // len(text)), 20_000)


def ask_everything(text: str, offset: int) -> None:
    document = Document(text)
    offset = min(offset, len(document.text))
    completions(document, offset, NOTHING)
    hover(document, offset, NOTHING)
    definition(document, offset)
    references(document, offset)
    outline(document)
    canonical(document)


@pytest.mark.parametrize("text", ODD, ids=range(len(ODD)))
def test_odd_texts(text: str) -> None:
    for offset in {0, len(text) // 2, len(text)}:
        ask_everything(text, offset)
    document = Document(text)
    for finding in findings(document, CompileOptions()):
        list(remedies(document, finding))


def test_every_begin_of_a_query() -> None:
    for end in range(0, len(QUERY), 3):
        ask_everything(QUERY[:end], end)


def test_every_place_of_a_query() -> None:
    document = Document(QUERY)
    for offset in range(len(QUERY) + 1):
        hover(document, offset, NOTHING)
        definition(document, offset)
        references(document, offset)
        if offset % 5 == 0:
            completions(document, offset, NOTHING)


def test_mutated_examples() -> None:
    rng = random.Random(16)
    for path in rng.sample(EXAMPLES, min(12, len(EXAMPLES))):
        text = path.read_text("utf-8")
        for _ in range(5):
            start = rng.randrange(len(text))
            end = min(len(text), start + rng.randrange(12))
            noise = "".join(rng.choices("?{}()[]<>:;,.'\"\\ \n\U0001f600aA1", k=rng.randrange(4)))
            mutated = text[:start] + noise + text[end:]
            ask_everything(mutated, start + len(noise))
