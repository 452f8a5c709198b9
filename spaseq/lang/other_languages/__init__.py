"""Replacements for the syntax of SQL, FlinkCEP, Esper and related languages."""
