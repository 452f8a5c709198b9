"""The sizes at which the engine chooses another way to the same answers, or drops state.

No answer depends on them. Tests show this with each threshold at its least, never reached, and at
random. Code reads them where it decides, as `thresholds.current.few_matches`, so that a test can
replace the record. The environment variable `SPASEQ_THRESHOLDS` sets others for a process and for
Spark's workers, which inherit it: `NAME=VALUE`, separated by spaces.

Each has a value, a unit and the reason for the value. *Least* is the smallest value that makes
sense: almost any input then crosses the threshold. *Never* is a value that no input reaches.
"""

from __future__ import annotations

import os
from dataclasses import field, fields, replace
from typing import Any

from spaseq.records import record

NEVER = 2**40
"""No input reaches it, and a small multiple still fits an int64."""


@record
class Threshold:
    """The description of one threshold.

    `unit` is the unit of the value; `why` is the measurement or reason behind it.
    """

    value: int
    unit: str
    why: str
    least: int
    never: int


def _of(value: int, unit: str, why: str, least: int = 1, never: int = NEVER) -> Any:
    return field(default=value, metadata={"entry": Threshold(value, unit, why, least, never)})


@record
class Thresholds:
    """The values, by name."""

    # State that evaluators drop once it is behind the window. Sweeping when the state has doubled
    # costs each entry a constant; the value only spares small states the sweep.
    forgotten_rows: int = _of(
        65_536, "rows", "register runs: solutions kept before a sweep, a few MB"
    )
    forgotten_keys: int = _of(
        256,
        "keys",
        "compiled evaluators and AFTER MATCH: partitions kept before idle ones are released",
    )
    written_rows: int = _of(
        4096, "rows", "register runs: a snapshot sweeps first, as what it keeps is written"
    )
    forgotten_nodes: int = _of(
        256, "nodes", "compact sets and register runs in Python: nodes kept before dead ones go"
    )
    marked_nodes: int = _of(
        64, "nodes", "compact sets: distance of the marks at which nodes can be dropped"
    )
    kept_groups: int = _of(
        1024, "groups", "of a window kept without rows; as many partitions, and rows that left", 0
    )
    waiting_pushes: int = _of(
        256, "pushes", "whose rows wait for the close of a kept window, so as to enter together", 0
    )
    shrunk_rings: int = _of(
        8, "times", "compact sets: the room of a ring beside the nodes in use before it shrinks"
    )
    window_rows: int = _of(
        1024, "rows", "outer negations and SELECT MAX: solutions kept beside those of the window"
    )

    # Evaluators.
    few_matches: int = _of(
        32, "matches", "selected by comparing all pairs; more without enumerating them", 0
    )
    remembered_solutions: int = _of(
        1024, "solutions", "kept as objects for the next match that takes them", 2
    )
    limit_room: int = _of(
        64, "matches", "with less room to the limit of waiting matches, one instant at a time", 1
    )
    recent_rows: int = _of(
        1024, "rows", "of single events that are kept as they are before half become columns"
    )
    joined_rows: int = _of(1024, "rows", "of chunks that are joined; larger ones are not copied")
    joined_chunks: int = _of(8, "chunks", "that are joined at a time", 2)
    rows_one_by_one: int = _of(4, "rows", "of a chunk that are read one by one, not as columns", 0)
    enumerated_rows: int = _of(
        2048, "rows", "of matches at a time: few enough for the cache, many enough for arrays"
    )
    heap_runs: int = _of(
        32, "runs", "that wait at one edge for one key: more are a heap, which few do not repay", 1
    )
    tied_rows: int = _of(
        1024, "rows", "left to the general kernel where two solutions of an instant tie"
    )
    prepared_rows: int = _of(
        512,
        "rows",
        "that the threshold-sequence kernel prepares at a time: they fit the cache",
        1,
        2**16,
    )
    sparse_codes: int = _of(
        16, "times", "terms in a table for each row that uses some: beyond, codes are sorted", 0
    )

    # Queries that are evaluated together, and their graph patterns.
    family_queries: int = _of(
        8, "queries", "of one shape that make a family: fewer run by themselves", 2
    )
    template_queries: int = _of(8, "queries", "in no family that are evaluated together")
    template_uses: int = _of(2, "patterns", "of a template that are evaluated once")
    few_possible: int = _of(
        2, "times", "as many events in a batch as some pattern may match: it gets these alone"
    )
    graphs_one_by_one: int = _of(
        16,
        "events",
        "of a batch that a pattern may match: one takes 10 us, columns half a millisecond",
        0,
    )
    gathered_triples: int = _of(
        64,
        "triples",
        "of what came at once in a live stream, and is matched with what came next: to a thousand "
        "queries a batch costs a tenth of a second, however small it is",
        0,
    )
    columns_first: int = _of(
        2, "batches", "with few events for a pattern, before it is prepared for single ones", 0
    )
    joint_rows: int = _of(
        1_000_000, "rows", "of families matched together, or of lone queries, in a batch", 0
    )
    probed_events: int = _of(256, "events", "that tell how many solutions a batch may have")
    budget_parts: int = _of(
        16, "parts", "in which a batch is evaluated that exceeds the limit of events", 2, 2**16
    )
    narrowed_rows: int = _of(
        8, "rows", "of a GRAPH block for all events: more are narrowed to those that join", 0
    )

    # Stage 2.
    single_events: int = _of(
        64, "events", "pushed together that are run one by one; more as columns", 0
    )
    rows_as_events: int = _of(
        32, "rows", "of a pushed batch, of one query, that are run one by one, not as columns", 0
    )
    columnar_matches: int = _of(
        64,
        "matches",
        "of a batch whose answers are made one by one, as columns have a fixed cost; columns take "
        "37 % off a run with many answers, 11 % off fifty queries over each event",
    )
    order_table: int = _of(
        2**25, "entries", "of the table that orders answers in columns: 256 MB of int64"
    )
    member_answers: int = _of(1024, "answers", "of a family's member that are made one by one")
    family_rows: int = _of(
        200_000, "rows", "of a family that are matched at a time: memory that is reused"
    )
    family_events: int = _of(64, "events", "the fewest of a family that are matched at a time")
    sorted_rows: int = _of(16_384, "rows", "smaller batches are joined to chunks of this size")
    chunk_rows: int = _of(262_144, "rows", "the most in a chunk of rows that came in order")
    memory_rows: int = _of(200_000, "rows", "in a sorter's memory before they become a run")
    memory_bytes: int = _of(
        2**30,
        "bytes",
        "of all sorters' runs in memory, and at most an eighth of the machine's, before runs are "
        "written, which takes a tenth of a run",
    )
    partitioned_rows: int = _of(
        2**18,
        "rows",
        "of a bounded run in a step of windows with partitions: each has a fixed cost",
    )
    merged_runs: int = _of(8, "runs", "that rows are merged from, before they are sorted")
    held_answers: int = _of(200_000, "answers", "of a family in memory before they are written")
    built_matches: int = _of(4096, "matches", "partial ones that are built at a time")
    short_traces: int = _of(
        8, "events", "of a partial match whose parts are all looked up, and not the longest only", 0
    )
    longest_rest: int = _of(64, "batches", "without trying what did not pay off before", 0)
    hopeless_rows: int = _of(64, "rows", "with fewer, looking for hopeless ones costs more")
    hopeless_query: int = _of(4096, "rows", "of a single query that are looked at")
    rare_solutions: int = _of(
        16, "times", "rows for each solution of a GPM, before rows far from the latter are sought"
    )
    waiting_family: int = _of(1024, "rows", "of a family in a batch, which may wait for a match")
    waiting_query: int = _of(64, "rows", "of a single query in a batch, which may wait", 0)
    waiting_rows: int = _of(8192, "rows", "that wait before the evaluator gets them", 0)
    waiting_batches: int = _of(32, "batches", "that wait before they are put together")

    # Reading and lifting.
    few_texts: int = _of(16, "texts", "of a batch that are made one by one, not as an array", 0)
    few_terms: int = _of(8, "terms", "of a column made one by one; thrice if most repeat", 0)
    few_pairs: int = _of(64, "pairs", "of a variable and its text that are made one by one", 0)
    spilled_rows: int = _of(
        65_536, "rows", "of times of equal events in Python before they are packed"
    )
    lifted_rows: int = _of(64, "rows", "or messages whose columns are lists, not arrays", 0)
    block_rows: int = _of(8192, "rows", "of text or of a program that are lifted at a time")
    table_rows: int = _of(262_144, "rows", "of a table that are lifted at a time", 1, 2**31 - 1)
    shape_messages: int = _of(
        64, "messages", "of JSON-LD that a parser has read before the shape of the last is learned"
    )
    few_rows: int = _of(16, "rows", "for which expressions are computed one by one", 0)
    summed_rows: int = _of(32, "rows", "from which numbers are read as arrays", 1)
    computed_rows: int = _of(128, "rows", "computed between two looks at the clock and the limits")

    changed_groups: int = _of(
        65_536, "groups", "that change at window events and whose solutions are made together"
    )

    # Graph patterns.
    known_pairs: int = _of(64, "pairs", "of an event and a known part that are joined at once", 0)
    graph_values: int = _of(
        64, "values", "of a subject's predicate that come before a changing graph is read again", 0
    )
    kept_changes: int = _of(
        10_000, "triples", "of the last changes of a maintained graph, which say what it was", 0
    )
    unused_terms: int = _of(
        100_000, "texts", "that changes add to a graph's terms before unused ones are removed", 0
    )
    touched_triples: int = _of(
        100_000,
        "solutions",
        "of an update's patterns that can be, before all of its graph is read",
        0,
    )
    event_pairs: int = _of(100_000, "pairs", "compared for one event before arrays do it", 0)
    remembered_results: int = _of(4096, "results", "of events that come again")
    remembered_bytes: int = _of(
        256 * 2**20, "bytes", "of solutions that queries over one batch share", 0
    )
    path_steps: int = _of(2**16, "steps", "of a search of paths before components pay off", 0)
    path_overlap: int = _of(8, "visits", "of each place before a search goes by component", 0)
    path_pairs: int = _of(4, "pairs", "for each node before one search per node finds them all", 0)
    hashed_terms: int = _of(
        10,
        "per cent",
        "of a knowledge base's terms that are sought before it gets a hash table, which takes as"
        " long as one binary search for each 12 to 30 terms",
        0,
    )
    closure_pairs: int = _of(
        2**20, "pairs", "of nodes of a path over a KB that are kept for all batches: 16 MB", 0
    )

    # Spark.
    packed_rows: int = _of(100_000, "rows", "of a task in memory before they are packed")
    log_bytes: int = _of(
        2**20, "bytes", "of a bucket's log, and as many as the snapshot, before a new snapshot", 0
    )
    log_entries: int = _of(500, "entries", "of a bucket's log before a new snapshot", 1)
    ordered_answers: int = _of(2**18, "solutions", "of answers in memory while blocks are merged")
    bucket_rows: int = _of(
        4096, "rows", "for each bucket before a run of them ends, if later ones come after it"
    )
    partial_rows: int = _of(500, "partial matches", "of a task that are one block")
    task_rows: int = _of(256, "rows", "the fewest for which a task of its own pays off", 0)
    packed_batches: int = _of(
        1000,
        "batches",
        "of the log of files in one file: 100,000 files of one batch take 400 MB of disk",
    )
    divided_rows: int = _of(4096, "rows", "from which on a query is divided among tasks", 0)


ENTRIES: dict[str, Threshold] = {one.name: one.metadata["entry"] for one in fields(Thresholds)}
"""Each threshold by name."""

VARIABLE = "SPASEQ_THRESHOLDS"
"""The environment variable that forces thresholds."""

current = Thresholds()


def use(chosen: Thresholds) -> Thresholds:
    """Use other thresholds in this process from now on; returns those before."""
    global current
    before, current = current, chosen
    return before


for word in os.environ.get(VARIABLE, "").split():
    name, _, value = word.partition("=")
    use(replace(current, **{name: int(value)}))
