"""What is fuzzed: for each reader its seeds, the pieces of its syntax, and what must hold."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyoxigraph as ox

import spaseq
from spaseq.api.queries import check_queries
from spaseq.compile import compile_query
from spaseq.errors import InputError, QueryError, RunError, UsageError
from spaseq.gpm.pattern_stage import PatternStage
from spaseq.kb.endpoint import AnswerError, answer_rows
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.kb.load import load_kb
from spaseq.lang.format import format_query
from spaseq.lang.parser import parse
from spaseq.limits import DEFAULT_LIMITS
from spaseq.options import PlanningOptions
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.inputs.formats import Format
from spaseq.rdf.program_events import batch_from_events
from spaseq.render.explain import FORMATS, explained
from spaseq.stages.sequence import SequenceStage
from spaseq.storage.checksums import read_json, unsealed, write_json
from tests.fuzz import documents, lines
from tests.fuzz.mutation import BYTES, UNICODE, Pieces
from tests.rspql.test_meaning import CASES, question

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


def _lines(
    name: str,
    graphs: bool,
    seeds: Sequence[str] = lines.SEEDS,
    pieces: Pieces = lines.PIECES,
) -> Target:
    def check(batch: list[bytes]) -> int:
        return lines.agree(b"\n".join(batch), graphs)

    return Target(name, [text.encode() for text in seeds], pieces, check, 200)


@target
def n_quads() -> Target:
    """The verdict on each line equals pyoxigraph's, and so do the quads."""
    return _lines("n-quads", True)


@target
def n_quads_12() -> Target:
    """As for N-Quads, with triple terms, base directions and VERSION in most lines."""
    seeds = [*lines.SEEDS_12, *lines.SEEDS_12, *lines.SEEDS]
    return _lines("n-quads-12", True, seeds, [*lines.PIECES_12, *lines.PIECES_12, *lines.PIECES])


@target
def n_triples() -> Target:
    """As for N-Quads."""
    return _lines("n-triples", False)


# --- documents ------------------------------------------------------------------------------------


def _document(form: Format) -> Target:
    """The quads of a document are pyoxigraph's."""

    def check(batch: list[bytes]) -> int:
        return sum(documents.agree(data, form) for data in batch)

    return Target(form.value, documents.SEEDS[form], documents.pieces(form), check)


for _form in documents.SEEDS:
    TARGETS[_form.value] = partial(_document, _form)


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
        shown = explained(checked, full=True)
        for form in FORMATS:
            shown.to(form)
        canonical = format_query(checked.query)
        (again,) = check_queries(canonical, PlanningOptions())
        assert again.query is not None, f"refused as fmt writes it: {canonical}"
        assert format_query(again.query) == canonical
    return accepted


@target
def translations() -> Target:
    """A query of RSP-QL or C-SPARQL translates to one that the check takes, or is refused."""
    seeds = [question(*case).rspql().encode() for case in CASES[::7]]
    words = "WINDOW RANGE STEP TUMBLING ELEMENTS TRIPLES ISTREAM RSTREAM REGISTER QUERY PT5S 3s"
    tokens = [f" {word} ".encode() for word in (*_WORDS.split(), *words.split())]
    signs = [*map(str.encode, "(){}[]<>?;,:.|&!+*^/=1'"), b"[RANGE 5s]", b"<w1>", b":w1"]
    return Target("translations", seeds, [*tokens, *signs * 4, *UNICODE, *BYTES], _translations)


def _translations(batch: list[bytes]) -> int:
    accepted = 0
    for data in batch:
        try:
            text = spaseq.translate(data.decode(errors="surrogateescape"))
        except QueryError as error:
            str(error).encode(errors="surrogateescape")
            continue
        accepted += 1
        assert format_query(parse(text)) == _without_remarks(text)
    return accepted


def _without_remarks(text: str) -> str:
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("#"))


# --- endpoints ------------------------------------------------------------------------------------

_ANSWERS = [
    b"""{"head": {"vars": ["x", "y"]}, "results": {"bindings": [
    {"x": {"type": "uri", "value": "http://e/a"}, "y": {"type": "bnode", "value": "b0"}},
    {"x": {"type": "literal", "value": "1", "datatype": "http://www.w3.org/2001/XMLSchema#int"}},
    {"y": {"type": "literal", "value": "\\u00e9t", "xml:lang": "fr"}}]}}""",
    b"""{"results": {"bindings": [{"x": {"type": "triple", "value": {
    "subject": {"type": "uri", "value": "http://e/a"},
    "predicate": {"type": "uri", "value": "http://e/p"},
    "object": {"type": "literal", "value": "o"}}}}]}, "head": {"link": [], "vars": ["x"]}}""",
    b'{"head": {}, "boolean": true}',
]


