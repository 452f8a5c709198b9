"""Sizes that choose a way or drop state are thresholds: others are named here, with a reason."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "spaseq"

KIND = re.compile(
    r"(^|_)(LEAST|MOST|FEW|MANY|ENOUGH|SMALL|LARGE|EVERY|KEPT|REMEMBERED|RECENT|SHARE|WORTH"
    r"|ROWS|BYTES)(_|$)"
)
"""Names of constants that compare sizes."""

ROOMS = {
    "cli editor lang first_steps render query_tests": "what users see, or may write",
    "diagnosis": "how much of a run a diagnosis looks at",
    "connectors serve logs runtime/live runtime/arrivals": "bytes, messages and time of input and "
    "output: how much goes at once, not what it is",
    "kb": "pieces of files and replies, and files in a cache",
    "expr": "limits of functions on values, which the language's page names",
}
"""Rooms whose sizes choose no way to answers."""

EXCEPTIONS = {
    "a compiled plan's bound, beyond which a query is refused or another evaluator takes it": """
        automaton/program/operand_places.py:MOST_PRODUCT_EDGES
        automaton/program/compiler.py:MOST_EDGES
        automaton/program/compiler.py:FEW_STATES automaton/program/compiler.py:MOST_STATES
        automaton/registers/compilable_runs.py:_MOST_STATES
        automaton/registers/tested_edges.py:MOST_EDGES
        automaton/sets/compilable_sets.py:_MOST_GPMS
        automaton/sets/compilable_sets.py:_MOST_LETTERS
        automaton/sets/python/expand.py:MOST_STAGES
        automaton/sets/python/expand.py:MOST_STAGES_AFTER_NEXT
        automaton/sets/python/expand.py:MOST_WAITS lift/lifted_graphs.py:MOST_WAYS
        plan/late_binds.py:_MOST_NODES
        plan/predicates.py:_MOST_PATTERNS plan/sequencing.py:_MOST_DRAWN
        plan/window_joins.py:MOST_PARTS
        plan/templates.py:_MOST_ALIKE plan/templates.py:_MOST_OUTLINES
        stages/hopeless_rows.py:_MOST""",
    "the first room of an array that grows": """
        automaton/registers/compiled/formulas.py:_REMEMBERED
        automaton/sets/compiled/compact_state.py:_FEW
        lift/solutions.py:_REMEMBERED rdf/lines/arenas.py:_ROWS""",
    "digits or bits that a number of a kind holds exactly": """
        automaton/registers/compiled/seen_kinds.py:MOST lift/lane_forms.py:_MOST_DIGITS
        lift/lane_forms.py:_MOST_EXACT lift/python_values.py:_MOST_BITS
        rdf/columns/solution_batch.py:_MOST rdf/kernels/shaped_lines.py:_MOST_DIGITS
        lift/row_groups.py:_MOST_EXACT rdf/kernels/literal_values.py:_MOST_DIGITS
        rdf/lines/arenas.py:_LARGE runtime/spark/lifted_frames.py:_MOST_EXACT
        spark/typed_variables.py:_MOST_DIGITS
        stages/hopeless_rows.py:_MOST_COUNTED""",
    "how far a formula on the earth's surface is exact, and how many corners it sees at once": """
        places/geodesy.py:_MOST_CORNERS places/geodesy.py:_SMALL_M
        places/relations.py:_LEAST_RADIUS_M""",
    "a limit of input, whose message names it": """
        alert_templates/process.py:_MOST_TEXT lift/connect_envelopes.py:_MOST_SCALE
        runtime/job/graph_dumps.py:MOST_VERSIONS
        rdf/messages/observations.py:_MOST_BYTES
        budget.py:BATCH_ROWS budget.py:BATCH_ROWS_PER_EVENT budget.py:FEW budget.py:LARGE
        budget.py:LEAST_SECONDS gpm/graphs/path_graph.py:MOST_PLACES
        gpm/patterns/operators.py:KB_ROWS_PER_TRIPLE gpm/patterns/operators.py:KB_SHARE
        lift/template_graphs.py:_MOST_FIELDS rdf/program_events.py:_UTF8_BYTES
        lift/json_columns.py:_MOST_KEYS lift/kernels/json_lines.py:MOST_DEPTH
        rdf/documents/document_events.py:PIECE_BYTES
        rdf/events/graph_times.py:_MOST_BETWEEN rdf/lines/statements.py:SHOWN_BYTES
        runtime/spark/frames.py:_MOST_PARTITIONS
        stages/columnar_answers.py:MOST_BYTES""",
    "a piece of a file, or a file's head, which tests set (`SPLIT_BYTES`, `CHUNK_BYTES`) or the "
    "option `range_bytes`": """
        rdf/documents/document_events.py:_HEAD_BYTES rdf/documents/document_events.py:_PIECE_BYTES
        lift/table_files.py:_FEW_BYTES options.py:RANGE_BYTES rdf/inputs/files.py:HEAD_BYTES
        rdf/inputs/files.py:_MOST_HEADS
        rdf/inputs/files.py:_FREE_BYTES rdf/lines/chunks.py:CHUNK_BYTES
        rdf/lines/chunks.py:MAX_CHUNK_BYTES rdf/messages/read_messages.py:PIECE_BYTES
        rdf/messages/message_quads.py:TOGETHER_BYTES rdf/ranges.py:_COUNTED_BYTES
        rdf/ranges.py:_MOST_WINDOW sources/files.py:MOST_SPLIT_BYTES
        sources/files.py:SPLIT_BYTES sources/files.py:_PEEK_BYTES
        storage/checksums.py:BLOCK_BYTES""",
    "what goes between processes or into a file at once": """
        options.py:MAX_BATCH_BYTES runtime/spark/bounded.py:ARROW_BYTES
        runtime/spark/bounded.py:PIECE_BYTES runtime/spark/bounded.py:_PACK_ROWS
        runtime/spark/stages/bucket_state.py:CHUNK_BYTES
        runtime/spark/standing/stage_jobs.py:_STEP_BYTES sinks/arrow_files.py:_ROWS
        stages/sorting.py:BATCH_BYTES""",
    "how much memory a thing takes, about": """
        automaton/registers/compiled/answer_grid.py:_MOST_BYTES
        automaton/registers/compiled/answers.py:_MOST_OF_RUNS
        api/prepare.py:_TRIPLE_BYTES
        rdf/documents/document_events.py:VALUE_BYTES rdf/inputs/sizes.py:PARSED_BYTES
        rdf/lines/arenas.py:LASTING_BYTES sources/iterables.py:_EVENT_BYTES
        windows/join_keeper.py:_MOST_TOGETHER windows/window_operator.py:MOST_TOGETHER""",
    "in a kernel, which tests/gpm/test_event_bgp.py and tests/rdf/kernels/test_event_ranges.py "
    "cross": """
        gpm/kernels/bgp_interpreter.py:FEW gpm/kernels/bgp_interpreter.py:MANY
        rdf/kernels/event_ranges.py:_FEW""",
    "tasks and files of Spark, and when small input is read without it": """
        runtime/job/job.py:MOST_LARGER runtime/job/job.py:_MOST_WORK
        runtime/spark/connectors/rdf_source.py:SMALL_BATCH_BYTES
        runtime/spark/bounded.py:FEW_CORES runtime/spark/bounded.py:FEW_ROWS
        runtime/spark/one_machine.py:SHARE runtime/spark/scanned_frames.py:_MOST_FILES
        runtime/spark/stages/shipped_units.py:MOST_KEPT
        runtime/spark/standing/stage_jobs.py:MOST""",
    "when kernels are compiled, and how many names a process keeps": """
        api/prepare.py:SMALL_BYTES api/prepare.py:SMALL_UNCOMPILED_BYTES
        places/geometries.py:_KEPT
        runtime/pushed_units.py:_RECENT""",
}
"""Constants of other rooms, by the reason why they are no thresholds."""


def _is_number(node: ast.expr | None) -> bool:
    match node:
        case ast.Constant(value=value):
            return isinstance(value, int | float) and not isinstance(value, bool)
        case ast.UnaryOp(operand=operand):
            return _is_number(operand)
        case ast.BinOp(left=left, right=right):
            return _is_number(left) and _is_number(right)
    return False


def _constants(path: Path) -> Iterator[str]:
    """The names of a module's numeric constants that compare sizes."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        targets: list[ast.expr] = []
        match node:
            case ast.Assign(value=value) if _is_number(value):
                targets = node.targets
            case ast.AnnAssign(value=value) if _is_number(value):
                targets = [node.target]
        yield from (t.id for t in targets if isinstance(t, ast.Name) and KIND.search(t.id))


def _found() -> Iterator[str]:
    rooms = tuple(f"{room}/" for rooms in ROOMS for room in rooms.split())
    for path in sorted(PACKAGE.rglob("*.py")):
        own = path.relative_to(PACKAGE).as_posix()
        if not own.startswith(rooms):
            yield from (f"{own}:{name}" for name in _constants(path))


def test_sizes_that_compare_are_thresholds_or_exceptions() -> None:
    """A new one belongs into `spaseq/thresholds.py`, unless a reason above is its own."""
    named = [name for names in EXCEPTIONS.values() for name in names.split()]
    assert sorted(_found()) == sorted(named)
