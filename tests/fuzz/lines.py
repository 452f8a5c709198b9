"""Lines of N-Quads and N-Triples: seeds, and the verdicts of the tokenizer and of pyoxigraph.

Both must accept the same lines and return the same quads.
"""

from __future__ import annotations

import io
import re

import pyoxigraph as ox

from spaseq.rdf.inputs.stream_options import BadInput
from spaseq.rdf.lines.arenas import ArenaPool
from spaseq.rdf.lines.chunks import AfterSizedEvents, BeforeGraphs
from spaseq.rdf.lines.line_events import line_statements
from spaseq.rdf.lines.statements import StatementReader
from tests.fuzz.mutation import BYTES, UNICODE

Quad = tuple[str, str, str, str]
XSD = "http://www.w3.org/2001/XMLSchema#"

SEEDS = [
    "<http://e/s> <http://e/p> <http://e/o> <http://e/g> .",
    "<http://e/s> <http://e/p> <http://e/o> .",
    "<urn:x:1> <mailto:a@b.c> <http://e:80/a?b=c#d> <a:> .",
    "<http://e/%41é> <http://e/\U0001f600> <http://e/a%20b> .",
    r"<http://e/\u00E9\U0001F600> <http://e/p> <http://e/o> .",
    "_:a <http://e/p> _:b.c _:0-x .",
    "_:é <http://e/p> _:a·b .",
    f'<http://e/s> <http://e/p> "1"^^<{XSD}integer> <http://e/g> .',
    f'<http://e/s> <http://e/p> "x"^^<{XSD}string> .',
    f'<http://e/s> <http://e/q> "12.5"^^<{XSD}double> <http://e/g> .',
    f'<http://e/s> <http://e/q> "13"^^<{XSD}double> <http://e/g> .',
    '<http://e/s> <http://e/r> "mot"@fr <http://e/g> .',
    '<http://e/s> <http://e/p> "x"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString> .',
    '<http://e/s> <http://e/p> "chat"@fr <http://e/g> .',
    '<http://e/s> <http://e/p> "chat"@zh-Hant-TW .',
    '<http://e/s> <http://e/p> "chat"@es-419 .',
    r'<http://e/s> <http://e/p> "\t\n\r\"\\\b\f\'\u0041\U00000042\u0001\u007F" .',
    '<http://e/s> <http://e/p> "é ü \U0001f600 漢字 \ufffe \uffff" .',
    '<http://e/s> <http://e/p> "" <http://e/g> .',
    '<http://e/s>\t<http://e/p>  "a" \t . # comment',
    '<http://e/s><http://e/p>"a"<http://e/g>.',
    "# comment",
    "  ",
    "<http://e/s> <http://e/p> <<( <http://e/s> <http://e/p> <http://e/o> )>> .",
]
REIFIES = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies>"
TERM = "<<( <http://e/s> <http://e/p> <http://e/o> )>>"
SEEDS_12 = [
    f"<http://e/r> {REIFIES} {TERM} <http://e/g> .",
    f"_:r {REIFIES} <<( _:a <http://e/p> _:b )>> _:g .",
    f'_:r {REIFIES} <<( <http://e/s> <http://e/p> "1"^^<{XSD}integer> )>> .',
    f'_:r {REIFIES} <<( <http://e/s> <http://e/p> "chat"@fr--ltr )>> <http://e/g> .',
    f"_:r {REIFIES} <<( <http://e/s> <http://e/q> {TERM} )>> <http://e/g> .",
    f"_:r {REIFIES} <<( _:s <http://e/q> <<( _:s <http://e/q> {TERM} )>> )>> .",
    f"<http://e/r>{REIFIES}<<(<http://e/s><http://e/p><http://e/o>)>><http://e/g>.",
    rf'_:r {REIFIES} <<( <http://e/\u00E9> <http://e/p> "\u0041\n)>>" )>> . # <<( )>>',
    f"<< <http://e/s> <http://e/p> <http://e/o> >> {REIFIES} <http://e/o> <http://e/g> .",
    f"{TERM} <http://e/p> <http://e/o> <http://e/g> .",
    f"<http://e/s> {TERM} <http://e/o> .",
    '<http://e/s> <http://e/p> <<( "a" <http://e/p> <http://e/o> )>> .',
    f"<http://e/s> <http://e/p> <http://e/o> {TERM} .",
    '<http://e/s> <http://e/p> "marhaba"@ar--rtl <http://e/g> .',
    '<http://e/s> <http://e/p> "chat"@FR--ltr .',
    '<http://e/s> <http://e/p> "x"@en--LTR .',
    '<http://e/s> <http://e/p> "x"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#dirLangString> .',
    'VERSION "1.2"',
    "VERSION '1.2' # basic",
    '@version "1.2" .',
]
"""Lines of RDF 1.2: triple terms, base directions and VERSION, also in wrong places."""

