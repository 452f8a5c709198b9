"""The quads of several messages in columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.rdf.columns.quad_block import BlockBuilder, QuadBlock
from spaseq.records import record


@record
class MessageBlock:
    """The quads of consecutive messages; row i belongs to message number `message[i]`."""

    quads: QuadBlock
    message: Int64s  # [m], ascending
    lines: Sequence[int]  # the line where each message begins, from 1
    names: Sequence[str] | None = None  # the name of each one's event without a graph, or ""


def gathered(parts: Sequence[tuple[QuadBlock, int]]) -> MessageBlock:
    """Messages that were parsed one by one: (quads, first line) of each."""
    blocks = [block for block, _ in parts]
    message = np.repeat(np.arange(len(parts)), [len(block) for block in blocks])
    return MessageBlock(joined(blocks), message, [line for _, line in parts])


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
