"""The canonical text of a query: one clause per line, IRIs with prefixes where possible.

The canonical text parses to an equal tree, and formatting it again changes nothing. It has neither
the comments of the query nor its labels of blank nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from spaseq.lang import ast
from spaseq.lang.format_patterns import PatternText, block
from spaseq.lang.format_triples import TermText, string, uses_of_blank_nodes

_QUANTIFIERS = {(1, None): "+", (0, None): "*", (0, 1): "?"}


def format_query(query: ast.Query) -> str:
    """The canonical text of a query that was parsed without errors (docs/lookup.md#grammar).

    >>> from spaseq.lang.parser import parse
    >>> print(format_query(parse('select * within 1 hour from stream S <http://e/s> '
    ...                          'seq(A) { define gpm A on S { ?s ?p 1 } }')), end="")
    SELECT *
    WITHIN 1 HOURS
    FROM STREAM S <http://e/s>
    WHERE {
      SEQ(A)
      DEFINE GPM A ON S {
        ?s ?p 1 .
      }
    }
    """
    terms = TermText(query.prologue)
    prologue = list(_prologue(query.prologue))
    lines = [*prologue, *([""] if prologue else []), *_header(query, terms), _body(query, terms)]
    if query.having is not None:
        expressions = PatternText(terms, uses_of_blank_nodes([query.having])).expressions
        lines.append(f"HAVING({expressions.text(query.having)})")
    return "\n".join(lines) + "\n"


def with_window(text: str, window: ast.TimeWindow, other: ast.TimeWindow) -> str:
    """The canonical text of a query, with its window replaced by another one.

    >>> short, long = (ast.TimeWindow(ast.TimeSpan(n, "HOURS")) for n in (1, 2))
    >>> with_window("SELECT *\\nWITHIN 1 HOURS\\nFROM STREAM S <http://e/s>", short, long)
    'SELECT *\\nWITHIN 2 HOURS\\nFROM STREAM S <http://e/s>'
    """
    return text.replace(f"\nWITHIN {_window(window)}\n", f"\nWITHIN {_window(other)}\n", 1)


def _prologue(prologue: ast.Prologue) -> Iterator[str]:
    if prologue.version is not None:
        yield f"VERSION {string(prologue.version)}"
    if prologue.base is not None:
        yield f"BASE <{prologue.base}>"
    for prefix in prologue.prefixes:
        yield f"PREFIX {prefix.prefix}: <{prefix.iri}>"


def _header(query: ast.Query, terms: TermText) -> Iterator[str]:
    if query.register is not None:
        yield f"REGISTER STREAM {terms.iri(query.register.value)} AS"
    yield _form(query.form, terms)
    if query.window is not None:
        yield f"WITHIN {_window(query.window)}"
    if query.partition:
        yield f"PARTITION BY ({' '.join(terms.term(var) for var in query.partition)})"
    if query.skip is not None:
        yield f"AFTER MATCH {_skip(query.skip)}"
    for stream in query.streams:
        yield f"FROM STREAM {stream.name} {terms.iri(stream.iri.value)}"
    for window in query.windows:
        yield _from_window(window, terms)
    for kb in query.kbs:
        yield f"FROM NAMED {terms.iri(kb.iri.value)}"


def _form(form: ast.Form, terms: TermText) -> str:
    match form:
        case ast.Construct(template):
            patterns = PatternText(terms, uses_of_blank_nodes(template))
            return f"CONSTRUCT {block(patterns.triples(template))}"
        case ast.Maintain(graph, deleted, inserted):
            patterns = PatternText(terms, uses_of_blank_nodes((*deleted, *inserted)))
            lines = [f"MAINTAIN GRAPH {terms.iri(graph.value)} AS"]
            for word, triples in (("DELETE", deleted), ("INSERT", inserted)):
                lines += [f"{word} {block(patterns.triples(triples))}"] if triples else []
            return "\n".join(lines)
        case ast.Select(items, distinct, strategy):
            patterns = PatternText(terms, Counter())
            words = ["SELECT", *(["DISTINCT"] if distinct else [])]
            words += [strategy] if strategy != "ALL" else []
            words += ["*"] if items is None else [patterns.select_item(item) for item in items]
            return " ".join(words)


def _window(window: ast.TimeWindow | ast.CountWindow) -> str:
    match window:
        case ast.CountWindow(events):
            return f"{events} EVENTS"
        case ast.TimeWindow(length, tumbling, origin):
            text = _duration(length) + (" TUMBLING" if tumbling else "")
            return text if origin is None else f"{text} FROM {string(origin)}"


def _from_window(window: ast.FromWindow, terms: TermText) -> str:
    streams = ", ".join(stream.name for stream in window.streams)
    text = f"FROM WINDOW {window.name} ON {streams} {_extent(window.extent)}"
    if window.key is None:
        return text
    patterns = PatternText(terms, uses_of_blank_nodes([window.key]))
    return f"{text} KEY {patterns.group(window.key)}"


def _extent(extent: ast.Panes | ast.EachEvent | ast.Session) -> str:
    match extent:
        case ast.Session(gap):
            return f"SESSION {_duration(gap)}"
        case ast.EachEvent(int() as events):
            return f"RANGE {events} EVENTS EACH EVENT"
        case ast.EachEvent(ast.TimeSpan() as length):
            return f"RANGE {_duration(length)} EACH EVENT"
        case ast.Panes(length, slide, origin):
            text = f"RANGE {_duration(length)}"
            text += "" if slide is None else f" SLIDE {_duration(slide)}"
            return text if origin is None else f"{text} FROM {string(origin)}"
    raise AssertionError(extent)


def _duration(duration: ast.TimeSpan) -> str:
    return f"{duration.amount} {duration.unit}"


def _skip(skip: ast.Skip) -> str:
    form = skip.kind if skip.kind in ("NO SKIP", "CONSUME") else f"SKIP {skip.kind}"
    if skip.gpm is not None:
        form += f" {skip.gpm.name}"
    if skip.mute is None:
        return form
    mute = f"MUTE {_duration(skip.mute)}"
    return mute if skip.kind == "NO SKIP" else f"{form} {mute}"


def _body(query: ast.Query, terms: TermText) -> str:
    gpms = (_gpm(gpm, terms) for gpm in query.gpms)
    return f"WHERE {block([f'SEQ({format_sequence(query.sequence)})', *gpms])}"


def _gpm(gpm: ast.Gpm, terms: TermText) -> str:
    streams = ", ".join(f"{s.change} {s.name}" if s.change else s.name for s in gpm.streams)
    patterns = PatternText(terms, uses_of_blank_nodes([gpm.pattern]))
    return f"DEFINE GPM {gpm.name} ON {streams} {patterns.group(gpm.pattern)}"


def format_sequence(sequence: ast.Sequence) -> str:
    """The canonical text of a sequence expression."""
    first, *rest = (_step(step) for step in sequence.steps)
    return first + "".join(f"{_op(op)} {step}" for op, step in zip(sequence.ops, rest, strict=True))


def _op(op: ast.Op) -> str:
    return op.kind if op.gap is None else f"{op.kind}[{_duration(op.gap)}]"


def _step(step: ast.Step) -> str:
    match step.atom:
        case ast.Ref(name):
            atom = name
        case ast.Bracket(kind, operands):
            atom = f"({f' {kind} '.join(format_sequence(operand) for operand in operands)})"
    return atom + ("!" if step.negated else _quantifier(step.quantifier))


def _quantifier(quantifier: ast.Quantifier | None) -> str:
    if quantifier is None:
        return ""
    greedy = "+" if quantifier.greedy else ""
    operator = "" if quantifier.own is None else _own(quantifier.own)
    until = "" if quantifier.until is None else f" UNTIL {quantifier.until.name}"
    return _bounds(quantifier) + greedy + operator + until


def _own(op: ast.Op) -> str:
    return f"[{op.kind}]" if op.gap is None else f"[{op.kind} {_duration(op.gap)}]"


def _bounds(quantifier: ast.Quantifier) -> str:
    match quantifier:
        case ast.Quantifier(minimum, maximum) if (minimum, maximum) in _QUANTIFIERS:
            return _QUANTIFIERS[minimum, maximum]
        case ast.Quantifier(minimum, None):
            return f"{{{minimum},}}"
        case ast.Quantifier(minimum, maximum):
            return f"{{{minimum}}}" if minimum == maximum else f"{{{minimum},{maximum}}}"