PIECES_12 = [
    *(b"<<(", b")>>", b"<<( ", b" )>>", b"<<", b">>", b" ", b"~ _:r", b"{|", b"|}", b"--ltr"),
    *(b"--rtl", b"--LTR", b"--", b"@ar--rtl", b'VERSION "1.2"', b'"1.2-basic"', b"version "),
    *(TERM.encode(), b'"a"@en--ltr', b"_:a", b'"a"', b"<http://e/p>", b"\n", b"(", b")", b"-"),
]

PIECES = [
    *BYTES,
    *UNICODE,
    *(bytes([b]) for b in b'<>"\\_:@^.#%/ \t -[]{}|`?uUntxZ09'),
    *(b"%4", b"%4G", b"%zz", b"//", b"://", b"http://", b"[::1]", b"@:", b"^^", b"@en", b"@EN-GB"),
    *(b"@x-y", b"--ltr", b"_:", b"..", b" .", b" . ", b"<a:b>", b'"x"', b"<< ", b" >>", b"<<( "),
]
"""What is put into lines; the characters of the syntax stand there twice."""

_LINE_END = re.compile(b"\r\n|\r|\n")

_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*"|#.*|<[^<>]*>')

_DEEP = 200
"""Lines with more triple terms are refused; the parser of the reference would need their depth."""


def object_text(term: object) -> str:
    return f"<<( {term} )>>" if isinstance(term, ox.Triple) else str(term)


def theirs(data: bytes, graphs: bool) -> tuple[list[Quad], list[int]]:
    """pyoxigraph's quads of all lines, and the numbers of the refused lines."""
    form = ox.RdfFormat.N_QUADS if graphs else ox.RdfFormat.N_TRIPLES
    quads: list[Quad] = []
    refused = []
    for number, line in enumerate(_LINE_END.split(data), start=1):
        try:
            if _TEXT.sub(b"", line).count(b"<<(") > _DEEP:
                raise ValueError("deep")
            found = list(ox.parse(line, form))
        except (SyntaxError, ValueError):
            refused.append(number)
            continue
        assert len(found) <= 1
        quads += [(str(s), str(p), object_text(o), str(g)) for s, p, o, g in found]
    return quads, refused


def ours(
    data: bytes, graphs: bool, threads: int = 1, kept: tuple[str, ...] | None = None
) -> tuple[list[Quad], list[int]]:
    """The same for the tokenizer; objects are empty for predicates that are not in `kept`."""
    bad: list[BadInput] = []
    quads: list[Quad] = []
    reader = StatementReader(graphs, ArenaPool(2), kept or (), only_constants=kept is not None)
    where = BeforeGraphs(reader) if graphs else AfterSizedEvents(1)
    for b, _, _ in line_statements(io.BytesIO(data), "f", reader, where, threads, bad.append):
        texts = [*b.terms, "", "DEFAULT"]  # -1 is the last; SKIPPED is -2
        for s, p, o, g in zip(b.s.tolist(), b.p.tolist(), b.o.tolist(), b.g.tolist(), strict=True):
            if s >= 0:
                quads.append((texts[s], texts[p], texts[o], texts[g]))
    return quads, [b.line or 0 for b in bad]


def agree(data: bytes, graphs: bool) -> int:
    """Compare both verdicts on a file; the number of quads."""
    expected, refused = theirs(data, graphs)
    quads, bad = ours(data, graphs)
    assert bad == refused, [_LINE_END.split(data)[n - 1] for n in sorted({*bad} ^ {*refused})]
    assert quads == expected
    kept = tuple({"<http://e/p>": 0, **{p: 0 for _, p, _, _ in expected[:1]}})
    quads, bad = ours(data, graphs, kept=kept)
    assert bad == refused
    assert quads == [(s, p, o if p in kept else "", g) for s, p, o, g in expected]
    return len(expected)
