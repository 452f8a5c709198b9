"""Hashes of a query, for logs, checkpoints and ids of answers only."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TypeAlias

Hashes: TypeAlias = tuple[str, str]
"""(fingerprint, hash of the canonical text), each a SHA-256 in hexadecimal."""


class Signature:
    """The hashes of a query, computed at the first use.

    The fingerprint covers the canonical text and everything else that the state depends on: only
    state with an equal one is restored. `canonical` covers the canonical text alone; ids of answers
    depend on it.

    >>> signature = Signature(lambda: ("5e1f", "ca40"))
    >>> signature.fingerprint, signature == Signature(lambda: ("5e1f", "ca40"))
    ('5e1f', True)
    """

    __slots__ = ("_hashes", "_make")

    def __init__(self, make: Callable[[], Hashes]) -> None:
        self._make: Callable[[], Hashes] | None = make
        self._hashes: Hashes = "", ""

    @property
    def fingerprint(self) -> str:
        return self._made()[0]

    @property
    def canonical(self) -> str:
        return self._made()[1]

    def _made(self) -> Hashes:
        make = self._make
        if make is not None:
            self._hashes = make()
            self._make = None  # its arguments are not needed any more
        return self._hashes

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Signature) and self._made() == other._made()

    def __hash__(self) -> int:
        return hash(self._made())

    def __repr__(self) -> str:
        return f"Signature{self._made()}"

    def __reduce__(self) -> tuple[Callable[[Hashes], Signature], tuple[Hashes]]:
        return _of, (self._made(),)


def _of(hashes: Hashes) -> Signature:
    return Signature(lambda: hashes)


def hash_of(text: str) -> str:
    """The SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


UNSIGNED = Signature(lambda: ("", ""))
"""The signature of an incomplete plan."""
