"""What is fuzzed: for each reader its seeds, the pieces of its syntax, and what must hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from spaseq.api.queries import check_queries
from spaseq.errors import UsageError
from spaseq.lang.format import format_query
from spaseq.options import PlanningOptions
from spaseq.render.explain import explain_text
from tests.fuzz import lines
from tests.fuzz.mutation import BYTES, UNICODE, Pieces

GOLDEN = Path(__file__).parent.parent / "golden"


@dataclass(frozen=True)
class Target:
    """One reader. `check` takes a batch of inputs and returns how many of them it accepts.

    It raises if an input breaks the reader, or if the reader's verdict is wrong.
    """

    name: str
    seeds: Sequence[bytes]
    pieces: Pieces
    check: Callable[[list[bytes]], int]
    batch: int = 1


TARGETS: dict[str, Callable[[], Target]] = {}


def target(function: Callable[[], Target]) -> Callable[[], Target]:
    """Enter a target under its function's name, with hyphens."""
    TARGETS[function.__name__.replace("_", "-")] = function
    return function


# --- lines ----------------------------------------------------------------------------------------


def _lines(name: str, graphs: bool) -> Target:
    def check(batch: list[bytes]) -> int:
        return lines.agree(b"\n".join(batch), graphs)

    return Target(name, [text.encode() for text in lines.SEEDS], lines.PIECES, check, 200)


@target
def n_quads() -> Target:
    """The verdict on each line equals pyoxigraph's, and so do the quads."""
    return _lines("n-quads", True)


@target
def n_triples() -> Target:
    """As for N-Quads."""
    return _lines("n-triples", False)


# --- queries --------------------------------------------------------------------------------------

_WORDS = (
    "SELECT CONSTRUCT WHERE WITHIN FROM STREAM NAMED SEQ DEFINE GPM ON FILTER OPTIONAL UNION MINUS "
    "BIND VALUES SERVICE GRAPH EXISTS NOT PARTITION BY HAVING GROUP ORDER LIMIT DISTINCT AND ALL "
    "NEXT LAST MAX STRICT AFTER MATCH SKIP PAST EVENT PREV COUNT SUM AVG IN UNDEF BASE PREFIX"
)


@target
def queries() -> Target:
    """A query is planned, or refused with the places of its errors; `fmt` keeps its meaning."""
    seeds = [path.read_bytes() for path in sorted(GOLDEN.glob("*.rq"))]
    tokens = [f" {word} ".encode() for word in _WORDS.split()]
    signs = [*map(str.encode, "(){}[]<>?;,:.|&!+*^/=1'"), b"{2,3}", b"||", b"&&"]
    numbers = [b"{1,1000000}", b"9" * 30, b"1e999", b"-", b'"', b'"""', b"#", b"\\", b"<http://e/>"]
    return Target("queries", seeds, [*tokens, *signs * 4, *numbers * 2, *UNICODE, *BYTES], _queries)


def _queries(batch: list[bytes]) -> int:
    accepted = 0
    for data in batch:
        text = data.decode(errors="surrogateescape")
        try:
            (checked,) = check_queries(text, PlanningOptions())
        except UsageError:
            continue
        for finding in checked.diagnostics:
            finding.render().encode(errors="surrogateescape")
        if checked.plan is None or checked.query is None:
            assert checked.errors, "refused without an error"
            continue
        accepted += 1
        explain_text(checked)
        canonical = format_query(checked.query)
        (again,) = check_queries(canonical, PlanningOptions())
        assert again.query is not None, f"refused as fmt writes it: {canonical}"
        assert format_query(again.query) == canonical
    return accepted
