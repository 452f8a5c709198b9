"""JSON-LD contexts from files. No context is fetched: a context that a text names must be known.

The core context of NGSI-LD is known: all its versions have the terms of the last one.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from spaseq.records import record


@record
class JsonLdContexts:
    """The contexts for a stream's JSON.

    Attributes:
        own: the text of the context that every message has, a JSON value; None if it has none.
        named: the text of each context that may be named by its IRI.
    """

    own: str | None = None
    named: tuple[tuple[str, str], ...] = ()

    @property
    def identity(self) -> list[str]:
        """The contexts as text, which must stay the same for a followed run to resume; empty
        without contexts.
        """
        if self == NO_CONTEXTS:
            return []
        return [hashlib.sha256(repr((self.own, self.named)).encode()).hexdigest()]


NO_CONTEXTS = JsonLdContexts()


REMOTE = "is remote, and nothing is fetched"
NOT_FETCHED = f"{REMOTE}; give it in a file (--context-map IRI=FILE, or context_map= in Python)"


_CORE = re.compile(r"https?://uri\.etsi\.org/ngsi-ld/v1/ngsi-ld-core-context(-v[0-9.]+)?\.jsonld")
CORE_NAME = b"uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context"
"""Substring of every text that names the core context of NGSI-LD."""


def is_core_context(iri: str) -> bool:
    """Whether an IRI names a version of the core context of NGSI-LD."""
    return _CORE.fullmatch(iri) is not None


@cache
def core_context() -> dict[str, Any]:
    """The core context of NGSI-LD."""
    text = Path(__file__).with_name("ngsi_core_context.json").read_text(encoding="utf-8")
    context: dict[str, Any] = json.loads(text)
    return context


class UnknownContext(ValueError):
    """A text names a context that is not known."""

    def __init__(self, iri: str) -> None:
        super().__init__(f"the context {iri[:200]} {NOT_FETCHED}")


class NamedContexts:
    """Replaces the IRIs of contexts by the contexts.

    Args:
        texts: the text of each context, a JSON value, by its IRI.
        most: maximum bytes that they may add to one text.
    """

    def __init__(self, texts: Mapping[str, str], most: int) -> None:
        self._values = {iri: json.loads(text) for iri, text in texts.items()}
        self._sizes = {iri: len(text) for iri, text in texts.items()}
        self._most = most
        self._added = 0

    def inlined(self, value: Any) -> Any:
        """A JSON value with known contexts in it.

        Raises:
            ValueError: the value names an unknown context, or contexts in a circle, or becomes too
                large.
        """
        self._added = 0
        return self._inlined(value, ())

    def _inlined(self, value: Any, within: tuple[str, ...]) -> Any:
        match value:
            case dict():
                return {
                    name: self._context(item, within)
                    if name == "@context"
                    else self._inlined(item, within)
                    for name, item in value.items()
                }
            case list():
                return [self._inlined(item, within) for item in value]
        return value

    def _context(self, value: Any, within: tuple[str, ...]) -> Any:
        match value:
            case str():
                return self._named(value, within)
            case list():
                parts = [self._context(item, within) for item in value]
                return [one for p in parts for one in (p if isinstance(p, list) else [p])]
        return self._inlined(value, within)

    def _named(self, iri: str, within: tuple[str, ...]) -> Any:
        if iri not in self._values:
            if is_core_context(iri):
                return core_context()
            raise UnknownContext(iri)
        if iri in within:
            raise ValueError(f"the context {iri} contains itself")
        self._added += self._sizes[iri]
        if self._added > self._most:
            raise ValueError(f"its contexts have more than {self._most} bytes (--max-event)")
        return self._context(self._values[iri], (*within, iri))
