"""Turtle to columns of term codes, statement by statement.

The kernel reads the syntax that most documents have: IRIs, prefixed names, labels, literals,
numbers, `a`, lists with `;` and `,`, and `[ ]`. It stops before a statement that is not certainly
well-formed, or has other syntax: a relative IRI, a collection, a triple term, a string in
apostrophes.
"""

from __future__ import annotations

from spaseq.compiled.arrays import Bytes, Int32s
from spaseq.compiled.decorators import inlined_device_function, lean_kernel
from spaseq.rdf.kernels.lines import (
    AT,
    DONE,
    HASH_SIGN,
    ROW,
    ROWS_FULL,
    TERM,
    TERMS_FULL,
    QuadRows,
    line_end,
)
from spaseq.rdf.kernels.literals import QUOTE
from spaseq.rdf.kernels.turtle_terms import (
    BLANK,
    LETTER,
    NO_ROOM,
    OBJECT,
    SUBJECT,
    VERB,
    TurtleText,
    is_,
    made_node,
    prefix_end,
    read_term,
)
from spaseq.rdf.kernels.vectors import byte

HEAP_FULL, DIRECTIVE, STUCK = 4, 5, 6
"""Further results: the buffer is full; a directive follows; a parser must read what follows."""

DEEPEST = 32
"""Most `[` within each other that the kernel reads."""

# What a statement goes on with, besides SUBJECT, VERB and OBJECT.
_VERB_OR_END, _VERB_OR_CLOSE, _VERB_OR_DOT, _AFTER = range(3, 7)

_AT_SIGN, _DOT, _OPEN, _CLOSE, _COMMA, _SEMICOLON = b"@.[],;"


@inlined_device_function
def _next_token(buffer: Bytes, at: int, end: int) -> int:
    """The offset of the next token, behind white space and comments; at least `end` if none."""
    while at < end:
        if byte(buffer, at) == HASH_SIGN:
            at = line_end(buffer, at)
        elif not is_(buffer, at, BLANK):
            break
        else:
            at += 1
    return at


@lean_kernel
def read_turtle(
    text: TurtleText, is_last: bool, most: int, deepest: int, rows: QuadRows, stack: Int32s
) -> int:
    """Read whole statements from `state[AT]` on into `rows`, and set `state[AT]`.

    Returns DONE; DIRECTIVE or STUCK; or the array that is full, to be replaced by a larger copy.

    Args:
        text: the text.
        is_last: whether the document ends with it.
        most: bytes of a statement, and of the white space and comments before it.
        deepest: most `[` within each other, at most DEEPEST.
        rows: the triples; only `s`, `p` and `o` are set.
        stack: int32 [DEEPEST, 2], for subject and predicate of the statements around a `[`.
    """
    buffer, end, state = text.buffer, text.end, text.state
    at, row = state[AT], state[ROW]
    status = DONE
    while status == DONE:
        begin, first = at, row
        at = _next_token(buffer, at, end)
        if at >= end:
            if not is_last:
                at = begin
            break
        value = byte(buffer, at)
        if value == _AT_SIGN or (is_(buffer, at, LETTER) and prefix_end(buffer, at) < 0):
            status = DIRECTIVE
            break
        depth, expects, waits = 0, SUBJECT, False
        subject = predicate = -1
        status = STUCK
        while True:
            at = _next_token(buffer, at, end)
            if at >= end:
                break
            value = byte(buffer, at)
            waited, waits = waits, False
            object_ = -1
            if value == _DOT:
                ends = expects == _AFTER or expects == _VERB_OR_END or expects == _VERB_OR_DOT
                at += 1
                if ends and depth == 0 and (at < end or is_last) and at - begin <= most:
                    status = DONE
                break
            if value == _SEMICOLON:
                if expects != _AFTER and expects != _VERB_OR_END:
                    break
                expects = _VERB_OR_END
                at += 1
                continue
            if value == _COMMA:
                if expects != _AFTER:
                    break
                expects = OBJECT
                at += 1
                continue
            if state[TERM] + 2 > len(text.spans):
                status = TERMS_FULL
                break
            if value == _OPEN:
                if (expects != SUBJECT and expects != OBJECT) or depth == deepest:
                    break
                code = made_node(text)
                if code < 0:
                    status = HEAP_FULL if code == NO_ROOM else STUCK
                    break
                stack[depth, 0] = subject
                stack[depth, 1] = predicate
                depth += 1
                subject, expects = code, _VERB_OR_CLOSE
                at += 1
                continue
            if value == _CLOSE:
                if depth == 0 or (
                    expects != _AFTER and expects != _VERB_OR_END and expects != _VERB_OR_CLOSE
                ):
                    break
                at += 1
                depth -= 1
                if stack[depth, 0] < 0:
                    expects = VERB if expects == _VERB_OR_CLOSE else _VERB_OR_DOT
                    continue
                object_ = subject
                subject, predicate = stack[depth, 0], stack[depth, 1]
            elif expects == _AFTER:
                break
            else:
                wanted = expects if expects == SUBJECT or expects == OBJECT else VERB
                code, at = read_term(text, at, wanted)
                if code < 0:
                    status = HEAP_FULL if code == NO_ROOM else STUCK
                    break
                if wanted == SUBJECT:
                    subject, expects = code, VERB
                    continue
                if wanted == VERB:
                    predicate, expects = code, OBJECT
                    continue
                object_ = code
            if row >= len(rows.s):
                status = ROWS_FULL
                break
            place = row
            if value == _CLOSE and waited:
                place = row - 1
                rows.s[row], rows.p[row] = rows.s[place], rows.p[place]
                rows.o[row] = rows.o[place]
            rows.s[place] = subject
            rows.p[place] = predicate
            rows.o[place] = object_
            row += 1
            # pyoxigraph sees the end of a plain string by the next token. If that is a `]`, the
            # triple of the `[ ]` comes first. The labels of blank nodes depend on the order.
            waits = value == QUOTE and byte(buffer, at - 1) == QUOTE
            expects = _AFTER
        if status != DONE:
            at, row = begin, first
    state[AT], state[ROW] = at, row
    return status
