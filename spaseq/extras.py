"""The libraries of the package's extras, and what to say where they are missing."""

from __future__ import annotations

from importlib.util import find_spec

EXTRAS = {
    "geo": ("shapely", "pyproj"),
    "jelly": ("pyjelly",),
    "kafka": ("confluent_kafka",),
    "lsp": ("pygls", "lsprotocol"),
    "mqtt": ("paho",),
    "nats": ("nats",),
    "postgres": ("asyncpg",),
    "serve": ("starlette", "uvicorn", "jinja2"),
    "ws": ("websockets",),
}
"""The modules that each extra of `pyproject.toml` installs."""


def missing(extra: str) -> str:
    """The missing modules of an extra, with the command that installs them; "" if none is missing.

    >>> missing("ws") in (
    ...     "",
    ...     "websockets, which is not installed: pip install '.[ws]' in a clone of spaseq",
    ... )
    True
    """
    modules = [module for module in EXTRAS[extra] if find_spec(module) is None]
    if not modules:
        return ""
    names, verb = " and ".join(modules), "is" if len(modules) == 1 else "are"
    return f"{names}, which {verb} not installed: pip install '.[{extra}]' in a clone of spaseq"
