"""Tests of queries in TOML files: events step by step, and the answers that each step makes final.

`case_file` reads and checks a file, `case_run` runs its tests, `case_nodes` compares answers,
and `report_text` and `junit_file` show what came out.
"""
