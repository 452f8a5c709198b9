"""Queries over the synthetic stream, as long as asked for.

Their last step is of a type that never occurs. So no match ends: partial matches stay until they
leave the window, and no time goes into answers.
"""

from __future__ import annotations


def query(steps: int, window_ms: int, *, compared: bool, keyed: bool = True) -> str:
    """A sequence of `steps` types by key; with `compared`, each value exceeds the first one."""
    key = " ; :key ?key" if keyed else ""
    gpms = []
    for i in range(1, steps + 1):
        kind = f":T{i}" if i < steps else ":Never"
        value = f" ; :value ?v{i}" if compared else ""
        larger = f" FILTER (?v{i} > ?v1)" if compared and i > 1 else ""
        gpms.append(f"DEFINE GPM G{i} ON S1 {{ ?e{i} a {kind}{key}{value}{larger} }}")
    return f"""PREFIX : <http://s.example/ns#> SELECT * WITHIN {window_ms} MILLISECONDS
    {"PARTITION BY (?key)" if keyed else ""} FROM STREAM S1 <http://s.example/stream/s1>
    WHERE {{ SEQ({"; ".join(f"G{i}" for i in range(1, steps + 1))}) {" ".join(gpms)} }}"""
