"""Warm-up of the knowledge base kernels: one call compiles or loads each of them."""

from __future__ import annotations

from collections.abc import Iterator

from spaseq.kb.dictionary import KbTerms


def steps() -> Iterator[str]:
    """Call each kernel once and yield its name when it is ready."""
    KbTerms.of(["<a:s>", "<a:t>"]).find(["<a:t>"])
    yield "find_sorted"
