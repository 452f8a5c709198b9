"""Hash functions (SPARQL 1.1 section 17.4.6): lower-case hexadecimal digests of UTF-8 text."""

from __future__ import annotations

import hashlib

from spaseq.expr.functions.registry import builtin
from spaseq.expr.functions.strings import simple
from spaseq.expr.values import Value


def _digest(name: str) -> None:
    @builtin(name, 1)
    def digest(value: Value) -> str:
        return hashlib.new(name.lower(), simple(value).encode(), usedforsecurity=False).hexdigest()


for _name in ("MD5", "SHA1", "SHA256", "SHA384", "SHA512"):
    _digest(_name)