@target
def endpoint_answers() -> Target:
    """Rows that are taken are pyoxigraph's; it may read what the engine refuses."""
    pieces = [*map(str.encode, '{}[]",:\\'), b'"value":', b'"type":', b'"uri"', b'"literal"']
    pieces += [
        b"null",
        b"true",
        b"NaN",
        b"1e999",
        b"-0",
        b"[[",
        b'{"x":',
        b'"xml:lang"',
        b"\\u0000",
    ]
    return Target("endpoint-answers", _ANSWERS, [*pieces * 8, *UNICODE, *BYTES], _answers)


def _answers(batch: list[bytes]) -> int:
    accepted = 0
    for data in batch:
        try:
            rows = answer_rows(data, ["x", "y"], "label", DEFAULT_LIMITS)
        except (AnswerError, SyntaxError):
            continue
        accepted += 1
        theirs = ox.parse_query_results(data, format=ox.QueryResultsFormat.JSON)
        assert isinstance(theirs, ox.QuerySolutions)
        known = {v.value for v in theirs.variables}
        for row, solution in zip(rows, theirs, strict=True):
            for name, text in zip("xy", row, strict=True):
                term = solution[name] if name in known else None
                assert (text is None) == (term is None)
                if isinstance(term, (ox.NamedNode, ox.Literal)):
                    assert text == str(term)
    return accepted


# --- files of the engine itself -------------------------------------------------------------------


@target
def compiled_knowledge_bases() -> Target:
    """A damaged file is refused; a file that is not refused holds the knowledge base."""
    place = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, place)
    lines = [f"<http://e/{i}> <http://e/p> {i % 7}, <a:b> .\n" for i in range(50)]
    (place / "kb.ttl").write_text("".join(lines))
    known = load_kb([("http://e/g", place / "kb.ttl")])
    file = place / "kb.arrow"
    known.save(file)

    def check(batch: list[bytes]) -> int:
        accepted = 0
        for data in batch:
            file.unlink(missing_ok=True)  # the file before is mapped
            file.write_bytes(data)
            try:
                opened = KnowledgeBase.open(file)
            except InputError:
                continue
            assert (opened.hash, len(opened)) == (known.hash, len(known))
            assert list(opened.terms.texts) == list(known.terms.texts)
            accepted += 1
        return accepted

    return Target("compiled-knowledge-bases", [file.read_bytes()], BYTES, check)


_SEQUENCE = """SELECT * WITHIN 1 HOURS FROM STREAM S <http://e/s> WHERE { SEQ(A; B+; C)
DEFINE GPM A ON S { ?a <http://e/a> ?k } DEFINE GPM B ON S { ?b <http://e/b> ?k }
DEFINE GPM C ON S { ?c <http://e/c> ?k } }"""


@target
def snapshots() -> Target:
    """A damaged snapshot is refused; a stage goes on from one that is not refused."""
    plan = compile_query(_SEQUENCE)
    triples = [
        (f"<http://e/{i}>", f"<http://e/{'aabbb'[i % 5]}>", f"<http://e/k{i % 3}>")
        for i in range(30)
    ]
    events = [(i, None, [triple]) for i, triple in enumerate(triples)]
    batch = batch_from_events("http://e/s", events, InstantCounter())
    begun = SequenceStage(plan)
    begun.push(PatternStage(plan, KnowledgeBase.empty()).match(batch))
    begun.advance(20)  # some solutions are in partial matches, the others wait
    good = begun.snapshot()

    def check(batch: list[bytes]) -> int:
        accepted = 0
        for data in batch:
            fresh = SequenceStage(plan)
            try:
                fresh.restore(data)
            except RunError:
                continue
            accepted += data == good
            # Without the mark it is a snapshot of an earlier version, which had no checksum.
            assert data == good or unsealed(data) is None
        return accepted

    return Target("snapshots", [good], BYTES, check)


@target
def checkpoint_files() -> Target:
    """A damaged file of a checkpoint is refused; one that is not refused holds its value."""
    place = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, place)
    file, value = place / "log.json", {"batch": 7, "files": [["a.nq", 0, 99], ["b.nq", 5, 7]]}
    write_json(file, value)

    def check(batch: list[bytes]) -> int:
        accepted = 0
        for data in batch:
            file.write_bytes(data)
            try:
                read = read_json(file, lambda found: found)
            except RunError:
                continue
            accepted += read == value
        return accepted

    return Target("checkpoint-files", [file.read_bytes()], BYTES, check)
