"""Calls every kernel that reads knowledge bases once, so that it is compiled or loaded."""

from __future__ import annotations

from collections.abc import Iterator

from spaseq.kb.dictionary import KbTerms


def steps() -> Iterator[str]:
    """Yields the name of each kernel when it is ready."""
    KbTerms.of(["<a:s>", "<a:t>"]).find(["<a:t>"])
    yield "find_sorted"
