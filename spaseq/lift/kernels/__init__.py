"""Kernels that read JSON lines.

They take nothing for granted: of a line that is not usual they say so, and the reader of rows reads
it. As for the kernels of N-Quads, line feeds follow the last line.
"""
