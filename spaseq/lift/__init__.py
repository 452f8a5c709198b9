"""Lifts: rows of tables and JSON messages as graph events (docs/lift.md).

A lift is a CONSTRUCT query over the fields of one row. Its readers make columns of cells, its
WHERE makes columns of solutions, and its template makes event batches.
"""
