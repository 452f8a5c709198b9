"""Tests of queries in TOML files: events step by step, and the answers that each step makes final.

`case_file` reads and checks a file, `case_run` runs its tests and reports
what came out, `case_nodes` compares answers.
"""
