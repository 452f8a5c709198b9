"""Checks that cross what small examples of the oracle do not reach. Each fails on wrong answers.

Some borrow a test, whose fixture `force` then leaves the thresholds as they are.
"""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import feather, parquet

import spaseq
from tests.automaton.registers.test_run_sequencer import test_plain_sequences as plain_sequence
from tests.automaton.sets.test_set_sequencer import test_select_max_over_loops as select_max
from tests.gpm import test_limits as pattern_limits
from tests.gpm.graphs import Row, solutions
from tests.knowledge.cases import MAINTAINERS, Case
from tests.knowledge.reference import Given
from tests.knowledge.test_changing_graphs import of_local
from tests.knowledge.test_maintained_graphs import from_place, of_late_reader
from tests.lift import test_lifted_messages as messages
from tests.lift.lifting import lift_of, lifted
from tests.oracle.test_partial import run as partial_matches
from tests.runtime import test_query_families as families
from tests.runtime.arrivals import test_batch_files as batch_files
from tests.runtime.machines import answers_in_process
from tests.runtime.spark import test_one_machine as one_machine
from tests.runtime.spark.rows import test_answer_blocks as blocks
from tests.runtime.spark.rows import test_run_files as run_files
from tests.runtime.spark.stages import test_bucket_state as buckets
from tests.runtime.spark.stages import test_followed_patterns as followed
from tests.stages import test_hopeless_rows as hopeless
from tests.stages import test_partial_stage as partial_stage
from tests.stages import test_rare_rows as rare
from tests.stages import test_waiting_limit as limits
from tests.stages import test_waiting_rows as waiting
from tests.windows import test_kept_groups as windows


def _as_they_are(words: str) -> set[str]:
    return set()


# --- evaluators, against the evaluator in Python --------------------------------------------------


def ties(directory: Path) -> None:
    """Two solutions at one instant now and then."""
    plain_sequence("A; B; C", 1, _as_they_are)


def maximal_matches(directory: Path) -> None:
    select_max("A; B+; C", 1, 1, _as_they_are)


def limited_matches(directory: Path) -> None:
    """Too many partial matches wait; which ones fail does not depend on how events are cut."""
    limits.test_a_longer_stream_fails_at_one_instant(
        "A; B: C", "7 SECONDS TUMBLING", True, 3, _as_they_are
    )


def partials(directory: Path) -> None:
    """Partial matches, against their definition."""
    partial_matches(4, "crossings")


def closed_partials(directory: Path) -> None:
    """Partial matches whose windows close in a batch, against those that are made one by one."""
    partial_stage.test_numbers_and_matches_agree_if_windows_close_in_the_batch("A; B; C", "", 1)


def packed_log(directory: Path) -> None:
    """The batches of a file source log, against those that were written."""
    batch_files.check_batches(directory)


def kept_groups(directory: Path) -> None:
    """Groups of a window that come and go, against the counts that they must have."""
    windows.groups_that_come_and_go()


def partitioned_windows(directory: Path) -> None:
    """Sums of windows of many keys, against a loop."""
    windows.sums_of_each_key()


# --- stage 2, with and without the mechanism ------------------------------------------------------


def family_that_waits(directory: Path) -> None:
    waiting.test_answers_come_when_they_come_without_waiting("A; B", "", 2, _as_they_are, 3)


def query_that_waits(directory: Path) -> None:
    waiting.test_a_query_by_itself_has_the_same_answers("A; B", "", 2, False, _as_they_are, 5)


def hopeless_rows(directory: Path) -> None:
    """Which rows of a query can be in a match, against a loop; they come in many runs."""
    hopeless.test_rows_of_many_runs(200, 1)


def rare_rows(directory: Path) -> None:
    """Which rows are in a match, against a loop; one of the GPMs may be rare."""
    for seed in range(3):
        rare.check_matches(seed)


