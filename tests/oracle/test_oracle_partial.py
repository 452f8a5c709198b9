"""The oracle's partial matches against small examples.

Streams and queries are written as in `test_oracle_language`.
"""

from __future__ import annotations

import pytest

from spaseq.lang.parser import parse
from tests.oracle.model import Streamset
from tests.oracle.partial import Partial, partials
from tests.oracle.test_oracle_language import keyed, named, query, stream_of


def found(stream: str | Streamset, text: str) -> list[Partial]:
    streams = stream_of(stream) if isinstance(stream, str) else stream
    return partials(parse(text), streams)


def told(partial: Partial) -> str:
    """`ab B>C,D@5`: the trace, what it reached, what it waits for, and its close in seconds."""
    (trace,) = named([partial.answer])
    close = "" if partial.closing is None else f"@{partial.closing[0] // 1000}"
    return f"{trace} {partial.reached}>{','.join(partial.waiting)}{close}"


def check(stream: str | Streamset, sequence: str, expected: list[str], **more: str) -> None:
    more.setdefault("within", "10 SECONDS")
    assert [told(p) for p in found(stream, query(sequence, **more))] == expected


def test_the_table() -> None:
    check("a b1 b2 u b3 c", "A; C; B", ["ac C>B@10"])


@pytest.mark.parametrize(
    ("stream", "sequence", "expected"),
    [
        ("a b", "A; B", []),
        ("a x", "A, B", ["a A>B@10"]),
        ("a1 a2 b", "A: B; C", ["a1b B>C@10", "a2b B>C@11"]),
        # a longer one of the same level, or of a higher one
        ("a b1 b2", "A; B+; C", ["ab1b2 B>C@10"]),
        ("a b1 b2", "A; B{3}; C", ["a A>B@10"]),
        # the largest number of steps
        ("a", "A; B?; C", ["a A>C@10"]),
        ("a b", "A; B?; C", ["ab B>C@10"]),
        ("a b c d1", "A; B; C; D", []),
        ("a b c", "A: B?: C: D", ["abc C>D@10"]),
        # what the next step begins with
        ("a", "A; (B | (C?; D) | (N; X)); Y", ["a A>B,C,D,N@10"]),
        ("a", "A; N!; (B AND C)+; Y", ["a A>B,C@10"]),
        # negated steps go with the step after them, and the last one with none
        ("a n b", "A; N!; B; C", ["a A>B@10"]),
        ("a n b", "N!; B; C", []),
        ("a b n c", "A; B; N!", []),
        ("a x", "A; B; N!", ["a A>B@10"]),
        # a greedy loop ends its level
        ("a b1 b2 x", "A; B++; C", ["ab1b2 B>C@10"]),
    ],
)
def test_small_streams(stream: str, sequence: str, expected: list[str]) -> None:
    check(stream, sequence, expected)


def test_it_fits_its_window() -> None:
    check("a@0 b@5", "A; B; C", ["a A>B@4"], within="4 SECONDS")
    check("a@1 b@5", "A; B; C", ["a A>B@4"], within="4 SECONDS TUMBLING")
    check("a1 a2 x x", "A; B", ["a1 A>B@2", "a2 A>B@3"], within="3 EVENTS")
    check("a1 x a2", "A; B", ["a1 A>B@2", "a2 A>B"], within="3 EVENTS")
    check("a b1 b2 x x", "A; B++; C", ["ab1b2 B>C@3"], within="4 EVENTS")
    check("a x x x n", "A; N!; B?; C", ["a A>C@3"], within="4 EVENTS")
    check("a x x n", "A; N!; B?; C", ["a A>B@3"], within="4 EVENTS")


def test_a_variable_keeps_its_kind_in_every_level() -> None:
    same = {"A": "ex:s ex:k ?k .", "B": "ex:s ex:k ?k ."}
    streams = keyed(("a", "1"), ("a", "2"))
    check(streams, "A+; B", ["a0 A>B@10", "a1 A>B@11"], **same)


def test_single_bindings_must_agree() -> None:
    same = {"B": "ex:s ex:k ?k .", "C": "ex:s ex:k ?k ."}
    streams = keyed(("a", "0"), ("b", "1"), ("c", "2"))
    check(streams, "A; B?; C; D", ["a0b1 B>C@10", "a0c2 C>D@10"], **same)


def test_partitions_do_not_see_each_other() -> None:
    keys = dict.fromkeys("AB", "ex:s ex:k ?k .")
    streams = keyed(("a", "1"), ("a", "2"), ("b", "2"))
    check(streams, "A, B", ["a0 A>B@10"], clauses="PARTITION BY (?k)", **keys)


def test_selection_having_and_skipping_have_no_influence() -> None:
    more = {"select": "LAST *", "clauses": "AFTER MATCH SKIP PAST LAST EVENT", "having": "1 > 2"}
    check("a1 a2 x", "A; B", ["a1 A>B@10", "a2 A>B@11"], **more)


def test_its_end_is_its_last_instant() -> None:
    (only,) = found("a b1 b2 x", query("A; B++; C", within="10 SECONDS"))
    assert only.answer.end == (2000, 0)


def test_it_has_the_projected_bindings() -> None:
    (only,) = found("a1 b2 b3", query("A; B+; C", select="?a ?c (COUNT(?b) AS ?n)"))
    assert dict(only.answer.bindings).keys() == {"a", "n"}
