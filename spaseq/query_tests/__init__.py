"""Tests of queries in TOML files: events step by step, and the answers that become final.

`case_file` reads and checks a file, `case_run` runs its tests and reports the outcomes,
`case_nodes` compares answers.
"""
