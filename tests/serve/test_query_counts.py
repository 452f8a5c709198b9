"""The numbers of partial matches that a server gives with the automaton of a query."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.serve.servers import Served, event, served, wait
from tests.sizes import first_of

QUERY = """SELECT * WITHIN 1 HOURS FROM STREAM S <http://e/s>
WHERE {{ SEQ({sequence}) DEFINE GPM A ON S {{ ?x <http://e/p> "{value}" }}
DEFINE GPM B ON S {{ ?x <http://e/p> "end" }} }}"""


def automaton(server: Served, name: str) -> dict[str, Any]:
    wait(lambda: all(stream["lag"] == 0 for stream in server.http.get("/streams").json()))
    found: dict[str, Any] = server.http.get(f"/queries/{name}").json()["automaton"]
    return found


def waiting(server: Served, name: str) -> list[int]:
    return [state["partial_matches"] for state in automaton(server, name)["states"]]


def counts(server: Served, name: str) -> list[int | None]:
    return [edge["count"] for edge in automaton(server, name)["edges"]]


@pytest.mark.parametrize("operator", [";", ":"])
def test_a_query(tmp_path: Path, operator: str) -> None:
    with served(tmp_path) as server:
        text = QUERY.format(sequence=f"A{operator} B", value="a")
        assert server.http.put("/queries/q", content=text).status_code == 201
        assert (waiting(server, "q"), counts(server, "q")) == ([0, 0, 0], [0, 0])
        for number, value in enumerate(["a", "b", "a", "end", "a", "later"]):
            server.post(event(number, value))
        left = 1 if operator == ";" else 3  # under `:` they may match again
        wait(lambda: waiting(server, "q") == [0, left, 0])
        assert counts(server, "q") == [3, 1]


@pytest.mark.parametrize("sequence", first_of(["A; B", "A+: B", "A: B"], 1))
def test_each_query_of_a_family_has_its_own(tmp_path: Path, sequence: str) -> None:
    """Twelve queries; query n has seen its value n times. The eighth begins the family."""
    with served(tmp_path) as server:
        for number in range(12):
            text = QUERY.format(sequence=sequence, value=number)
            assert server.http.put(f"/queries/q{number}", content=text).status_code == 201
        values = [str(number) for number in range(12) for _ in range(number)]
        for number, value in enumerate([*values, "later"]):
            server.post(event(number, value))
        # A+ takes the next ones: from each of n solutions on, a run to each later one.
        expected = [n * (n + 1) // 2 if "+" in sequence else n for n in range(12)]
        wait(lambda: [waiting(server, f"q{n}")[1] for n in range(12)] == expected)
        assert set(counts(server, "q9")) == {None}
