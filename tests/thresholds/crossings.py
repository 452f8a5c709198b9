"""For each threshold, runs that cross it and that check their answers, by name.

Most are examples of the oracle, by number (`tests/oracle/forced_campaign.py`), whose answers are
those of the brute force with each evaluator. The others are made for what such examples do not
reach: tables against plain loops, files, families of queries, Spark's stages.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeAlias

from tests.oracle.forced_campaign import Example, Forced
from tests.oracle.strategies import EVERYTHING
from tests.runtime.live.test_live_engine import one_by_one
from tests.thresholds import larger_cases as larger

Check: TypeAlias = Callable[[Path], None]
"""Runs something in an empty directory; fails if an answer is wrong."""


@dataclass(frozen=True)
class Crossing:
    """A check that crosses a threshold if it has its least value, and does not if it has `never`.

    `besides` are further words, which force other thresholds on both sides. `counted` says why the
    check crosses it where no comparison does: a kernel has it, or a cache.
    """

    check: Check
    besides: str = ""
    counted: str = ""


@cache
def example(number: int) -> Check:
    """An example of the oracle that has answers."""

    def check(directory: Path) -> None:
        found = Forced()
        wrong = Example(number, EVERYTHING - {"late-BIND"}).wrong(number, found)
        assert wrong is None, wrong
        assert found.answered

    return check


CROSSINGS: dict[str, Crossing] = {
    "gathered_triples": Crossing(one_by_one),
    "forgotten_rows": Crossing(example(120)),
    "forgotten_keys": Crossing(example(46)),
    "written_rows": Crossing(example(120)),
    "forgotten_nodes": Crossing(example(46)),
    "marked_nodes": Crossing(example(46)),
    "kept_groups": Crossing(larger.kept_groups),
    "changed_groups": Crossing(
        larger.kept_groups, counted="a slice has it; several groups change at an event"
    ),
    "waiting_pushes": Crossing(larger.kept_groups),
    "shrunk_rings": Crossing(larger.maximal_matches),
    "window_rows": Crossing(example(120)),
    "few_matches": Crossing(larger.maximal_matches),
    "remembered_solutions": Crossing(larger.partials),
    "limit_room": Crossing(larger.limited_matches),
    "recent_rows": Crossing(larger.partials),
    "joined_rows": Crossing(larger.ties),
    "joined_chunks": Crossing(example(120)),
    "rows_one_by_one": Crossing(example(46)),
    "enumerated_rows": Crossing(example(163)),
    "heap_runs": Crossing(
        larger.ties, counted="a kernel has it; at a time, several runs wait at the edge to B"
    ),
    "tied_rows": Crossing(larger.ties),
    "prepared_rows": Crossing(
        larger.ties, counted="a kernel has it; a batch has more rows than one"
    ),
    "sparse_codes": Crossing(example(46)),
    "family_queries": Crossing(example(176)),
    "template_queries": Crossing(larger.shared_patterns),
    "template_uses": Crossing(larger.shared_patterns, "template_queries=least"),
    "few_possible": Crossing(larger.shared_patterns, "template_queries=least"),
    "graphs_one_by_one": Crossing(
        larger.shared_patterns, "template_queries=least template_uses=least columns_first=least"
    ),
    "columns_first": Crossing(
        larger.shared_patterns, "template_queries=least few_possible=least graphs_one_by_one=never"
    ),
    "joint_rows": Crossing(larger.shared_patterns, "template_queries=least template_uses=least"),
    "probed_events": Crossing(larger.three_families),
    "budget_parts": Crossing(larger.events_beyond_a_limit),
    "narrowed_rows": Crossing(example(121)),
    "single_events": Crossing(example(46)),
    "rows_as_events": Crossing(larger.query_that_waits),
    "columnar_matches": Crossing(example(176), "rows_as_events=least"),
    "order_table": Crossing(example(75)),
    "member_answers": Crossing(larger.tasks),
    "family_rows": Crossing(larger.twelve_members, "family_queries=2"),
    "family_events": Crossing(larger.twelve_members, "family_queries=2"),
    "sorted_rows": Crossing(example(176)),
    "chunk_rows": Crossing(example(176)),
    "memory_rows": Crossing(example(176)),
    "memory_bytes": Crossing(larger.shared_patterns),
    "partitioned_rows": Crossing(larger.partitioned_windows),
    "merged_runs": Crossing(larger.hopeless_rows),
    "held_answers": Crossing(larger.twelve_members, "family_queries=2"),
    "built_matches": Crossing(larger.closed_partials),
    "short_traces": Crossing(larger.partials),
    "longest_rest": Crossing(example(40)),
    "hopeless_rows": Crossing(example(46)),
    "hopeless_query": Crossing(larger.shared_patterns),
    "rare_solutions": Crossing(larger.rare_rows, "hopeless_query=1"),
    "waiting_family": Crossing(larger.family_that_waits, "family_queries=2"),
    "waiting_query": Crossing(larger.query_that_waits),
    "waiting_rows": Crossing(larger.query_that_waits),
    "waiting_batches": Crossing(larger.query_that_waits),
    "few_texts": Crossing(larger.tasks),
    "few_terms": Crossing(example(46)),
    "few_pairs": Crossing(example(1)),
    "spilled_rows": Crossing(example(46)),
    "lifted_rows": Crossing(larger.lifted_messages),
    "block_rows": Crossing(larger.small_blocks, counted="a slice has it; files have 40 rows"),
    "table_rows": Crossing(larger.small_blocks, counted="a slice has it; tables have 30 rows"),
    "shape_messages": Crossing(larger.lines_of_a_shape),
    "few_rows": Crossing(example(176)),
    "summed_rows": Crossing(example(183)),
    "computed_rows": Crossing(larger.document, "few_rows=least"),
    "known_pairs": Crossing(example(121)),
    "graph_values": Crossing(larger.changes_of_a_graph),
    "kept_changes": Crossing(larger.a_late_reader),
    "unused_terms": Crossing(larger.a_late_reader),
    "event_pairs": Crossing(example(63)),
    "remembered_results": Crossing(
        example(121), counted="a cache has it; values of several solutions are joined"
    ),
    "remembered_bytes": Crossing(larger.shared_patterns),
    "path_steps": Crossing(
        larger.cycle,
        "path_overlap=least",
        counted="a kernel has it; it counts more steps than none",
    ),
    "path_overlap": Crossing(larger.cycle, "path_steps=least"),
    "path_pairs": Crossing(larger.cycle),
    "closure_pairs": Crossing(larger.cycle),
    "hashed_terms": Crossing(larger.cycle),
    "packed_rows": Crossing(larger.followed_batches),
    "log_bytes": Crossing(larger.bucket),
    "log_entries": Crossing(larger.bucket),
    "ordered_answers": Crossing(larger.merged_blocks),
    "partial_rows": Crossing(
        larger.partial_blocks, counted="a slice has it; a task has 1001 of them"
    ),
    "task_rows": Crossing(larger.tasks),
    "divided_rows": Crossing(larger.tasks),
    "packed_batches": Crossing(larger.packed_log),
}
"""What crosses each threshold, but those of `ELSEWHERE`."""

APART = {"written_rows", "family_rows", "waiting_batches"}
"""Thresholds that are crossed, or not, only if others of the same check keep their values."""

ELSEWHERE = {
    "bucket_rows": "tests/runtime/arrivals/test_tie_numbering.py::"
    "test_packs_of_a_disordered_stream_are_those_of_sorted_runs",
    "touched_triples": "tests/kb/test_touched_triples.py::"
    "test_what_it_does_with_them_it_does_with_the_graph",
}
"""Tests that cross the other thresholds, in processes that they start or without a run."""