def together(texts: list[str]) -> None:
    """Queries that run together have the answers that each has by itself."""
    found = families.answers(texts)
    assert found
    for number, text in enumerate(texts, 1):
        assert found.get(f"query{number}", []) == families.answers([text]).get("query", [])


def twelve_members(directory: Path) -> None:
    together(families.texts())


def three_families(directory: Path) -> None:
    """None begins with the member: its patterns would be made once for all members."""
    skip = "AFTER MATCH SKIP TO NEXT EVENT"
    several = ("A; B", "A: B", "B; A")
    together([text for steps in several for text in families.texts(steps=steps, more=skip)])


def shared_patterns(directory: Path) -> None:
    """Patterns that several queries of no family have."""
    together([families.texts(steps=steps)[0] for steps in ("A; B", "A: B", "B; A", "A, B")])


# --- reading and lifting --------------------------------------------------------------------------

COUNTED = """PREFIX : <http://e/> SELECT ?v WITHIN 1 HOURS FROM STREAM S <http://e/s>
    WHERE { SEQ(A) DEFINE GPM A ON S { ?x :v ?v FILTER (STRLEN(CONCAT(?v, ?v)) > 2) } }"""


def document(directory: Path) -> None:
    """40 events in TriG, of which 30 have a value of two characters or more."""
    path = directory / "stream.trig"
    time = "<http://www.w3.org/ns/prov#generatedAtTime>"
    stamp = "http://www.w3.org/2001/XMLSchema#dateTime"
    path.write_text(
        "".join(
            f'<http://e/g{i}> {{ <http://e/{i}> <http://e/v> "{i}" }}\n'
            f'<http://e/g{i}> {time} "2020-01-01T00:00:{i:02}Z"^^<{stamp}> .\n'
            for i in range(40)
        )
    )
    found = spaseq.run(COUNTED, {"S": str(path)}, runtime="local")
    assert [dict(m.answer.singles)["v"] for m in found] == [f'"{i}"' for i in range(10, 40)]


def lines_of_a_shape(directory: Path) -> None:
    """Forty lines of JSON-LD that differ in a number, but for one of another shape."""
    path = directory / "stream.ndjsonld"
    context = {"v": "http://e/v", "at": "http://www.w3.org/ns/prov#generatedAtTime"}
    lines = [{"@context": context, "at": i, "v": i} for i in range(40)]
    lines[20]["w"] = 1
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    text = COUNTED.replace("STRLEN(CONCAT(?v, ?v)) > 2", "?v > 9")
    found = spaseq.run(text, {"S": str(path)}, runtime="local")
    integer = "http://www.w3.org/2001/XMLSchema#integer"
    wanted = [f'"{i}"^^<{integer}>' for i in range(10, 40)]
    assert [dict(m.answer.singles)["v"] for m in found] == wanted


def lifted_messages(directory: Path) -> None:
    """150 messages together, and each alone."""
    messages.test_many_messages_together_give_what_each_gives_alone(messages.LIFT, 0.02, 2)


def small_blocks(directory: Path) -> None:
    """Forty rows of each kind of file, in blocks of a row or in one."""
    rows = [{"v": str(i)} for i in range(40)]
    table = pa.table({"v": [row["v"] for row in rows]})
    paths = [directory / f"rows.{kind}" for kind in ("csv", "json", "jsonl", "parquet", "arrow")]
    paths[0].write_text("v\n" + "".join(f"{row['v']}\n" for row in rows))
    paths[1].write_text(json.dumps(rows))
    paths[2].write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    parquet.write_table(table, paths[3], row_group_size=30)
    feather.write_feather(table, paths[4])
    for path in paths:
        events, bad = lifted(path, lift_of(":s :v ?v"))
        assert not bad, path
        found = [o.strip('"') for *_, ts in events for _, p, o in ts if p.endswith("v>")]
        assert found == [row["v"] for row in rows], path


# --- graph patterns -------------------------------------------------------------------------------

SIZE = 12


