"""`check`, `fmt` and `explain` of sequences that are short to write and large to unroll."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile import run_bounded

MEMORY = 300 << 20
QUERY = """PREFIX : <http://e/>
SELECT * WITHIN 1 HOURS FROM STREAM S <http://e/s> SEQ({}) {{
  DEFINE GPM A ON S {{ ?a :a ?x }}
  DEFINE GPM B ON S {{ ?b :b ?y }}
  DEFINE GPM C ON S {{ ?c :c ?z }}
}}
"""


def nested(step: str, times: int) -> str:
    """`A` in brackets, each made from the one inside it."""
    text = "A"
    for _ in range(times):
        text = step.format(text)
    return text


READABLE = {
    "upper": "A; B{1,1000000}; C",
    "trillion": "A; B{1,1000000000000}; C",
    "beyond-int64": f"A; B{{{10**40},{10**50}}}; C",
    "exact": "A; B{1000000}; C",
    "lower": "A; B{1000000,}; C",
    "nested": "(A; B{1,1000}){1,1000}; C",
    "nested-deep": nested("({0}: B){{1,1000}}", 40) + ": C",
    "pairs": "A; (B & C){1,1000000}",
    "negated": "A; (B{1,1000000})!; C",
    "repeated-alternatives": nested("(({0} | B)+ , C)", 20),
    "any-order": ": ".join(["A", "B", "C"] * 400),
}
REFUSED = {
    "optional": ("A; " + "B?; " * 1000 + "C", "more than 20,000 edges"),
    "operands": ("(" + " AND ".join(["A", "B", "C"] * 400) + ")", "more than 100 deep"),
    "digits": ("A; B{1," + "9" * 6000 + "}; C", "unexpected"),
    "reversed": ("A; B{1000000,5}; C", "the bounds exclude each other"),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", READABLE)
def test_a_large_sequence_is_read_at_once(name: str, tmp_path: Path) -> None:
    path = tmp_path / "query.rq"
    path.write_text(QUERY.format(READABLE[name]))
    for command in ("check", "fmt", "explain"):
        done = run_bounded([command, path], memory=MEMORY, seconds=60)
        assert done.returncode == 0
        assert "Traceback" not in done.stderr


@pytest.mark.thorough
def test_a_greedy_loop_after_a_long_one_is_planned_at_once(tmp_path: Path) -> None:
    filtered = QUERY.replace("?x }}", "?x FILTER(?x <= 2 * COALESCE(PREV(?x), 1)) }}")
    path = tmp_path / "query.rq"
    path.write_text(filtered.format("A{2,3} : B{0,1000} , C{2,}+[:]"))
    done = run_bounded(["check", path], memory=MEMORY, seconds=60)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)


@pytest.mark.thorough
@pytest.mark.parametrize("name", REFUSED)
def test_a_sequence_that_is_too_large_is_refused(name: str, tmp_path: Path) -> None:
    sequence, reason = REFUSED[name]
    path = tmp_path / "query.rq"
    path.write_text(QUERY.format(sequence))
    done = run_bounded(["check", path], memory=MEMORY, seconds=60)
    assert done.returncode == 1
    assert reason in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
