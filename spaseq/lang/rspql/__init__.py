"""Queries of RSP-QL and C-SPARQL, and the spaseq queries that say the same (docs/windows.md)."""
