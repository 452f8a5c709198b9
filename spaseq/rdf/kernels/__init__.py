"""Compiled code that reads N-Quads and N-Triples at the rate at which memory can be read.

Texts are spans of one byte buffer. Whoever gives the buffer sees to it that at least `PAD` bytes
can be read, and hold line feeds, beyond any place that is given as an end: loads are 32 bytes wide
and searches stop at control characters, so neither needs to look for the end itself.
"""

PAD = 64
"""Bytes, all line feeds, that follow the last byte of a text."""