def cycle(directory: Path) -> None:
    """Paths along a cycle: from each node to all, and to those that a triple names."""
    p, q = "<http://e/p>", "<http://e/q>"
    nodes = [f"<http://e/n{i}>" for i in range(SIZE)]
    steps = [(node, p, nodes[(i + 1) % SIZE]) for i, node in enumerate(nodes)]
    marked = [(node, q, other) for node in nodes[:3] for other in nodes[6:9]]

    def row(x: str, y: str) -> Row:
        return frozenset({("x", x), ("y", y)})

    (every,) = solutions("{ ?x :p+ ?y }", [steps])
    assert every == {row(x, y): 1 for x in nodes for y in nodes}
    kb = {"http://e/kb0": steps}
    (known,) = solutions("{ ?x :q ?z GRAPH <http://e/kb0> { ?x :p+ ?y } }", [marked], kb)
    ends = {(x, z) for x, _, z in marked}
    assert known == {row(x, y) | {("z", z)}: 1 for x, z in ends for y in nodes}
    (named,) = solutions("{ ?x :q ?y . ?x :p+ ?y }", [[*steps, *marked]])
    assert named == {row(x, y): 1 for x, _, y in marked}


def events_beyond_a_limit(directory: Path) -> None:
    """Two of six events have too many solutions; the others keep theirs."""
    product = pattern_limits.TOO_MANY["cross product"]
    pattern_limits.test_an_event_with_too_many_solutions_has_none_and_the_others_have_theirs(
        product
    )


# --- Spark's stages, without Spark ----------------------------------------------------------------


def tasks(directory: Path) -> None:
    """A family's rows, divided among tasks."""
    job = one_machine.job_of(directory / "stream.nq", one_machine.busy(16))
    with pytest.MonkeyPatch.context() as patch:
        found = one_machine.Tasks(directory, patch).answers(job)
    assert found == answers_in_process(job) != []


def bucket(directory: Path) -> None:
    """A bucket whose state another worker loads for each batch."""
    plan = buckets.PLANS["keyed"]
    meta, chunks, found = buckets.FakeValue(), buckets.FakeMap(), []
    for entry in buckets.entries(plan, [3] * (len(buckets.EVENTS) // 3)):
        state = buckets.bucket(plan, meta, chunks)
        known, warm = state.load(None)
        found += buckets.applied(entry, warm)
        state.append(known, entry, warm.stage)
    assert found == buckets.in_process(plan) != []


def followed_batches(directory: Path) -> None:
    """Batches of a followed run are matched with the knowledge base of their time."""
    followed.test_a_batch_is_matched_with_what_was_current_when_it_was_planned(directory)


def partial_blocks(directory: Path) -> None:
    """The partial matches of three tasks."""
    run_files.test_partial_matches_of_several_tasks_come_in_order()


def merged_blocks(directory: Path) -> None:
    """Blocks of answers from three tasks."""
    blocks.test_blocks_of_several_tasks_are_merged(*blocks.CASES[0], 1, _as_they_are)


def a_graph_that_changes() -> Case:
    """A graph that changes with every event, which the next one reads."""
    return Case(
        tuple(
            Given(
                "SM"[number % 2], number, (("d1", ("alarm", "to")[number % 2], f"d{number % 3}"),)
            )
            for number in range(200)
        ),
        frozenset(),
        (),
        MAINTAINERS[:1],
        ("?d :alarm ?x GRAPH <http://example/graph> { ?d :owner ?o }",),
        False,
    )


def changes_of_a_graph(directory: Path) -> None:
    """A graph that changes with every event, which the next one reads."""
    case = a_graph_that_changes()
    assert of_local(case) == case.expected()
    assert case.expected()


def a_late_reader(directory: Path) -> None:
    """A query that comes when a graph has changed 75 times."""
    case = a_graph_that_changes()
    expected = from_place(case, 150).expected()
    assert of_late_reader(case, 150) == expected
    assert expected
