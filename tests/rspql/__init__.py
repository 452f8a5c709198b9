"""Tests of the translation of RSP-QL and C-SPARQL."""
