"""docs/python.md and docs/spark.md name every public name and every argument."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable

import pytest

import spaseq
import spaseq.spark
from spaseq.options import AnswersKeywords, EngineKeywords, RunKeywords
from tests.docs.pages import ROOT


def _named(page: str) -> set[str]:
    """The words in the code spans of a page."""
    text = (ROOT / "docs" / page).read_text("utf-8")
    spans = re.findall(r"`([^`\n]+)`", text)
    return {word for span in spans for word in re.findall(r"\w+", span)}


def test_public_names() -> None:
    assert set(spaseq.__all__) <= _named("python.md")
    source = (ROOT / "docs" / "spark.md").read_text("utf-8")
    assert [name for name in spaseq.spark.__all__ if name not in source] == []


@pytest.mark.parametrize(
    ("page", "call", "more"),
    [
        ("python.md", spaseq.run, RunKeywords),
        ("python.md", spaseq.Engine, EngineKeywords),
        ("python.md", spaseq.function, None),
        ("spark.md", spaseq.spark.answers, AnswersKeywords),
    ],
)
def test_keyword_arguments(page: str, call: Callable[..., object], more: type | None) -> None:
    parameters = inspect.signature(call).parameters.values()
    keywords = {p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}
    keywords |= getattr(more, "__optional_keys__", frozenset())
    assert keywords
    assert keywords <= _named(page)


def test_properties_of_a_match() -> None:
    public = {name for name in dir(spaseq.Match) if not name.startswith("_")}
    assert "trace" in public
    assert public <= _named("python.md")
