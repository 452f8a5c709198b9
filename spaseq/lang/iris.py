"""Resolution of relative IRI references against a base (RFC 3986 section 5.2)."""

from __future__ import annotations

import re

# RFC 3986 appendix B: scheme, authority, path, query, fragment.
_COMPONENTS = re.compile(
    r"(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL
)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def is_absolute(iri: str) -> bool:
    """Whether an IRI reference has a scheme."""
    return _SCHEME.match(iri) is not None


def resolve(reference: str, base: str) -> str:
    """The absolute IRI for a reference; an absolute one stays exactly as written.

    >>> resolve("../g?y", "http://a/b/c/d;p?q")
    'http://a/b/g?y'
    """
    if is_absolute(reference):
        return reference
    scheme, base_authority, base_path, base_query, _ = _split(base)
    _, authority, path, query, fragment = _split(reference)
    if authority is not None:
        path = _without_dots(path)
    elif not path:
        authority, path, query = base_authority, base_path, base_query if query is None else query
    else:
        authority = base_authority
        path = _without_dots(_merged(path, base_path, authority))
    return _joined(scheme, authority, path, query, fragment)


def _split(iri: str) -> tuple[str | None, str | None, str, str | None, str | None]:
    components = _COMPONENTS.fullmatch(iri)
    assert components is not None  # the expression matches every string
    scheme, authority, path, query, fragment = components.groups()
    return scheme, authority, path, query, fragment


def _merged(path: str, base_path: str, authority: str | None) -> str:
    if path.startswith("/"):
        return path
    if authority is not None and not base_path:
        return "/" + path
    return base_path[: base_path.rfind("/") + 1] + path


def _without_dots(path: str) -> str:
    kept: list[str] = []
    segments = path.split("/")
    for segment in segments:
        if segment == ".." and (len(kept) > 1 or (kept and kept[0])):
            kept.pop()
        elif segment not in (".", ".."):
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/".join(kept)


def _joined(
    scheme: str | None, authority: str | None, path: str, query: str | None, fragment: str | None
) -> str:
    return "".join(
        [
            f"{scheme}:" if scheme is not None else "",
            f"//{authority}" if authority is not None else "",
            path,
            f"?{query}" if query is not None else "",
            f"#{fragment}" if fragment is not None else "",
        ]
    )
