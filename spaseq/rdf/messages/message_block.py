"""The quads of several messages in columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.rdf.columns.quad_block import BlockBuilder, QuadBlock
from spaseq.records import record

Report = Callable[[int | None, str, str], None]
"""Called with the line of bad input (None if unknown), the reason, and its text."""

SHOWN = 300
"""Bytes of a message in a report."""


@record
class MessageText:
    """One message as bytes. `line` is the line, from 1, at which `text` begins.

    `refusal` is the reason why it is bad input, where that is known before it is parsed.
    """

    text: bytes
    line: int
    refusal: str | None = None

    @property
    def first_line(self) -> int:
        """The line of the first character that is no white space."""
        space = len(self.text) - len(self.text.lstrip())
        return self.line + self.text.count(b"\n", 0, space)

    @property
    def shown(self) -> str:
        """The begin of the message, for a report."""
        return self.text.strip()[:SHOWN].decode(errors="replace")


@record
class MessageBlock:
    """The quads of consecutive messages; row i belongs to message number `message[i]`."""

    quads: QuadBlock
    message: Int64s  # [m], ascending
    lines: Sequence[int]  # the line where each message begins, from 1
    names: Sequence[str] | None = None  # the name of each one's event without a graph, or ""


def alone(quads: QuadBlock, line: int) -> MessageBlock:
    """The quads of one message, which begins at this line."""
    return MessageBlock(quads, np.zeros(len(quads), np.int64), [line])


def gathered(parts: Sequence[MessageBlock]) -> MessageBlock:
    """Consecutive messages without names as one block."""
    if len(parts) == 1:
        return parts[0]
    first = np.cumsum([0, *(len(part.lines) for part in parts)])
    message = [part.message + at for part, at in zip(parts, first[:-1], strict=True)]
    lines = [line for part in parts for line in part.lines]
    quads = joined([part.quads for part in parts])
    return MessageBlock(quads, np.concatenate([np.empty(0, np.int64), *message]), lines)


def joined(blocks: Sequence[QuadBlock]) -> QuadBlock:
    """Consecutive blocks as one, with one term table."""
    if len(blocks) == 1:
        return blocks[0]
    codes: dict[str, int] = {}
    columns: list[tuple[Int32s, ...]] = []
    for block in blocks:
        recode = np.empty(len(block.terms) + 1, np.int32)
        recode[-1] = -1
        recode[:-1] = [codes.setdefault(text, len(codes)) for text in block.terms]
        columns.append(tuple(recode[column] for column in (block.s, block.p, block.o, block.g)))
    if not columns:
        return BlockBuilder().block()
    s, p, o, g = (np.concatenate(column) for column in zip(*columns, strict=True))
    line = np.concatenate([block.line for block in blocks])
    size = sum(block.size for block in blocks)
    return replace(blocks[0], s=s, p=p, o=o, g=g, line=line, terms=list(codes), size=size)
