"""Kernels that read N-Quads and N-Triples.

Texts are spans of one byte buffer. The caller pads the buffer: at least `PAD` line feeds follow
each offset that it passes as an end. Loads are 32 bytes wide and searches stop at control
characters, so neither checks for the end.
"""

PAD = 64
"""Number of line feeds after the last byte of a text."""
